//! Index of the lines and columns of a text, fast also for a manifest in one line of many
//! megabytes.

use kpvm_compiler::source::LineColumn;

/// Block size in bytes; the number of characters is known at every block boundary.
const BLOCK: usize = 4096;

/// Offsets of line starts, and number of characters before each block.
#[derive(Debug, Clone, Default)]
pub struct LineIndex {
    line_starts: Vec<usize>,
    characters: Vec<usize>,
}

impl LineIndex {
    /// The index of a text.
    pub fn new(text: &str) -> Self {
        let bytes = text.as_bytes();
        let newlines = memchr::memchr_iter(b'\n', bytes);
        let line_starts = std::iter::once(0).chain(newlines.map(|at| at + 1));
        let mut before = 0;
        let characters = bytes.chunks(BLOCK).map(|block| {
            let here = before;
            before += count_characters(block);
            here
        });
        Self {
            characters: characters.collect(),
            line_starts: line_starts.collect(),
        }
    }

    /// Line and column of an offset in the indexed text.
    pub fn line_column(&self, text: &str, offset: usize) -> LineColumn {
        let mut offset = offset.min(text.len());
        while !text.is_char_boundary(offset) {
            offset -= 1;
        }
        let line = self
            .line_starts
            .partition_point(|&start| start <= offset)
            .max(1);
        let start = self.line_starts.get(line - 1).copied().unwrap_or(0);
        let column = self.characters_before(text, offset) - self.characters_before(text, start);
        LineColumn {
            line: line as u32,
            column: column as u32 + 1,
        }
    }

    fn characters_before(&self, text: &str, offset: usize) -> usize {
        let block = offset / BLOCK;
        let before = self.characters.get(block).copied();
        let rest = text
            .as_bytes()
            .get(block * BLOCK..offset)
            .unwrap_or_default();
        // After the last block, if the text ends at its boundary.
        let before = before.or_else(|| {
            let last = self.characters.last()?;
            let bytes = text.as_bytes().chunks(BLOCK).last()?;
            Some(last + count_characters(bytes))
        });
        before.unwrap_or(0) + count_characters(rest)
    }
}

/// Number of bytes that begin a character.
fn count_characters(bytes: &[u8]) -> usize {
    bytes.iter().filter(|&&byte| byte & 0xC0 != 0x80).count()
}

#[cfg(test)]
mod tests {
    use super::*;
    use kpvm_compiler::source::{Location, Sources};
    use kpvm_syntax::tree::Span;

    #[test]
    fn it_says_what_the_compiler_says() {
        let long = "é日x".repeat(3000) + "\n" + &"y".repeat(2 * BLOCK - 1) + "\nend";
        let border = "z".repeat(BLOCK);
        for text in ["", "\n", "a\nbé\r\n\nc", &long, &border] {
            let mut sources = Sources::new();
            let source = sources.add("a", text);
            let index = LineIndex::new(text);
            for offset in (0..text.len() + 3).step_by(1 + text.len() / 500) {
                let at = offset as u32;
                let span = Span { start: at, end: at };
                let expected = sources.line_column(Location { source, span });
                assert_eq!(index.line_column(text, offset), expected, "at {offset}");
            }
        }
    }
}
