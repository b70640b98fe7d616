//! Reads the objects to evaluate.
//!
//! Objects are read as in Kyverno's command line (docs/spec/cli.md §8.6), except that lists
//! are expanded and a bad document does not stop the others.

use std::io::Read;
use std::path::{Path, PathBuf};

use kpvm::document::Numbers;
use kpvm_compiler::diagnostic::Diagnostic;
use kpvm_compiler::source::{Before, LineColumn, Location, SourceId, Sources};
use kpvm_semantics::limits::Limits;
use kpvm_semantics::resource_kind::{self, Scope};
use kpvm_syntax::json;
use kpvm_syntax::manifest;
use kpvm_syntax::tree::{Member, Span, Tree, TreeValue};
use kpvm_syntax::yaml::{self, DuplicateKeys, YamlError};

use crate::input::{InputFile, Unreadable, read_inputs, read_regular_file};
use crate::line_index::LineIndex;
use crate::list::{Item, ListKind, expand};
use crate::nulls;
use crate::place::Place;
use crate::problem::Problem;

/// One object to evaluate.
#[derive(Debug, Clone)]
pub struct Resource {
    /// The object.
    pub tree: Tree,
    /// Source text of the object.
    pub source: SourceId,
    /// Set if it is a payload instead of a Kubernetes object.
    pub payload: Option<Payload>,
}

/// Any JSON, for policies in JSON mode.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Payload {
    /// Its path as named, simplified (docs/spec/cli.md §2).
    pub path: String,
    /// Every number of a `.json` file is a float (docs/spec/cel.md §3.3).
    pub numbers: Numbers,
}

/// All objects of a run.
#[derive(Debug, Default)]
pub struct Resources {
    /// The texts.
    pub sources: Sources,
    /// The lines of the texts.
    lines: Vec<LineIndex>,
    /// The objects, in the order of the texts.
    pub list: Vec<Resource>,
    /// Unusable inputs.
    pub problems: Vec<Problem>,
    /// Number of lists without items.
    pub empty_lists: usize,
    /// Whether lists remain ordinary objects, as in `kyverno test`.
    keep_lists: bool,
}

impl Resource {
    /// A text field of the object; empty if absent.
    pub fn text(&self, key: &str) -> &str {
        self.tree.get(key).and_then(Tree::as_str).unwrap_or("")
    }

    /// A text field of the object's metadata; empty if absent.
    pub fn metadata(&self, key: &str) -> &str {
        let metadata = self.tree.get("metadata");
        let value = metadata.and_then(|metadata| metadata.get(key));
        value.and_then(Tree::as_str).unwrap_or("")
    }

    /// Group (empty for core), version and kind.
    pub fn group_version_kind(&self) -> [&str; 3] {
        let api_version = self.text("apiVersion");
        let (group, version) = api_version.split_once('/').unwrap_or(("", api_version));
        [group, version, self.text("kind")]
    }

    /// Location of the object.
    pub fn location(&self) -> Location {
        Location {
            source: self.source,
            span: self.tree.span,
        }
    }
}

/// Reads all objects of all paths.
pub fn read_resources(paths: &[PathBuf], stdin: &mut dyn Read) -> Resources {
    let inputs = read_inputs(paths, stdin);
    let mut resources = Resources {
        problems: inputs
            .unreadable
            .into_iter()
            .map(Problem::Unreadable)
            .collect(),
        ..Resources::default()
    };
    for file in inputs.files {
        resources.add_file(file);
    }
    resources
}

impl Resources {
    /// An empty collection in which lists will remain single objects (docs/spec/cli.md
    /// §8.6, step 5).
    pub fn keeping_lists() -> Self {
        Self {
            keep_lists: true,
            ..Self::default()
        }
    }

    /// The objects of one text.
    pub fn from_text(name: &str, text: &str) -> Self {
        let mut resources = Self::default();
        resources.add_file(InputFile {
            name: name.to_owned(),
            text: text.to_owned(),
            from_directory: false,
        });
        resources
    }

    /// Adds the objects of a file.
    pub fn add_file(&mut self, file: InputFile) {
        self.add_part(file, Before::default());
    }

