//! Finds the end of a map or list by its brackets, 64 bytes at a time with one bit mask per
//! kind of byte.
//!
//! Nothing is checked, and only brackets of one kind are counted. If the text up to there
//! is a valid JSON value, it is the value that begins there, because no map or list is a
//! prefix of another one.

use super::lanes;

/// Bytes per step: one bit of a word each.
const STEP: usize = 64;

/// Offset after the map or list whose bracket is at `start`; `None` if it does not end.
pub(crate) fn cut(input: &[u8], start: usize) -> Option<usize> {
    match input.get(start)? {
        b'{' => cut_at::<b'{', b'}'>(input, start),
        b'[' => cut_at::<b'[', b']'>(input, start),
        _ => None,
    }
}

fn cut_at<const OPEN: u8, const CLOSE: u8>(input: &[u8], start: usize) -> Option<usize> {
    let mut strings = Strings::default();
    let mut at = start;
    let mut depth = 0;
    loop {
        let rest = input.get(at..)?;
        let bytes = match rest.first_chunk() {
            Some(bytes) => bytes,
            None if rest.is_empty() => return None,
            None => &last(rest),
        };
        let outside = !strings.pass(bytes);
        let opening = mask(bytes, OPEN) & outside;
        let closing = mask(bytes, CLOSE) & outside;
        let closed = closing.count_ones() as usize;
        if closed >= depth
            && let Some(place) = end(opening, closing, depth)
        {
            return Some(at + place + 1);
        }
        depth = (depth + opening.count_ones() as usize).saturating_sub(closed);
        at += STEP;
    }
}

/// The remaining bytes of a partial step, padded with zeros.
#[cold]
fn last(rest: &[u8]) -> [u8; STEP] {
    let mut bytes = [0; STEP];
    for (to, from) in bytes.iter_mut().zip(rest) {
        *to = *from;
    }
    bytes
}

/// Position of the bracket that closes `depth` containers.
fn end(opening: u64, mut closing: u64, depth: usize) -> Option<usize> {
    let mut closed = 0;
    while closing != 0 {
        let place = closing.trailing_zeros();
        let opened = (opening & ((1 << place) - 1)).count_ones() as usize;
        closed += 1;
        if closed >= depth + opened {
            return Some(place as usize);
        }
        closing &= closing - 1;
    }
    None
}

/// Positions of a byte as a mask: bit `n` is byte `n`.
#[inline(always)]
fn mask(bytes: &[u8; STEP], byte: u8) -> u64 {
    let (parts, _) = bytes.as_chunks();
    parts.iter().rev().fold(0, |mask, part| {
        mask << lanes::LANES | u64::from(lanes::equal(part, byte))
    })
}

/// Whether a byte occurs, which is cheaper than its positions.
#[inline(always)]
fn has(bytes: &[u8; STEP], byte: u8) -> bool {
    let (parts, _) = bytes.as_chunks();
    lanes::occurs(parts, byte)
}

/// String state carried from step to step.
#[derive(Debug, Default)]
struct Strings {
    /// All bits set if the previous bytes end inside a string.
    inside: u64,
    /// 1 if they end with a backslash that escapes the next byte.
    escape: u64,
}

impl Strings {
    /// Mask of bytes inside strings, including opening but not closing quotes.
    #[inline(always)]
    fn pass(&mut self, bytes: &[u8; STEP]) -> u64 {
        let mut inside = mask(bytes, b'"');
        if has(bytes, b'\\') || self.escape != 0 {
            inside &= !self.escaped(mask(bytes, b'\\'));
        }
        for shift in [1, 2, 4, 8, 16, 32] {
            inside ^= inside << shift;
        }
        inside ^= self.inside;
        self.inside = if inside >> 63 == 1 { u64::MAX } else { 0 };
        inside
    }

    /// Mask of bytes escaped by a backslash that is not itself escaped.
    #[inline(never)]
    fn escaped(&mut self, mut backslashes: u64) -> u64 {
        let mut escaped = self.escape;
        backslashes &= !escaped;
        self.escape = 0;
        while backslashes != 0 {
            let place = backslashes.trailing_zeros();
            if place == 63 {
                self.escape = 1;
            }
            let next = 1u64.wrapping_shl(place) << 1;
            escaped |= next;
            backslashes &= !(next | 1 << place);
        }
        escaped
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_container_ends_where_its_last_bracket_stands() {
        let rows = [
            ("{}", Some(2)),
            ("[]", Some(2)),
            ("{},{}", Some(2)),
            ("{\"a\":[1,{}]},{", Some(12)),
            ("[\"]\"]]", Some(5)),
            (r#"["\"]"]"#, Some(7)),
            (r#"["\\"]"#, Some(6)),
            (r#"["\\\\\""]]"#, Some(10)),
            ("[[[]]]]", Some(6)),
            ("", None),
            ("[", None),
            ("[\"]", None),
            (r#"["\"]"#, None),
            ("[[]", None),
        ];
        for (text, end) in rows {
            for before in 0..70 {
                for behind in [0, 1, 63, 64, 65] {
                    let input = format!("{}{text}{}", " ".repeat(before), "x".repeat(behind));
                    let expected = end.map(|end| before + end);
                    assert_eq!(cut(input.as_bytes(), before), expected, "{input}");
                }
            }
        }
    }

    #[test]
    fn borders_of_steps_are_no_borders() {
        for before in 0..200 {
            for backslashes in 0..10 {
                let text = format!(
                    "[\"{}{}\",[{{\"]\":\"}}\"}}]]",
                    "x".repeat(before),
                    "\\\\".repeat(backslashes)
                );
                assert_eq!(cut(text.as_bytes(), 0), Some(text.len()), "{text}");
                // The string extends to the next quote, the key's first one.
                let longer = text.replacen("\",[", "\\\",[", 1);
                let end = longer.find(']').map(|bracket| bracket + 1);
                assert_eq!(cut(longer.as_bytes(), 0), end, "{longer}");
            }
        }
    }
}
