//! Documents that contain several objects: `List`, `PodList` and similar.

use kpvm_syntax::tree::{Member, Span, Tree, TreeValue};

/// Result for one value that should be an object.
pub enum Item {
    /// A map that is not a list: an object, whatever else it lacks.
    Object(Tree),
    /// A list without items (`items: null`), at this location.
    Empty(Span),
    /// Anything else: location and problem.
    Bad(Span, String),
}

/// Objects of a document, with nested lists expanded, in the order of the text.
///
/// Items of a `PodList` need not repeat their kind, because the API server omits it.
pub fn expand(document: Tree) -> Vec<Item> {
    let mut items = Vec::new();
    let mut waiting = vec![document];
    while let Some(mut tree) = waiting.pop() {
        if tree.as_map().is_none() {
            let message = format!("expected an object, found {}", tree.describe());
            items.push(Item::Bad(tree.span, message));
        } else if let Some(item_kind) = list_kind(&tree) {
            let span = tree.span;
            match take_items(&mut tree) {
                Taken::Items(mut inner) => {
                    let kind = ListKind {
                        api_version: tree.get("apiVersion").map(|tree| tree.value.clone()),
                        item_kind,
                    };
                    inner.iter_mut().for_each(|item| kind.complete(item));
                    waiting.extend(inner.into_iter().rev());
                }
                Taken::Nothing => items.push(Item::Empty(span)),
                Taken::Other(span, found) => {
                    items.push(Item::Bad(
                        span,
                        format!("expected `items` to be a list, found {found}"),
                    ));
                }
            }
        } else {
            items.push(Item::Object(tree));
        }
    }
    items
}

/// Whether a map is a list, and the kind of its items if stated.
fn list_kind(tree: &Tree) -> Option<Option<String>> {
    let kind = tree.get("kind").and_then(Tree::as_str)?;
    let has_items = tree
        .get("items")
        .is_some_and(|items| items.is_null() || items.as_list().is_some());
    let name = tree
        .get("metadata")
        .and_then(|metadata| metadata.get("name"));
    item_kind(kind, has_items, name.is_some())
}

/// Whether an object of that kind is a list, and the kind of its items if stated.
pub fn item_kind(kind: &str, has_items: bool, has_name: bool) -> Option<Option<String>> {
    if kind == "List" {
        return Some(None);
    }
    // A custom kind may be named `AllowList`; a list has `items` instead of a name.
    let item_kind = kind.strip_suffix("List").filter(|kind| !kind.is_empty())?;
    (has_items && !has_name).then(|| Some(item_kind.to_owned()))
}

enum Taken {
    Items(Vec<Tree>),
    Nothing,
    Other(Span, &'static str),
}

fn take_items(list: &mut Tree) -> Taken {
    let TreeValue::Map(members) = &mut list.value else {
        return Taken::Nothing;
    };
    let Some(member) = members.iter_mut().find(|member| &*member.key == "items") else {
        return Taken::Nothing;
    };
    match std::mem::replace(&mut member.value.value, TreeValue::Null) {
        TreeValue::List(items) => Taken::Items(items),
        TreeValue::Null => Taken::Nothing,
        other => {
            let found = Tree::new(other, member.value.span);
            Taken::Other(found.span, found.describe())
        }
    }
}

/// What a list states about its items.
#[derive(Debug, Clone, Default)]
pub struct ListKind {
    /// Their kind, if the list states one.
    pub item_kind: Option<String>,
    /// The list's own `apiVersion`.
    pub api_version: Option<TreeValue>,
}

impl ListKind {
    /// Adds the list's kind and `apiVersion` to an item that lacks them.
    pub fn complete(&self, item: &mut Tree) {
        let Some(kind) = &self.item_kind else { return };
        let span = item.span;
        let has_kind = item.get("kind").is_some();
        let has_version = item.get("apiVersion").is_some();
        let TreeValue::Map(members) = &mut item.value else {
            return;
        };
        let mut add = |key: &str, value: TreeValue| {
            members.push(Member {
                key: key.into(),
                key_span: span,
                value: Tree::new(value, span),
            });
        };
        if !has_kind {
            add("kind", TreeValue::String(kind.as_str().into()));
        }
        if let Some(version) = self.api_version.as_ref().filter(|_| !has_version) {
            add("apiVersion", version.clone());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use kpvm_semantics::limits::Limits;
    use kpvm_syntax::yaml::{DuplicateKeys, Options, read_all};

    /// Each item as a word: the object's kind, `empty`, or the problem.
    fn expanded(text: &str) -> Vec<String> {
        let options = Options {
            duplicate_keys: DuplicateKeys::LastWins,
            limits: &Limits::DEFAULT,
        };
        let documents = read_all(text, options).into_iter().map(Result::unwrap);
        documents
            .flat_map(expand)
            .map(|item| match item {
                Item::Object(tree) => tree
                    .get("kind")
                    .and_then(Tree::as_str)
                    .unwrap_or("no kind")
                    .to_owned(),
                Item::Empty(_) => "empty".into(),
                Item::Bad(_, message) => message,
            })
            .collect()
    }

    #[test]
    fn lists_are_expanded_and_nothing_is_lost() {
        for (text, expected) in [
            ("{kind: Pod}", vec!["Pod"]),
            (
                "{kind: List, items: [{kind: Pod}, {kind: List, items: [{kind: Job}]}, {kind: Node}]}",
                vec!["Pod", "Job", "Node"],
            ),
            ("{kind: List, items: []}", vec![]),
            ("{kind: List, items: null}", vec!["empty"]),
            ("{kind: List}", vec!["empty"]),
            (
                "{kind: List, items: {a: 1}}",
                vec!["expected `items` to be a list, found a map"],
            ),
            (
                "{kind: List, items: [null, 5, {}]}",
                vec![
                    "expected an object, found null",
                    "expected an object, found a number",
                    "no kind",
                ],
            ),
            (
                "{kind: PodList, apiVersion: v1, items: [{metadata: {}}]}",
                vec!["Pod"],
            ),
            (
                "{kind: AllowList, metadata: {name: a}, items: []}",
                vec!["AllowList"],
            ),
            ("{kind: AllowList, spec: {}}", vec!["AllowList"]),
            ("- kind: Pod", vec!["expected an object, found a list"]),
        ] {
            assert_eq!(expanded(text), expected, "{text}");
        }
    }
}
