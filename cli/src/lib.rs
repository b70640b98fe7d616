//! Library of the programs `kpc` and `kpvm`: a thin layer over the compiler and the engine.
//!
//! All output goes through the writers of [`stream::Streams`]: the payload to standard
//! output, everything else for people to standard error. The meaning of a rule is never
//! decided here.

pub mod calls;
pub mod cel_context;
pub mod cluster;
pub mod command;
pub mod command_host;
pub mod computed_rule;
pub mod coverage;
pub mod demands;
pub mod diagnostics;
pub mod evaluation;
pub mod explain;
pub mod expression;
pub mod fake_client;
pub mod global_entries;
pub mod go_json;
pub mod head;
pub mod heading;
pub mod hints;
pub mod host;
pub mod input;
pub mod json_list;
pub mod json_text;
pub mod line_index;
pub mod list;
pub mod models;
pub mod nearest;
pub mod nulls;
pub mod omitted;
pub mod output;
pub mod outside;
pub mod part;
pub mod piece;
pub mod pipeline;
pub mod place;
pub mod policies;
pub mod position;
pub mod problem;
pub mod report;
pub mod resources;
pub mod scan;
pub mod serialised;
pub mod stream;
pub mod strict;
pub mod suite;
pub mod text;
pub mod unmatched;
pub mod user_info;
pub mod values;
pub mod why_unmatched;
pub mod worker;
