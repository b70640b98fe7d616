//! Nulls that Kyverno's command line reads as empty maps (docs/spec/cli.md §8.6, step 4).
//!
//! An object that was read into a tree is changed there. An object that the engine reads from its
//! JSON text is changed in the text, without moving any byte.

use std::borrow::Cow;

use kpvm_syntax::tree::{Tree, TreeValue};
use memchr::{memmem, memrchr2};

/// The keys whose null values are empty maps, at any depth.
const KEYS: [&str; 6] = [
    "annotations",
    "labels",
    "matchLabels",
    "nodeSelector",
    "data",
    "stringData",
];

/// An empty map, as long as the word `null`.
const EMPTY_MAP: &[u8; 4] = b"{}  ";

/// Replaces the nulls in a tree.
pub fn replace(tree: &mut Tree) {
    let mut waiting = vec![tree];
    while let Some(tree) = waiting.pop() {
        match &mut tree.value {
            TreeValue::Map(members) => {
                for member in members {
                    if member.value.is_null() && KEYS.contains(&&*member.key) {
                        member.value.value = TreeValue::Map(Vec::new());
                    }
                    waiting.push(&mut member.value);
                }
            }
            TreeValue::List(items) => waiting.extend(items),
            TreeValue::Null
            | TreeValue::Bool(_)
            | TreeValue::Int(_)
            | TreeValue::Float(_)
            | TreeValue::String(_) => {}
        }
    }
}

/// Replaces the nulls in a JSON text. Returns `None` if a null belongs to a key that is
/// written with escapes: only a full reader can tell whether it is one of the keys.
///
/// If the text is not JSON, the only guarantee is that no byte moves.
pub fn replace_in_json(json: &[u8]) -> Option<Cow<'_, [u8]>> {
    let mut replaced = Cow::Borrowed(json);
    for at in memmem::find_iter(json, b"null") {
        let is_empty_map = match key_before(json, at) {
            Key::Plain(key) => KEYS.iter().any(|known| known.as_bytes() == key),
            Key::Escaped => return None,
            Key::None => false,
        };
        if is_empty_map && let Some(null) = replaced.to_mut().get_mut(at..at + EMPTY_MAP.len()) {
            null.copy_from_slice(EMPTY_MAP);
        }
    }
    Some(replaced)
}

/// What precedes a value.
enum Key<'t> {
    /// A key without escapes.
    Plain(&'t [u8]),
    /// A key with escapes.
    Escaped,
    /// Nothing that could be one of the keys.
    None,
}

/// The key of the value at an offset.
fn key_before(json: &[u8], at: usize) -> Key<'_> {
    let before = json.get(..at).unwrap_or_default().trim_ascii_end();
    let before = before.strip_suffix(b":").map(<[u8]>::trim_ascii_end);
    let Some(before) = before.and_then(|before| before.strip_suffix(b"\"")) else {
        return Key::None;
    };
    // An escaped quote: the word is part of a text, or the key ends with a backslash.
    if before.ends_with(b"\\") {
        return Key::None;
    }
    match memrchr2(b'"', b'\\', before) {
        Some(start) if before.get(start) == Some(&b'\\') => Key::Escaped,
        Some(start)
            if before
                .get(..start)
                .is_some_and(|front| front.ends_with(b"\\")) =>
        {
            Key::None
        }
        Some(start) => Key::Plain(before.get(start + 1..).unwrap_or_default()),
        None => Key::None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::resources::Resources;

    #[test]
    fn nulls_of_the_keys_become_empty_maps_of_the_same_length() {
        for (text, expected) in [
            (r#"{"labels":null}"#, Some(r#"{"labels":{}  }"#)),
            (
                r#"{"a":[{"data" : null,"b":null}]}"#,
                Some(r#"{"a":[{"data" : {}  ,"b":null}]}"#),
            ),
            // Other keys, parts of keys, keys with escapes at an end.
            (
                r#"{"creationTimestamp":null,"xlabels":null,"labelsx":null}"#,
                Some(r#"{"creationTimestamp":null,"xlabels":null,"labelsx":null}"#),
            ),
            (
                r#"{"\"labels":null,"labels\\":null,"labels\"":null}"#,
                Some(r#"{"\"labels":null,"labels\\":null,"labels\"":null}"#),
            ),
            // Words in texts and lists.
            (
                r#"{"a":"{\"labels\":null}","b":["labels",null,":null"]}"#,
                Some(r#"{"a":"{\"labels\":null}","b":["labels",null,":null"]}"#),
            ),
            (r#"{"l\u0061bels":null}"#, None),
            (r#"{"\u006cabels":null}"#, None),
            ("null", Some("null")),
            ("\":null", Some("\":null")),
        ] {
            let found = replace_in_json(text.as_bytes());
            assert_eq!(found.as_deref(), expected.map(str::as_bytes), "{text}");
        }
    }

    /// What is replaced in a text and what is replaced in its tree are the same.
    #[test]
    fn text_and_tree_agree() {
        let keys = [
            "labels",
            "data",
            "metadata",
            "a\\\"labels",
            "labels\\\\",
            "",
        ];
        let values = [
            "null",
            "\"labels\"",
            "{\"labels\":null}",
            "[null]",
            "\":null\"",
            "{}",
        ];
        for (key, value) in keys.iter().flat_map(|key| values.map(|value| (key, value))) {
            for (other, more) in keys.iter().flat_map(|key| values.map(|value| (key, value))) {
                let text = format!(
                    "{{\"kind\":\"Node\",\"spec\":{{\"{key}\" :{value}, \"x{other}\":1,\"{other}\": {more}}}}}"
                );
                let tree = |text: &str| Resources::from_text("a", text).list.remove(0).tree;
                let replaced = replace_in_json(text.as_bytes()).unwrap();
                assert_eq!(replaced.len(), text.len());
                let replaced = String::from_utf8(replaced.into_owned()).unwrap();
                let words = |text: &str| text.matches("null").count();
                let expected = tree(&text);
                assert_eq!(tree(&replaced), expected, "{text}");
                // Read without any replacement.
                let json: serde_json::Value = serde_json::from_str(&replaced).unwrap();
                assert_eq!(json, expected.to_json(), "{text}");
                assert!(words(&replaced) <= words(&text));
            }
        }
    }
}
