#![no_main]
kpvm_libfuzzer::drive!(yaml_writer);
