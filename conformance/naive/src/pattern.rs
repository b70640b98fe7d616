//! Patterns over objects (docs/spec/patterns.md §3, §4, §9).

use std::collections::BTreeMap;

use kpvm_semantics::wildcard::{contains_wildcard, matches as wildcard};
use serde_json::{Map, Value};

use crate::anchor::{self, Anchor};
use crate::scalar;
use crate::value::{go_text, type_name};

/// Kind of an error of the matcher (docs/spec/patterns.md §3).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    Plain,
    Negation,
    Conditional,
    Global,
    /// Wrapper of several skips.
    Multiskip,
}

/// Why an object does not match.
#[derive(Debug, Clone)]
struct Mismatch {
    path: String,
    text: String,
    kind: Kind,
}

/// Outcome of a whole pattern (docs/spec/patterns.md §2.1).
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Outcome {
    Pass,
    /// With the text.
    Skip(String),
    Fail {
        path: String,
        text: String,
    },
    /// With the text: a failure without a path.
    NoPath(String),
}

/// Matches an object with a pattern, which wildcards in its keys may change
/// (docs/spec/patterns.md §2.1, §9).
pub(crate) fn evaluate(object: &Value, pattern: &mut Value) -> Outcome {
    let mut matcher = Matcher::default();
    let Err(mismatch) = matcher.value(object, pattern, "/") else {
        return Outcome::Pass;
    };
    if is_skip(&mismatch) {
        return Outcome::Skip(mismatch.text);
    }
    let is_incomplete = !is_negation(&mismatch) && matcher.lacks_an_anchor();
    match mismatch.path.is_empty() || is_incomplete {
        true => Outcome::NoPath(mismatch.text),
        false => Outcome::Fail {
            path: mismatch.path,
            text: mismatch.text,
        },
    }
}

/// Classification by kind, else by text (docs/spec/patterns.md §3.5).
fn is_skip(mismatch: &Mismatch) -> bool {
    match mismatch.kind {
        Kind::Conditional | Kind::Global => true,
        Kind::Negation => false,
        Kind::Plain | Kind::Multiskip => {
            let phrases = ["conditional anchor mismatch", "global anchor mismatch"];
            phrases.iter().any(|phrase| mismatch.text.contains(phrase))
        }
    }
}

fn is_negation(mismatch: &Mismatch) -> bool {
    match mismatch.kind {
        Kind::Negation => true,
        Kind::Conditional | Kind::Global => false,
        Kind::Plain | Kind::Multiskip => mismatch
            .text
            .contains("negation anchor matched in resource"),
    }
}

fn plain<T>(path: &str, text: String) -> Result<T, Mismatch> {
    Err(Mismatch {
        path: path.to_owned(),
        text,
        kind: Kind::Plain,
    })
}

/// All skips as one (docs/spec/patterns.md §3).
fn multiskip(path: &str, skips: &[Mismatch]) -> Mismatch {
    let texts: Vec<&str> = skips.iter().map(|skip| skip.text.as_str()).collect();
    Mismatch {
        path: path.to_owned(),
        text: texts.join("; "),
        kind: Kind::Multiskip,
    }
}

/// One match, with the anchors it has seen (docs/spec/patterns.md §4.7).
#[derive(Default)]
struct Matcher {
    /// By the text of the key: whether its inner key was present in some map.
    seen: BTreeMap<String, bool>,
}

type Matched = Result<(), Mismatch>;

impl Matcher {
    /// By the type of the pattern (docs/spec/patterns.md §3.1).
    fn value(&mut self, object: &Value, pattern: &mut Value, path: &str) -> Matched {
        match (pattern, object) {
            (Value::Object(pattern), Value::Object(object)) => {
                self.note_anchors(object, pattern);
                self.map(object, pattern, path)
            }
            (Value::Object(_), other) => {
                let found = type_name(other);
                plain(
                    path,
                    format!(
                        "pattern and resource have different structures. Path: {path}. \
                         Expected map[string]interface {{}}, found {found}"
                    ),
                )
            }
            (Value::Array(pattern), Value::Array(object)) => self.list(object, pattern, path),
            (Value::Array(_), _) => plain(
                path,
                format!(
                    "validation rule failed at path {path}, \
                     resource does not satisfy the expected overlay pattern"
                ),
            ),
            (pattern, object) => leaf(object, pattern, path),
        }
    }

    /// docs/spec/patterns.md §4.7
    fn note_anchors(&mut self, object: &Map<String, Value>, pattern: &Map<String, Value>) {
        for key in pattern.keys() {
            let Some((anchor, inner)) = anchor::parse(key) else {
                continue;
            };
            if matches!(
                anchor,
                Anchor::Conditional | Anchor::Existence | Anchor::Negation
            ) {
                let seen = self.seen.entry(key.clone()).or_default();
                *seen |= object.contains_key(inner);
            }
        }
    }

