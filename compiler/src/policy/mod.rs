//! Policies: the typed model, reading it from YAML, checking it, autogen.

pub mod model;
