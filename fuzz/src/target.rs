//! A fuzz target, and the limits under which its harness runs.

use std::panic::{catch_unwind, resume_unwind};
use std::time::{Duration, Instant};

/// Peak memory of an input beyond [`MEMORY_PER_BYTE`]: buffers with a fixed size, and what a
/// harness sets up once.
const MEMORY: u64 = 64 << 20;

/// Peak memory for each byte of the input.
const MEMORY_PER_BYTE: u64 = 64;

/// A harness with everything that a fuzzer needs to run it.
#[derive(Clone, Copy)]
pub struct Target {
    /// Name of the target: of its corpus and its program.
    pub name: &'static str,
    /// Checks the property; panics where it does not hold.
    pub run: fn(&[u8]),
    /// Inputs to start from, made of this repository's own data.
    pub seeds: fn() -> Vec<Vec<u8>>,
    /// Words of the input's language.
    pub words: &'static [&'static str],
    /// Longest input that the fuzzer tries.
    pub max_bytes: usize,
}

impl Target {
    /// Runs the harness within the limits on time and memory.
    ///
    /// # Panics
    /// If the property does not hold or a limit is exceeded.
    pub fn check(&self, input: &[u8], time: Duration) {
        check(self.run, input, time);
    }
}

/// Runs a harness within the limits on time and memory.
///
/// # Panics
/// If the property does not hold or a limit is exceeded.
pub fn check(run: fn(&[u8]), input: &[u8], time: Duration) {
    let start = Instant::now();
    let mut outcome = Ok(());
    // Unwinding through `measure` would leave it counting.
    let memory = allocation_counter::measure(|| outcome = catch_unwind(|| run(input))).bytes_max;
    outcome.unwrap_or_else(|panic| resume_unwind(panic));
    if start.elapsed() > time {
        // Other programs may have prolonged it, or the harness was set up.
        let elapsed = processor_time(|| run(input));
        assert!(elapsed <= time, "took {elapsed:?}");
    }
    let bound = MEMORY + MEMORY_PER_BYTE * input.len() as u64;
    assert!(memory <= bound, "{memory} bytes of memory");
}

/// Processor time of this thread according to Linux; elsewhere wall time.
fn processor_time(run: impl FnOnce()) -> Duration {
    let (wall, start) = (Instant::now(), thread_time());
    run();
    match (start, thread_time()) {
        (Some(start), Some(end)) if end > start => end - start,
        _ => wall.elapsed(),
    }
}

fn thread_time() -> Option<Duration> {
    let text = std::fs::read_to_string("/proc/thread-self/schedstat").ok()?;
    let nanoseconds = text.split(' ').next()?.parse().ok()?;
    Some(Duration::from_nanos(nanoseconds))
}
