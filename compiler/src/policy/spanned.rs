//! Values with their source location.

use kpvm_syntax::tree::Span;

/// A value and its place in the policy's file.
#[derive(Debug, Clone, PartialEq)]
pub struct Spanned<T> {
    /// The value.
    pub value: T,
    /// Where it stands.
    pub span: Span,
}
