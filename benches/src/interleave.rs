//! Comparing times on a machine that does other things too: the candidates take
//! turns, so that what slows one slows all, and of each the median counts.
//!
//! Enters: candidates that time themselves (so that each can prepare outside of its
//! clock). Leaves: microseconds for one item. Nothing is printed here.

use std::time::{Duration, Instant};

/// Rounds of which the median is taken.
const ROUNDS: usize = 41;

/// The medians of the candidates in microseconds for each of `items` items.
pub fn medians<const N: usize>(
    items: usize,
    mut candidates: [&mut dyn FnMut() -> Duration; N],
) -> [f64; N] {
    let mut times = [const { Vec::new() }; N];
    for _ in 0..ROUNDS {
        for (rounds, candidate) in times.iter_mut().zip(&mut candidates) {
            rounds.push(candidate());
        }
    }
    times.map(|mut rounds| {
        rounds.sort();
        rounds[ROUNDS / 2].as_secs_f64() * 1e6 / items as f64
    })
}

/// How long `work` takes.
pub fn time(work: impl FnOnce()) -> Duration {
    let start = Instant::now();
    work();
    start.elapsed()
}
