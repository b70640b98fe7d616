//! Sections of a report that grow chunk by chunk and are written at the end, after data
//! known only then: counts, widths, unusable inputs.
//!
//! Each chunk adds to sections by key; at the end each section is copied out whole. Waiting
//! text stays in memory up to a limit and then goes to a temporary file, so memory does not
//! grow with the number of findings.

use std::collections::HashMap;
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::ops::Range;

use tempfile::SpooledTempFile;

use crate::scan::Summary;

/// Bytes that are kept in memory.
const MEMORY_BYTES: usize = 8 << 20;

/// Key of a section.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Key {
    /// Everything.
    All,
    /// A name: a namespace, a group of entries.
    Name(String),
    /// One policy, by its number in the bundle.
    Policy(usize),
}

/// Contribution of one chunk to a section.
#[derive(Debug)]
pub struct Section {
    /// Key of the section.
    pub key: Key,
    /// The items as in the report, with separators.
    pub text: Vec<u8>,
    /// Number of items.
    pub items: usize,
    /// Counts by outcome.
    pub summary: Summary,
}

/// Sections of all chunks.
#[derive(Debug)]
pub struct Sections {
    file: SpooledTempFile,
    /// Where the file ends.
    end: u64,
    list: Vec<Stored>,
    /// Section numbers by key.
    numbers: HashMap<Key, usize>,
}

/// One section.
#[derive(Debug)]
pub struct Stored {
    /// Its key.
    pub key: Key,
    /// Number of items.
    pub items: usize,
    /// Counts by outcome.
    pub summary: Summary,
    /// Ranges of its text in the file.
    ranges: Vec<Range<u64>>,
}

impl Default for Sections {
    fn default() -> Self {
        Self {
            file: SpooledTempFile::new(MEMORY_BYTES),
            end: 0,
            list: Vec::new(),
            numbers: HashMap::new(),
        }
    }
}

impl Sections {
    /// Adds to a section; `separator` is put between items.
    ///
    /// # Errors
    /// Fails if the temporary file fails.
    pub fn add(&mut self, section: Section, separator: &str) -> io::Result<()> {
        let Section {
            key,
            text,
            items,
            summary,
        } = section;
        let number = *self.numbers.entry(key).or_insert_with_key(|key| {
            self.list.push(Stored {
                key: key.clone(),
                items: 0,
                summary: Summary::default(),
                ranges: Vec::new(),
            });
            self.list.len() - 1
        });
        let Some(stored) = self.list.get_mut(number) else {
            return Ok(());
        };
        let start = self.end;
        if stored.items > 0 && items > 0 {
            self.file.write_all(separator.as_bytes())?;
            self.end += separator.len() as u64;
        }
        self.file.write_all(&text)?;
        self.end += text.len() as u64;
        stored.items += items;
        stored.summary.merge(summary);
        match stored.ranges.last_mut().filter(|last| last.end == start) {
            Some(last) => last.end = self.end,
            None => stored.ranges.push(start..self.end),
        }
        Ok(())
    }

    /// Sections in the order in which they were first named.
    pub fn list(&self) -> &[Stored] {
        &self.list
    }

    /// Section numbers in key order.
    pub fn sorted(&self) -> Vec<usize> {
        let mut numbers: Vec<usize> = (0..self.list.len()).collect();
        numbers.sort_by_key(|&number| self.list.get(number).map(|stored| &stored.key));
        numbers
    }

    /// Number of items of the first section.
    pub fn items(&self) -> usize {
        self.list.first().map_or(0, |stored| stored.items)
    }

    /// Writes the text of a section.
    ///
    /// # Errors
    /// Fails if the temporary file or the writer fails.
    pub fn copy(&mut self, number: usize, out: &mut dyn Write) -> io::Result<()> {
        let stored = self.list.get(number);
        for range in stored.into_iter().flat_map(|stored| &stored.ranges) {
            self.file.seek(SeekFrom::Start(range.start))?;
            io::copy(&mut (&mut self.file).take(range.end - range.start), out)?;
        }
        Ok(())
    }

    /// Reader over the text of the only section; `None` if there is none.
    ///
    /// # Errors
    /// Fails if the temporary file fails.
    pub fn read(&mut self) -> io::Result<io::BufReader<impl Read>> {
        self.file.seek(SeekFrom::Start(0))?;
        let text = (&mut self.file).take(self.end);
        Ok(io::BufReader::with_capacity(1 << 16, text))
    }

    /// Writes a document in which the first section replaces `empty`: `open`, the items,
    /// `close`.
    ///
    /// # Errors
    /// Fails if the temporary file or the writer fails.
    pub fn splice(
        &mut self,
        document: &str,
        [empty, open, close]: [&str; 3],
        out: &mut dyn Write,
    ) -> io::Result<()> {
        self.splice_at(0, document, [empty, open, close], out)
    }

    /// Like [`Sections::splice`], with another section.
    ///
    /// # Errors
    /// Like [`Sections::splice`].
    pub fn splice_at(
        &mut self,
        number: usize,
        document: &str,
        [empty, open, close]: [&str; 3],
        out: &mut dyn Write,
    ) -> io::Result<()> {
        let has_items = self.list.get(number).is_some_and(|stored| stored.items > 0);
        match document.split_once(empty).filter(|_| has_items) {
            None => out.write_all(document.as_bytes()),
            Some((before, behind)) => {
                out.write_all(before.as_bytes())?;
                out.write_all(open.as_bytes())?;
                self.copy(number, out)?;
                out.write_all(close.as_bytes())?;
                out.write_all(behind.as_bytes())
            }
        }
    }
}

/// The text between two marks, from the first `open` to the last `close`.
///
/// # Errors
/// Fails if a mark is missing, that is, if the format has changed.
pub fn between<'t>(text: &'t str, open: &str, close: &str) -> io::Result<&'t str> {
    let inner = text.split_once(open).map(|(_, inner)| inner);
    let inner = inner.and_then(|inner| Some(inner.rsplit_once(close)?.0));
    inner.ok_or_else(|| io::Error::other("a part of a report has another form than expected"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn section(key: Key, text: &str, items: usize) -> Section {
        Section {
            key,
            text: text.into(),
            items,
            summary: Summary::default(),
        }
    }

    #[test]
    fn sections_are_whole_wherever_their_parts_stand() {
        let mut sections = Sections::default();
        let (a, b) = (Key::Name("a".into()), Key::Name("b".into()));
        let long = "x".repeat(MEMORY_BYTES);
        for (key, text, items) in [
            (&b, "1", 1),
            (&a, "2", 1),
            (&b, "", 0),
            (&b, &*long, 2),
            (&a, "4", 1),
        ] {
            sections
                .add(section(key.clone(), text, items), ",")
                .unwrap();
        }
        let text = |sections: &mut Sections, number| {
            let mut out = Vec::new();
            sections.copy(number, &mut out).unwrap();
            String::from_utf8(out).unwrap()
        };
        assert_eq!(text(&mut sections, 0), format!("1,{long}"));
        assert_eq!(text(&mut sections, 1), "2,4");
        assert_eq!(sections.sorted(), [1, 0]);
        assert_eq!(sections.list()[0].items, 3);
        let mut out = Vec::new();
        sections
            .splice_at(1, "{a: [], b: []}", ["[]", "[", "]"], &mut out)
            .unwrap();
        assert_eq!(out, b"{a: [2,4], b: []}");
    }
}
