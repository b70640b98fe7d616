//! Keys with anchors (docs/spec/patterns.md §4.1).

/// What a key of a pattern demands.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Anchor {
    Conditional,
    Equality,
    Negation,
    Existence,
    Global,
    AddIfNotPresent,
}

/// The anchor of a key and its inner key: `^([+<=X^])?\((.+)\)$` of the trimmed text.
pub(crate) fn parse(key: &str) -> Option<(Anchor, &str)> {
    let key = key.trim();
    let modifiers = [
        ("(", Anchor::Conditional),
        ("=(", Anchor::Equality),
        ("X(", Anchor::Negation),
        ("^(", Anchor::Existence),
        ("<(", Anchor::Global),
        ("+(", Anchor::AddIfNotPresent),
    ];
    let (anchor, rest) = modifiers
        .into_iter()
        .find_map(|(start, anchor)| Some((anchor, key.strip_prefix(start)?)))?;
    let inner = rest.strip_suffix(')')?;
    (!inner.is_empty() && !inner.contains('\n')).then_some((anchor, inner))
}

/// The key without its anchor.
pub(crate) fn inner(key: &str) -> &str {
    parse(key).map_or(key, |(_, inner)| inner)
}

/// Another inner key under the same anchor; without one the key itself.
pub(crate) fn with_inner(key: &str, inner: &str) -> String {
    let modifier = match parse(key) {
        None => return inner.to_owned(),
        Some((Anchor::Conditional, _)) => "",
        Some((Anchor::Equality, _)) => "=",
        Some((Anchor::Negation, _)) => "X",
        Some((Anchor::Existence, _)) => "^",
        Some((Anchor::Global, _)) => "<",
        Some((Anchor::AddIfNotPresent, _)) => "+",
    };
    format!("{modifier}({inner})")
}
