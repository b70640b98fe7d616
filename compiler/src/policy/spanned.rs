//! Values with their source location.

use kpvm_syntax::tree::Span;

/// A value and its location in the policy file.
#[derive(Debug, Clone, PartialEq)]
pub struct Spanned<T> {
    /// The value.
    pub value: T,
    /// Location.
    pub span: Span,
}
