//! Harnesses and benches.
