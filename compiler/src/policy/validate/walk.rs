//! Visits every text of a tree with its JSON path, as Kyverno's traversal does: leaves
//! under their own path, keys under that of their map.

use kpvm_syntax::tree::{Span, Tree, TreeValue};

/// One leaf or key.
pub(super) struct Visit<'a> {
    /// The leaf's value; for a key, its text.
    pub(super) element: Element<'a>,
    /// `/validate/message`
    pub(super) path: &'a str,
    /// Location.
    pub(super) span: Span,
}

/// What is visited.
#[derive(Clone, Copy)]
pub(super) enum Element<'a> {
    /// A text leaf or a key.
    Text(&'a str),
    /// Any other leaf.
    Other(&'a TreeValue),
}

/// Visits every leaf and key, in the order of the text.
pub(super) fn walk(tree: &Tree, visit: &mut impl FnMut(Visit<'_>)) {
    walk_at(tree, &mut String::new(), visit);
}

fn walk_at(tree: &Tree, path: &mut String, visit: &mut impl FnMut(Visit<'_>)) {
    match &tree.value {
        TreeValue::Map(members) => {
            for member in members {
                visit(Visit {
                    element: Element::Text(&member.key),
                    path,
                    span: member.key_span,
                });
                inside(path, &member.key, |path| {
                    walk_at(&member.value, path, visit)
                });
            }
        }
        TreeValue::List(items) => {
            for (index, item) in items.iter().enumerate() {
                inside(path, &index.to_string(), |path| walk_at(item, path, visit));
            }
        }
        TreeValue::String(text) => visit(Visit {
            element: Element::Text(text),
            path,
            span: tree.span,
        }),
        TreeValue::Null | TreeValue::Bool(_) | TreeValue::Int(_) | TreeValue::Float(_) => {
            visit(Visit {
                element: Element::Other(&tree.value),
                path,
                span: tree.span,
            });
        }
    }
}

fn inside(path: &mut String, step: &str, walk: impl FnOnce(&mut String)) {
    let length = path.len();
    path.push('/');
    path.push_str(step);
    walk(path);
    path.truncate(length);
}