    fn lacks_an_anchor(&self) -> bool {
        let is_negation =
            |key: &str| anchor::parse(key).is_some_and(|(anchor, _)| anchor == Anchor::Negation);
        self.seen
            .iter()
            .any(|(key, seen)| !seen && !is_negation(key))
    }

    /// A map with a map (docs/spec/patterns.md §3.2).
    fn map(
        &mut self,
        object: &Map<String, Value>,
        pattern: &mut Map<String, Value>,
        path: &str,
    ) -> Matched {
        expand_metadata(object, pattern);
        let in_group = |key: &String| {
            anchor::parse(key).is_some_and(|(anchor, _)| {
                !matches!(anchor, Anchor::Global | Anchor::AddIfNotPresent)
            })
        };
        let (anchored, others): (Vec<String>, Vec<String>) =
            pattern.keys().cloned().partition(in_group);

        let mut applied = 0;
        let mut skips: Vec<Mismatch> = Vec::new();
        let is_direct = |skips: &[Mismatch]| skips.iter().any(|skip| skip.kind != Kind::Multiskip);
        for key in &anchored {
            match self.anchored_key(object, pattern, key, path) {
                Ok(()) => applied += 1,
                Err(error) if is_skip(&error) => skips.push(error),
                Err(_) if is_direct(&skips) => {}
                Err(error) => return Err(error),
            }
        }
        if !skips.is_empty() && (applied == 0 || is_direct(&skips)) {
            return Err(multiskip(path, &skips));
        }

        let mut order: Vec<String> = Vec::new();
        for key in others {
            let is_global = anchor::parse(&key).is_some_and(|(anchor, _)| anchor == Anchor::Global);
            if is_global || pattern.get(&key).is_some_and(contains_anchor) {
                order.insert(0, key);
            } else {
                order.push(key);
            }
        }
        order
            .iter()
            .try_for_each(|key| self.plain_key(object, pattern, key, path))
    }

    /// docs/spec/patterns.md §4.2 to §4.5
    fn anchored_key(
        &mut self,
        object: &Map<String, Value>,
        pattern: &mut Map<String, Value>,
        key: &str,
        path: &str,
    ) -> Matched {
        let Some((anchor, inner)) = anchor::parse(key) else {
            return Ok(());
        };
        let child = format!("{path}{inner}/");
        let Some(under) = pattern.get_mut(key) else {
            return Ok(());
        };
        let conditional = |path: &str, text: &str| {
            Err(Mismatch {
                path: path.to_owned(),
                text: format!("conditional anchor mismatch: {text}"),
                kind: Kind::Conditional,
            })
        };
        match (anchor, object.get(inner)) {
            (Anchor::Conditional, None) => conditional(
                &child,
                "conditional anchor key doesn't exist in the resource",
            ),
            (Anchor::Conditional, Some(found)) => match self.value(found, under, &child) {
                Ok(()) => Ok(()),
                Err(error) => conditional(&error.path, &error.text),
            },
            (Anchor::Equality, Some(found)) => self.value(found, under, &child),
            (Anchor::Negation, Some(_)) => Err(Mismatch {
                text: format!("negation anchor matched in resource: {child} is not allowed"),
                path: child,
                kind: Kind::Negation,
            }),
            (Anchor::Existence, Some(found)) => self.existence(found, under, &child),
            _ => Ok(()),
        }
    }

    /// docs/spec/patterns.md §4.5
    fn existence(&mut self, found: &Value, under: &mut Value, path: &str) -> Matched {
        let Value::Array(items) = found else {
            let text = format!(
                "invalid resource type {}: Existence ^ () anchor can be used only on \
                 list/array type resource",
                type_name(found)
            );
            return plain(path, text);
        };
        let kind = type_name(under);
        let Value::Array(wanted) = under else {
            let text = format!(
                "invalid pattern type {kind}: Pattern has to be of list to compare against resource"
            );
            return plain(path, text);
        };
        for pattern in wanted {
            if !pattern.is_object() {
                let text = format!(
                    "invalid pattern type {kind}: Pattern has to be of type map to compare \
                     against items in resource"
                );
                return plain(path, text);
            }
            let mut matches = |at: usize, item| {
                let path = format!("{path}{at}/");
                self.value(item, pattern, &path).is_ok()
            };
            if !items.iter().enumerate().any(|(at, item)| matches(at, item)) {
                let text = format!("existence anchor validation failed at path {path}");
                return plain(path, text);
            }
        }
        Ok(())
    }

