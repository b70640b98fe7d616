//! Decodes an AdmissionReview as sent by an API server.
//!
//! Returns its texts and the byte ranges of its objects. The objects are located by their
//! brackets and not read here; the session that evaluates them reads them and reports
//! errors inside them.
//!
//! Accepts what Go's decoder accepts as an AdmissionReview: member names are
//! case-insensitive, the last duplicate wins, `null` counts as absent, unknown members are
//! ignored. Only the types of known members are checked.

use std::fmt;

use std::ops::Range;

use super::request::{GroupVersionKind, Input, Operation, Request, UserInfo};
use crate::document::{
    DocumentBuffer, JsonError, NodeId, ReadOptions, TextSource, Texts, View, cut, plain_end,
    skip_value, space,
};
use kpvm_format::symbol::SymbolTable;
use kpvm_semantics::limits::Limits;

/// Reason why bytes are not a review that can be answered.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub enum ReviewError {
    /// The bytes are not JSON, or exceed a limit for documents.
    Json(JsonError),
    /// A member has the wrong type.
    Type {
        /// The member.
        member: &'static str,
        /// The expected type.
        expected: &'static str,
    },
    /// Its texts with escapes do not fit the work buffer.
    TooLarge,
    /// There is no `request`, or it is null.
    NoRequest,
    /// The operation is not one of Kubernetes'.
    Operation {
        /// What was found; empty if nothing.
        found: String,
    },
}

impl fmt::Display for ReviewError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Json(value) => write!(f, "the review cannot be read: {value}"),
            Self::Type {
                member, expected, ..
            } => write!(f, "expected `{member}` of the review to be {expected}"),
            Self::TooLarge => f.write_str("the review is too large"),
            Self::NoRequest => f.write_str("expected the review to have a request, found none"),
            Self::Operation { found, .. } => write!(
                f,
                "expected the operation to be CREATE, UPDATE, DELETE or CONNECT, found `{found}`"
            ),
        }
    }
}

impl std::error::Error for ReviewError {}

impl From<JsonError> for ReviewError {
    fn from(error: JsonError) -> Self {
        Self::Json(error)
    }
}

/// Content of an AdmissionReview. Absent members are empty.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct Review<'r> {
    /// Identifier that the response must repeat.
    pub uid: &'r str,
    /// Kind of the request.
    pub kind: GroupVersionKind<'r>,
    /// Name of the kind's resource, e.g. `pods`.
    pub resource: &'r str,
    /// The subresource; empty for the resource itself.
    pub subresource: &'r str,
    /// Name of the object; empty if the API server generates it.
    pub name: &'r str,
    /// Its namespace.
    pub namespace: &'r str,
    /// The operation.
    pub operation: Operation,
    /// Name of the user.
    pub username: &'r str,
    /// Unique identifier of the user.
    pub user_uid: &'r str,
    /// The user's groups.
    pub groups: Vec<&'r str>,
    /// Text of the new object, unread.
    pub object: Option<&'r [u8]>,
    /// Text of the old object, unread.
    pub old_object: Option<&'r [u8]>,
    /// Whether the request will not be persisted.
    pub dry_run: bool,
}

impl<'r> Review<'r> {
    /// Reads a review. `buffer` is scratch space that can be reused for further reviews.
    ///
    /// # Errors
    /// A [`ReviewError`] if this is not a review. Malformed objects are detected when the
    /// request is evaluated.
    pub fn read(
        text: &'r [u8],
        buffer: &'r mut DocumentBuffer,
        limits: &Limits,
    ) -> Result<Self, ReviewError> {
        buffer.clear();
        let options = ReadOptions {
            limits: *limits,
            ..ReadOptions::default()
        };
        if text.len() > limits.document_bytes {
            buffer.read_json(text, TextSource::Object, &SymbolTable::EMPTY, &options)?;
        }
        let mut found = Found::default();
        let mut result = Decoder::new(text, buffer, options, false).review(&mut found);
        if result.is_err() {
            // Invalid JSON takes precedence over any other error.
            buffer.read_json(text, TextSource::Object, &SymbolTable::EMPTY, &options)?;
            found = Found::default();
            result = Decoder::new(text, buffer, options, true).review(&mut found);
        }
        match result {
            Ok(()) => {}
            Err(Fault::Type { member, expected }) => {
                return Err(ReviewError::Type { member, expected });
            }
            Err(Fault::Unusual) => return Err(ReviewError::TooLarge),
        }
        let view = buffer.view(Texts::only(TextSource::Object, text), SymbolTable::EMPTY);
        let review = found.resolve(text, view);
        if review.is_err() {
            // So does invalid JSON inside the objects, which have only been cut out.
            let (mut whole, symbols) = (DocumentBuffer::new(), SymbolTable::EMPTY);
            whole.read_json(text, TextSource::Object, &symbols, &options)?;
        }
        review
    }

