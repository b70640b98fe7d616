//! The grammar of anchored keys, shared with the runtime.

pub use kpvm::anchor::{Anchor, AnchoredKey, parse};
