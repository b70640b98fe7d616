//! Documents of Kyverno's command line (Test, Values, UserInfo …) decoded as strictly as
//! Kyverno decodes them (docs/spec/cli.md §8.3 and §8.4): unknown fields and wrong types
//! are refused, field names may be written in any case, and where a text is expected a
//! number or a boolean is converted.
//!
//! Decodes trees into plain values, and collects all errors rather than only the first.

use std::path::Path;

use kpvm_compiler::diagnostic::Diagnostic;
use kpvm_compiler::source::{LineColumn, Location, SourceId};
use kpvm_semantics::limits::Limits;
use kpvm_syntax::manifest;
use kpvm_syntax::tree::{Span, Tree, TreeValue};
use kpvm_syntax::yaml::{self, DuplicateKeys};

use crate::input::read_regular_file;
use crate::line_index::LineIndex;
use crate::nearest::did_you_mean;
use crate::problem::Problem;

/// Decodes the parts of one text and collects the errors.
#[derive(Debug)]
pub struct Decoder {
    /// The name under which diagnostics are listed, e.g. `values`.
    code: &'static str,
    source: SourceId,
    /// The errors, in the order in which they were found.
    pub diagnostics: Vec<Diagnostic>,
}

/// The fields of a map. A null field is treated as absent.
#[derive(Debug, Clone)]
pub struct Fields<'t> {
    values: Vec<(&'static str, &'t Tree)>,
}

/// A text and its place.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Text {
    /// The text.
    pub text: String,
    /// Its place.
    pub span: Span,
}

impl<'t> Fields<'t> {
    /// The value of a field that is there.
    pub fn get(&self, name: &str) -> Option<&'t Tree> {
        let found = self.values.iter().rev().find(|(field, _)| *field == name);
        found.map(|&(_, value)| value)
    }
}

impl Decoder {
    /// A decoder for a text whose diagnostics have this code.
    pub fn new(code: &'static str, source: SourceId) -> Self {
        Self {
            code,
            source,
            diagnostics: Vec::new(),
        }
    }

    /// The decoded value, if there was no error.
    ///
    /// # Errors
    /// All errors.
    pub fn finish<T>(self, decoded: T) -> Result<T, Vec<Problem>> {
        if self.diagnostics.is_empty() {
            return Ok(decoded);
        }
        Err(self.diagnostics.into_iter().map(Problem::InText).collect())
    }

    /// Reports an error at a place.
    pub fn refuse(&mut self, span: Span, message: impl Into<String>, hint: Option<String>) {
        let location = Location {
            source: self.source,
            span,
        };
        let mut diagnostic = Diagnostic::error(self.code, message, location);
        diagnostic.hint = hint;
        self.diagnostics.push(diagnostic);
    }

    /// The documents of a text, as far as they could be read.
    pub fn documents(&mut self, text: &str) -> Vec<Tree> {
        let options = yaml::Options {
            duplicate_keys: DuplicateKeys::Refuse,
            limits: &Limits::DEFAULT,
        };
        let mut documents = Vec::new();
        for document in manifest::read_all(text, options) {
            match document {
                Ok(tree) => documents.push(tree),
                Err(error) => {
                    self.refuse(error.span, error.kind.to_string(), None);
                    break;
                }
            }
        }
        documents
    }

