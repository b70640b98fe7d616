//! Kyverno's wildcards: `*` any run of characters, `?` exactly one, nothing
//! else special (sheet 01, section 3).
//!
//! Pattern and text come in, yes or no leaves; nothing is allocated.

/// Whether the whole of `text` matches `pattern`.
pub(crate) fn matches(pattern: &str, text: &str) -> bool {
    let (mut pattern_rest, mut text_rest) = (pattern, text);
    // Where to go on when the characters after the last `*` do not fit.
    let mut retry: Option<(&str, &str)> = None;
    loop {
        let mut pattern_chars = pattern_rest.chars();
        let mut text_chars = text_rest.chars();
        match (pattern_chars.next(), text_chars.next()) {
            (Some('*'), _) => {
                pattern_rest = pattern_chars.as_str();
                retry = Some((pattern_rest, text_rest));
                continue;
            }
            (None, None) => return true,
            (Some(wanted), Some(found)) if wanted == '?' || wanted == found => {
                (pattern_rest, text_rest) = (pattern_chars.as_str(), text_chars.as_str());
                continue;
            }
            _ => {}
        }
        let Some((after_star, skipped)) = retry else {
            return false;
        };
        let mut skipped_chars = skipped.chars();
        if skipped_chars.next().is_none() {
            return false;
        }
        (pattern_rest, text_rest) = (after_star, skipped_chars.as_str());
        retry = Some((pattern_rest, text_rest));
    }
}

/// Whether the text has a `*` or a `?`.
pub(crate) fn contains_wildcard(text: &str) -> bool {
    text.contains(['*', '?'])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn worked_cases_10_and_11() {
        let cases = [
            ("my-?-x", "my--x", false),
            ("my-?-x", "my-1-x", true),
            ("abc????", "abcde", false),
            ("abc????", "abcdefg", true),
            ("mnop*?", "mnop", false),
            ("mnop*?", "mnopq", true),
            ("", "", true),
            ("", "a", false),
            ("*", "", true),
            ("a.c", "abc", false),
            ("é?", "éa", true),
        ];
        for (pattern, text, expected) in cases {
            assert_eq!(matches(pattern, text), expected, "{pattern} on {text}");
        }
    }
}