    /// Adds the objects of a part of a longer text that consists of whole documents.
    pub fn add_part(&mut self, file: InputFile, before: Before) {
        let documents = documents(&file, DuplicateKeys::LastWins);
        let source = self.add_text(file, before);
        for document in documents {
            match document {
                Ok(tree) if tree.is_null() => {}
                Ok(tree) => self.add_document(tree, source),
                Err((span, message)) => self.refuse("yaml", source, span, message, None),
            }
        }
    }

    /// Adds an item of a list of that kind; the item is a part of a longer text. An item
    /// may itself be a list; null is not an object here.
    pub fn add_item(&mut self, file: InputFile, before: Before, of: &ListKind) {
        let documents = documents(&file, DuplicateKeys::LastWins);
        let source = self.add_text(file, before);
        for document in documents {
            match document {
                Ok(mut tree) => {
                    of.complete(&mut tree);
                    self.add_document(tree, source);
                }
                Err((span, message)) => self.refuse("yaml", source, span, message, None),
            }
        }
    }

    fn add_text(&mut self, file: InputFile, before: Before) -> SourceId {
        self.lines.push(LineIndex::new(&file.text));
        self.sources.add_part(file.name, file.text, before)
    }

    /// A single object, without its source text.
    pub fn sample(&self, resource: &Resource) -> Self {
        let mut sample = Self::default();
        let name = self.sources.file(resource.source).name.clone();
        let file = InputFile {
            name,
            text: String::new(),
            from_directory: false,
        };
        let source = sample.add_text(file, Before::default());
        sample.list.push(Resource {
            source,
            ..resource.clone()
        });
        sample
    }

    /// Reads and adds a payload.
    pub fn add_payload_at(&mut self, path: &Path) {
        let name = path.display().to_string();
        match read_regular_file(path) {
            Ok(text) => {
                let file = InputFile {
                    name: name.clone(),
                    text,
                    from_directory: false,
                };
                self.add_payload(file, &name);
            }
            Err(reason) => {
                let unreadable = Unreadable { name, reason };
                self.problems.push(Problem::Unreadable(unreadable));
            }
        }
    }

    /// Adds a payload: the only map of a file. `path` is the file as named.
    pub fn add_payload(&mut self, file: InputFile, path: &str) {
        let is_json = path.ends_with(".json");
        let duplicate_keys = match is_json {
            true => DuplicateKeys::LastWins,
            false => DuplicateKeys::Refuse,
        };
        let documents = documents(&file, duplicate_keys);
        let source = self.add_text(file, Before::default());
        let mut documents = documents.into_iter();
        let (first, second) = (documents.next(), documents.next());
        let refused = match (first, second) {
            (Some(Ok(tree)), None) if tree.as_map().is_some() => {
                let numbers = match is_json {
                    true => Numbers::Float,
                    false => Numbers::Exact,
                };
                let path = clean_path(path);
                self.list.push(Resource {
                    tree,
                    source,
                    payload: Some(Payload { path, numbers }),
                });
                return;
            }
            (Some(Err(error)), _) | (_, Some(Err(error))) => error,
            (_, Some(Ok(second))) => {
                let message = "expected a payload to be one map, found a second document";
                (second.span, message.to_owned())
            }
            (Some(Ok(tree)), None) => {
                let found = tree.describe();
                (
                    tree.span,
                    format!("expected a payload to be a map, found {found}"),
                )
            }
            (None, None) => {
                let message = "expected a payload to be a map, found nothing";
                (Span::default(), message.to_owned())
            }
        };
        let (span, message) = refused;
        self.refuse("payload", source, span, message, None);
    }

    fn add_document(&mut self, document: Tree, source: SourceId) {
        if self.keep_lists && document.as_map().is_some() {
            return self.add_object(document, source);
        }
        for item in expand(document) {
            match item {
                Item::Object(tree) => self.add_object(tree, source),
                Item::Empty(_) => self.empty_lists += 1,
                Item::Bad(span, message) => {
                    self.refuse("not-an-object", source, span, message, None)
                }
            }
        }
    }

    fn add_object(&mut self, mut tree: Tree, source: SourceId) {
        let kind = tree.get("kind");
        if kind.and_then(Tree::as_str).is_none_or(str::is_empty) {
            let found = match kind {
                None => "none",
                Some(kind) if kind.as_str().is_some() => "an empty text",
                Some(kind) => kind.describe(),
            };
            let message = format!("expected the object to have a kind, found {found}");
            let hint = "every Kubernetes object has apiVersion and kind";
            return self.refuse("no-kind", source, tree.span, message, Some(hint));
        }
        default_namespace(&mut tree);
        nulls::replace(&mut tree);
        self.list.push(Resource {
            tree,
            source,
            payload: None,
        });
    }

