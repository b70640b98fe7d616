//! The operators of the `In` family (docs/spec/conditions.md §3.9 and §3.10). All of them
//! compare text forms.

use super::json_text::{JsonText, Strings};
use super::{ConditionError, Judge, TextForm};
use crate::document::{ChildRange, Kind, NodeId};
use kpvm_semantics::pattern_string::{self, Scalar};

/// Requirement of one of the four operators of docs/spec/conditions.md §3.9.
#[derive(Debug, Clone, Copy)]
pub(super) struct Quantifier {
    /// Whether one key is enough; otherwise all keys must satisfy it.
    any: bool,
    /// Whether keys must be members; otherwise they must not be.
    member: bool,
}

pub(super) const ANY_IN: Quantifier = Quantifier {
    any: true,
    member: true,
};
pub(super) const ALL_IN: Quantifier = Quantifier {
    any: false,
    member: true,
};
pub(super) const ANY_NOT_IN: Quantifier = Quantifier {
    any: true,
    member: false,
};
pub(super) const ALL_NOT_IN: Quantifier = Quantifier {
    any: false,
    member: false,
};

/// The texts to search.
enum Haystack<'v> {
    /// The items of a list.
    Items(ChildRange),
    /// The strings of a JSON text.
    Strings(Strings<'v>),
    /// One text.
    One(TextForm<'v>),
}

/// How a key is compared with a text.
#[derive(Debug, Clone, Copy)]
enum Match {
    /// One matches the other as a wildcard.
    Wildcards,
    /// Both are equal.
    Exact,
}

type Outcome = Result<bool, ConditionError>;

impl<'v> Judge<'v, '_> {
    /// `AnyIn`, `AllIn`, `AnyNotIn`, `AllNotIn`.
    pub(super) fn is_in(&mut self, key: NodeId, value: NodeId, wanted: Quantifier) -> Outcome {
        match self.view.kind(key) {
            None | Some(Kind::Null | Kind::Map) => Ok(false),
            Some(Kind::List) => self.list_is_in(key, value, wanted),
            Some(Kind::False | Kind::True | Kind::Int | Kind::Float | Kind::String) => {
                let key = self.text_form(key)?;
                let member = self.scalar_is_member(key.bytes(), key.str(), value)?;
                Ok(member.is_some_and(|member| member == wanted.member))
            }
        }
    }

    /// Membership test of a scalar key; `None` for a value that all four operators reject.
    fn scalar_is_member(
        &mut self,
        key: &[u8],
        key_text: &str,
        value: NodeId,
    ) -> Result<Option<bool>, ConditionError> {
        match self.view.kind(value) {
            Some(Kind::List) => {
                let items = Haystack::Items(self.view.children(value));
                self.contains(&items, key, Match::Wildcards).map(Some)
            }
            Some(Kind::String) => {
                let text = self.view.text(value);
                if self.wildcard(text, key)? {
                    return Ok(Some(true));
                }
                self.spend(text.len() + key.len())?;
                if pattern_string::is_range(self.view.str(value)) {
                    return Ok(Some(matches_pattern(self.view.str(value), key_text)));
                }
                match JsonText::new(text) {
                    // The text itself would have matched above.
                    JsonText::Invalid => Ok(Some(false)),
                    JsonText::Other => Ok(None),
                    JsonText::Strings(strings) => {
                        let strings = Haystack::Strings(strings);
                        self.contains(&strings, key, Match::Exact).map(Some)
                    }
                }
            }
            None
            | Some(Kind::Null | Kind::False | Kind::True | Kind::Int | Kind::Float | Kind::Map) => {
                Ok(None)
            }
        }
    }

    fn list_is_in(&mut self, key: NodeId, value: NodeId, wanted: Quantifier) -> Outcome {
        let keys = self.view.children(key);
        let haystack = match self.view.kind(value) {
            Some(Kind::List) => Haystack::Items(self.view.children(value)),
            Some(Kind::String) => {
                let text = self.view.text(value);
                self.spend(text.len())?;
                if self.is_only_key(keys.clone(), text)? {
                    return Ok(wanted.member);
                }
                if pattern_string::is_range(self.view.str(value)) {
                    return self.list_is_in_range(keys, self.view.str(value), wanted);
                }
                match JsonText::new(text) {
                    JsonText::Invalid => Haystack::One(TextForm::Given(text)),
                    JsonText::Other => return Ok(false),
                    JsonText::Strings(strings) => Haystack::Strings(strings),
                }
            }
            Some(Kind::False | Kind::True | Kind::Int | Kind::Float) if wanted.any => {
                Haystack::One(self.text_form(value)?)
            }
            None
            | Some(Kind::Null | Kind::False | Kind::True | Kind::Int | Kind::Float | Kind::Map) => {
                return Ok(false);
            }
        };
        self.quantify(keys, wanted.any, |judge, key| {
            let member = judge.contains(&haystack, key.bytes(), Match::Wildcards)?;
            Ok(member == wanted.member)
        })
    }

    /// Whether the list key has exactly one item, with exactly this text.
    fn is_only_key(&mut self, mut keys: ChildRange, text: &[u8]) -> Outcome {
        if keys.len() != 1 {
            return Ok(false);
        }
        let key = self.text_form(keys.next().unwrap_or(NodeId::MISSING))?;
        Ok(key.bytes() == text)
    }

    fn list_is_in_range(&mut self, keys: ChildRange, range: &str, wanted: Quantifier) -> Outcome {
        // Only `AnyNotIn` tests for values outside the range; a key that cannot be compared
        // with its ends is then neither outside nor inside.
        let outside = (wanted.any && !wanted.member).then(|| range.replacen('-', "!-", 1));
        self.quantify(keys, wanted.any, |judge, key| {
            judge.spend(range.len() + key.bytes().len())?;
            Ok(match &outside {
                Some(outside) => matches_pattern(outside, key.str()),
                None => matches_pattern(range, key.str()) == wanted.member,
            })
        })
    }

    /// Whether `holds` is true for any key, or for all keys; for no keys, any is false and
    /// all is true.
    fn quantify(
        &mut self,
        keys: ChildRange,
        any: bool,
        mut holds: impl FnMut(&mut Self, &TextForm<'v>) -> Outcome,
    ) -> Outcome {
        for key in keys {
            self.spend(0)?;
            let key = self.text_form(key)?;
            if holds(self, &key)? == any {
                return Ok(any);
            }
        }
        Ok(!any)
    }

    fn contains(&mut self, haystack: &Haystack<'v>, key: &[u8], by: Match) -> Outcome {
        match haystack {
            Haystack::Items(items) => {
                for item in items.clone() {
                    let item = self.text_form(item)?;
                    if self.is_match(item.bytes(), key, by)? {
                        return Ok(true);
                    }
                }
                Ok(false)
            }
            Haystack::Strings(strings) => {
                // The white space between strings is scanned again each time.
                self.spend(strings.bytes_left())?;
                for string in strings.clone() {
                    if self.is_match(&string, key, by)? {
                        return Ok(true);
                    }
                }
                Ok(false)
            }
            Haystack::One(text) => self.is_match(text.bytes(), key, by),
        }
    }

    fn is_match(&mut self, text: &[u8], key: &[u8], by: Match) -> Outcome {
        match by {
            Match::Wildcards => self.wildcard_either(text, key),
            Match::Exact => {
                self.spend(text.len())?;
                Ok(text == key)
            }
        }
    }

    /// `In` (`member`) and `NotIn`, deprecated and implemented differently in Kyverno
    /// (docs/spec/conditions.md §3.10).
    pub(super) fn old_in(&mut self, key: NodeId, value: NodeId, member: bool) -> Outcome {
        match self.view.kind(key) {
            None | Some(Kind::Null | Kind::Map) => Ok(false),
            Some(Kind::List) => self.list_is_in_old(key, value, member),
            Some(Kind::False | Kind::True | Kind::Int | Kind::Float | Kind::String) => {
                let key = self.text_form(key)?;
                let found = self.scalar_is_member_old(key.bytes(), value)?;
                Ok(found.is_some_and(|found| found == member))
            }
        }
    }

    fn scalar_is_member_old(
        &mut self,
        key: &[u8],
        value: NodeId,
    ) -> Result<Option<bool>, ConditionError> {
        match self.view.kind(value) {
            Some(Kind::List) => {
                let items = Haystack::Items(self.view.children(value));
                self.contains(&items, key, Match::Wildcards).map(Some)
            }
            Some(Kind::String) => {
                let text = self.view.text(value);
                if self.wildcard(text, key)? {
                    return Ok(Some(true));
                }
                self.spend(text.len())?;
                match JsonText::new(text) {
                    JsonText::Invalid | JsonText::Other => Ok(None),
                    JsonText::Strings(strings) => {
                        let strings = Haystack::Strings(strings);
                        self.contains(&strings, key, Match::Exact).map(Some)
                    }
                }
            }
            None
            | Some(Kind::Null | Kind::False | Kind::True | Kind::Int | Kind::Float | Kind::Map) => {
                Ok(None)
            }
        }
    }

    fn list_is_in_old(&mut self, key: NodeId, value: NodeId, member: bool) -> Outcome {
        let keys = self.view.children(key);
        if let Some(kind) = self.first_non_string(keys.clone())? {
            return Err(ConditionError::NotAString(kind));
        }
        let haystack = match self.view.kind(value) {
            Some(Kind::List) => {
                let items = self.view.children(value);
                if self.first_non_string(items.clone())?.is_some() {
                    return Ok(false);
                }
                Haystack::Items(items)
            }
            Some(Kind::String) => {
                let text = self.view.text(value);
                self.spend(text.len())?;
                // `NotIn` returns the result of `In` here.
                if self.is_only_key(keys.clone(), text)? {
                    return Ok(true);
                }
                match JsonText::new(text) {
                    JsonText::Invalid | JsonText::Other => return Ok(false),
                    JsonText::Strings(strings) => Haystack::Strings(strings),
                }
            }
            None
            | Some(Kind::Null | Kind::False | Kind::True | Kind::Int | Kind::Float | Kind::Map) => {
                return Ok(false);
            }
        };
        let all_found = self.quantify(keys, false, |judge, key| {
            judge.contains(&haystack, key.bytes(), Match::Exact)
        })?;
        Ok(all_found == member)
    }

    /// Go's type name of the first item that is not a string.
    fn first_non_string(
        &mut self,
        mut items: ChildRange,
    ) -> Result<Option<&'static str>, ConditionError> {
        self.spend_steps(items.len() as u64)?;
        Ok(items.find_map(|item| match self.view.kind(item) {
            Some(Kind::String) => None,
            None | Some(Kind::Null) => Some("nil"),
            Some(_) => Some(crate::text::go_type(&self.view, item)),
        }))
    }
}

/// Whether a text matches a pattern, such as a range.
fn matches_pattern(pattern: &str, text: &str) -> bool {
    pattern_string::matches_text(pattern, &Scalar::String(text))
}