    /// A key of the plain group (docs/spec/patterns.md §3.3), or a global anchor (§4.6).
    fn plain_key(
        &mut self,
        object: &Map<String, Value>,
        pattern: &mut Map<String, Value>,
        key: &str,
        path: &str,
    ) -> Matched {
        let Some(under) = pattern.get_mut(key) else {
            return Ok(());
        };
        if let Some((Anchor::Global, inner)) = anchor::parse(key) {
            let Some(found) = object.get(inner) else {
                return Ok(());
            };
            let child = format!("{path}{inner}/");
            return self.value(found, under, &child).map_err(|error| Mismatch {
                path: error.path,
                text: format!("global anchor mismatch: {}", error.text),
                kind: Kind::Global,
            });
        }
        let found = object.get(key).unwrap_or(&Value::Null);
        if under == "*" {
            return match found.is_null() {
                false => Ok(()),
                true => plain(path, format!("{path}/{key} not found")),
            };
        }
        self.value(found, under, &format!("{path}{key}/"))
    }

    /// By the first item of the pattern (docs/spec/patterns.md §3.4).
    fn list(&mut self, items: &[Value], pattern: &mut [Value], path: &str) -> Matched {
        let count = pattern.len();
        let Some(first) = pattern.first_mut() else {
            return plain(path, "pattern Array empty".into());
        };
        let mut skips = Vec::new();
        let mut applied = 0;
        let mut fold = |result: Matched| match result {
            Ok(()) => {
                applied += 1;
                Ok(())
            }
            Err(error) if is_skip(&error) => {
                skips.push(error);
                Ok(())
            }
            Err(error) => Err(error),
        };
        match first {
            Value::Object(_) => {
                for (at, item) in items.iter().enumerate() {
                    fold(self.value(item, first, &format!("{path}{at}/")))?;
                }
            }
            Value::Array(_) => {
                if items.len() < count {
                    let text = format!(
                        "validate Array failed, array length mismatch, resource Array len is {} \
                         and pattern Array len is {count}",
                        items.len()
                    );
                    return plain("", text);
                }
                for (at, (item, pattern)) in items.iter().zip(pattern).enumerate() {
                    fold(self.value(item, pattern, &format!("{path}{at}/")))?;
                }
            }
            scalar => return leaf(&Value::Array(items.to_vec()), scalar, path),
        }
        match applied == 0 && !skips.is_empty() {
            true => Err(multiskip(path, &skips)),
            false => Ok(()),
        }
    }
}

/// A scalar pattern: every item of a list has to match (docs/spec/patterns.md §3.1).
fn leaf(object: &Value, pattern: &Value, path: &str) -> Matched {
    let matches = match object {
        Value::Array(items) => items.iter().all(|item| scalar::matches(pattern, item)),
        other => scalar::matches(pattern, other),
    };
    if matches {
        return Ok(());
    }
    plain(
        path,
        format!(
            "resource value '{}' does not match '{}' at path {path}",
            go_text(object),
            go_text(pattern)
        ),
    )
}

/// Whether some map inside has an anchor that the validator knows (docs/spec/patterns.md
/// §3.2, step 3).
fn contains_anchor(value: &Value) -> bool {
    match value {
        Value::Object(members) => members.iter().any(|(key, value)| {
            let anchor = anchor::parse(key);
            anchor.is_some_and(|(anchor, _)| anchor != Anchor::AddIfNotPresent)
                || contains_anchor(value)
        }),
        Value::Array(items) => items.iter().any(contains_anchor),
        _ => false,
    }
}

/// Wildcards in the keys of labels and annotations (docs/spec/patterns.md §9).
fn expand_metadata(object: &Map<String, Value>, pattern: &mut Map<String, Value>) {
    let Some(Value::Object(found)) = object.get("metadata") else {
        return;
    };
    let Some(wanted) = map_under(pattern, "metadata") else {
        return;
    };
    for tag in ["labels", "annotations"] {
        let Some(Value::Object(given)) = found.get(tag) else {
            continue;
        };
        let Some(wanted) = map_under(wanted, tag) else {
            continue;
        };
        let mut expanded = Map::new();
        for (key, value) in wanted.iter().filter(|(_, value)| value.is_string()) {
            // Of keys that become one, the first stays; in Kyverno it is any of them.
            let key = expanded_key(key, given);
            expanded.entry(key).or_insert_with(|| value.clone());
        }
        *wanted = expanded;
    }
}

/// The map under a key, which may have an anchor.
fn map_under<'p>(
    pattern: &'p mut Map<String, Value>,
    wanted: &str,
) -> Option<&'p mut Map<String, Value>> {
    let mut members = pattern.iter_mut();
    members.find_map(|(key, value)| match value {
        Value::Object(members) if key == wanted || anchor::inner(key) == wanted => Some(members),
        _ => None,
    })
}

/// The first key that matches; Kyverno takes any of them.
fn expanded_key(key: &str, given: &Map<String, Value>) -> String {
    let inner = anchor::inner(key);
    if !contains_wildcard(inner) {
        return key.to_owned();
    }
    let mut found = given.iter().filter(|(_, value)| value.is_string());
    match found.find(|(found, _)| wildcard(inner, found.as_str())) {
        Some((found, _)) => anchor::with_inner(key, found),
        None => anchor::with_inner(key, inner),
    }
}
