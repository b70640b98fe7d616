//! Splits the input into chunks that workers evaluate independently.
//!
//! Chunks have bounded size and are in input order. Small files are combined, and long
//! texts are split between objects: NDJSON after a line, YAML at `---`, a JSON list between
//! items. A text that cannot be split is one chunk whatever its size, up to the limits for
//! reading.

use std::fs::File;
use std::io::{self, BufRead, BufReader, Cursor, Read, Seek, SeekFrom};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use kpvm_compiler::source::Before;
use kpvm_semantics::limits::Limits;
use kpvm_syntax::json;

use crate::input::{Found, STDIN_NAME, Unreadable, Walk, read_bytes, reason};
use crate::json_list::{Cut, JsonList};
use crate::list::ListKind;
use crate::position::Position;

/// Bytes of a text examined to detect its format; shorter texts are not split.
const FRONT_BYTES: usize = 1 << 20;

/// Maximum length of a line.
const LINE_BYTES: u64 = 64 << 20;

/// Maximum number of files per chunk.
const FILES: usize = 1000;

/// A chunk of the input.
#[derive(Debug)]
pub struct Piece {
    /// Its texts, in order.
    pub texts: Vec<Text>,
    /// Total size, as far as it is known before reading.
    pub bytes: u64,
}

/// A text, or a part of one.
#[derive(Debug)]
pub enum Text {
    /// A file, still to be read.
    File {
        /// Its path.
        path: PathBuf,
        /// Whether it was found in a directory.
        from_directory: bool,
    },
    /// A part of a text that was read already.
    Part(Part),
    /// An input that could not be read.
    Unreadable(Unreadable),
}

/// A part of a text.
#[derive(Debug)]
pub struct Part {
    /// The name of the text.
    pub name: Arc<str>,
    /// Position within the text.
    pub before: Before,
    /// Its bytes.
    pub bytes: Vec<u8>,
    /// Its content.
    pub holds: Holds,
}

/// Content of a part of a text.
#[derive(Debug, Clone)]
pub enum Holds {
    /// Whole lines, each with one object.
    Lines,
    /// Whole documents.
    Documents,
    /// Whole items of a list, with commas between them.
    Items(Arc<ListKind>),
}

/// Iterator over the chunks of the input.
pub struct Pieces {
    walk: Walk,
    stdin: Option<Box<dyn Read>>,
    /// The long text being split.
    cutter: Option<Cutter>,
    /// Target size of a chunk.
    piece_bytes: usize,
    /// Total size, if it is known without listing directories.
    pub size: Option<u64>,
}

impl Pieces {
    /// An iterator at the start of the paths. Chunks have about `piece_bytes` bytes; texts
    /// shorter than a megabyte are not split.
    pub fn new(paths: &[PathBuf], stdin: Box<dyn Read>, piece_bytes: usize) -> Self {
        let length = |path: &PathBuf| {
            let metadata = path.metadata().ok().filter(std::fs::Metadata::is_file);
            metadata.map(|metadata| metadata.len())
        };
        Self {
            walk: Walk::new(paths.to_vec()),
            stdin: Some(stdin),
            cutter: None,
            piece_bytes,
            size: paths.iter().map(length).sum(),
        }
    }

    /// Opens a text that may be long; returns the text if it is not to be split.
    fn open(&mut self, found: Found) -> io::Result<Option<Text>> {
        match found {
            Found::Unreadable(unreadable) => Ok(Some(Text::Unreadable(unreadable))),
            Found::File {
                path,
                from_directory,
            } => {
                let cutter = match length(&path) {
                    Some(length) if length > FRONT_BYTES as u64 => self.open_file(&path)?,
                    _ => None,
                };
                let is_cut = cutter.is_some();
                self.cutter = cutter;
                Ok((!is_cut).then_some(Text::File {
                    path,
                    from_directory,
                }))
            }
            Found::Stdin => self.open_stdin(),
        }
    }

