//! Scalar semantics shared by compile time and run time.
