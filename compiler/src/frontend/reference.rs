//! Resolves `$(…)` references inside a pattern at compile time (docs/spec/patterns.md
//! §10.1): they refer only to the pattern itself, never to a resource.

use kpvm_semantics::number::format_f6;
use kpvm_syntax::tree::{Member, Tree, TreeValue};

use super::variable::{self, Reference};

/// Resolves all references of a document.
///
/// # Errors
/// Kyverno's text; the rule's status is then `error` for every resource.
pub fn resolve(document: &Tree) -> Result<Tree, String> {
    resolve_value(document, document, "")
}

/// Resolves the references of a text that is its own document (a message).
///
/// # Errors
/// Like [`resolve`]: a reference in a message has no target.
pub fn resolve_text(text: &str, document: &Tree) -> Result<String, String> {
    resolve_leaf(text, document, "")
}

fn resolve_value(value: &Tree, document: &Tree, path: &str) -> Result<Tree, String> {
    let resolved = match &value.value {
        TreeValue::String(text) => TreeValue::String(resolve_leaf(text, document, path)?.into()),
        TreeValue::List(items) => TreeValue::List(
            items
                .iter()
                .enumerate()
                .map(|(index, item)| resolve_value(item, document, &format!("{path}/{index}")))
                .collect::<Result<_, _>>()?,
        ),
        TreeValue::Map(members) => TreeValue::Map(
            members
                .iter()
                .map(|member| {
                    Ok(Member {
                        key: resolve_leaf(&member.key, document, path)?.into(),
                        key_span: member.key_span,
                        value: resolve_value(
                            &member.value,
                            document,
                            &child_path(path, &member.key),
                        )?,
                    })
                })
                .collect::<Result<_, String>>()?,
        ),
        scalar => scalar.clone(),
    };
    Ok(Tree::new(resolved, value.span))
}

fn child_path(path: &str, key: &str) -> String {
    format!("{path}/{}", key.replace('/', "\\/"))
}

/// Replaces the references of the text at `path`, left to right.
fn resolve_leaf(text: &str, document: &Tree, path: &str) -> Result<String, String> {
    let mut result = text.to_owned();
    for span in variable::scan_references(text) {
        let shown = span.text(text);
        let value = resolve_reference(&shown, document, path)?;
        result = result.replacen(&*shown, &value, 1);
    }
    Ok(variable::unescape_references(&result).into_owned())
}

fn resolve_reference(text: &str, document: &Tree, path: &str) -> Result<String, String> {
    let reference = Reference::parse(text)
        .map_err(|error| format!("failed to resolve {text} at path {path}: {error}"))?;
    let operator = reference.operator.text();
    let value = look_up(document, &reference.target(path));
    if operator.is_empty() {
        return match value {
            None => Err(format!(
                "got nil resolved variable {text} at path {path}: <nil>"
            )),
            Some(TreeValue::String(value)) => Ok(value.into()),
            Some(_) => Err(format!(
                "NotResolvedReferenceErr,reference {text} not resolved at path {path}"
            )),
        };
    }
    let shown = match value {
        Some(TreeValue::String(value)) => Ok(value.into()),
        Some(TreeValue::Int(value)) => Ok(value.to_string()),
        Some(TreeValue::Float(value)) => {
            let mut text = String::new();
            format_f6(value, &mut text);
            Ok(text)
        }
        Some(TreeValue::Bool(value)) => Err(value.to_string()),
        Some(TreeValue::Null | TreeValue::List(_) | TreeValue::Map(_)) | None => {
            Err("<nil>".to_owned())
        }
    };
    shown.map(|shown| format!("{operator}{shown}")).map_err(|shown| {
        format!(
            "failed to resolve {text} at path {path}: incorrect expression: operator {operator} does not match with value {shown}"
        )
    })
}

/// The leaf (or key name) at a path; ignores anchors of the document's keys.
fn look_up(document: &Tree, target: &str) -> Option<TreeValue> {
    let mut found = None;
    visit(document, "", target, &mut found);
    found
}

fn visit(value: &Tree, path: &str, target: &str, found: &mut Option<TreeValue>) {
    match &value.value {
        TreeValue::Map(members) => {
            for member in members {
                if path == target {
                    // Keys are leaves under their map's path: a map resolves to a key's
                    // name.
                    *found = Some(TreeValue::String(member.key.clone()));
                }
                let anchored = kpvm_semantics::anchor::parse(&member.key);
                let key = if member.key.contains('/') {
                    &*member.key
                } else {
                    anchored.inner
                };
                visit(&member.value, &child_path(path, key), target, found);
            }
        }
        TreeValue::List(items) => {
            for (index, item) in items.iter().enumerate() {
                visit(item, &format!("{path}/{index}"), target, found);
            }
        }
        TreeValue::Null => {}
        scalar => {
            if path == target {
                *found = Some(scalar.clone());
            }
        }
    }
}
