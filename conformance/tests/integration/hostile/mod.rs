//! Hostile inputs, row by row: every row has the number of the catalogue of hostile
//! inputs (sections 3.1 to 3.7), an input, and what must happen. All rows go through
//! one oracle ([`oracle::check`]) on a thread with a small stack.

mod assertion;
mod bundle;
mod bypass;
mod cel;
mod exception;
mod expression;
mod oracle;
mod pod_security;
mod policy;
mod resource;
mod suite;
mod yaml_format;
