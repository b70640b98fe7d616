//! Finds the end of a run of plain string bytes, 16 bytes at a time.
//!
//! A run ends at a quote, a backslash or a control byte. The loop over a chunk is
//! written so that the compiler turns it into vector instructions where there are
//! any; nothing here depends on a processor.

use kpvm_format::symbol::KeyHead;

/// Bytes looked at in one step.
const STEP: usize = 16;

/// The bytes of one step, and which of them are stops.
#[derive(Debug, Clone, Copy)]
pub(super) struct Chunk {
    /// The bytes, the first one lowest.
    bytes: u128,
    /// 0xFF for each byte that is a stop, 0 for every other one.
    stops: u128,
}

impl Chunk {
    /// The bytes at `at`; behind the end of the input follow zeros, which are stops.
    #[inline(always)]
    pub(super) fn at(input: &[u8], at: usize) -> Self {
        let bytes: [u8; STEP] = match input.get(at..).and_then(<[u8]>::first_chunk) {
            Some(bytes) => *bytes,
            None => last_bytes(input, at),
        };
        let mut stops = [0; STEP];
        for (stop, byte) in stops.iter_mut().zip(bytes) {
            let is_stop = (byte == b'"') | (byte == b'\\') | (byte < 0x20);
            *stop = if is_stop { 0xFF } else { 0 };
        }
        Self {
            bytes: u128::from_le_bytes(bytes),
            stops: u128::from_le_bytes(stops),
        }
    }

    /// The number of plain bytes before the first stop; `None` if all are plain.
    #[inline(always)]
    pub(super) fn plain(self) -> Option<usize> {
        (self.stops != 0).then(|| self.stops.trailing_zeros() as usize / 8)
    }

    /// The bytes before the first stop as two words, zeros behind them.
    #[inline(always)]
    pub(super) fn plain_head(self) -> KeyHead {
        let before = self.stops.wrapping_sub(1) & !self.stops;
        let head = self.bytes & before;
        [head as u64, (head >> 64) as u64]
    }
}

#[cold]
#[inline(never)]
fn last_bytes(input: &[u8], at: usize) -> [u8; STEP] {
    let mut bytes = [0; STEP];
    let rest = input.get(at..).unwrap_or(&[]);
    for (to, from) in bytes.iter_mut().zip(rest) {
        *to = *from;
    }
    bytes
}

/// Where the run of plain bytes that begins at `at` ends: at a stop, or with the
/// input if there is none.
#[inline(always)]
pub(super) fn plain_end(input: &[u8], mut at: usize) -> usize {
    loop {
        if let Some(length) = Chunk::at(input, at).plain() {
            return at + length;
        }
        at += STEP;
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
    fn a_head_is_cut_at_the_first_stop_and_filled_up() {
        for length in 0..=STEP {
            let mut text = b"0123456789abcdef\"\"\"\"".to_vec();
            let expected = kpvm_format::symbol::key_head(&text[..length]);
            text[length] = b'"';
            assert_eq!(Chunk::at(&text, 0).plain_head(), expected, "{length}");
        }
    }
}