    fn refuse(
        &mut self,
        code: &'static str,
        source: SourceId,
        span: Span,
        message: String,
        hint: Option<&str>,
    ) {
        let mut diagnostic = Diagnostic::error(code, message, Location { source, span });
        diagnostic.hint = hint.map(str::to_owned);
        self.problems.push(Problem::InText(diagnostic));
    }

    /// Location of a path as returned by the engine: the value with its key, or the deepest
    /// existing value on the path.
    pub fn location_of_path(&self, resource: &Resource, path: &str) -> Location {
        Location {
            source: resource.source,
            span: span_in_tree(&resource.tree, path),
        }
    }

    /// File, line and column of a location.
    pub fn place(&self, location: Location) -> Place {
        let Location { source, span } = location;
        let start = self.line_column(source, span);
        let end = Span {
            start: span.end,
            end: span.end,
        };
        let end = self.line_column(source, end);
        let is_short = end.line == start.line && end.column > start.column;
        Place {
            file: self.sources.file(source).name.clone(),
            line: start.line,
            column: start.column,
            end_column: is_short.then_some(end.column),
        }
    }

    /// Line and column of the first byte of a location.
    pub fn line_column(&self, source: SourceId, span: Span) -> LineColumn {
        let file = self.sources.file(source);
        match self.lines.get(source.0 as usize) {
            Some(lines) => {
                let place = lines.line_column(&file.text, span.start as usize);
                file.before.shift(place)
            }
            None => self.sources.line_column(Location { source, span }),
        }
    }
}

/// Simplifies a path lexically, as Go does.
fn clean_path(path: &str) -> String {
    let mut parts: Vec<&str> = Vec::new();
    for part in path.split('/') {
        match part {
            "" | "." => {}
            ".." if parts.last().is_some_and(|last| *last != "..") => drop(parts.pop()),
            part => parts.push(part),
        }
    }
    let root = if path.starts_with('/') { "/" } else { "" };
    format!("{root}{}", parts.join("/"))
}

/// The documents of a file: JSON values one after another, or YAML.
fn documents(file: &InputFile, duplicate_keys: DuplicateKeys) -> Vec<Result<Tree, (Span, String)>> {
    if duplicate_keys == DuplicateKeys::LastWins && manifest::begins_like_json(&file.text) {
        let options = json::Options {
            duplicate_keys,
            numbers: json::Numbers::Kubernetes,
            limits: &Limits::DEFAULT,
        };
        if let Ok(trees) = json::read_stream(&file.text, options) {
            return trees.into_iter().map(Ok).collect();
        }
    }
    let options = yaml::Options {
        duplicate_keys,
        limits: &Limits::DEFAULT,
    };
    let documents = manifest::read_all(&file.text, options).into_iter();
    let explain = |error: YamlError| (error.span, error.kind.to_string());
    documents
        .map(|document| document.map_err(explain))
        .collect()
}

/// Whether the kind is known to be cluster-scoped. Unknown kinds, including custom ones,
/// count as namespaced; versions are not compared (docs/spec/cli.md §8.6, step 3).
pub(crate) fn is_cluster_scoped(api_version: &str, kind: &str) -> bool {
    let group = api_version.split_once('/').map_or("", |(group, _)| group);
    resource_kind::find(group, kind).is_some_and(|found| found.scope == Scope::Cluster)
}

/// Sets the namespace `default` in an object of a namespaced kind that has none
/// (docs/spec/cli.md §8.6, step 3).
fn default_namespace(tree: &mut Tree) {
    let text = |key| tree.get(key).and_then(Tree::as_str).unwrap_or("");
    if is_cluster_scoped(text("apiVersion"), text("kind")) {
        return;
    }
    let span = tree.span;
    let entry = |key: &str, value| Member {
        key: key.into(),
        key_span: span,
        value: Tree::new(value, span),
    };
    let namespace = entry("namespace", TreeValue::String("default".into()));
    let TreeValue::Map(members) = &mut tree.value else {
        return;
    };
    let Some(metadata) = members.iter_mut().find(|member| &*member.key == "metadata") else {
        members.push(entry("metadata", TreeValue::Map(vec![namespace])));
        return;
    };
    // Metadata that is not a map is unchanged, as in Kubernetes' own setter.
    let TreeValue::Map(fields) = &mut metadata.value.value else {
        return;
    };
    match fields.iter_mut().find(|field| &*field.key == "namespace") {
        Some(field) if field.value.as_str().is_some_and(|text| !text.is_empty()) => {}
        Some(field) => field.value.value = namespace.value.value,
        None => fields.push(Member {
            key_span: metadata.key_span,
            ..namespace
        }),
    }
}

