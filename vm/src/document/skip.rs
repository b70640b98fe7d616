//! Checks the syntax of a map or list that is not read.
//!
//! Builds nothing and looks up no keys. Accepts only what the reader would accept too:
//! anything unusual is left to the reader, which then reports the error, if any.
//!
//! Half of all skipped bytes are `managedFields`: maps of short keys with empty maps as
//! values. A short key is therefore examined together with the four bytes after it, which
//! determine the next state and the enclosing containers.

use super::lanes::stops;
use super::scan::{STEP, plain_end, space};

/// Maximum nesting: one bit per container stores its kind.
const MAX_DEPTH: usize = 64;

/// Result of skipping.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Skipped {
    /// Offset after it.
    pub(crate) end: usize,
    /// Number of values in it, at every depth.
    pub(crate) values: usize,
    /// Nesting depth, including the outermost container.
    pub(crate) depth: usize,
}

/// Enclosing containers.
struct Around {
    /// Bit 0 is the innermost one; 1 for a map.
    kinds: u64,
    depth: usize,
    deepest: usize,
}

impl Around {
    #[inline(always)]
    fn is_map(&self) -> bool {
        self.kinds & 1 == 1
    }

    #[inline(always)]
    fn open(&mut self, is_map: bool) -> Option<()> {
        if self.depth == MAX_DEPTH {
            return None;
        }
        self.depth += 1;
        self.deepest = self.deepest.max(self.depth);
        self.kinds = self.kinds << 1 | u64::from(is_map);
        Some(())
    }

    #[inline(always)]
    fn close(&mut self) {
        self.kinds >>= 1;
        self.depth -= 1;
    }
}

/// Skips the non-empty map or list whose bracket is before `at`; its first member begins at
/// `at`. `None` if it may be malformed.
pub(super) fn skip(input: &[u8], mut at: usize, is_map: bool) -> Option<Skipped> {
    let mut around = Around {
        kinds: u64::from(is_map),
        depth: 1,
        deepest: 1,
    };
    let mut values = 0;
    'members: loop {
        // A member begins.
        values += 1;
        'value: {
            if around.is_map() {
                match short_key(input, at) {
                    Some((behind, [b':', b'{', b'}', b','])) => {
                        at = behind + 4;
                        continue 'members;
                    }
                    Some((behind, [b':', b'{', b'}', b'}'])) => {
                        at = behind + 3;
                        break 'value;
                    }
                    Some((behind, [b':', b'{', b'"', _])) => {
                        around.open(true)?;
                        at = behind + 2;
                        continue 'members;
                    }
                    Some((behind, [b':', value, ..])) if value > b' ' => at = behind + 1,
                    Some((behind, [b':', b' ', value, _])) if value > b' ' => at = behind + 2,
                    Some((behind, _)) => at = colon(input, behind)?,
                    None => at = key(input, at)?,
                }
            }
            let byte = byte_at(input, at);
            match byte {
                b'"' => at = string(input, at + 1)?,
                b'{' | b'[' => {
                    at = space(input, at + 1);
                    // `}` and `]` are two code points after their counterparts.
                    if byte_at(input, at) != byte + 2 {
                        around.open(byte == b'{')?;
                        continue 'members;
                    }
                    at += 1;
                }
                b'-' | b'0'..=b'9' => at = number(input, at)?,
                b't' => at = word(input, at, b"true")?,
                b'f' => at = word(input, at, b"false")?,
                b'n' => at = word(input, at, b"null")?,
                _ => return None,
            }
        }
        // Close containers until one has more members.
        loop {
            at = space(input, at);
            let end = if around.is_map() { b'}' } else { b']' };
            match byte_at(input, at) {
                b',' => break,
                byte if byte == end => {}
                _ => return None,
            }
            at += 1;
            around.close();
            if around.depth == 0 {
                return Some(Skipped {
                    end: at,
                    values,
                    depth: around.deepest,
                });
            }
        }
        at = space(input, at + 1);
    }
}

/// Maximum bytes of a short key and what follows it.
const WINDOW: usize = 64;

/// End of a key of less than 32 plain bytes, and the four bytes after it. `None` for other
/// keys, and near the end of the input.
#[inline(always)]
fn short_key(input: &[u8], at: usize) -> Option<(usize, [u8; 4])> {
    // All offsets below are within the window, whatever it contains, which lets the
    // compiler drop bounds checks.
    let window: &[u8; WINDOW] = input.get(at..)?.first_chunk()?;
    if window[0] != b'"' {
        return None;
    }
    let mut end = 1 + plain(window, 1);
    if end == 1 + STEP {
        end = 1 + STEP + plain(window, 1 + STEP);
    }
    if window[end] != b'"' {
        return None;
    }
    let behind = window.get(end + 1..)?.first_chunk()?;
    Some((at + end + 1, *behind))
}

/// Number of plain bytes at `at`, at most 16.
#[inline(always)]
fn plain(window: &[u8; WINDOW], at: usize) -> usize {
    match window.get(at..).and_then(<[u8]>::first_chunk) {
        Some(bytes) => (stops(bytes) | 1 << STEP).trailing_zeros() as usize,
        None => 0,
    }
}

/// The byte at an offset; 0, which never occurs in JSON, after the end.
#[inline(always)]
pub(super) fn byte_at(input: &[u8], at: usize) -> u8 {
    input.get(at).copied().unwrap_or(0)
}

/// Skips a key, the colon after it and the space after that.
#[inline(never)]
fn key(input: &[u8], at: usize) -> Option<usize> {
    if byte_at(input, at) != b'"' {
        return None;
    }
    colon(input, string(input, at + 1)?)
}

/// Skips a colon with surrounding space.
#[inline(always)]
fn colon(input: &[u8], at: usize) -> Option<usize> {
    let colon = space(input, at);
    (byte_at(input, colon) == b':').then(|| space(input, colon + 1))
}

/// Skips a string; `start` is after the opening quote.
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

/// Skips a number. It must be in the range of float64.
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
        // More digits may exceed the range of float64.
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

/// Offset after the value that begins at `at`. `None` if it may be malformed.
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

/// The text of `kind` if it is among the first members, after other texts at most, as
/// Kubernetes and its tools write it. It is only a guess until the document is read.
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
