//! Programs that run the harnesses of `kpvm-fuzz` under libFuzzer.

pub use {kpvm_fuzz, libfuzzer_sys};

/// Processor time of one input, in seconds.
pub const SECONDS: u64 = 1;

/// The program of a target.
#[macro_export]
macro_rules! drive {
    ($target:ident) => {
        use $crate::libfuzzer_sys;

        libfuzzer_sys::fuzz_target!(|input: &[u8]| {
            let time = std::time::Duration::from_secs($crate::SECONDS);
            $crate::kpvm_fuzz::target::check($crate::kpvm_fuzz::$target::run, input, time);
        });
    };
}
