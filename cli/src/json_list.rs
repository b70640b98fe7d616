//! Finds the items of a list in a JSON file without holding the file in memory:
//! `kubectl get -o json` writes the kind of the list after its items, so the file is
//! scanned once to learn that and where it can be cut between items, and then read again
//! part by part.

use std::fs::File;
use std::io::{self, Read, Seek, SeekFrom};

use kpvm_compiler::source::Before;
use kpvm_semantics::limits::Limits;
use kpvm_syntax::json;
use kpvm_syntax::tree::{Tree, TreeValue};
use kpvm_syntax::yaml::DuplicateKeys;

use crate::json_text::{skip_space, value_end};
use crate::list::{ListKind, item_kind};
use crate::position::Position;

/// Bytes that are read at once.
const READ_BYTES: usize = 1 << 20;

/// How what is not an item is read.
const OPTIONS: json::Options<'static> = json::Options {
    duplicate_keys: DuplicateKeys::LastWins,
    numbers: json::Numbers::Kubernetes,
    limits: &Limits::DEFAULT,
};

/// A list, and where it can be cut between items.
#[derive(Debug)]
pub struct JsonList {
    /// What it is a list of.
    pub kind: ListKind,
    /// The cuts: each before an item, the last one after all.
    pub cuts: Vec<Cut>,
}

/// A place between items.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Cut {
    /// Bytes before it.
    pub offset: u64,
    /// The same in lines and characters.
    pub before: Before,
}

impl JsonList {
    /// The list in a file, with cuts about `bytes_apart` bytes apart; `None` if the file is
    /// something else or cannot be recognised.
    ///
    /// # Errors
    /// If the file cannot be read.
    pub fn find(file: &mut File, bytes_apart: usize) -> io::Result<Option<Self>> {
        file.seek(SeekFrom::Start(0))?;
        let mut scanner = Scanner {
            input: file,
            bytes: Vec::new(),
            at: 0,
            position: Position::default(),
        };
        scanner.list(bytes_apart as u64)
    }
}

/// Scans a file through a buffer.
struct Scanner<'f> {
    input: &'f mut File,
    bytes: Vec<u8>,
    /// How many bytes of the buffer have been consumed.
    at: usize,
    /// The position in the file after the consumed bytes.
    position: Position,
}

impl Scanner<'_> {
    fn list(&mut self, bytes_apart: u64) -> io::Result<Option<JsonList>> {
        let (mut kind, mut api_version, mut metadata) = (None, None, None);
        let mut cuts = None;
        if !self.skip(b'{')? {
            return Ok(None);
        }
        loop {
            let Some(TreeValue::String(key)) = self.json()?.map(|key| key.value) else {
                return Ok(None);
            };
            if !self.skip(b':')? {
                return Ok(None);
            }
            if &*key == "items" {
                if cuts.is_some() || !self.skip(b'[')? {
                    return Ok(None);
                }
                cuts = self.items(bytes_apart)?;
                if cuts.is_none() {
                    return Ok(None);
                }
            } else {
                let Some(value) = self.json()? else {
                    return Ok(None);
                };
                match &*key {
                    "kind" => kind = Some(value),
                    "apiVersion" => api_version = Some(value),
                    "metadata" => metadata = Some(value),
                    _ => {}
                }
            }
            if !self.skip(b',')? {
                break;
            }
        }
        if !self.skip(b'}')? || self.next()?.is_some() {
            return Ok(None);
        }
        let has_name = metadata.is_some_and(|metadata| metadata.get("name").is_some());
        let kind = kind.as_ref().and_then(Tree::as_str);
        let item_kind = kind.and_then(|kind| item_kind(kind, true, has_name));
        Ok(item_kind.zip(cuts).map(|(item_kind, cuts)| JsonList {
            kind: ListKind {
                item_kind,
                api_version: api_version.map(|version| version.value),
            },
            cuts,
        }))
    }

    /// The cuts between items, starting after the bracket.
    fn items(&mut self, bytes_apart: u64) -> io::Result<Option<Vec<Cut>>> {
        let mut cuts: Vec<Cut> = Vec::new();
        if self.skip(b']')? {
            return Ok(Some(cuts));
        }
        loop {
            if self.next()?.is_none() {
                return Ok(None);
            }
            let here = self.cut();
            let is_far = |last: &Cut| here.offset - last.offset >= bytes_apart;
            if cuts.last().is_none_or(is_far) {
                cuts.push(here);
            }
            let Some(length) = self.value()? else {
                return Ok(None);
            };
            self.go(length);
            // A cut is before an item, or after the last one.
            let behind = self.cut();
            if self.skip(b']')? {
                cuts.push(behind);
                return Ok(Some(cuts));
            }
            if !self.skip(b',')? {
                return Ok(None);
            }
        }
    }

    fn cut(&self) -> Cut {
        Cut {
            offset: self.position.offset,
            before: self.position.before,
        }
    }

    /// The next byte that is not white space.
    fn next(&mut self) -> io::Result<Option<u8>> {
        loop {
            let end = skip_space(&self.bytes, self.at);
            self.go(end - self.at);
            if let Some(byte) = self.bytes.get(self.at) {
                return Ok(Some(*byte));
            }
            if !self.read()? {
                return Ok(None);
            }
        }
    }

    /// Whether that byte is next after white space; if so it is consumed.
    fn skip(&mut self, byte: u8) -> io::Result<bool> {
        let is_next = self.next()? == Some(byte);
        self.go(usize::from(is_next));
        Ok(is_next)
    }

    /// The length of the next value; `None` if it does not end or is longer than the limit.
    fn value(&mut self) -> io::Result<Option<usize>> {
        loop {
            if let Some(end) = value_end(&self.bytes, self.at) {
                return Ok(Some(end - self.at));
            }
            let length = self.bytes.len() - self.at;
            if length > Limits::DEFAULT.document_bytes || !self.read()? {
                return Ok(None);
            }
        }
    }

    /// The next value; `None` if there is none.
    fn json(&mut self) -> io::Result<Option<Tree>> {
        if self.next()?.is_none() {
            return Ok(None);
        }
        let Some(length) = self.value()? else {
            return Ok(None);
        };
        let text = self.bytes.get(self.at..self.at + length);
        let text = text.and_then(|text| std::str::from_utf8(text).ok());
        let value = text.and_then(|text| Some(json::read(text, OPTIONS).ok()?.0));
        self.go(length);
        Ok(value)
    }

    fn go(&mut self, length: usize) {
        let end = self.at + length;
        self.position
            .go(self.bytes.get(self.at..end).unwrap_or_default());
        self.at = end;
    }

    /// Reads more of the file; false at its end.
    fn read(&mut self) -> io::Result<bool> {
        self.bytes.drain(..self.at);
        self.at = 0;
        let more = (&mut *self.input).take(READ_BYTES as u64);
        Ok({ more }.read_to_end(&mut self.bytes)? > 0)
    }
}