    fn open_file(&self, path: &Path) -> io::Result<Option<Cutter>> {
        // Errors of opening are reported when the file is read.
        let Ok(mut file) = File::open(path) else {
            return Ok(None);
        };
        let name: Arc<str> = path.display().to_string().into();
        let front = read_front(&mut file)?;
        Ok(match Form::of(&front) {
            Form::Lines => Some(Cutter::lines(name, Cursor::new(front).chain(file))),
            Form::Documents => Some(Cutter::documents(name, Cursor::new(front).chain(file))),
            Form::Json => Cutter::items(name, file, self.piece_bytes)?.ok(),
        })
    }

    fn open_stdin(&mut self) -> io::Result<Option<Text>> {
        let mut stdin = self.stdin.take().unwrap_or_else(|| Box::new(io::empty()));
        let name: Arc<str> = STDIN_NAME.into();
        let front = read_front(&mut stdin)?;
        let mut rest: Box<dyn Read> = match Form::of(&front) {
            _ if front.len() < FRONT_BYTES => Box::new(Cursor::new(front)),
            Form::Lines => {
                self.cutter = Some(Cutter::lines(name, Cursor::new(front).chain(stdin)));
                return Ok(None);
            }
            Form::Documents => {
                self.cutter = Some(Cutter::documents(name, Cursor::new(front).chain(stdin)));
                return Ok(None);
            }
            // A list is read twice, so it is buffered in a file.
            Form::Json => {
                let mut file = tempfile::tempfile()?;
                io::copy(&mut Cursor::new(front).chain(stdin), &mut file)?;
                match Cutter::items(name.clone(), file, self.piece_bytes)? {
                    Ok(cutter) => {
                        self.cutter = Some(cutter);
                        return Ok(None);
                    }
                    Err(mut file) => {
                        file.seek(SeekFrom::Start(0))?;
                        Box::new(file)
                    }
                }
            }
        };
        Ok(Some(match read_bytes(&mut rest) {
            Ok(bytes) => Text::Part(Part {
                name,
                before: Before::default(),
                bytes,
                holds: Holds::Documents,
            }),
            Err(reason) => unreadable(&name, reason),
        }))
    }
}

/// Reads the bytes that are examined.
fn read_front(input: &mut dyn Read) -> io::Result<Vec<u8>> {
    let mut front = Vec::new();
    input.take(FRONT_BYTES as u64).read_to_end(&mut front)?;
    Ok(front)
}

fn length(path: &Path) -> Option<u64> {
    let metadata = path.metadata().ok().filter(std::fs::Metadata::is_file);
    metadata.map(|metadata| metadata.len())
}

fn unreadable(name: &str, reason: String) -> Text {
    Text::Unreadable(Unreadable {
        name: name.to_owned(),
        reason,
    })
}

impl Iterator for Pieces {
    type Item = Piece;

    fn next(&mut self) -> Option<Piece> {
        let mut piece = Piece {
            texts: Vec::new(),
            bytes: 0,
        };
        loop {
            if let Some(cutter) = &mut self.cutter {
                match cutter.next(self.piece_bytes) {
                    Ok(Some(part)) => {
                        piece.bytes += part.bytes.len() as u64;
                        piece.texts.push(Text::Part(part));
                    }
                    Ok(None) => self.cutter = None,
                    Err(error) => {
                        let text = unreadable(&cutter.name, reason(&error));
                        piece.texts.push(text);
                        self.cutter = None;
                    }
                }
            } else {
                let Some(found) = self.walk.next() else {
                    break;
                };
                let name = match &found {
                    Found::File { path, .. } => path.display().to_string(),
                    _ => STDIN_NAME.to_owned(),
                };
                let text = self.open(found);
                let text = text.unwrap_or_else(|error| Some(unreadable(&name, reason(&error))));
                if let Some(text) = text {
                    piece.bytes += match &text {
                        Text::File { path, .. } => length(path).unwrap_or(0),
                        Text::Part(part) => part.bytes.len() as u64,
                        Text::Unreadable(_) => 0,
                    };
                    piece.texts.push(text);
                }
            }
            if piece.bytes >= self.piece_bytes as u64 || piece.texts.len() >= FILES {
                break;
            }
        }
        (!piece.texts.is_empty()).then_some(piece)
    }
}

