//! The grammar of anchored keys (docs/spec/patterns.md §4.1).

/// Anchors of a key (docs/spec/patterns.md §4.1).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[repr(u8)]
pub enum Anchor {
    /// A plain key.
    None,
    /// `(key)`
    Conditional,
    /// `=(key)`
    Equality,
    /// `X(key)`
    Negation,
    /// `^(key)`
    Existence,
    /// `<(key)`
    Global,
    /// `+(key)`, for mutation only.
    AddIfNotPresent,
}

impl Anchor {
    /// All anchors in the order of their numbers.
    pub const ALL: [Anchor; 7] = [
        Anchor::None,
        Anchor::Conditional,
        Anchor::Equality,
        Anchor::Negation,
        Anchor::Existence,
        Anchor::Global,
        Anchor::AddIfNotPresent,
    ];

    /// Characters before the parenthesis.
    pub fn modifier(self) -> &'static str {
        match self {
            Anchor::None | Anchor::Conditional => "",
            Anchor::Equality => "=",
            Anchor::Negation => "X",
            Anchor::Existence => "^",
            Anchor::Global => "<",
            Anchor::AddIfNotPresent => "+",
        }
    }
}

/// A parsed key.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct AnchoredKey<'k> {
    /// The anchor.
    pub anchor: Anchor,
    /// The text in parentheses, or the whole key without an anchor.
    pub inner: &'k str,
}

/// Parses a key: `^[+<=X^]?\((.+)\)$` after trimming white space.
///
/// Any other text is a plain key, including its spaces.
pub fn parse(key: &str) -> AnchoredKey<'_> {
    let plain = AnchoredKey {
        anchor: Anchor::None,
        inner: key,
    };
    let trimmed = key.trim();
    let (anchor, rest) = match trimmed.chars().next() {
        Some('+') => (Anchor::AddIfNotPresent, &trimmed[1..]),
        Some('<') => (Anchor::Global, &trimmed[1..]),
        Some('=') => (Anchor::Equality, &trimmed[1..]),
        Some('X') => (Anchor::Negation, &trimmed[1..]),
        Some('^') => (Anchor::Existence, &trimmed[1..]),
        _ => (Anchor::Conditional, trimmed),
    };
    match rest
        .strip_prefix('(')
        .and_then(|rest| rest.strip_suffix(')'))
    {
        Some(inner) if !inner.is_empty() && !inner.contains('\n') => AnchoredKey { anchor, inner },
        _ => plain,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_of_section_4_1() {
        use Anchor::*;
        let cases = [
            ("(a)", Conditional, "a"),
            ("=(a)", Equality, "a"),
            ("X(a)", Negation, "a"),
            ("^(a)", Existence, "a"),
            ("<(a)", Global, "a"),
            ("+(a)", AddIfNotPresent, "a"),
            (" (name) ", Conditional, "name"),
            ("( name )", Conditional, " name "),
            ("(a)(b)", Conditional, "a)(b"),
            ("=((a))", Equality, "(a)"),
            ("()", None, "()"),
            ("^()", None, "^()"),
            ("(a", None, "(a"),
            ("a)", None, "a)"),
            ("x(a)", None, "x(a)"),
            ("==(a)", None, "==(a)"),
            ("X (a)", None, "X (a)"),
            (" a ", None, " a "),
        ];
        for (key, anchor, inner) in cases {
            assert_eq!(parse(key), AnchoredKey { anchor, inner }, "{key}");
        }
    }
}
