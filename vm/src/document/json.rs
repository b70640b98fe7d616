//! The JSON reader: one pass over the bytes, without recursion.
//!
//! Accepts what Kubernetes' decoder accepts (Go's `encoding/json` with separate int64 and
//! float64, docs/spec/patterns.md §1), except that non-UTF-8 bytes are rejected instead of
//! replaced, and that nesting, size and number of values are bounded by the host's limits.
//!
//! Plain strings are never copied. A key of at most 16 bytes is scanned, hashed and
//! compared with the bundle's symbols as two words, in a single look.

use std::fmt;

use kpvm_format::symbol::{SymbolTable, key_hash, key_head, short_key_hash};

use super::buffer::DocumentBuffer;
use super::node::{Kind, Label, Node, NodeId, TextRef, TextSource, Texts};
use super::projection::{Bystander, Entry, Part, Place, Projection};
use super::scan::{Chunk, plain_end, space};
use super::skip::skip;
use kpvm_semantics::limits::Limits;

/// Representation of numbers.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Numbers {
    /// Integers in the range of int64 become Int, as in the admission controller.
    #[default]
    Exact,
    /// Every number becomes a Float, as in `kyverno apply` (docs/spec/cli.md §3, step 3).
    Float,
}

/// Options of the reader.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct ReadOptions {
    /// Representation of numbers.
    pub numbers: Numbers,
    /// Limits; `document_bytes`, `document_depth` and `document_nodes` apply.
    pub limits: Limits,
}

/// Reason why an input was rejected, with its location.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct JsonError {
    /// What is wrong.
    pub problem: JsonProblem,
    /// Byte offset of the error.
    pub offset: usize,
    /// Line of the error, from 1.
    pub line: usize,
    /// Column of the error in characters, from 1.
    pub column: usize,
}

impl fmt::Display for JsonError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self {
            problem,
            line,
            column,
            ..
        } = self;
        write!(f, "{problem} at line {line}, column {column}")
    }
}

impl std::error::Error for JsonError {}

/// What is wrong with a JSON text.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum JsonProblem {
    /// Unexpected input.
    Unexpected {
        /// What was expected.
        expected: &'static str,
        /// What was found.
        found: Found,
    },
    /// The text is not UTF-8.
    NotUtf8(Found),
    /// The number is out of range for float64.
    NumberRange,
    /// More bytes than `document_bytes`.
    TooLarge {
        /// The limit.
        limit: usize,
        /// Size of the input.
        bytes: usize,
    },
    /// Deeper nesting than `document_depth`.
    TooDeep {
        /// The limit.
        limit: usize,
    },
    /// More values than `document_nodes`.
    TooManyValues {
        /// The limit.
        limit: usize,
    },
}

impl fmt::Display for JsonProblem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Unexpected {
                expected, found, ..
            } => write!(f, "expected {expected}, found {found}"),
            Self::NotUtf8(value) => write!(f, "expected UTF-8 text, found {value}"),
            Self::NumberRange => {
                f.write_str("expected a number that fits float64, found a larger one")
            }
            Self::TooLarge { limit, bytes, .. } => {
                write!(f, "expected at most {limit} bytes, found {bytes}")
            }
            Self::TooDeep { limit, .. } => write!(
                f,
                "expected at most {limit} maps and lists inside each other, found more"
            ),
            Self::TooManyValues { limit, .. } => {
                write!(f, "expected at most {limit} values, found more")
            }
        }
    }
}

impl std::error::Error for JsonProblem {}

/// Unexpected content of a text.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Found {
    /// The end of the text.
    End,
    /// A character.
    Character(char),
    /// A byte that does not begin a character.
    Byte(u8),
}

impl Found {
    fn at(input: &[u8], offset: usize) -> Self {
        let Some(&byte) = input.get(offset) else {
            return Found::End;
        };
        let rest = input.get(offset..).unwrap_or(&[]);
        let character = rest.utf8_chunks().next().map(|piece| piece.valid());
        match character.and_then(|valid| valid.chars().next()) {
            Some(character) => Found::Character(character),
            None => Found::Byte(byte),
        }
    }
}

