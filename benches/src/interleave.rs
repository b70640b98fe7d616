//! Comparing times on a machine that does other things too: the candidates take
//! turns, so that what slows one slows all, and of each the median counts.
//!
//! A turn is short. One that outlasts the time that the system gives a process on a
//! busy machine is always interrupted, and then no median tells how long it takes.
//!
//! Enters: candidates that time themselves (so that each can prepare outside of its
//! clock). Leaves: microseconds for one item. Nothing is printed here.

use std::ops::Range;
use std::time::{Duration, Instant};

/// Rounds of which the median is taken.
const ROUNDS: usize = 41;

/// Items of one turn.
const TURN: usize = 25;

/// Works on the items of a range and says how long that took.
pub type Candidate<'c> = &'c mut dyn FnMut(Range<usize>) -> Duration;

/// The time of each candidate in microseconds for one of `items` items: the mean
/// over turns of the median over rounds. A round goes through all items before any
/// comes again, so that different items stay a surprise to the processor. Who begins a turn
/// finds its items outside of the caches, so in each round another one begins.
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

/// How long `work` takes.
pub fn time(work: impl FnOnce()) -> Duration {
    let start = Instant::now();
    work();
    start.elapsed()
}
