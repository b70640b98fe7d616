//! Wildcard matching: `*` matches any run of characters, `?` exactly one character,
//! everything else itself (docs/spec/patterns.md §8).
//!
//! There is no escape character, no allocation and no recursion. A pattern consists of a
//! literal head before its first `*`, a tail after its last `*`, and segments in between,
//! each of which is matched at its leftmost position.

use memchr::memmem;

/// Shape of a wildcard, which selects the cheapest equivalent test.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[repr(u8)]
pub enum WildcardClass {
    /// No wildcard.
    Literal,
    /// `*`
    Any,
    /// `text*`
    Prefix,
    /// `*text`
    Suffix,
    /// `*text*`
    Contains,
    /// Anything else.
    General,
}

impl WildcardClass {
    /// All classes in the order of their numbers.
    pub const ALL: [WildcardClass; 6] = [
        WildcardClass::Literal,
        WildcardClass::Any,
        WildcardClass::Prefix,
        WildcardClass::Suffix,
        WildcardClass::Contains,
        WildcardClass::General,
    ];
}

/// The character with which Go replaces an invalid byte.
const REPLACEMENT: u32 = 0xFFFD;

/// Whether a text contains a wildcard character (docs/spec/patterns.md §8).
#[must_use]
pub fn contains_wildcard(text: &str) -> bool {
    memchr::memchr2(b'*', b'?', text.as_bytes()).is_some()
}

/// Class of a pattern, for [`matches_class`].
#[must_use]
pub fn classify(pattern: &str) -> WildcardClass {
    if !contains_wildcard(pattern) {
        return WildcardClass::Literal;
    }
    if pattern.bytes().all(|byte| byte == b'*') {
        return WildcardClass::Any;
    }
    let without_front = pattern.strip_prefix('*');
    let without_back = pattern.strip_suffix('*');
    let without_both = without_front.and_then(|rest| rest.strip_suffix('*'));
    let plain = |part: Option<&str>| part.is_some_and(|part| !contains_wildcard(part));
    if plain(without_back) {
        WildcardClass::Prefix
    } else if plain(without_front) {
        WildcardClass::Suffix
    } else if plain(without_both) {
        WildcardClass::Contains
    } else {
        WildcardClass::General
    }
}

/// Same result as [`matches`], with a fast path for the common classes.
///
/// `class` must be the result of [`classify`] for `pattern`; another class gives a wrong
/// result, but never a panic. Both texts are UTF-8, for which comparing bytes and
/// characters is equivalent.
#[must_use]
pub fn matches_class(class: WildcardClass, pattern: &str, text: &str) -> bool {
    let head = || pattern.strip_suffix('*').unwrap_or(pattern);
    let tail = || pattern.strip_prefix('*').unwrap_or(pattern);
    match class {
        WildcardClass::Literal => pattern == text,
        WildcardClass::Any => true,
        WildcardClass::Prefix => text.starts_with(head()),
        WildcardClass::Suffix => text.ends_with(tail()),
        WildcardClass::Contains => {
            let inner = tail();
            let inner = inner.strip_suffix('*').unwrap_or(inner);
            memmem::find(text.as_bytes(), inner.as_bytes()).is_some()
        }
        WildcardClass::General => matches(pattern.as_bytes(), text.as_bytes()),
    }
}

/// Whether the pattern matches the whole text (docs/spec/patterns.md §8).
///
/// Invalid bytes count as one U+FFFD each, on both sides. Time is linear unless a segment
/// between two `*` contains a `?`: see [`worst_steps`].
#[must_use]
#[inline]
pub fn matches(pattern: impl AsRef<[u8]>, text: impl AsRef<[u8]>) -> bool {
    let (pattern, text) = (pattern.as_ref(), text.as_ref());
    // Covers most patterns of kinds, names and namespaces. A text matches itself, even with
    // wildcard characters.
    pattern == b"*" || pattern == text || bytes_match(pattern, text)
}

