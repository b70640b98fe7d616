//! Files of kind Context: objects and images that CEL expressions can read
//! (docs/spec/cli.md §7.8).

use std::collections::BTreeMap;
use std::path::Path;

use kpvm::host::ExternalQuery;
use kpvm_compiler::source::SourceId;
use kpvm_semantics::resource_kind;
use kpvm_syntax::tree::{Span, Tree};
use kpvm_syntax::yaml::DuplicateKeys;
use serde_json::{Map, Value, json};

use crate::strict::{Decoder, read_documents};

/// Known outside data.
#[derive(Debug, Clone, Default)]
pub struct CelContext {
    objects: Vec<Object>,
    /// By name as written.
    images: BTreeMap<String, Value>,
}

#[derive(Debug, Clone)]
struct Object {
    api_version: String,
    /// Plural name of its kind.
    resource: String,
    value: Value,
}

const FIELDS: &[&str] = &["apiVersion", "kind", "metadata", "spec"];

impl CelContext {
    /// Reads a file. Its errors are reported where the file is named. Only its first
    /// document counts.
    pub fn read_file(
        file: &Path,
        named: Span,
        plurals: &BTreeMap<(String, String), String>,
        decoder: &mut Decoder,
    ) -> Self {
        let documents = read_documents(file, DuplicateKeys::Refuse, named, decoder);
        // Locations in another file are not useful here.
        let mut inner = Decoder::new("context-file", SourceId::default());
        let context = match documents.first() {
            Some(document) => Self::read(document, plurals, &mut inner),
            None => Self::default(),
        };
        for problem in inner.diagnostics {
            let message = format!("{}: {}", file.display(), problem.message);
            decoder.refuse(named, message, problem.hint);
        }
        context
    }

    /// Reads a document; `plurals` are the names of resources by group and kind from
    /// CustomResourceDefinitions. Unknown kinds are rejected.
    pub fn read(
        tree: &Tree,
        plurals: &BTreeMap<(String, String), String>,
        decoder: &mut Decoder,
    ) -> Self {
        let mut context = Self::default();
        let fields = decoder.fields(tree, FIELDS);
        let Some(spec) = fields.get("spec") else {
            return context;
        };
        let spec = decoder.fields(spec, &["resources", "images"]);
        for item in decoder.items(spec.get("resources")) {
            let field = |key: &str| item.get(key).and_then(Tree::as_str).unwrap_or_default();
            let (api_version, kind) = (field("apiVersion"), field("kind"));
            let group = api_version.split_once('/').map_or("", |(group, _)| group);
            let defined = plurals.get(&(group.to_owned(), kind.to_owned())).cloned();
            let built_in = || resource_kind::find(group, kind).map(|known| known.resource());
            match defined.or_else(built_in) {
                Some(resource) => context.objects.push(Object {
                    api_version: api_version.to_owned(),
                    resource,
                    value: item.to_json(),
                }),
                None => {
                    let message = format!("the kind {api_version} {kind} is not known");
                    let hint = "give its CustomResourceDefinition with the suite's clusterResources, or with --crd-paths";
                    decoder.refuse(item.span, message, Some(hint.to_owned()));
                }
            }
        }
        for item in decoder.items(spec.get("images")) {
            let name = decoder.text(item.get("image"));
            if context
                .images
                .insert(name.clone(), item.to_json())
                .is_some()
            {
                decoder.refuse(
                    item.span,
                    format!("a second entry for the image {name}"),
                    None,
                );
            }
        }
        context
    }

    /// Answer to a query about objects or images; `None` for other queries.
    pub fn answer(&self, query: &ExternalQuery<'_>) -> Option<Result<Value, String>> {
        match *query {
            ExternalQuery::ResourceGet {
                api_version,
                resource,
                namespace,
                name,
            } => {
                let mut all = self.select(api_version, resource, namespace);
                let found = all.find(|object| metadata(object, "name") == name);
                Some(Ok(found.cloned().unwrap_or_default()))
            }
            ExternalQuery::ResourceList {
                api_version,
                resource,
                namespace,
            } => {
                let is_of = |object: &&Object| object.is_of(api_version, resource);
                if !self.objects.iter().any(|object| is_of(&object)) {
                    let group = api_version.split_once('/').map(|(group, _)| group);
                    let group = group.map_or_else(String::new, |group| format!(".{group}"));
                    return Some(Err(format!("{resource}{group} resource not found")));
                }
                let items: Vec<&Value> = self.select(api_version, resource, namespace).collect();
                Some(Ok(json!({ "items": items })))
            }
            ExternalQuery::ImageData { reference } => {
                let found = self.images.get(reference).cloned();
                Some(
                    found.ok_or_else(|| {
                        format!("image data for {reference} not found in the context")
                    }),
                )
            }
            _ => None,
        }
    }

    fn select<'c>(
        &'c self,
        api_version: &'c str,
        resource: &'c str,
        namespace: &'c str,
    ) -> impl Iterator<Item = &'c Value> {
        let all = self.objects.iter();
        all.filter(move |object| object.is_of(api_version, resource))
            .map(|object| &object.value)
            .filter(move |value| metadata(value, "namespace") == namespace)
    }
}

impl Object {
    fn is_of(&self, api_version: &str, resource: &str) -> bool {
        self.api_version == api_version && self.resource == resource
    }
}

fn metadata<'v>(object: &'v Value, key: &str) -> &'v str {
    let metadata = object.get("metadata").and_then(Value::as_object);
    let value = metadata.and_then(|metadata: &Map<String, Value>| metadata.get(key));
    value.and_then(Value::as_str).unwrap_or_default()
}
