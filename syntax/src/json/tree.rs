//! Trees of JSON values.

use std::collections::HashMap;

use kpvm_semantics::limits::Limits;

use super::reader::{Fault, Reader, Token};
use crate::tree::{DuplicateKeys, integral};
use crate::tree::{Member, Span, Tree, TreeValue};

/// From this many members on, an index is used to find duplicate keys.
const INDEX_FROM: usize = 16;

/// How numbers are read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Numbers {
    /// Integral numbers within int64 are integers, as in Kubernetes (docs/spec/cli.md §8.3).
    Kubernetes,
    /// All are floats.
    Float,
}

/// Options for reading.
#[derive(Debug, Clone, Copy)]
pub struct Options<'l> {
    /// What happens if a map has a key twice.
    pub duplicate_keys: DuplicateKeys,
    /// How numbers are read.
    pub numbers: Numbers,
    /// Limits for the nesting and number of values in one value of the text.
    pub limits: &'l Limits,
}

/// Why a text was refused.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Error {
    /// It is not JSON.
    Syntax(Fault),
    /// It is nested more deeply than the limit allows.
    TooDeep,
    /// It has more values, or more bytes, than the limits allow.
    TooLarge,
    /// A map has a key twice.
    DuplicateKey,
    /// The number at this place does not fit into a float. The rest of the text is JSON.
    NumberRange(Span),
}

impl From<Fault> for Error {
    fn from(fault: Fault) -> Self {
        Self::Syntax(fault)
    }
}

/// Reads a text of one value. The flag says whether the text means the same to readers of YAML,
/// except for characters that they refuse ([`Reader::is_yaml`]).
///
/// # Errors
/// Why the text was refused.
pub fn read(text: &str, options: Options<'_>) -> Result<(Tree, bool), Error> {
    let mut builder = Builder::new(text, options)?;
    let tree = builder.value()?;
    builder.reader.end()?;
    builder.finish()?;
    Ok((tree, builder.reader.is_yaml()))
}

/// Reads all values of a text.
///
/// # Errors
/// Why the text was refused.
pub fn read_stream(text: &str, options: Options<'_>) -> Result<Vec<Tree>, Error> {
    let mut builder = Builder::new(text, options)?;
    let mut trees = Vec::new();
    while !builder.reader.is_at_end() {
        builder.values = 0;
        trees.push(builder.value()?);
    }
    builder.finish()?;
    Ok(trees)
}

struct Builder<'t, 'l> {
    reader: Reader<'t>,
    options: Options<'l>,
    /// The values so far, not counting keys.
    values: usize,
    /// The first number that does not fit into a float.
    out_of_range: Option<Span>,
}

/// A map or list whose end has not been read yet.
struct Open<'t> {
    start: u32,
    value: OpenValue<'t>,
}

enum OpenValue<'t> {
    List(Vec<Tree>),
    /// The members, and the key of the value that is read next.
    Map(Vec<Member>, std::borrow::Cow<'t, str>, Span),
}

impl<'t, 'l> Builder<'t, 'l> {
    fn new(text: &'t str, options: Options<'l>) -> Result<Self, Error> {
        if u32::try_from(text.len()).is_err() {
            return Err(Error::TooLarge);
        }
        Ok(Self {
            reader: Reader::new(text),
            options,
            values: 0,
            out_of_range: None,
        })
    }

    fn finish(&self) -> Result<(), Error> {
        self.out_of_range
            .map_or(Ok(()), |span| Err(Error::NumberRange(span)))
    }

    fn value(&mut self) -> Result<Tree, Error> {
        let mut open: Vec<Open<'t>> = Vec::new();
        loop {
            let token = self.reader.token()?;
            let span = self.reader.span();
            let value = match token {
                Token::Key(text) => {
                    if let Some(Open {
                        value: OpenValue::Map(_, key, key_span),
                        ..
                    }) = open.last_mut()
                    {
                        (*key, *key_span) = (text, span);
                    }
                    continue;
                }
                Token::BeginMap | Token::BeginList => {
                    if open.len() >= self.options.limits.document_depth {
                        return Err(Error::TooDeep);
                    }
                    self.count()?;
                    let value = match token {
                        Token::BeginMap => OpenValue::Map(Vec::new(), "".into(), span),
                        _ => OpenValue::List(Vec::new()),
                    };
                    let start = span.start;
                    open.push(Open { start, value });
                    continue;
                }
                Token::End => match open.pop() {
                    Some(Open { start, value }) => {
                        let value = match value {
                            OpenValue::List(items) => TreeValue::List(items),
                            OpenValue::Map(members, ..) => TreeValue::Map(self.unique(members)?),
                        };
                        (value, Span { start, ..span })
                    }
                    None => (TreeValue::Null, span),
                },
                Token::String(text) => (TreeValue::String(text.into()), span),
                Token::Number(text) => (self.number(text, span), span),
                Token::Bool(bool) => (TreeValue::Bool(bool), span),
                Token::Null => (TreeValue::Null, span),
            };
            if !matches!(value.0, TreeValue::Map(_) | TreeValue::List(_)) {
                self.count()?;
            }
            let tree = Tree::new(value.0, value.1);
            match open.last_mut().map(|open| &mut open.value) {
                None => return Ok(tree),
                Some(OpenValue::List(items)) => items.push(tree),
                Some(OpenValue::Map(members, key, key_span)) => members.push(Member {
                    key: std::mem::take(key).into(),
                    key_span: *key_span,
                    value: tree,
                }),
            }
        }
    }

    fn count(&mut self) -> Result<(), Error> {
        self.values += 1;
        match self.values > self.options.limits.document_nodes {
            true => Err(Error::TooLarge),
            false => Ok(()),
        }
    }

    fn number(&mut self, text: &str, span: Span) -> TreeValue {
        if self.options.numbers == Numbers::Kubernetes
            && let Ok(int) = text.parse()
        {
            return TreeValue::Int(int);
        }
        let float: f64 = text.parse().unwrap_or(f64::INFINITY);
        if float.is_infinite() {
            self.out_of_range.get_or_insert(span);
        }
        match self.options.numbers {
            Numbers::Kubernetes => match integral(float) {
                Some(int) => TreeValue::Int(int),
                None => TreeValue::Float(float),
            },
            Numbers::Float => TreeValue::Float(float),
        }
    }

    /// Keeps the last value of each key, at the place of the first.
    fn unique(&self, members: Vec<Member>) -> Result<Vec<Member>, Error> {
        if !has_duplicates(&members) {
            return Ok(members);
        }
        if self.options.duplicate_keys == DuplicateKeys::Refuse {
            return Err(Error::DuplicateKey);
        }
        let mut places = HashMap::new();
        let mut kept: Vec<Member> = Vec::new();
        for member in members {
            let place = *places.entry(member.key.clone()).or_insert(kept.len());
            match kept.get_mut(place) {
                Some(first) => *first = member,
                None => kept.push(member),
            }
        }
        Ok(kept)
    }
}

fn has_duplicates(members: &[Member]) -> bool {
    if members.len() < INDEX_FROM {
        let mut rest = members;
        while let Some((last, before)) = rest.split_last() {
            if before.iter().any(|member| member.key == last.key) {
                return true;
            }
            rest = before;
        }
        return false;
    }
    let mut keys: Vec<&str> = members.iter().map(|member| &*member.key).collect();
    keys.sort_unstable();
    keys.windows(2)
        .any(|pair| matches!(pair, [left, right] if left == right))
}