/// How a long text can be split.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Form {
    /// After lines.
    Lines,
    /// Between the items of a list, if it is one.
    Json,
    /// At document separators.
    Documents,
}

impl Form {
    fn of(front: &[u8]) -> Self {
        match front.trim_ascii_start().first() {
            Some(b'{' | b'[') if begins_ndjson(front) => Form::Lines,
            Some(b'{' | b'[') => Form::Json,
            _ => Form::Documents,
        }
    }
}

/// Whether a text begins with a complete JSON object on its own line, followed by another
/// one.
fn begins_ndjson(front: &[u8]) -> bool {
    let mut lines = front.split_inclusive(|byte| *byte == b'\n');
    let first = lines.find(|line| !line.trim_ascii().is_empty());
    let Some(first) = first.filter(|line| line.ends_with(b"\n")) else {
        return false;
    };
    let is_object = |line: &[u8]| {
        let text = std::str::from_utf8(line).unwrap_or_default();
        let mut reader = json::Reader::new(text);
        line.starts_with(b"{") && reader.skip_value().and_then(|()| reader.end()).is_ok()
    };
    let next = lines.find(|line| !line.trim_ascii().is_empty());
    is_object(first) && next.is_some_and(|line| line.starts_with(b"{"))
}

/// Splits a long text.
struct Cutter {
    name: Arc<str>,
    /// Start of the next part.
    position: Position,
    cuts: Cuts,
}

enum Cuts {
    Lines(Box<dyn BufRead>),
    Documents {
        input: Box<dyn Read>,
        /// Bytes read but not yet returned.
        rest: Vec<u8>,
    },
    Items {
        file: File,
        kind: Arc<ListKind>,
        /// Remaining cuts, the next one first.
        cuts: std::vec::IntoIter<Cut>,
        from: Cut,
    },
}

impl Cutter {
    fn lines(name: Arc<str>, input: impl Read + 'static) -> Self {
        Self {
            name,
            position: Position::default(),
            cuts: Cuts::Lines(Box::new(BufReader::with_capacity(1 << 16, input))),
        }
    }

    fn documents(name: Arc<str>, input: impl Read + 'static) -> Self {
        Self {
            name,
            position: Position::default(),
            cuts: Cuts::Documents {
                input: Box::new(input),
                rest: Vec::new(),
            },
        }
    }

    /// Returns the file if it is not a list.
    fn items(name: Arc<str>, mut file: File, bytes: usize) -> io::Result<Result<Self, File>> {
        let Some(list) = JsonList::find(&mut file, bytes)? else {
            return Ok(Err(file));
        };
        let mut cuts = list.cuts.into_iter();
        let Some(from) = cuts.next() else {
            return Ok(Err(file));
        };
        file.seek(SeekFrom::Start(from.offset))?;
        Ok(Ok(Self {
            name,
            position: Position::default(),
            cuts: Cuts::Items {
                file,
                kind: Arc::new(list.kind),
                cuts,
                from,
            },
        }))
    }

    /// The next part; `None` at the end.
    fn next(&mut self, piece_bytes: usize) -> io::Result<Option<Part>> {
        let part = |bytes, before, holds| Part {
            name: self.name.clone(),
            before,
            bytes,
            holds,
        };
        let before = self.position.before;
        let part = match &mut self.cuts {
            Cuts::Lines(input) => part(read_lines(input, piece_bytes)?, before, Holds::Lines),
            Cuts::Documents { input, rest } => {
                let bytes = read_documents(input, rest, piece_bytes)?;
                part(bytes, before, Holds::Documents)
            }
            Cuts::Items {
                file,
                kind,
                cuts,
                from,
            } => {
                let Some(to) = cuts.next() else {
                    return Ok(None);
                };
                let mut bytes = Vec::new();
                file.take(to.offset - from.offset).read_to_end(&mut bytes)?;
                let begin = std::mem::replace(from, to);
                return Ok(Some(part(bytes, begin.before, Holds::Items(kind.clone()))));
            }
        };
        self.position.go(&part.bytes);
        Ok((!part.bytes.is_empty()).then_some(part))
    }
}

