//! Checking the syntax of a map or list that is not read.
//!
//! Nothing is built, and keys are not looked up. What is accepted here the reader would
//! accept too: whatever is unusual is not accepted, and the reader then finds out what
//! is wrong with it, if anything.

use super::scan::plain_end;

/// The deepest nesting that is followed: one bit for each container says what it is.
const MAX_DEPTH: usize = 64;

/// What was skipped.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Skipped {
    /// The place behind it.
    pub(crate) end: usize,
    /// The values inside, at every depth.
    pub(crate) values: usize,
    /// How deep containers were nested, the outermost one included.
    pub(crate) depth: usize,
}

/// Skips the map or list whose bracket is before `at` and that is not empty; its first
/// member begins at `at`. `None` when it may be malformed.
pub(super) fn skip(input: &[u8], mut at: usize, is_map: bool) -> Option<Skipped> {
    // Of the containers around: bit 0 is the innermost, 1 for a map.
    let mut kinds = u64::from(is_map);
    let (mut depth, mut deepest, mut values) = (1, 1, 0);
    loop {
        // A member begins.
        if kinds & 1 == 1 {
            at = key(input, at)?;
        }
        values += 1;
        let byte = byte_at(input, at);
        match byte {
            b'"' => at = string(input, at + 1)?,
            b'{' | b'[' => {
                let inside = space(input, at + 1);
                // `}` and `]` stand two behind their partners.
                if byte_at(input, inside) == byte + 2 {
                    at = inside + 1;
                } else {
                    if depth == MAX_DEPTH {
                        return None;
                    }
                    depth += 1;
                    deepest = deepest.max(depth);
                    kinds = kinds << 1 | u64::from(byte == b'{');
                    at = inside;
                    continue;
                }
            }
            b'-' | b'0'..=b'9' => at = number(input, at)?,
            b't' => at = word(input, at, b"true")?,
            b'f' => at = word(input, at, b"false")?,
            b'n' => at = word(input, at, b"null")?,
            _ => return None,
        }
        // Containers end until one goes on.
        loop {
            at = space(input, at);
            let end = if kinds & 1 == 1 { b'}' } else { b']' };
            match byte_at(input, at) {
                b',' => break,
                byte if byte == end => {}
                _ => return None,
            }
            at += 1;
            kinds >>= 1;
            depth -= 1;
            if depth == 0 {
                return Some(Skipped {
                    end: at,
                    values,
                    depth: deepest,
                });
            }
        }
        at = space(input, at + 1);
    }
}

/// The byte at a place; 0, which stands nowhere in JSON, behind the end.
#[inline(always)]
pub(super) fn byte_at(input: &[u8], at: usize) -> u8 {
    input.get(at).copied().unwrap_or(0)
}

/// The first place from `at` on where no space stands.
#[inline(always)]
pub(crate) fn space(input: &[u8], mut at: usize) -> usize {
    while matches!(byte_at(input, at), b' ' | b'\n' | b'\r' | b'\t') {
        at += 1;
    }
    at
}

/// Skips a key, the colon behind it and space behind that.
#[inline(always)]
fn key(input: &[u8], at: usize) -> Option<usize> {
    if byte_at(input, at) != b'"' {
        return None;
    }
    let colon = space(input, string(input, at + 1)?);
    (byte_at(input, colon) == b':').then(|| space(input, colon + 1))
}

/// Skips a string; `start` is behind the opening quote.
#[inline(always)]
pub(super) fn string(input: &[u8], start: usize) -> Option<usize> {
    let end = plain_end(input, start);
    match byte_at(input, end) {
        b'"' => Some(end + 1),
        b'\\' => escaped_string(input, end),
        _ => None,
    }
}

/// Skips the rest of a string from its first backslash on.
#[inline(never)]
fn escaped_string(input: &[u8], mut at: usize) -> Option<usize> {
    loop {
        match byte_at(input, at) {
            b'"' => return Some(at + 1),
            b'\\' => {
                let escape = byte_at(input, at + 1);
                at += 2;
                match escape {
                    b'"' | b'\\' | b'/' | b'b' | b'f' | b'n' | b'r' | b't' => {}
                    b'u' => {
                        let digits = input.get(at..at + 4)?;
                        if !digits.iter().all(u8::is_ascii_hexdigit) {
                            return None;
                        }
                        at += 4;
                    }
                    _ => return None,
                }
            }
            _ => return None,
        }
        at = plain_end(input, at);
    }
}

#[inline(always)]
pub(super) fn word(input: &[u8], at: usize, word: &[u8]) -> Option<usize> {
    let end = at + word.len();
    (input.get(at..end) == Some(word)).then_some(end)
}

/// Skips a number. Its range matters too: float64 has to hold it.
#[inline(always)]
pub(super) fn number(input: &[u8], start: usize) -> Option<usize> {
    let first = start + usize::from(byte_at(input, start) == b'-');
    let end = digits(input, first);
    let has_leading_zero = byte_at(input, first) == b'0' && end > first + 1;
    if end == first || has_leading_zero {
        return None;
    }
    match byte_at(input, end) {
        b'.' | b'e' | b'E' => fraction(input, start, end),
        // More digits may be more than float64 holds.
        _ => (end - first < 300).then_some(end),
    }
}

#[inline(never)]
fn fraction(input: &[u8], start: usize, mut end: usize) -> Option<usize> {
    if byte_at(input, end) == b'.' {
        let first = end + 1;
        end = digits(input, first);
        if end == first {
            return None;
        }
    }
    if matches!(byte_at(input, end), b'e' | b'E') {
        let first = end + 1 + usize::from(matches!(byte_at(input, end + 1), b'+' | b'-'));
        end = digits(input, first);
        if end == first {
            return None;
        }
    }
    let text = std::str::from_utf8(input.get(start..end)?).ok()?;
    let value: f64 = text.parse().ok()?;
    value.is_finite().then_some(end)
}

#[inline(always)]
fn digits(input: &[u8], mut at: usize) -> usize {
    while byte_at(input, at).is_ascii_digit() {
        at += 1;
    }
    at
}

/// The place behind the value that begins at `at`. `None` when it may be malformed.
pub(crate) fn skip_value(input: &[u8], at: usize) -> Option<usize> {
    match byte_at(input, at) {
        b'"' => string(input, at + 1),
        byte @ (b'{' | b'[') => {
            let inside = space(input, at + 1);
            if byte_at(input, inside) == byte + 2 {
                return Some(inside + 1);
            }
            skip(input, inside, byte == b'{').map(|skipped| skipped.end)
        }
        b'-' | b'0'..=b'9' => number(input, at),
        b't' => word(input, at, b"true"),
        b'f' => word(input, at, b"false"),
        b'n' => word(input, at, b"null"),
        _ => None,
    }
}

/// The text under `kind` where it stands among the first members, as it does in what
/// Kubernetes and its tools write: behind other texts at most. What it says is a guess
/// until the document is read.
pub(crate) fn kind_in_front(input: &[u8]) -> Option<&str> {
    let start = space(input, 0);
    if byte_at(input, start) != b'{' {
        return None;
    }
    let mut at = space(input, start + 1);
    loop {
        let value = key(input, at)?;
        let name = input.get(at..)?;
        if byte_at(input, value) != b'"' {
            return None;
        }
        let end = string(input, value + 1)?;
        if name.starts_with(b"\"kind\"") {
            return std::str::from_utf8(input.get(value + 1..end - 1)?).ok();
        }
        let comma = space(input, end);
        if byte_at(input, comma) != b',' {
            return None;
        }
        at = space(input, comma + 1);
    }
}
