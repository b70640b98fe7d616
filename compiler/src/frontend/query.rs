//! Queries: texts of expressions over the whole context, and the loaders of the context
//! entries that they mention.

use kpvm_format::instruction::immediate::EntryLoading;
use kpvm_syntax::jmespath::mentions;

use super::emitter::Emitter;
use super::expression::Current;
use crate::ir::{Label, Operation, Register};
use kpvm_syntax::jmespath;

/// What a DELETE rewrites.
const REQUEST_OBJECT: &str = "request.object";

/// Whether a query contains `request.object` other than as a path of its own: in quotes,
/// after a dot, as a part of longer names, or before an index or call, which applies to
/// `object` alone.
fn has_odd_request_object(query: &str) -> bool {
    let is_name = |character: char| character.is_ascii_alphanumeric() || character == '_';
    let mut quote = None;
    for (at, character) in query.char_indices() {
        if let Some(rest) = query[at..].strip_prefix(REQUEST_OBJECT) {
            let before = query[..at].trim_end().chars().next_back();
            let joined = query[..at].ends_with(is_name) || before == Some('.');
            let behind = rest.trim_start();
            let is_bound = behind.starts_with(['[', '(', '{'])
                && !behind.starts_with("[]")
                && !behind.starts_with("[?");
            if quote.is_some() || joined || rest.starts_with(is_name) || is_bound {
                return true;
            }
        }
        match quote {
            None if matches!(character, '\'' | '"' | '`') => quote = Some(character),
            Some(open) if open == character => quote = None,
            _ => {}
        }
    }
    false
}

impl Emitter<'_> {
    /// Lowers a query: the text of an expression over the whole context, with the
    /// loaders of the entries that it mentions (docs/spec/jmespath.md §1).
    pub fn query(&mut self, text: &str, on_error: Label) -> Register {
        let text = text.trim();
        self.ensure_entries(text, on_error);
        if mentions(text, "images") {
            self.ensure_images(on_error);
        }
        if text.is_empty() {
            return self.fail("invalid query (nil)", on_error);
        }
        let rewrites = self.scope.rewrites_delete;
        let result = if rewrites && has_odd_request_object(text) {
            self.query_for_each_operation(text, on_error)
        } else {
            self.scope.rewrites_delete &= text.contains(REQUEST_OBJECT);
            self.search(text, rewrites, on_error)
        };
        self.scope.rewrites_delete = rewrites;
        result
    }

    /// On DELETE the text is rewritten wherever it contains `request.object`, even in
    /// string literals (docs/spec/conditions.md §4.8): two expressions, of which one runs.
    fn query_for_each_operation(&mut self, text: &str, on_error: Label) -> Register {
        self.scope.rewrites_delete = false;
        let result = self.block.register();
        let (otherwise, end) = (self.block.label(), self.block.label());
        self.block
            .push(Operation::JumpUnlessDelete { target: otherwise });
        let rewritten = text.replace(REQUEST_OBJECT, "request.oldObject");
        let value = self.search(&rewritten, false, on_error);
        self.assign(result, value);
        self.block.jump(end);
        self.block.place(otherwise);
        let value = self.search(text, false, on_error);
        self.assign(result, value);
        self.block.place(end);
        result
    }

    /// The expression of a query, or its syntax error.
    fn search(&mut self, text: &str, shows_query: bool, on_error: Label) -> Register {
        match jmespath::parse(text) {
            Err(error) => {
                let prefix = format!("incorrect query {text}: ");
                let failed = self.wrapping(&prefix, shows_query, on_error);
                self.fail(&error.message, failed)
            }
            Ok(expression) => {
                let failed = self.wrapping("JMESPath query failed: ", false, on_error);
                let over = Current::Context;
                self.expression(&expression, over, failed, false)
            }
        }
    }

    /// Images that cannot be read fail the query that mentions them, whether or not it uses
    /// them (docs/spec/conditions.md §7.1); having no images does not.
    pub(super) fn ensure_images(&mut self, on_error: Label) {
        let (caught, end) = (self.block.label(), self.block.label());
        let images = self.block.register();
        self.block.push(Operation::LoadImages {
            dst: images,
            target: caught,
        });
        self.block.jump(end);
        self.block.place(caught);
        self.block.push(Operation::CatchMissing {
            dst: images,
            target: on_error,
        });
        self.block.place(end);
    }

    /// Runs the loaders of the context entries that a query mentions.
    pub fn ensure_entries(&mut self, query: &str, on_error: Label) {
        let mut first = EntryLoading::FIRST;
        for entry in self.scope.entries() {
            if mentions(query, &entry.name) {
                self.block.push(Operation::EnsureEntry {
                    entry: entry.number,
                    loading: first.with_if(entry.restricted, EntryLoading::RESTRICTED),
                    target: on_error,
                });
                first = EntryLoading::NONE;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::has_odd_request_object;

    /// docs/spec/conditions.md §4.8.
    #[test]
    fn request_object_in_odd_places() {
        for plain in [
            "request.object.a",
            "[request.object]",
            "a || request.object",
            "'x'",
        ] {
            assert!(!has_odd_request_object(plain), "{plain}");
        }
        for odd in [
            "'request.object'",
            "request.objects",
            "a.request.object",
            "xrequest.object",
        ] {
            assert!(has_odd_request_object(odd), "{odd}");
        }
    }
}
