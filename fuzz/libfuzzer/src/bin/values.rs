#![no_main]
kpvm_libfuzzer::drive!(values);
