//! Finds the end of a run of plain string bytes, or of spaces, 16 bytes at a time.
//!
//! A run of plain bytes ends at a quote, a backslash or a control byte.

use kpvm_format::symbol::KeyHead;

use super::lanes::{self, stops};

/// Bytes per step.
pub(super) const STEP: usize = lanes::LANES;

/// Bytes of one step, and which of them are stops.
#[derive(Debug, Clone, Copy)]
pub(super) struct Chunk {
    /// The bytes as two words, the first one lowest.
    words: KeyHead,
    /// Bit `n` says whether byte `n` is a stop.
    stops: u32,
}

impl Chunk {
    /// The bytes at `at`, padded with zeros, which are stops.
    #[inline(always)]
    pub(super) fn at(input: &[u8], at: usize) -> Self {
        match input.get(at..).and_then(<[u8]>::first_chunk) {
            Some(bytes) => Self::of(bytes),
            None => Self::last(input, at),
        }
    }

    #[inline(always)]
    fn of(bytes: &[u8; STEP]) -> Self {
        let word = u128::from_le_bytes(*bytes);
        Self {
            words: [word as u64, (word >> 64) as u64],
            stops: stops(bytes),
        }
    }

    #[cold]
    #[inline(never)]
    fn last(input: &[u8], at: usize) -> Self {
        let mut bytes = [0; STEP];
        let rest = input.get(at..).unwrap_or(&[]);
        for (to, from) in bytes.iter_mut().zip(rest) {
            *to = *from;
        }
        Self::of(&bytes)
    }

    /// Number of plain bytes before the first stop; `None` if all are plain.
    #[inline(always)]
    pub(super) fn plain(self) -> Option<usize> {
        (self.stops != 0).then(|| self.stops.trailing_zeros() as usize)
    }

    /// The first `length` bytes as two words, padded with zeros.
    #[inline(always)]
    pub(super) fn head(self, length: usize) -> KeyHead {
        const MASKS: [KeyHead; STEP + 1] = {
            let mut masks = [[0; 2]; STEP + 1];
            let mut length = 1;
            while length <= STEP {
                let mask = u128::MAX >> (128 - 8 * length as u32);
                masks[length] = [mask as u64, (mask >> 64) as u64];
                length += 1;
            }
            masks
        };
        let mask = MASKS[length.min(STEP)];
        [self.words[0] & mask[0], self.words[1] & mask[1]]
    }
}

/// End of the run of plain bytes that begins at `at`: a stop, or the end of the input.
#[inline(always)]
pub(crate) fn plain_end(input: &[u8], mut at: usize) -> usize {
    loop {
        if let Some(length) = Chunk::at(input, at).plain() {
            return at + length;
        }
        at += STEP;
    }
}

/// First offset from `at` on that is not JSON whitespace.
#[inline(always)]
pub(crate) fn space(input: &[u8], at: usize) -> usize {
    if input.get(at).is_some_and(|byte| *byte > b' ') {
        return at;
    }
    some_space(input, at)
}

#[inline(never)]
fn some_space(input: &[u8], mut at: usize) -> usize {
    loop {
        at += match input.get(at) {
            Some(b'\n' | b'\r' | b'\t') => 1,
            // Indented text has long runs of spaces.
            Some(b' ') => spaces(input, at),
            _ => return at,
        }
    }
}

/// Number of spaces from `at` on, at most `STEP`; the byte at `at` is one.
#[inline(always)]
fn spaces(input: &[u8], at: usize) -> usize {
    match input.get(at..).and_then(<[u8]>::first_chunk) {
        Some(bytes) => (!lanes::equal(bytes, b' ')).trailing_zeros() as usize,
        None => 1,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_byte_in_every_place_is_a_stop_or_is_not() {
        for place in 0..STEP {
            for byte in 0..=255u8 {
                for filler in [b'a', 0x80, 0xFF, b' ', 0x7F] {
                    let mut bytes = [filler; STEP];
                    bytes[place] = byte;
                    let stop = byte == b'"' || byte == b'\\' || byte < 0x20;
                    let plain = Chunk::at(&bytes, 0).plain();
                    assert_eq!(plain, stop.then_some(place), "{byte} at {place}");
                }
            }
        }
    }

    #[test]
    fn a_run_ends_at_a_stop_or_with_the_input() {
        for length in 0..50 {
            let mut text = vec![b'x'; length];
            assert_eq!(plain_end(&text, 0), length, "no stop in {length}");
            text.extend(b"\"yyyyyyyyyyyyyyyyyyyyyyyyyyyy");
            assert_eq!(plain_end(&text, 0), length, "quote behind {length}");
            assert_eq!(plain_end(&text, 1000), 1000, "outside");
        }
    }

    #[test]
    fn space_ends_at_the_first_other_byte() {
        for length in 0..50 {
            for pattern in [" ", "\n ", "\n    ", "\r\n\t", "\t"] {
                let space_text: String = pattern.chars().cycle().take(length).collect();
                for behind in [
                    "",
                    "x",
                    "\u{1}",
                    "\u{c}                    ",
                    "\"               y",
                ] {
                    let text = format!("{space_text}{behind}");
                    assert_eq!(space(text.as_bytes(), 0), length, "{text:?}");
                }
            }
        }
        assert_eq!(space(b"", 7), 7, "outside");
    }

    #[test]
    fn a_head_is_cut_at_the_first_stop_and_filled_up() {
        for length in 0..=STEP {
            let mut text = b"0123456789abcdef\"\"\"\"".to_vec();
            let expected = kpvm_format::symbol::key_head(&text[..length]);
            text[length] = b'"';
            assert_eq!(Chunk::at(&text, 0).head(length), expected, "{length}");
        }
    }
}
