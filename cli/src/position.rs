//! Tracks a position in a text in bytes, lines and characters.

use kpvm_compiler::source::Before;

/// A position in a text.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Position {
    /// Preceding bytes.
    pub offset: u64,
    /// Preceding lines, and preceding characters on the same line.
    pub before: Before,
}

impl Position {
    /// Advances over some bytes.
    pub fn go(&mut self, bytes: &[u8]) {
        self.offset += bytes.len() as u64;
        let lines = memchr::memchr_iter(b'\n', bytes).count() as u32;
        let last = memchr::memrchr(b'\n', bytes).map_or(0, |at| at + 1);
        let characters = bytes.get(last..).unwrap_or_default().iter();
        let characters = characters.filter(|byte| **byte & 0xC0 != 0x80).count() as u32;
        let before = &mut self.before;
        if lines > 0 {
            before.lines = before.lines.saturating_add(lines);
            before.columns = 0;
        }
        before.columns = before.columns.saturating_add(characters);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_and_characters_are_counted() {
        let mut position = Position::default();
        for (text, offset, lines, columns) in [
            ("ab", 2, 0, 2),
            ("é", 4, 0, 3),
            ("\nx\ny日", 11, 2, 2),
            ("\n", 12, 3, 0),
        ] {
            position.go(text.as_bytes());
            let before = Before { lines, columns };
            assert_eq!(position, Position { offset, before }, "{text:?}");
        }
    }
}