impl std::fmt::Display for Found {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Found::End => f.write_str("the end of the text"),
            Found::Character(character) if character.is_control() => {
                write!(f, "the control character U+{:04X}", u32::from(*character))
            }
            Found::Character(character) => write!(f, "`{character}`"),
            Found::Byte(byte) => write!(f, "the byte 0x{byte:02X}"),
        }
    }
}

/// A problem without line and column.
#[derive(Debug, Clone, Copy)]
struct Fault {
    offset: usize,
    cause: Cause,
}

#[derive(Debug, Clone, Copy)]
enum Cause {
    Expected(&'static str),
    NotUtf8,
    NumberRange,
    TooLarge,
    TooDeep,
    TooManyValues,
}

#[cold]
#[inline(never)]
fn fault<T>(offset: usize, cause: Cause) -> Result<T, Fault> {
    Err(Fault { offset, cause })
}

#[cold]
#[inline(never)]
fn expected<T>(offset: usize, what: &'static str) -> Result<T, Fault> {
    fault(offset, Cause::Expected(what))
}

impl Fault {
    fn explain(self, input: &[u8], limits: &Limits) -> JsonError {
        let found = Found::at(input, self.offset);
        let problem = match self.cause {
            Cause::Expected(expected) => JsonProblem::Unexpected { expected, found },
            Cause::NotUtf8 => JsonProblem::NotUtf8(found),
            Cause::NumberRange => JsonProblem::NumberRange,
            Cause::TooLarge => JsonProblem::TooLarge {
                limit: limits.document_bytes.min(MAX_BYTES),
                bytes: input.len(),
            },
            Cause::TooDeep => JsonProblem::TooDeep {
                limit: limits.document_depth,
            },
            Cause::TooManyValues => JsonProblem::TooManyValues {
                limit: limits.document_nodes,
            },
        };
        let before = input.get(..self.offset).unwrap_or(input);
        let line_start = memchr::memrchr(b'\n', before).map_or(0, |newline| newline + 1);
        let in_line = before.get(line_start..).unwrap_or(&[]);
        JsonError {
            problem,
            offset: self.offset,
            line: memchr::memchr_iter(b'\n', before).count() + 1,
            column: in_line.iter().filter(|&&byte| byte & 0xC0 != 0x80).count() + 1,
        }
    }
}

/// The most bytes that one buffer can number: every value, key and text byte takes at least
/// one byte of the input.
const MAX_BYTES: usize = (1 << 31) - 2;

impl DocumentBuffer {
    /// Reads one JSON value. `input` must be the bytes that views later receive as the text
    /// of `source`; only for [`TextSource::Scratch`] is it copied first.
    ///
    /// # Errors
    /// A [`JsonError`] if `input` is not JSON or exceeds a limit. The buffer is then
    /// unchanged.
    pub fn read_json(
        &mut self,
        input: &[u8],
        source: TextSource,
        symbols: &SymbolTable<'_>,
        options: &ReadOptions,
    ) -> Result<NodeId, JsonError> {
        let mark = self.mark();
        let result = self.read_checked(input, source, symbols, options, None);
        result.map_err(|fault| {
            self.reset(mark);
            fault.explain(input, &options.limits)
        })
    }

    /// Like [`DocumentBuffer::read_json`], but reads only the maps and lists that the
    /// projection selects and checks the syntax of the others. The bystander visits what
    /// the projection assigns to it. `None` if the input may be invalid and must be read as
    /// a whole; the buffer is then unchanged.
    pub(crate) fn read_json_in_part(
        &mut self,
        input: &[u8],
        source: TextSource,
        symbols: &SymbolTable<'_>,
        options: &ReadOptions,
        mut part: Part<'_>,
    ) -> Option<NodeId> {
        let mark = self.mark();
        let lent = Part {
            projection: part.projection,
            bystander: match &mut part.bystander {
                Some(bystander) => Some(&mut **bystander),
                None => None,
            },
        };
        let result = self.read_checked(input, source, symbols, options, Some(lent));
        if result.is_err() {
            self.reset(mark);
            if let Some(bystander) = part.bystander {
                bystander.forget();
            }
        }
        result.ok()
    }

