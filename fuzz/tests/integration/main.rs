//! Every harness over its checked-in corpus and its seeds.

#![allow(clippy::unwrap_used, clippy::print_stdout)]

mod corpus;
