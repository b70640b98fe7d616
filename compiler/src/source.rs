//! Source texts of policies, and locations in them.

use kpvm_syntax::tree::Span;

/// Index of a file in [`Sources`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct SourceId(pub u32);

/// A named source text.
#[derive(Debug, Clone)]
pub struct SourceFile {
    /// The name shown to people (a path as given, or `<stdin>`).
    pub name: String,
    /// The whole text.
    pub text: String,
    /// Position within a longer text, if it is a part of one.
    pub before: Before,
    /// Offset of the first byte of each line.
    line_starts: Vec<u32>,
}

/// Offset of a part within a longer text.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Before {
    /// Whole lines.
    pub lines: u32,
    /// Characters before the part on its first line.
    pub columns: u32,
}

impl Before {
    /// Converts a location in the part to one in the longer text.
    pub fn shift(self, place: LineColumn) -> LineColumn {
        LineColumn {
            line: place.line.saturating_add(self.lines),
            column: match place.line {
                1 => place.column.saturating_add(self.columns),
                _ => place.column,
            },
        }
    }
}

/// All source texts of a run; spans are resolved against it.
#[derive(Debug, Clone, Default)]
pub struct Sources {
    files: Vec<SourceFile>,
}

/// A location in one of the [`Sources`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Hash)]
pub struct Location {
    /// The file.
    pub source: SourceId,
    /// Byte range in the file.
    pub span: Span,
}

/// Line and column, both counted from 1; the column counts characters.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct LineColumn {
    /// Line, from 1.
    pub line: u32,
    /// Column in characters, from 1.
    pub column: u32,
}

impl Sources {
    /// No texts.
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds a text and returns its number.
    pub fn add(&mut self, name: impl Into<String>, text: impl Into<String>) -> SourceId {
        self.add_part(name, text, Before::default())
    }

    /// Adds a part of a longer text of that name.
    pub fn add_part(
        &mut self,
        name: impl Into<String>,
        text: impl Into<String>,
        before: Before,
    ) -> SourceId {
        let (name, text): (String, String) = (name.into(), text.into());
        let newlines = memchr::memchr_iter(b'\n', text.as_bytes());
        let line_starts = std::iter::once(0)
            .chain(newlines.map(|offset| offset as u32 + 1))
            .collect();
        self.files.push(SourceFile {
            name,
            text,
            before,
            line_starts,
        });
        SourceId(self.files.len() as u32 - 1)
    }

    /// The file with that index.
    ///
    /// # Panics
    /// If [`Sources::add`] of this value did not return the index.
    pub fn file(&self, id: SourceId) -> &SourceFile {
        &self.files[id.0 as usize]
    }

    /// All files in the order in which they were added.
    pub fn iter(&self) -> impl Iterator<Item = (SourceId, &SourceFile)> {
        self.files
            .iter()
            .enumerate()
            .map(|(index, file)| (SourceId(index as u32), file))
    }

    /// Line and column of the first byte of a location.
    pub fn line_column(&self, location: Location) -> LineColumn {
        let file = self.file(location.source);
        let mut start = (location.span.start as usize).min(file.text.len());
        while !file.text.is_char_boundary(start) {
            start -= 1;
        }
        let line = file
            .line_starts
            .partition_point(|&line_start| line_start as usize <= start)
            .max(1);
        let line_start = file
            .line_starts
            .get(line - 1)
            .map_or(0, |&line_start| line_start as usize);
        let column = file
            .text
            .get(line_start..start)
            .map_or(0, |before| before.chars().count());
        file.before.shift(LineColumn {
            line: line as u32,
            column: column as u32 + 1,
        })
    }
}