    fn read_checked(
        &mut self,
        input: &[u8],
        source: TextSource,
        symbols: &SymbolTable<'_>,
        options: &ReadOptions,
        part: Option<Part<'_>>,
    ) -> Result<NodeId, Fault> {
        let limit = options.limits.document_bytes.min(MAX_BYTES);
        let used = [self.nodes.len(), self.scratch.len(), self.keys.len()];
        // A copy in the scratch bytes and the unescaped texts: at most twice the input.
        let needed = input.len().saturating_mul(2);
        if input.len() > limit
            || used
                .iter()
                .any(|used| used.saturating_add(needed) > MAX_BYTES)
        {
            return fault(0, Cause::TooLarge);
        }
        if !input.is_ascii()
            && let Err(error) = std::str::from_utf8(input)
        {
            return fault(error.valid_up_to(), Cause::NotUtf8);
        }
        let mut base = 0;
        if source == TextSource::Scratch {
            base = self.scratch.len() as u32;
            self.scratch.extend_from_slice(input);
        }
        let (projection, bystander) = match part {
            Some(part) => (Some(part.projection), part.bystander),
            None => (None, None),
        };
        let reader = Reader {
            input,
            source,
            base,
            symbols: *symbols,
            numbers: options.numbers,
            depth_end: self.depth().saturating_add(options.limits.document_depth),
            count_end: (self.nodes.len() + self.pending.len())
                .saturating_add(options.limits.document_nodes),
            projection,
            bystander,
            buffer: self,
        };
        reader.read()
    }
}

/// State of one reading. The current offset is passed from function to function by value so
/// that it stays in a register.
struct Reader<'i, 'b, 'p> {
    buffer: &'b mut DocumentBuffer,
    input: &'i [u8],
    source: TextSource,
    /// Added to an offset in the input to get an offset in the text of `source`.
    base: u32,
    symbols: SymbolTable<'i>,
    numbers: Numbers,
    /// `buffer.depth()` at the maximum nesting.
    depth_end: usize,
    /// Number of nodes in the buffer at the maximum number of values, minus skipped values.
    count_end: usize,
    /// What is read; `None`: everything.
    projection: Option<Projection<'p>>,
    /// Visitor of what is not read.
    bystander: Option<&'p mut dyn Bystander>,
}

