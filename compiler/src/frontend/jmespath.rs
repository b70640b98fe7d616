//! Kyverno's dialect of JMESPath. The parser lives in the runtime crate, which has
//! to read expressions too whose text is known only while a rule runs.

pub use kpvm::jmespath::*;