/// Location of key and value (for a list item: the value) at a path of the engine. Keys may
/// contain `/`, so the longest matching key is used.
fn span_in_tree(tree: &Tree, path: &str) -> Span {
    let (mut tree, mut place) = (tree, tree.span);
    let mut rest = path.trim_matches('/');
    while !rest.is_empty() {
        let next = match &tree.value {
            TreeValue::Map(members) => members
                .iter()
                .filter(|member| strip_segment(rest, &member.key).is_some())
                .max_by_key(|member| member.key.len())
                .map(|member| (&member.value, member_span(member), member.key.len())),
            TreeValue::List(items) => {
                let segment = rest.split('/').next().unwrap_or(rest);
                let item = segment
                    .parse()
                    .ok()
                    .and_then(|index: usize| items.get(index));
                item.map(|item| (item, item.span, segment.len()))
            }
            TreeValue::Null
            | TreeValue::Bool(_)
            | TreeValue::Int(_)
            | TreeValue::Float(_)
            | TreeValue::String(_) => None,
        };
        let Some((value, span, length)) = next else {
            break;
        };
        (tree, place) = (value, span);
        rest = rest.get(length..).unwrap_or("").trim_start_matches('/');
    }
    place
}

/// Range of key and value; only the key if the value is located elsewhere (an alias, a
/// default).
fn member_span(member: &Member) -> Span {
    let (key, value) = (member.key_span, member.value.span);
    let follows = value.start >= key.end && value.end > value.start;
    Span {
        start: key.start,
        end: if follows { value.end } else { key.end },
    }
}