impl Reader<'_, '_, '_> {
    fn read(mut self) -> Result<NodeId, Fault> {
        let start = self.skip_space(0);
        let end = self.value(start)?;
        let end = self.skip_space(end);
        if end < self.input.len() {
            return expected(end, "the end of the text");
        }
        match self.buffer.take() {
            Ok(node) => Ok(node),
            Err(_) => fault(end, Cause::TooLarge),
        }
    }

    /// The byte at `at`; 0, which never occurs in JSON, after the end.
    #[inline(always)]
    fn byte(&self, at: usize) -> u8 {
        self.input.get(at).copied().unwrap_or(0)
    }

    #[inline(always)]
    fn skip_space(&self, at: usize) -> usize {
        space(self.input, at)
    }

    /// Reads the value at `at`, including nested values; returns the offset after it.
    fn value(&mut self, mut at: usize) -> Result<usize, Fault> {
        let outside = self.buffer.depth();
        let mut inside = Kind::List;
        loop {
            let mut label = Label::ITEM;
            if inside == Kind::Map {
                (at, label) = self.key(at)?;
            }
            let opened;
            (at, opened) = self.begin_value(at, label)?;
            if opened {
                inside = self.buffer.open_kind();
                continue;
            }
            loop {
                if self.buffer.depth() == outside {
                    return Ok(at);
                }
                at = self.skip_space(at);
                inside = self.buffer.open_kind();
                match self.byte(at) {
                    b',' => break,
                    b'}' if inside == Kind::Map => {
                        let texts = Texts::only(self.source, self.input);
                        let has_duplicates = self.buffer.close_map(texts);
                        if has_duplicates && self.bystander.is_some() {
                            // The bystander may have visited a member that a later one
                            // replaces.
                            return expected(at, "no key twice");
                        }
                    }
                    b']' if inside == Kind::List => self.buffer.finish_list(),
                    _ if inside == Kind::Map => return expected(at, "`,` or `}`"),
                    _ => return expected(at, "`,` or `]`"),
                }
                at += 1;
            }
            at = self.skip_space(at + 1);
        }
    }

    /// Reads a scalar or an empty container, or opens a container with members. Returns the
    /// offset after it, and whether members follow there.
    #[inline(always)]
    fn begin_value(&mut self, at: usize, label: Label) -> Result<(usize, bool), Fault> {
        let count = self.buffer.nodes.len() + self.buffer.pending.len();
        if count >= self.count_end {
            return fault(at, Cause::TooManyValues);
        }
        let byte = self.byte(at);
        if byte == b'"' {
            return Ok((self.string(at + 1, label)?, false));
        }
        match byte {
            b'{' => self.begin_container(at, label, Kind::Map, b'}'),
            b'[' => self.begin_container(at, label, Kind::List, b']'),
            b'-' | b'0'..=b'9' => Ok((self.number(at, label)?, false)),
            _ => Ok((self.word(at, label)?, false)),
        }
    }

    #[inline(always)]
    fn begin_container(
        &mut self,
        at: usize,
        label: Label,
        kind: Kind,
        end: u8,
    ) -> Result<(usize, bool), Fault> {
        if self.buffer.depth() >= self.depth_end {
            return fault(at, Cause::TooDeep);
        }
        let inside = self.skip_space(at + 1);
        if self.byte(inside) == end {
            self.buffer.push(Node::new(label, kind, 0, 0));
            return Ok((inside + 1, false));
        }
        let Some(projection) = self.projection else {
            self.buffer.open(label, kind);
            return Ok((inside, true));
        };
        let entry = match self.buffer.open_place() {
            None => Entry::Read(Place::ROOT),
            Some(place) => projection.entry(place, label),
        };
        let spot = match entry {
            Entry::Read(place) => {
                self.buffer.open_at(label, kind, place);
                return Ok((inside, true));
            }
            Entry::Pass(spot) => Some(spot),
            Entry::Skip => None,
        };
        Ok((self.leave_out(at, inside, label, kind, spot)?, false))
    }

    /// Skips the container at `at`, whose first member begins at `inside`.
    fn leave_out(
        &mut self,
        at: usize,
        inside: usize,
        label: Label,
        kind: Kind,
        spot: Option<u32>,
    ) -> Result<usize, Fault> {
        let is_map = kind == Kind::Map;
        let skipped = match (spot, &mut self.bystander) {
            (Some(spot), Some(bystander)) => bystander.pass(self.input, inside, is_map, spot),
            _ => skip(self.input, inside, is_map),
        };
        let Some(skipped) = skipped else {
            return expected(at, "JSON that can be skipped");
        };
        if self.buffer.depth() + skipped.depth > self.depth_end {
            return fault(at, Cause::TooDeep);
        }
        self.buffer
            .push(Node::unread(label, kind, self.piece(at, skipped.end)));
        let count = self.buffer.nodes.len() + self.buffer.pending.len();
        self.count_end = self.count_end.saturating_sub(skipped.values);
        if count > self.count_end {
            return fault(at, Cause::TooManyValues);
        }
        Ok(skipped.end)
    }

    /// Reads a map key and the colon after it.
    #[inline(always)]
    fn key(&mut self, at: usize) -> Result<(usize, Label), Fault> {
        if self.byte(at) != b'"' {
            return expected(at, "a key in double quotes");
        }
        let start = at + 1;
        let first = Chunk::at(self.input, start);
        let (end, label) = match first.plain() {
            Some(length) if self.byte(start + length) == b'"' => {
                let head = first.head(length);
                let hash = short_key_hash(head, length);
                let label = match self.symbols.lookup_short(hash, head, length) {
                    Some(symbol) => Label::symbol(symbol),
                    None => {
                        let piece = self.piece(start, start + length);
                        self.unknown_key(piece, hash)
                    }
                };
                (start + length + 1, label)
            }
            _ => self.long_key(start)?,
        };
        let colon = self.skip_space(end);
        if self.byte(colon) != b':' {
            return expected(colon, "`:`");
        }
        let value = colon + 1;
        if self.byte(value) > b' ' {
            return Ok((value, label));
        }
        // Indented JSON has one space here, which is not worth a call.
        let one = usize::from(self.byte(value) == b' ');
        Ok((self.skip_space(value + one), label))
    }

    /// Reads a key with more than 16 bytes or with escapes.
    #[inline(never)]
    fn long_key(&mut self, start: usize) -> Result<(usize, Label), Fault> {
        let (end, piece) = self.text(start)?;
        let text = match piece.source {
            source if source == self.source && end - 1 - start == piece.length as usize => {
                self.input.get(start..end - 1)
            }
            _ => self.buffer.scratch.get(piece.offset as usize..),
        };
        let text = text.unwrap_or(&[]);
        let hash = key_hash(text);
        let label = match self.symbols.lookup_hashed(hash, key_head(text), text) {
            Some(symbol) => Label::symbol(symbol),
            None => self.unknown_key(piece, hash),
        };
        Ok((end, label))
    }

    #[inline(always)]
    fn unknown_key(&mut self, piece: TextRef, hash: u32) -> Label {
        let index = self.buffer.keys.len() as u32;
        self.buffer.keys.push(piece);
        Label::unknown(index, hash)
    }

    /// Reads a string value; `start` is after the opening quote.
    #[inline(always)]
    fn string(&mut self, start: usize, label: Label) -> Result<usize, Fault> {
        let (end, piece) = self.text(start)?;
        self.buffer.push(Node::text(label, piece));
        Ok(end)
    }

    /// Locates the text of a string; `start` is after the opening quote, the returned
    /// offset after the closing one.
    #[inline(always)]
    fn text(&mut self, start: usize) -> Result<(usize, TextRef), Fault> {
        let end = plain_end(self.input, start);
        if self.byte(end) == b'"' {
            return Ok((end + 1, self.piece(start, end)));
        }
        self.escaped_text(start, end)
    }

    #[inline(always)]
    fn piece(&self, start: usize, end: usize) -> TextRef {
        TextRef {
            source: self.source,
            offset: self.base.wrapping_add(start as u32),
            length: (end - start) as u32,
        }
    }

    /// Copies a text to the scratch bytes and resolves its escapes. The plain run from
    /// `start` to `end` has already been scanned.
    #[cold]
    #[inline(never)]
    fn escaped_text(&mut self, start: usize, end: usize) -> Result<(usize, TextRef), Fault> {
        let offset = self.buffer.scratch.len();
        let (mut run, mut at) = (start, end);
        loop {
            let plain = self.input.get(run..at).unwrap_or(&[]);
            self.buffer.scratch.extend_from_slice(plain);
            match self.byte(at) {
                b'"' => break,
                b'\\' => run = self.escape(at + 1)?,
                _ if at >= self.input.len() => return expected(at, "`\"` at the end of the text"),
                _ => return expected(at, "an escape (`\\n`, `\\u000a`) for a control character"),
            }
            at = plain_end(self.input, run);
        }
        let piece = TextRef {
            source: TextSource::Scratch,
            offset: offset as u32,
            length: (self.buffer.scratch.len() - offset) as u32,
        };
        Ok((at + 1, piece))
    }

    /// Resolves the escape whose backslash is before `at`.
    fn escape(&mut self, at: usize) -> Result<usize, Fault> {
        let byte = match self.byte(at) {
            byte @ (b'"' | b'\\' | b'/') => byte,
            b'b' => 0x08,
            b'f' => 0x0C,
            b'n' => b'\n',
            b'r' => b'\r',
            b't' => b'\t',
            b'u' => return self.unicode_escape(at + 1),
            _ => return expected(at, "one of `\"\\/bfnrtu` behind a backslash"),
        };
        self.buffer.scratch.push(byte);
        Ok(at + 1)
    }

    /// Resolves `\uXXXX`, or a surrogate pair. An unpaired surrogate becomes U+FFFD, as in
    /// Go (hostile row 56).
    fn unicode_escape(&mut self, at: usize) -> Result<usize, Fault> {
        let first = self.hex4(at)?;
        let mut end = at + 4;
        let mut code = first;
        if (0xD800..0xDC00).contains(&first)
            && self.byte(end) == b'\\'
            && self.byte(end + 1) == b'u'
        {
            let second = self.hex4(end + 2)?;
            if (0xDC00..0xE000).contains(&second) {
                code = 0x10000 + ((first - 0xD800) << 10 | (second - 0xDC00));
                end += 6;
            }
        }
        let character = char::from_u32(code).unwrap_or(char::REPLACEMENT_CHARACTER);
        let mut bytes = [0; 4];
        let text = character.encode_utf8(&mut bytes);
        self.buffer.scratch.extend_from_slice(text.as_bytes());
        Ok(end)
    }

    fn hex4(&self, at: usize) -> Result<u32, Fault> {
        let mut code = 0;
        for place in at..at + 4 {
            match (self.byte(place) as char).to_digit(16) {
                Some(digit) => code = code << 4 | digit,
                None => return expected(place, "four hexadecimal digits behind `\\u`"),
            }
        }
        Ok(code)
    }

    /// Reads `null`, `true` or `false`.
    #[inline(always)]
    fn word(&mut self, at: usize, label: Label) -> Result<usize, Fault> {
        let (word, kind): (&[u8], _) = match self.byte(at) {
            b't' => (b"true", Kind::True),
            b'f' => (b"false", Kind::False),
            b'n' => (b"null", Kind::Null),
            _ => return expected(at, "a value"),
        };
        let end = at + word.len();
        if self.input.get(at..end) != Some(word) {
            return expected(at, "`null`, `true` or `false`");
        }
        self.buffer.push(Node::new(label, kind, 0, 0));
        Ok(end)
    }

    /// Reads a number. Up to 18 digits cannot overflow, which covers practically all
    /// integers.
    #[inline(always)]
    fn number(&mut self, start: usize, label: Label) -> Result<usize, Fault> {
        let negative = self.byte(start) == b'-';
        let digits = start + usize::from(negative);
        let mut at = digits;
        let mut value = 0i64;
        loop {
            let digit = self.byte(at).wrapping_sub(b'0');
            if digit > 9 || at - digits == 18 {
                break;
            }
            value = value * 10 + i64::from(digit);
            at += 1;
        }
        let plain = !matches!(self.byte(at), b'.' | b'e' | b'E' | b'0'..=b'9');
        let leading_zero = self.byte(digits) == b'0' && at - digits > 1;
        if at == digits || !plain || leading_zero {
            return self.unusual_number(start, digits, label);
        }
        self.push_integer(label, if negative { -value } else { value });
        Ok(at)
    }

    #[inline(always)]
    fn push_integer(&mut self, label: Label, value: i64) {
        let node = match self.numbers {
            Numbers::Exact => Node::number(label, Kind::Int, value as u64),
            Numbers::Float => Node::number(label, Kind::Float, (value as f64).to_bits()),
        };
        self.buffer.push(node);
    }

    /// Reads a number that is long or not an integer, and rejects malformed ones.
    #[cold]
    #[inline(never)]
    fn unusual_number(
        &mut self,
        start: usize,
        digits: usize,
        label: Label,
    ) -> Result<usize, Fault> {
        let (end, integer) = self.number_end(digits)?;
        let text = self
            .input
            .get(start..end)
            .and_then(|text| std::str::from_utf8(text).ok());
        let text = text.unwrap_or("");
        if integer && let Ok(value) = text.parse::<i64>() {
            self.push_integer(label, value);
            return Ok(end);
        }
        match text.parse::<f64>() {
            Ok(value) if value.is_finite() => {
                self.buffer
                    .push(Node::number(label, Kind::Float, value.to_bits()));
                Ok(end)
            }
            _ => fault(start, Cause::NumberRange),
        }
    }

    /// Checks the grammar of a number from its first digit; returns its end and whether it
    /// is written as an integer.
    fn number_end(&self, digits: usize) -> Result<(usize, bool), Fault> {
        let mut end = self.digits_end(digits)?;
        if self.byte(digits) == b'0' && end > digits + 1 {
            return expected(digits + 1, "no digit behind a leading zero");
        }
        let integer_end = end;
        if self.byte(end) == b'.' {
            end = self.digits_end(end + 1)?;
        }
        if matches!(self.byte(end), b'e' | b'E') {
            let signed = matches!(self.byte(end + 1), b'+' | b'-');
            end = self.digits_end(end + 1 + usize::from(signed))?;
        }
        Ok((end, end == integer_end))
    }

    /// End of the digits at `at`; there must be at least one.
    fn digits_end(&self, at: usize) -> Result<usize, Fault> {
        let mut end = at;
        while self.byte(end).is_ascii_digit() {
            end += 1;
        }
        if end == at {
            return expected(at, "a digit");
        }
        Ok(end)
    }
}
