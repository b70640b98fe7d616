//! Names that a query mentions, which decide whether a context entry is loaded.

/// Whether a query mentions a name: `(?:\A|\z|\s|[^.0-9A-Za-z])NAME\b`
/// (docs/spec/conditions.md §8.2).
pub fn mentions(query: &str, name: &str) -> bool {
    let is_word = |character: char| character.is_ascii_alphanumeric() || character == '_';
    let mut from = 0;
    while let Some(at) = query.get(from..).and_then(|rest| rest.find(name)) {
        let at = from + at;
        let before = query[..at].chars().next_back();
        let starts = before.is_none_or(|before| !(before == '.' || before.is_ascii_alphanumeric()));
        let last = name.chars().next_back().or(before);
        let last_is_word = last.is_some_and(is_word);
        let after_is_word = query[at + name.len()..].chars().next().is_some_and(is_word);
        if starts && last_is_word != after_is_word {
            return true;
        }
        from = at + query[at..].chars().next().map_or(1, char::len_utf8);
    }
    false
}

#[cfg(test)]
mod tests {
    use super::mentions;

    #[test]
    fn a_name_without_characters_is_mentioned_where_a_word_begins() {
        assert!(mentions("x.y", ""));
        assert!(!mentions("", "") && !mentions("..", ""));
    }

    #[test]
    fn names_in_queries() {
        for query in ["x.y", "(x)", "a||x", "\"x\"", "_x", "x", " x ", "'x'"] {
            assert!(mentions(query, "x"), "{query}");
        }
        for query in ["y.x", "xy", "x1", "x_y", "1x"] {
            assert!(!mentions(query, "x"), "{query}");
        }
    }
}
