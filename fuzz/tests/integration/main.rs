//! Every harness over its checked-in corpus.

#![allow(clippy::unwrap_used, clippy::print_stdout)]

mod corpus;
