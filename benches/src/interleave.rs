//! Compares times on a busy machine: the candidates take turns, so that load affects all of
//! them alike, and the median of each counts.
//!
//! Turns are short: one that exceeds the scheduler's time slice on a busy machine is always
//! interrupted, and then no median is meaningful.
//!
//! Candidates time themselves, so that each can prepare outside its measurement. Returns
//! microseconds per item; prints nothing.

use std::ops::Range;
use std::time::{Duration, Instant};

/// Rounds for the median.
const ROUNDS: usize = 41;

/// Items per turn.
const TURN: usize = 25;

/// Works on a range of items and returns the time taken.
pub type Candidate<'c> = &'c mut dyn FnMut(Range<usize>) -> Duration;

/// Time of each candidate in microseconds per item, for `items` items: the mean over turns
/// of the median over rounds. A round covers all items once, so that items stay
/// unpredictable to the processor. The first candidate of a turn finds its items outside
/// the caches, so each round another one begins.
pub fn medians<const N: usize>(items: usize, candidates: [Candidate<'_>; N]) -> [f64; N] {
    let turns = items.div_ceil(TURN);
    let mut times = vec![[const { Vec::new() }; N]; turns];
    for round in 0..ROUNDS {
        for (turn, times) in times.iter_mut().enumerate() {
            let range = turn * TURN..items.min((turn + 1) * TURN);
            for step in 0..N {
                let number = (round + step) % N;
                times[number].push(candidates[number](range.clone()));
            }
        }
    }
    let mut sums = [0.0; N];
    for times in &mut times {
        for (sum, rounds) in sums.iter_mut().zip(times) {
            rounds.sort();
            *sum += rounds[ROUNDS / 2].as_secs_f64();
        }
    }
    sums.map(|sum| sum * 1e6 / items as f64)
}

/// Time taken by `work`.
pub fn time(work: impl FnOnce()) -> Duration {
    let start = Instant::now();
    work();
    start.elapsed()
}
