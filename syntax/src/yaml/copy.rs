//! Copies a tree without recursion: `Clone` on a tree of the maximum depth would need more
//! stack than a small thread has.

use crate::tree::{Member, Tree, TreeValue};

/// A value being copied: its source and the copies of its first children.
struct Copying<'t> {
    source: &'t Tree,
    values: Vec<Tree>,
}

impl<'t> Copying<'t> {
    fn new(source: &'t Tree) -> Self {
        let children = match &source.value {
            TreeValue::List(items) => items.len(),
            TreeValue::Map(members) => members.len(),
            _ => 0,
        };
        Self {
            source,
            values: Vec::with_capacity(children),
        }
    }

    /// The next child to copy.
    fn child(&self) -> Option<&'t Tree> {
        let at = self.values.len();
        match &self.source.value {
            TreeValue::List(items) => items.get(at),
            TreeValue::Map(members) => members.get(at).map(|member| &member.value),
            _ => None,
        }
    }

    fn finish(self) -> Tree {
        let value = match &self.source.value {
            TreeValue::List(_) => TreeValue::List(self.values),
            TreeValue::Map(members) => TreeValue::Map(
                members
                    .iter()
                    .zip(self.values)
                    .map(|(member, value)| Member {
                        key: member.key.clone(),
                        key_span: member.key_span,
                        value,
                    })
                    .collect(),
            ),
            scalar => scalar.clone(),
        };
        Tree::new(value, self.source.span)
    }
}

/// A copy of the tree.
pub(super) fn copy(tree: &Tree) -> Tree {
    let mut top = Copying::new(tree);
    let mut below = Vec::new();
    loop {
        if let Some(child) = top.child() {
            below.push(std::mem::replace(&mut top, Copying::new(child)));
            continue;
        }
        let finished = top.finish();
        match below.pop() {
            Some(parent) => top = parent,
            None => return finished,
        }
        top.values.push(finished);
    }
}