    /// The request to evaluate. A review contains neither the roles of the user nor the
    /// namespace object.
    pub fn request(&self) -> Request<'_> {
        Request {
            object: self.object.map(Input::Json),
            old_object: self.old_object.map(Input::Json),
            operation: self.operation,
            kind: (!self.kind.kind.is_empty()).then_some(self.kind),
            resource: self.resource,
            subresource: self.subresource,
            user: Some(UserInfo {
                username: self.username,
                uid: self.user_uid,
                groups: &self.groups,
                ..UserInfo::default()
            }),
            ..Request::default()
        }
    }
}

/// A text of the review.
#[derive(Debug, Clone, Default)]
enum Piece {
    /// Absent.
    #[default]
    Absent,
    /// A range of the review.
    Plain(Range<usize>),
    /// A text with escapes, decoded into the buffer.
    Escaped(NodeId),
}

impl Piece {
    fn resolve<'r>(&self, text: &'r [u8], view: View<'r>) -> &'r str {
        match self {
            Piece::Absent => "",
            Piece::Plain(range) => {
                let bytes = text.get(range.clone()).unwrap_or(&[]);
                std::str::from_utf8(bytes).unwrap_or("")
            }
            Piece::Escaped(node) => view.str(*node),
        }
    }
}

/// Members found so far.
#[derive(Debug, Default)]
struct Found {
    has_request: bool,
    uid: Piece,
    group: Piece,
    version: Piece,
    kind: Piece,
    resource: Piece,
    subresource: Piece,
    name: Piece,
    namespace: Piece,
    operation: Piece,
    username: Piece,
    user_uid: Piece,
    groups: Vec<Piece>,
    object: Option<Range<usize>>,
    old_object: Option<Range<usize>>,
    dry_run: bool,
}

impl Found {
    fn resolve<'r>(self, text: &'r [u8], view: View<'r>) -> Result<Review<'r>, ReviewError> {
        if !self.has_request {
            return Err(ReviewError::NoRequest);
        }
        let say = |piece: &Piece| piece.resolve(text, view);
        let operation = say(&self.operation);
        let object = |range: Option<Range<usize>>| range.and_then(|range| text.get(range));
        Ok(Review {
            uid: say(&self.uid),
            kind: GroupVersionKind {
                group: say(&self.group),
                version: say(&self.version),
                kind: say(&self.kind),
            },
            resource: say(&self.resource),
            subresource: say(&self.subresource),
            name: say(&self.name),
            namespace: say(&self.namespace),
            operation: Operation::parse(operation).ok_or_else(|| ReviewError::Operation {
                found: operation.to_owned(),
            })?,
            username: say(&self.username),
            user_uid: say(&self.user_uid),
            groups: self.groups.iter().map(say).collect(),
            object: object(self.object),
            old_object: object(self.old_object),
            dry_run: self.dry_run,
        })
    }
}

/// Reason why decoding stopped.
#[derive(Debug)]
enum Fault {
    /// A member has the wrong type.
    Type {
        member: &'static str,
        expected: &'static str,
    },
    /// The review may be malformed, or contains what no API server writes: it must be read
    /// as a whole before it is decoded.
    Unusual,
}

/// Decodes a review in one pass.
struct Decoder<'t, 'b> {
    text: &'t [u8],
    at: usize,
    buffer: &'b mut DocumentBuffer,
    options: ReadOptions,
    /// Whether the whole text has been read and is JSON.
    is_sound: bool,
    /// End of the prefix known to be UTF-8, except for the objects.
    checked: usize,
}

impl<'t, 'b> Decoder<'t, 'b> {
    fn new(
        text: &'t [u8],
        buffer: &'b mut DocumentBuffer,
        options: ReadOptions,
        is_sound: bool,
    ) -> Self {
        Self {
            text,
            at: space(text, 0),
            buffer,
            options,
            is_sound,
            checked: 0,
        }
    }

    fn review(&mut self, found: &mut Found) -> Result<(), Fault> {
        self.map("the review", &["request"], |decoder, name| match name {
            "request" => decoder.request(found),
            _ => decoder.pass(),
        })?;
        self.check_text(self.text.len())?;
        self.space();
        if self.at < self.text.len() {
            return Err(Fault::Unusual);
        }
        Ok(())
    }