/// The rest of a path after a leading key.
fn strip_segment<'p>(path: &'p str, key: &str) -> Option<&'p str> {
    path.strip_prefix(key)
        .filter(|rest| rest.is_empty() || rest.starts_with('/'))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// docs/spec/cli.md §8.6, step 3.
    #[test]
    fn kinds_and_groups_are_compared_and_versions_are_not() {
        for (api_version, kind, expected) in [
            ("v1", "Namespace", true),
            ("v1", "Pod", false),
            ("rbac.authorization.k8s.io/v1", "ClusterRole", true),
            ("rbac.authorization.k8s.io/v9", "ClusterRole", true),
            ("rbac.authorization.k8s.io/v1", "Role", false),
            (
                "admissionregistration.k8s.io/v1",
                "MutatingAdmissionPolicy",
                false,
            ),
            ("example.com/v1", "Node", false),
            ("", "Node", true),
            ("authorization.k8s.io/v1", "LocalSubjectAccessReview", false),
        ] {
            assert_eq!(
                is_cluster_scoped(api_version, kind),
                expected,
                "{api_version} {kind}"
            );
        }
    }

    /// docs/spec/cli.md §8.6, step 3.
    #[test]
    fn namespaces_are_defaulted() {
        for (text, expected) in [
            ("{apiVersion: v1, kind: Pod}", "default"),
            (
                "{apiVersion: v1, kind: Pod, metadata: {name: a}}",
                "default",
            ),
            ("{apiVersion: v1, kind: Pod, metadata: {namespace: b}}", "b"),
            (
                "{apiVersion: v1, kind: Pod, metadata: {namespace: ''}}",
                "default",
            ),
            (
                "{apiVersion: v1, kind: Pod, metadata: {namespace: null}}",
                "default",
            ),
            ("{apiVersion: v1, kind: Pod, metadata: null}", ""),
            ("{apiVersion: v1, kind: Node, metadata: {name: a}}", ""),
            ("{apiVersion: example.com/v1, kind: Anything}", "default"),
        ] {
            let found = Resources::from_text("a.yaml", text);
            assert_eq!(found.list[0].metadata("namespace"), expected, "{text}");
        }
    }

    /// docs/spec/cli.md §8.6, step 4, and case 50.
    #[test]
    fn nulls_of_some_keys_are_empty_maps() {
        let found = Resources::from_text(
            "a.yaml",
            "kind: A\nmetadata:\n  labels:\nspec:\nlist:\n- data:\n",
        );
        let tree = &found.list[0].tree;
        let labels = tree.get("metadata").unwrap().get("labels").unwrap();
        assert_eq!(labels.as_map().unwrap().len(), 0);
        assert!(tree.get("spec").unwrap().is_null());
        let item = &tree.get("list").unwrap().as_list().unwrap()[0];
        assert!(item.get("data").unwrap().as_map().is_some());
    }

    #[test]
    fn places_of_values_that_stand_elsewhere_are_those_of_their_keys() {
        let text = "a: &x one\nkind: A\nmetadata: {name: b}\nspec:\n  c: *x\n  d: |\n    two\n";
        let found = Resources::from_text("a.yaml", text);
        for (path, line, column, end_column) in [
            ("/spec/c", 5, 3, Some(4)),
            ("/spec/d", 6, 3, None),
            ("/metadata/namespace", 3, 1, Some(9)),
        ] {
            let place = found.place(found.location_of_path(&found.list[0], path));
            let found = (place.line, place.column, place.end_column);
            assert_eq!(found, (line, column, end_column), "{path}");
        }
    }

    #[test]
    fn a_bad_document_stops_no_other() {
        let found = Resources::from_text(
            "a.yaml",
            "kind: A\n---\nkind: [\n---\nname: x\n---\n- 1\n---\nkind: 5\n---\n---\nkind: B\n",
        );
        let kinds: Vec<_> = found.list.iter().map(|one| one.text("kind")).collect();
        assert_eq!(kinds, ["A", "B"]);
        let messages: Vec<_> = found
            .problems
            .iter()
            .map(|problem| match problem {
                Problem::InText(diagnostic) => (
                    diagnostic.code,
                    found.sources.line_column(diagnostic.location).line,
                ),
                Problem::Unreadable(_) => ("unreadable", 0),
            })
            .collect();
        assert_eq!(
            messages,
            [
                ("yaml", 3),
                ("no-kind", 5),
                ("not-an-object", 7),
                ("no-kind", 9)
            ]
        );
    }

    #[test]
    fn json_is_read_whatever_its_white_space_and_escapes() {
        for text in [
            "{\n\t\"kind\": \"A\",\n\t\"spec\": {\n\t\t\"n\": 1\n\t}\n}",
            r#"{"kind": "A", "icon": "\ud83c\udf88", "url": "a\/b", "spec": {"n": 1}}"#,
            "{\"kind\":\"A\",\"spec\":{\"n\":1}}\n",
        ] {
            let found = Resources::from_text("a.json", text);
            assert_eq!(found.problems, [], "{text}");
            let number = found.list[0].tree.get("spec").unwrap().get("n").unwrap();
            assert_eq!(number.value, TreeValue::Int(1), "{text}");
        }
        let stream = Resources::from_text("<stdin>", "{\"kind\":\"A\"}\n{\"kind\":\"B\"}\n");
        assert_eq!(stream.list.len(), 2);
        let bad = Resources::from_text("a.json", "{\"kind\": \"A\",, }");
        assert_eq!((bad.list.len(), bad.problems.len()), (0, 1));
    }

    #[test]
    fn paths_lead_to_places() {
        let text = "kind: A\nmetadata:\n  labels:\n    app: x\n    app/name: y\nspec:\n  containers:\n  - image: z\n";
        let found = Resources::from_text("a.yaml", text);
        for (path, line, column, end_column) in [
            ("", 1, 1, None),
            ("/metadata/labels/app/name/", 5, 5, Some(16)),
            ("/metadata/labels/app/", 4, 5, Some(11)),
            ("/metadata/labels/team/", 3, 3, None),
            ("/spec/containers/0/image/", 8, 5, Some(13)),
            ("/spec/containers/7/image/", 7, 3, None),
            ("/status/", 1, 1, None),
        ] {
            let place = found.place(found.location_of_path(&found.list[0], path));
            let expected = Place {
                file: "a.yaml".into(),
                line,
                column,
                end_column,
            };
            assert_eq!(place, expected, "{path}");
        }
    }
}
