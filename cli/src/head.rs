//! The identity of a JSON object, found without parsing the rest of it.

use std::borrow::Cow;

use kpvm_syntax::json::{Reader, Token};

use crate::json_text::{skip_space, value_end};

/// The members of an object that reports name and that decide how it is read.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Head<'t> {
    /// `apiVersion`, unless it is missing or null.
    pub api_version: Option<Cow<'t, str>>,
    /// `kind`, unless it is missing or null.
    pub kind: Option<Cow<'t, str>>,
    /// `metadata`
    pub metadata: Metadata<'t>,
}

/// Texts of an object's metadata; empty if missing.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Metadata<'t> {
    /// `name`
    pub name: Cow<'t, str>,
    /// `generateName`
    pub generate_name: Cow<'t, str>,
    /// `namespace`
    pub namespace: Cow<'t, str>,
    /// `uid`
    pub uid: Cow<'t, str>,
    /// `resourceVersion`
    pub resource_version: Cow<'t, str>,
}

impl<'t> Head<'t> {
    /// The head of an object; `None` if it has no metadata, or something unusual in it.
    /// Only what is returned has been parsed: the text need not be JSON.
    pub fn read(object: &'t [u8]) -> Option<Self> {
        let mut head = Self::default();
        let mut metadata = None;
        visit_members(object, |key, value| {
            match key {
                b"apiVersion" => head.api_version = text_or_null(value)?,
                b"kind" => head.kind = text_or_null(value)?,
                b"metadata" => metadata = Some(Metadata::read(value)?),
                _ => {}
            }
            Some(())
        })?;
        head.metadata = metadata?;
        Some(head)
    }
}

impl<'t> Metadata<'t> {
    fn read(map: &'t [u8]) -> Option<Self> {
        let mut metadata = Self::default();
        visit_members(map, |key, value| {
            let field = match key {
                b"name" => &mut metadata.name,
                b"generateName" => &mut metadata.generate_name,
                b"namespace" => &mut metadata.namespace,
                b"uid" => &mut metadata.uid,
                b"resourceVersion" => &mut metadata.resource_version,
                _ => return Some(()),
            };
            *field = text_or_null(value)??;
            Some(())
        })?;
        Some(metadata)
    }
}

/// Visits the members of a map until a visit returns `None`. Also `None` if it is not a map
/// or a key has escapes.
fn visit_members<'t>(
    map: &'t [u8],
    mut visit: impl FnMut(&'t [u8], &'t [u8]) -> Option<()>,
) -> Option<()> {
    let mut at = skip_space(map, 0);
    if map.get(at) != Some(&b'{') {
        return None;
    }
    at = skip_space(map, at + 1);
    if map.get(at) == Some(&b'}') {
        return Some(());
    }
    loop {
        let end = value_end(map, at)?;
        let key = map.get(at..end)?.strip_prefix(b"\"")?.strip_suffix(b"\"")?;
        if key.contains(&b'\\') {
            return None;
        }
        at = skip_space(map, end);
        if map.get(at) != Some(&b':') {
            return None;
        }
        at = skip_space(map, at + 1);
        let end = value_end(map, at)?;
        visit(key, map.get(at..end)?)?;
        at = skip_space(map, end);
        match map.get(at)? {
            b',' => at = skip_space(map, at + 1),
            b'}' => return Some(()),
            _ => return None,
        }
    }
}

/// A string, or null; `None` if it is neither.
fn text_or_null(value: &[u8]) -> Option<Option<Cow<'_, str>>> {
    let text = std::str::from_utf8(value).ok()?;
    match Reader::new(text).token().ok()? {
        Token::String(text) => Some(Some(text)),
        Token::Null => Some(None),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn heads_are_read() {
        let shown = |text: &str| {
            let head = Head::read(text.as_bytes())?;
            let own = [head.api_version, head.kind].map(|text| text.unwrap_or("-".into()));
            let Metadata {
                name,
                generate_name,
                namespace,
                uid,
                resource_version,
            } = head.metadata;
            let of_metadata = [name, generate_name, namespace, uid, resource_version];
            Some([own.join(" "), of_metadata.join(" ")].join("; "))
        };
        for (text, expected) in [
            (r#"{"metadata":{}}"#, Some("- -;     ")),
            (
                r#" { "a" : [{"kind":"x"}] , "kind" : "Pod" , "apiVersion":"v1", "metadata" : {"uid":"u", "x":{"name":"y"}, "name":"a\u00e9", "namespace":"n"} } "#,
                Some("v1 Pod; aé  n u "),
            ),
            (
                r#"{"kind":null,"metadata":{"generateName":"g","resourceVersion":"7"}}"#,
                Some("- -;  g   7"),
            ),
            // The last one wins.
            (
                r#"{"kind":"A","metadata":{"name":"a"},"kind":"B","metadata":{"uid":"u"}}"#,
                Some("- B;    u "),
            ),
            (r#"{"kind":"Pod"}"#, None),
            (r#"{"kind":5,"metadata":{}}"#, None),
            (r#"{"metadata":{"name":null}}"#, None),
            (r#"{"metadata":null}"#, None),
            (r#"{"k\u0069nd":"Pod","metadata":{}}"#, None),
            (r#"{"metadata":{}"#, None),
            ("[]", None),
            ("", None),
        ] {
            assert_eq!(shown(text).as_deref(), expected, "{text}");
        }
    }
}