    fn request(&mut self, found: &mut Found) -> Result<(), Fault> {
        const MEMBERS: &[&str] = &[
            "uid",
            "kind",
            "resource",
            "subResource",
            "name",
            "namespace",
            "operation",
            "userInfo",
            "object",
            "oldObject",
            "dryRun",
        ];
        if self.byte() == b'n' {
            *found = Found::default();
        }
        found.has_request = self.byte() == b'{';
        self.map("request", MEMBERS, |decoder, name| match name {
            "uid" => decoder.string("request.uid", &mut found.uid),
            "kind" => decoder.kind(found),
            "resource" => decoder.resource(found),
            "subResource" => decoder.string("request.subResource", &mut found.subresource),
            "name" => decoder.string("request.name", &mut found.name),
            "namespace" => decoder.string("request.namespace", &mut found.namespace),
            "operation" => decoder.string("request.operation", &mut found.operation),
            "userInfo" => decoder.user(found),
            "object" => decoder.object(&mut found.object),
            "oldObject" => decoder.object(&mut found.old_object),
            "dryRun" => decoder.boolean("request.dryRun", &mut found.dry_run),
            _ => decoder.pass(),
        })
    }

    fn kind(&mut self, found: &mut Found) -> Result<(), Fault> {
        const MEMBERS: &[&str] = &["group", "version", "kind"];
        self.map("request.kind", MEMBERS, |decoder, name| match name {
            "group" => decoder.string("request.kind.group", &mut found.group),
            "version" => decoder.string("request.kind.version", &mut found.version),
            "kind" => decoder.string("request.kind.kind", &mut found.kind),
            _ => decoder.pass(),
        })
    }

    fn resource(&mut self, found: &mut Found) -> Result<(), Fault> {
        let member = &["resource"];
        self.map("request.resource", member, |decoder, name| match name {
            "resource" => decoder.string("request.resource.resource", &mut found.resource),
            _ => decoder.pass(),
        })
    }

    fn user(&mut self, found: &mut Found) -> Result<(), Fault> {
        const MEMBERS: &[&str] = &["username", "uid", "groups"];
        self.map("request.userInfo", MEMBERS, |decoder, name| match name {
            "username" => decoder.string("request.userInfo.username", &mut found.username),
            "uid" => decoder.string("request.userInfo.uid", &mut found.user_uid),
            "groups" => decoder.groups(&mut found.groups),
            _ => decoder.pass(),
        })
    }