fn bytes_match(pattern: &[u8], text: &[u8]) -> bool {
    let Some((head, rest)) = split_at_star(pattern, memchr::memchr(b'*', pattern)) else {
        return literal_end(pattern, text) == Some(text.len());
    };
    let Some(mut at) = literal_end(head, text) else {
        return false;
    };
    let (middle, tail) =
        split_at_star(rest, memchr::memrchr(b'*', rest)).unwrap_or((&[][..], rest));
    for segment in middle.split(|&byte| byte == b'*') {
        let remaining = text.get(at..).unwrap_or_default();
        let Some(end) = find_end(segment, remaining) else {
            return false;
        };
        at += end;
    }
    tail_matches(tail, text.get(at..).unwrap_or_default())
}

/// Upper bound of the byte comparisons of [`matches`], for callers that charge for work on
/// untrusted texts.
#[must_use]
pub fn worst_steps(pattern: &[u8], text: &[u8]) -> u64 {
    let first = memchr::memchr(b'*', pattern);
    let last = memchr::memrchr(b'*', pattern);
    let middle = match (first, last) {
        (Some(first), Some(last)) => pattern.get(first..last).unwrap_or_default(),
        _ => &[],
    };
    let slowest = middle
        .split(|&byte| byte == b'*')
        .filter(|segment| !is_plain(segment))
        .map(<[u8]>::len)
        .max()
        .unwrap_or(0);
    let repeated = (text.len() as u64).saturating_mul(slowest as u64);
    repeated.saturating_add((pattern.len() + text.len()) as u64)
}

/// The bytes before and after the star at `index`.
fn split_at_star(pattern: &[u8], index: Option<usize>) -> Option<(&[u8], &[u8])> {
    let index = index?;
    Some((pattern.get(..index)?, pattern.get(index + 1..)?))
}

/// Whether a segment can be searched bytewise: no `?`, and no character that several byte
/// sequences represent.
fn is_plain(segment: &[u8]) -> bool {
    memchr::memchr(b'?', segment).is_none()
        && std::str::from_utf8(segment).is_ok_and(|text| !text.contains('\u{FFFD}'))
}

/// End of the leftmost occurrence of a star-free segment.
fn find_end(segment: &[u8], text: &[u8]) -> Option<usize> {
    if is_plain(segment) {
        return memmem::find(text, segment).map(|start| start + segment.len());
    }
    let mut start = 0;
    loop {
        let remaining = text.get(start..)?;
        if let Some(length) = literal_end(segment, remaining) {
            return Some(start + length);
        }
        start += decode(remaining)?.1;
    }
}

/// Number of leading bytes of `text` that a star-free pattern matches.
fn literal_end(pattern: &[u8], text: &[u8]) -> Option<usize> {
    let mut in_pattern = 0;
    let mut in_text = 0;
    while let Some(&expected) = pattern.get(in_pattern) {
        let remaining = text.get(in_text..)?;
        if expected.is_ascii() && expected != b'?' {
            if remaining.first() != Some(&expected) {
                return None;
            }
            in_pattern += 1;
            in_text += 1;
            continue;
        }
        let (found, text_width) = decode(remaining)?;
        let (wanted, pattern_width) = decode(pattern.get(in_pattern..)?)?;
        if expected != b'?' && wanted != found {
            return None;
        }
        in_pattern += pattern_width;
        in_text += text_width;
    }
    Some(in_text)
}

/// Whether a star-free pattern matches the end of `text`.
fn tail_matches(tail: &[u8], text: &[u8]) -> bool {
    let mut in_tail = tail.len();
    let mut in_text = text.len();
    while in_tail > 0 {
        let (Some(tail_left), Some(text_left)) = (tail.get(..in_tail), text.get(..in_text)) else {
            return false;
        };
        let (Some((wanted, tail_width)), Some((found, text_width))) =
            (decode_last(tail_left), decode_last(text_left))
        else {
            return false;
        };
        if wanted != u32::from(b'?') && wanted != found {
            return false;
        }
        in_tail -= tail_width;
        in_text -= text_width;
    }
    true
}

/// The first character and its width, `None` at the end of the text.
fn decode(text: &[u8]) -> Option<(u32, usize)> {
    let &first = text.first()?;
    let width = match first {
        0..0x80 => return Some((u32::from(first), 1)),
        0xC2..0xE0 => 2,
        0xE0..0xF0 => 3,
        0xF0..0xF5 => 4,
        _ => return Some((REPLACEMENT, 1)),
    };
    Some(
        text.get(..width)
            .and_then(one_character)
            .unwrap_or((REPLACEMENT, 1)),
    )
}