/// Whole lines of about this many bytes; nothing at the end.
fn read_lines(input: &mut dyn BufRead, piece_bytes: usize) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::with_capacity(piece_bytes + piece_bytes / 8);
    (&mut *input)
        .take(piece_bytes as u64)
        .read_to_end(&mut bytes)?;
    if bytes.len() == piece_bytes && !bytes.ends_with(b"\n") {
        (&mut *input)
            .take(LINE_BYTES)
            .read_until(b'\n', &mut bytes)?;
        if !bytes.ends_with(b"\n") && bytes.len() as u64 >= LINE_BYTES {
            let message = format!("a line is longer than {LINE_BYTES} bytes");
            return Err(io::Error::new(io::ErrorKind::InvalidData, message));
        }
    }
    Ok(bytes)
}

/// Whole documents of at least this many bytes; nothing at the end.
fn read_documents(
    input: &mut dyn Read,
    rest: &mut Vec<u8>,
    piece_bytes: usize,
) -> io::Result<Vec<u8>> {
    let limit = Limits::DEFAULT.document_bytes + piece_bytes;
    let mut searched = 0;
    loop {
        let read = (&mut *input).take(piece_bytes as u64).read_to_end(rest)?;
        if read == 0 {
            return Ok(std::mem::take(rest));
        }
        if let Some(end) = last_separator(rest, searched) {
            let behind = rest.split_off(end);
            return Ok(std::mem::replace(rest, behind));
        }
        if rest.len() > limit {
            let limit = Limits::DEFAULT.document_bytes;
            let message = format!("a document is longer than {limit} bytes");
            return Err(io::Error::new(io::ErrorKind::InvalidData, message));
        }
        // A line may have been read only partly.
        searched = memchr::memrchr(b'\n', rest).map_or(0, |at| at + 1);
    }
}

/// End of the last complete line, from an offset at a line start on, that separates
/// documents: three hyphens and only a comment.
fn last_separator(text: &[u8], from: usize) -> Option<usize> {
    let mut end = memchr::memrchr(b'\n', text)? + 1;
    while end > from {
        let start = memchr::memrchr(b'\n', text.get(..end - 1)?).map_or(0, |at| at + 1);
        let rest = text.get(start..end)?.strip_prefix(b"---");
        let rest = rest.map(<[u8]>::trim_ascii);
        if rest.is_some_and(|rest| rest.is_empty() || rest.starts_with(b"#")) {
            return Some(end);
        }
        end = start;
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ndjson_begins_with_an_object_on_a_line() {
        for (text, expected) in [
            ("{\"a\":1}\n{\"b\":2}\n", true),
            ("\n{\"a\":1}\r\n\n{\"b\"", true),
            ("{\"a\":1}\n", false),
            ("{\n\"a\":1}\n{}\n", false),
            ("{a: 1}\n{b: 1}\n", false),
            ("[1]\n[2]\n", false),
            ("a: 1\nb: 2\n", false),
            ("", false),
        ] {
            assert_eq!(begins_ndjson(text.as_bytes()), expected, "{text}");
        }
    }

    #[test]
    fn documents_are_cut_behind_separators() {
        for (text, from, expected) in [
            (
                "a: 1\n---\nb: 2\n--- # x\nc",
                0,
                Some("a: 1\n---\nb: 2\n--- # x\n"),
            ),
            ("a: 1\n---\nb: 2\n--- x\nc", 0, Some("a: 1\n---\n")),
            ("a: 1\n---\r\nb: 2\n---", 0, Some("a: 1\n---\r\n")),
            ("---\nb: 2\n", 0, Some("---\n")),
            ("---\nb: 2\n", 4, None),
            ("a: |\n ---\n b\n", 0, None),
            ("---", 0, None),
            ("", 0, None),
        ] {
            let end = last_separator(text.as_bytes(), from);
            assert_eq!(end.map(|end| &text[..end]), expected, "{text:?}");
        }
    }
}
