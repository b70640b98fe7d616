//! The ahead-of-time compiler: policies in YAML in, a bundle and diagnostics out.
//!
//! Nothing here ever looks at a resource.

pub mod diagnostic;
pub mod frontend;
pub mod policy;
pub mod source;
