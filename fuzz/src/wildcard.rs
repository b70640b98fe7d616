//! Wildcards against their definition.

use std::str::from_utf8;

use kpvm_semantics::wildcard::{classify, contains_wildcard, matches, matches_class, worst_steps};

use crate::target::Target;
use crate::text::texts;

/// The target.
pub const TARGET: Target = Target {
    name: "wildcard",
    run,
    seeds,
    words: &["*", "?", "**", "*?", "é", "\u{fffd}", "\n"],
    max_bytes: 256,
};

/// The first line is the pattern, the rest the text; bytes that are not UTF-8 are allowed.
pub fn run(input: &[u8]) {
    let Some(end) = input.iter().position(|byte| *byte == b'\n') else {
        return;
    };
    let (pattern, text) = (&input[..end], &input[end + 1..]);
    let expected = defined(&characters(pattern), &characters(text));
    assert_eq!(matches(pattern, text), expected, "the definition");
    assert!(worst_steps(pattern, text) >= (pattern.len() + text.len()) as u64);
    if let (Ok(pattern), Ok(text)) = (from_utf8(pattern), from_utf8(text)) {
        let class = classify(pattern);
        assert_eq!(matches_class(class, pattern, text), expected, "{class:?}");
        if !contains_wildcard(pattern) {
            assert_eq!(pattern == text, expected, "no wildcard");
        }
    }
}

/// Characters; each invalid byte is U+FFFD.
fn characters(bytes: &[u8]) -> Vec<char> {
    let mut characters = Vec::new();
    for chunk in bytes.utf8_chunks() {
        characters.extend(chunk.valid().chars());
        characters.extend(chunk.invalid().iter().map(|_| '\u{FFFD}'));
    }
    characters
}

/// `*` is any characters and `?` one (docs/spec/patterns.md §8): whether each prefix of the text
/// matches, for one more character of the pattern at a time.
fn defined(pattern: &[char], text: &[char]) -> bool {
    let mut prefixes = vec![false; text.len() + 1];
    prefixes[0] = true;
    for wanted in pattern {
        let mut next = vec![false; text.len() + 1];
        for at in 0..=text.len() {
            next[at] = match wanted {
                '*' => prefixes[at] || (at > 0 && next[at - 1]),
                '?' => at > 0 && prefixes[at - 1],
                wanted => at > 0 && prefixes[at - 1] && text[at - 1] == *wanted,
            };
        }
        prefixes = next;
    }
    prefixes[text.len()]
}

fn seeds() -> Vec<Vec<u8>> {
    texts(&[
        "*\nabc",
        "a?c\nabc",
        "*b*\nabc",
        "a*c?e*\nabcdefg",
        "é?*ü\néaaü",
        "abc\nabc",
        "?*\n",
        "**\n*",
    ])
}