    /// Decodes a map. `member` receives the name of each member, empty if it is not one of
    /// `members`, and must consume the value.
    fn map(
        &mut self,
        name: &'static str,
        members: &[&'static str],
        mut member: impl FnMut(&mut Self, &'static str) -> Result<(), Fault>,
    ) -> Result<(), Fault> {
        if self.byte() != b'{' {
            return self.null_or(name, "a map");
        }
        self.items(b'}', |decoder| {
            let key = decoder.piece()?;
            let view = decoder.buffer.view(
                Texts::only(TextSource::Object, decoder.text),
                SymbolTable::EMPTY,
            );
            let key = known_as(key.resolve(decoder.text, view), members);
            decoder.space();
            decoder.expect(b':')?;
            decoder.space();
            member(decoder, key)
        })
    }

    /// Decodes the items between brackets, one by one.
    fn items(
        &mut self,
        end: u8,
        mut item: impl FnMut(&mut Self) -> Result<(), Fault>,
    ) -> Result<(), Fault> {
        self.at += 1;
        self.space();
        if self.byte() == end {
            self.at += 1;
            return Ok(());
        }
        loop {
            item(self)?;
            self.space();
            if self.byte() == end {
                self.at += 1;
                return Ok(());
            }
            self.expect(b',')?;
            self.space();
        }
    }

    fn string(&mut self, name: &'static str, to: &mut Piece) -> Result<(), Fault> {
        if self.byte() != b'"' {
            return self.null_or(name, "text");
        }
        *to = self.piece()?;
        Ok(())
    }

    fn boolean(&mut self, name: &'static str, to: &mut bool) -> Result<(), Fault> {
        let is_true = self.byte() == b't';
        if !is_true && self.byte() != b'f' {
            *to = false;
            return self.null_or(name, "true or false");
        }
        *to = is_true;
        self.pass()
    }

    fn groups(&mut self, to: &mut Vec<Piece>) -> Result<(), Fault> {
        const NAME: &str = "request.userInfo.groups";
        const EXPECTED: &str = "a list of texts";
        to.clear();
        if self.byte() != b'[' {
            return self.null_or(NAME, EXPECTED);
        }
        self.items(b']', |decoder| {
            let mut group = Piece::Absent;
            if decoder.byte() == b'"' {
                group = decoder.piece()?;
            } else {
                decoder.null_or(NAME, EXPECTED)?;
            }
            to.push(group);
            Ok(())
        })
    }

    /// Locates an object, whose text is left to the evaluation.
    fn object(&mut self, to: &mut Option<Range<usize>>) -> Result<(), Fault> {
        if to.is_some() && !self.is_sound {
            // The first of two such members would never be read.
            return Err(Fault::Unusual);
        }
        let start = self.at;
        match self.byte() {
            b'n' => return self.pass(),
            b'{' | b'[' => {
                self.check_text(start)?;
                self.at = cut(self.text, start).ok_or(Fault::Unusual)?;
                self.checked = self.at;
            }
            _ => self.pass()?,
        }
        *to = Some(start..self.at);
        Ok(())
    }

    /// Consumes `null`, which counts as absent.
    fn null_or(&mut self, member: &'static str, expected: &'static str) -> Result<(), Fault> {
        match self.byte() {
            b'n' => self.pass(),
            _ => Err(Fault::Type { member, expected }),
        }
    }

    /// Skips a value that is not needed.
    fn pass(&mut self) -> Result<(), Fault> {
        let behind = match self.byte() {
            b'"' => skip_value(self.text, self.at),
            b'{' | b'[' if self.is_sound => cut(self.text, self.at),
            _ if self.is_sound => Some(self.end_of_word()),
            _ => skip_value(self.text, self.at),
        };
        self.at = behind.ok_or(Fault::Unusual)?;
        Ok(())
    }

    /// End of a number or word, which needs no check.
    fn end_of_word(&self) -> usize {
        let rest = self.text.get(self.at..).unwrap_or(&[]);
        let inside = |byte: &u8| byte.is_ascii_alphanumeric() || b"+-.".contains(byte);
        self.at + rest.iter().take_while(|byte| inside(byte)).count()
    }

    /// Consumes a string.
    fn piece(&mut self) -> Result<Piece, Fault> {
        let start = self.at;
        self.expect(b'"')?;
        self.at = plain_end(self.text, self.at);
        if self.byte() == b'"' {
            self.at += 1;
            return Ok(Piece::Plain(start + 1..self.at - 1));
        }
        self.at = start;
        self.pass()?;
        let string = self.text.get(start..self.at).unwrap_or(&[]);
        let (source, symbols) = (TextSource::Scratch, SymbolTable::EMPTY);
        match self
            .buffer
            .read_json(string, source, &symbols, &self.options)
        {
            Ok(node) => Ok(Piece::Escaped(node)),
            Err(_) => Err(Fault::Unusual),
        }
    }

    /// Checks that the text skipped up to `end` is UTF-8.
    fn check_text(&mut self, end: usize) -> Result<(), Fault> {
        let text = self.text.get(self.checked..end).unwrap_or(&[]);
        self.checked = end;
        match std::str::from_utf8(text) {
            Ok(_) => Ok(()),
            Err(_) => Err(Fault::Unusual),
        }
    }

    fn byte(&self) -> u8 {
        self.text.get(self.at).copied().unwrap_or(0)
    }

    fn space(&mut self) {
        self.at = space(self.text, self.at);
    }

    fn expect(&mut self, byte: u8) -> Result<(), Fault> {
        if self.byte() != byte {
            return Err(Fault::Unusual);
        }
        self.at += 1;
        Ok(())
    }
}

/// Member with a name, compared as in Go's decoder; empty if there is none. The two
/// non-ASCII letters that have an ASCII letter as their other case are equal to it.
fn known_as(name: &str, members: &[&'static str]) -> &'static str {
    let fold = |letter: char| match letter {
        '\u{17F}' => 's',
        '\u{212A}' => 'k',
        letter => letter.to_ascii_lowercase(),
    };
    let exactly = members.iter().find(|member| **member == name);
    let folded = || {
        let letters = || name.chars().map(fold);
        members
            .iter()
            .find(|member| member.chars().map(fold).eq(letters()))
    };
    exactly.or_else(folded).copied().unwrap_or_default()
}

#[cfg(test)]
mod tests;