    /// The fields of a map, which may have only the `known` ones.
    pub fn fields<'t>(&mut self, tree: &'t Tree, known: &'static [&'static str]) -> Fields<'t> {
        self.fields_with(tree, known, |_| None)
    }

    /// Like [`Decoder::fields`], with advice for unknown fields.
    pub fn fields_with<'t>(
        &mut self,
        tree: &'t Tree,
        known: &'static [&'static str],
        advice: impl Fn(&str) -> Option<String>,
    ) -> Fields<'t> {
        let mut fields = Fields { values: Vec::new() };
        let Some(members) = tree.as_map() else {
            if !tree.is_null() {
                self.refuse(
                    tree.span,
                    format!("expected a map, found {}", tree.describe()),
                    None,
                );
            }
            return fields;
        };
        for member in members {
            let exact = known.iter().find(|name| ***name == *member.key);
            let name = exact.or_else(|| {
                known
                    .iter()
                    .find(|name| name.eq_ignore_ascii_case(&member.key))
            });
            match name {
                Some(_) if member.value.is_null() => {}
                Some(name) => fields.values.push((name, &member.value)),
                None => {
                    let hint = advice(&member.key)
                        .or_else(|| did_you_mean(&member.key, known.iter().copied()));
                    let message = format!("unknown field `{}`", member.key);
                    self.refuse(member.key_span, message, hint);
                }
            }
        }
        fields
    }

    /// A text, or a number or boolean converted to one; empty if absent.
    pub fn text(&mut self, tree: Option<&Tree>) -> String {
        tree.map_or_else(String::new, |tree| self.scalar(tree))
    }

    /// Like [`Decoder::text`], with its place.
    pub fn spanned(&mut self, tree: Option<&Tree>) -> Text {
        Text {
            text: self.text(tree),
            span: tree.map_or_else(Span::default, |tree| tree.span),
        }
    }

    /// A list of texts; empty if absent.
    pub fn texts(&mut self, tree: Option<&Tree>) -> Vec<Text> {
        let items = self.items(tree);
        items.iter().map(|item| self.spanned(Some(item))).collect()
    }

    /// A list of texts without their places; empty if absent.
    pub fn plain_texts(&mut self, tree: Option<&Tree>) -> Vec<String> {
        let texts = self.texts(tree);
        texts.into_iter().map(|text| text.text).collect()
    }

    /// The items of a list; none if absent.
    pub fn items<'t>(&mut self, tree: Option<&'t Tree>) -> &'t [Tree] {
        match tree.map(|tree| (tree, tree.as_list())) {
            None => &[],
            Some((_, Some(items))) => items,
            Some((tree, None)) => {
                let message = format!("expected a list, found {}", tree.describe());
                self.refuse(tree.span, message, None);
                &[]
            }
        }
    }

    /// The members of a free-form map; none if absent.
    pub fn members<'t>(&mut self, tree: Option<&'t Tree>) -> Vec<(Text, &'t Tree)> {
        let Some(tree) = tree else { return Vec::new() };
        match tree.as_map() {
            Some(members) => {
                let pair = |member: &'t kpvm_syntax::tree::Member| {
                    let key = Text {
                        text: member.key.to_string(),
                        span: member.key_span,
                    };
                    (key, &member.value)
                };
                members.iter().map(pair).collect()
            }
            None => {
                let message = format!("expected a map, found {}", tree.describe());
                self.refuse(tree.span, message, None);
                Vec::new()
            }
        }
    }

    /// A map of texts, such as labels.
    pub fn pairs(&mut self, tree: Option<&Tree>) -> Vec<(String, String)> {
        let members = self.members(tree);
        members
            .into_iter()
            .map(|(key, value)| (key.text, self.scalar(value)))
            .collect()
    }

    /// A boolean; false if absent.
    pub fn boolean(&mut self, tree: Option<&Tree>) -> bool {
        match tree.map(|tree| (tree, &tree.value)) {
            None => false,
            Some((_, TreeValue::Bool(value))) => *value,
            Some((tree, _)) => {
                let message = format!("expected true or false, found {}", tree.describe());
                self.refuse(tree.span, message, None);
                false
            }
        }
    }

    /// An integer; zero if absent.
    pub fn integer(&mut self, tree: Option<&Tree>) -> i64 {
        match tree.map(|tree| (tree, &tree.value)) {
            None => 0,
            Some((_, TreeValue::Int(value))) => *value,
            Some((tree, _)) => {
                let message = format!("expected a whole number, found {}", tree.describe());
                self.refuse(tree.span, message, None);
                0
            }
        }
    }

    fn scalar(&mut self, tree: &Tree) -> String {
        match &tree.value {
            TreeValue::String(text) => text.to_string(),
            TreeValue::Int(number) => number.to_string(),
            TreeValue::Float(number) => number.to_string(),
            TreeValue::Bool(value) => value.to_string(),
            TreeValue::Null => String::new(),
            TreeValue::List(_) | TreeValue::Map(_) => {
                let message = format!("expected a text, found {}", tree.describe());
                self.refuse(tree.span, message, None);
                String::new()
            }
        }
    }
}
/// The documents of a referenced file; errors in it are reported at the reference.
pub fn read_documents(
    file: &Path,
    duplicate_keys: DuplicateKeys,
    named: Span,
    decoder: &mut Decoder,
) -> Vec<Tree> {
    let options = yaml::Options {
        duplicate_keys,
        limits: &Limits::DEFAULT,
    };
    let shown = file.display();
    let text = read_regular_file(file).unwrap_or_else(|reason| {
        decoder.refuse(named, format!("cannot read {shown}: {reason}"), None);
        String::new()
    });
    let mut documents = Vec::new();
    for document in manifest::read_all(&text, options) {
        match document {
            Ok(tree) => documents.push(tree),
            Err(error) => {
                let place = LineIndex::new(&text).line_column(&text, error.span.start as usize);
                let LineColumn { line, column } = place;
                let message = format!("{shown}:{line}:{column}: {}", error.kind);
                decoder.refuse(named, message, None);
            }
        }
    }
    documents
}
