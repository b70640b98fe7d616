//! A catalogue of hostile inputs. Every row has an input and the required outcome, and runs
//! under one oracle ([`oracle::check`]) on a thread with a small stack. A number identifies
//! the attack that a row belongs to; several rows can share one.

mod assertion;
mod bundle;
mod bypass;
mod carried;
mod cel;
mod exception;
mod expression;
mod fuel;
pub(crate) mod oracle;
mod pod_security;
mod policy;
mod resource;
mod suite;
mod yaml_format;