/// The last character and its width, `None` at the beginning of the text.
fn decode_last(text: &[u8]) -> Option<(u32, usize)> {
    let &last = text.last()?;
    if last.is_ascii() {
        return Some((u32::from(last), 1));
    }
    let wide = (2..=4).find_map(|width| {
        let start = text.len().checked_sub(width)?;
        one_character(text.get(start..)?)
    });
    Some(wide.unwrap_or((REPLACEMENT, 1)))
}

/// The character that exactly these bytes encode.
fn one_character(bytes: &[u8]) -> Option<(u32, usize)> {
    let mut characters = std::str::from_utf8(bytes).ok()?.chars();
    match (characters.next(), characters.next()) {
        (Some(character), None) => Some((u32::from(character), bytes.len())),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn table_of_section_8() {
        // (pattern, text, matches, source in docs/spec/patterns.md)
        let rows: &[(&str, &str, bool, &str)] = &[
            ("", "", true, "8: empty pattern, empty text"),
            ("", "a", false, "8: empty pattern matches only empty text"),
            ("*", "", true, "8: * matches the empty text"),
            ("*", "a/b\nc", true, "8: slash and newline are ordinary"),
            ("a.c", "abc", false, "case 28: dot is literal"),
            ("a.c", "a.c", true, "case 28"),
            ("a?c", "a\u{e9}c", true, "case 28: one code point"),
            ("ab?ba", "abba", false, "case 28: ? needs a character"),
            ("?*", "", false, "case 6"),
            ("?*", "a", true, "case 6"),
            ("?", "\u{1F600}", true, "8: ? is a code point, not a byte"),
            ("??", "\u{e9}", false, "8: ? is a code point, not a byte"),
            ("[a]", "a", false, "8: brackets are literal"),
            ("\\*", "\\abc", true, "8: no escape"),
            ("A", "a", false, "8: case-sensitive"),
            ("a?c", "a/c", true, "8: slash is ordinary"),
            ("a?c", "a\nc", true, "8: newline is ordinary"),
            ("*?", "a/", true, "8: slash is ordinary"),
            ("?*", "/a", true, "8: slash is ordinary"),
            ("*:latest", "nginx:latest", true, "6.3"),
            ("*:*", "nginx", false, "6.3"),
            ("a*b*c", "a-b-b-c", true, "8: several stars"),
            ("a*b*c", "a-c-b", false, "8: anchored at the end"),
            ("a*a", "a", false, "8: head and tail do not overlap"),
            ("**a**", "a", true, "8: a run of stars is one star"),
            ("*?a?*", "xay", true, "8: both wildcards in a segment"),
            ("*?a?*", "ay", false, "8: both wildcards in a segment"),
        ];
        for (pattern, text, expected, source) in rows {
            let context = format!("{source}: {pattern:?} x {text:?}");
            assert_eq!(
                matches(pattern.as_bytes(), text.as_bytes()),
                *expected,
                "{context}"
            );
            assert_eq!(
                matches_class(classify(pattern), pattern, text),
                *expected,
                "{context}"
            );
        }
    }

    #[test]
    fn invalid_bytes_are_replacement_characters() {
        // docs/spec/patterns.md §8: each invalid byte is one U+FFFD on both sides.
        let rows: &[(&[u8], &[u8], bool)] = &[
            (b"\xff", b"\xfe", true),
            (b"\xff", "\u{FFFD}".as_bytes(), true),
            ("a\u{FFFD}*".as_bytes(), b"a\x80b", true),
            (b"??", b"\xe2\x82", true),
            (b"?", b"\xe2\x82", false),
            (b"*\xff", b"abc\x80", true),
            (b"*\xff*", b"ab\x80c", true),
            (b"*??", b"\xc3\xa9\xc3", true),
            (b"*a\xff?c*", b"xa\xfebc", true),
        ];
        for (pattern, text, expected) in rows {
            assert_eq!(matches(pattern, text), *expected, "{pattern:?} x {text:?}");
        }
    }

    #[test]
    fn classes() {
        let rows = [
            ("", WildcardClass::Literal),
            ("abc", WildcardClass::Literal),
            ("*", WildcardClass::Any),
            ("***", WildcardClass::Any),
            ("abc*", WildcardClass::Prefix),
            ("*abc", WildcardClass::Suffix),
            ("*abc*", WildcardClass::Contains),
            ("?*", WildcardClass::General),
            ("a*b", WildcardClass::General),
            ("abc**", WildcardClass::General),
        ];
        for (pattern, class) in rows {
            assert_eq!(classify(pattern), class, "{pattern}");
        }
    }

    /// Hostile inputs, row 81.
    #[test]
    fn hostile_patterns_are_fast() {
        let text = vec![b'a'; 1 << 20];
        let started = std::time::Instant::now();
        assert!(matches("*a".repeat(1_000).as_bytes(), &text));
        assert!(!matches(("*a".repeat(1_000) + "b").as_bytes(), &text));
        assert!(!matches(("*a".repeat(1_000) + "b*").as_bytes(), &text));
        assert!(matches("?".repeat(1 << 20).as_bytes(), &text));
        assert!(!matches("?".repeat(1_000_000).as_bytes(), &text));
        assert!(matches("*".repeat(100_000).as_bytes(), &text));
        assert!(!matches(
            format!("*{}b*", "a".repeat(500_000)).as_bytes(),
            &text
        ));
        assert!(!matches(
            format!("*{}b", "?".repeat(500_000)).as_bytes(),
            &text
        ));
        assert!(started.elapsed().as_secs() < 5);
    }

    #[test]
    fn worst_steps_grows_only_with_question_marks_between_stars() {
        assert_eq!(worst_steps(b"a?b*", b"0123456789"), 14);
        assert_eq!(worst_steps(b"*ab*", b"0123456789"), 14);
        assert_eq!(worst_steps(b"*a?*", b"0123456789"), 34);
    }

    /// Definition by dynamic programming: one row per pattern character.
    fn by_definition(pattern: &[u8], text: &[u8]) -> bool {
        let characters = |mut bytes: &[u8]| {
            let mut list = Vec::new();
            while let Some((character, width)) = decode(bytes) {
                list.push(character);
                bytes = &bytes[width..];
            }
            list
        };
        let text = characters(text);
        let mut row = vec![false; text.len() + 1];
        row[0] = true;
        for wanted in characters(pattern) {
            let mut next = vec![false; text.len() + 1];
            for index in 0..=text.len() {
                next[index] = if wanted == u32::from(b'*') {
                    row[index] || (index > 0 && next[index - 1])
                } else {
                    index > 0
                        && row[index - 1]
                        && (wanted == u32::from(b'?') || wanted == text[index - 1])
                };
            }
            row = next;
        }
        row[text.len()]
    }

    proptest! {
        #[test]
        fn classes_and_definition_agree(pattern in "[ab*?\u{e9}\u{FFFD}]{0,8}", text in "[ab\u{e9}\u{FFFD}]{0,8}") {
            let expected = by_definition(pattern.as_bytes(), text.as_bytes());
            prop_assert_eq!(matches(pattern.as_bytes(), text.as_bytes()), expected);
            prop_assert_eq!(matches_class(classify(&pattern), &pattern, &text), expected);
        }

        #[test]
        fn any_bytes_agree_with_the_definition(
            pattern in prop::collection::vec(prop::sample::select(b"a*?\xc3\xa9\xff\xe2\x82\xef\xbf\xbd".to_vec()), 0..9),
            text in prop::collection::vec(prop::sample::select(b"a\xc3\xa9\xff\xe2\x82\xef\xbf\xbd".to_vec()), 0..9),
        ) {
            prop_assert_eq!(matches(&pattern, &text), by_definition(&pattern, &text));
        }

        #[test]
        fn wrong_classes_do_not_panic(pattern in ".*", text in ".*") {
            for class in [WildcardClass::Literal, WildcardClass::Any, WildcardClass::Prefix,
                WildcardClass::Suffix, WildcardClass::Contains, WildcardClass::General] {
                let _ = matches_class(class, &pattern, &text);
            }
        }
    }
}
