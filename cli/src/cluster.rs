//! The objects that a stand-in for an API server has.
//!
//! Objects and CustomResourceDefinitions go in; answers to the questions of rules come out.

use std::collections::BTreeMap;
use std::path::Path;

use kpvm::host::ExternalQuery;
use kpvm_compiler::source::SourceId;
use kpvm_semantics::resource_kind;
use kpvm_syntax::tree::Tree;
use kpvm_syntax::yaml::DuplicateKeys;
use serde_json::{Value, json};

use crate::strict::{Decoder, Text, read_documents};
use crate::values::Labels;

/// Objects of an API server.
#[derive(Debug, Clone, Default)]
pub struct Cluster {
    objects: Vec<Value>,
    /// Plural name by group and kind, from CustomResourceDefinitions.
    plurals: BTreeMap<(String, String), String>,
}

fn metadata<'v>(object: &'v Value, key: &str) -> &'v str {
    let value = object
        .get("metadata")
        .and_then(|metadata| metadata.get(key));
    value.and_then(Value::as_str).unwrap_or_default()
}

fn field<'v>(object: &'v Value, key: &str) -> &'v str {
    object.get(key).and_then(Value::as_str).unwrap_or_default()
}

impl Cluster {
    /// Reads files of kind ClusterResource (docs/spec/cli.md §2).
    pub fn read(files: &[Text], directory: &Path, decoder: &mut Decoder) -> Self {
        let mut cluster = Self::default();
        for file in files {
            let path = directory.join(&file.text);
            let beside = path.parent().unwrap_or(directory);
            let strict = DuplicateKeys::Refuse;
            for document in read_documents(&path, strict, file.span, decoder) {
                cluster.read_document(&document, file, beside, decoder);
            }
        }
        cluster
    }

    fn read_document(
        &mut self,
        document: &Tree,
        file: &Text,
        directory: &Path,
        decoder: &mut Decoder,
    ) {
        // Locations in another file are not useful here: errors are reported where it is
        // named.
        let mut inner = Decoder::new("cluster-resource", SourceId::default());
        let fields = inner.fields(document, &["apiVersion", "kind", "metadata", "spec"]);
        let spec = fields
            .get("spec")
            .map(|spec| inner.fields(spec, &["crds", "resources"]));
        let part = |name: &str| spec.as_ref().and_then(|spec| spec.get(name));
        let definitions = inner.plain_texts(part("crds"));
        let objects = inner.items(part("resources")).iter().map(Tree::to_json);
        self.objects.extend(objects);
        for problem in inner.diagnostics {
            let message = format!("{}: {}", file.text, problem.message);
            decoder.refuse(file.span, message, problem.hint);
        }
        for definition in definitions {
            let path = directory.join(definition);
            let strict = DuplicateKeys::Refuse;
            for definition in read_documents(&path, strict, file.span, decoder) {
                self.define(&definition.to_json());
            }
        }
    }

    /// Adds an object.
    pub fn add(&mut self, object: Value) {
        self.objects.push(object);
    }

    /// Adds a CustomResourceDefinition, which states the plural of a kind.
    pub fn define(&mut self, definition: &Value) {
        let name = |pointer: &str| {
            let name = definition.pointer(pointer).and_then(Value::as_str);
            name.unwrap_or_default().to_owned()
        };
        let key = (name("/spec/group"), name("/spec/names/kind"));
        self.plurals.insert(key, name("/spec/names/plural"));
    }

    /// Names of resources by group and kind, from CustomResourceDefinitions.
    pub fn plurals(&self) -> BTreeMap<(String, String), String> {
        self.plurals.clone()
    }

    /// Labels of its namespaces (docs/spec/cli.md §7.3).
    pub fn namespace_labels(&self) -> BTreeMap<String, Labels> {
        let namespaces = self.select("", "v1", "namespaces", None);
        let labels = |object: &Value| -> Labels {
            let labels = object
                .pointer("/metadata/labels")
                .and_then(Value::as_object);
            let text = |value: &Value| value.as_str().map(str::to_owned);
            let pairs = labels.into_iter().flatten();
            pairs
                .filter_map(|(key, value)| Some((key.clone(), text(value)?)))
                .collect()
        };
        namespaces
            .map(|object| (metadata(object, "name").to_owned(), labels(object)))
            .collect()
    }

    /// Whether an object belongs to a resource, identified by the plural of its kind.
    fn is_of(&self, object: &Value, group: &str, version: &str, plural: &str) -> bool {
        let (api_version, kind) = (field(object, "apiVersion"), field(object, "kind"));
        let own = api_version.split_once('/').unwrap_or(("", api_version));
        if own != (group, version) {
            return false;
        }
        let defined = self.plurals.get(&(group.to_owned(), kind.to_owned()));
        match defined {
            Some(defined) => defined == plural,
            None => resource_kind::plural(kind) == plural,
        }
    }

    /// Objects of a resource, in one namespace or in all.
    fn select<'c>(
        &'c self,
        group: &'c str,
        version: &'c str,
        plural: &'c str,
        namespace: Option<&'c str>,
    ) -> impl Iterator<Item = &'c Value> {
        let is_here = move |object: &&Value| {
            namespace.is_none_or(|namespace| metadata(object, "namespace") == namespace)
                && self.is_of(object, group, version, plural)
        };
        self.objects.iter().filter(is_here)
    }

    /// Whether there is an object of a resource, whatever its group.
    pub(crate) fn has_resource(&self, plural: &str) -> bool {
        let mut objects = self.objects.iter();
        objects.any(|object| resource_kind::plural(field(object, "kind")) == plural)
    }

    /// The object with a name.
    pub(crate) fn one(
        &self,
        group: &str,
        version: &str,
        plural: &str,
        namespace: Option<&str>,
        name: &str,
    ) -> Result<Value, String> {
        let mut all = self.select(group, version, plural, namespace);
        let found = all.find(|object| metadata(object, "name") == name);
        let separator = if group.is_empty() { "" } else { "." };
        found
            .cloned()
            .ok_or_else(|| format!("{plural}{separator}{group} \"{name}\" not found"))
    }

    /// Objects of a resource, in one namespace or in all.
    pub fn list(
        &self,
        group: &str,
        version: &str,
        plural: &str,
        namespace: Option<&str>,
    ) -> Vec<Value> {
        let found = self.select(group, version, plural, namespace);
        found.cloned().collect()
    }

    /// Answer to a CEL query for objects: null for a missing one.
    pub fn answer(&self, query: &ExternalQuery<'_>) -> Option<Result<Value, String>> {
        let parts = |api_version: &'_ str| -> (String, String) {
            let (group, version) = api_version.split_once('/').unwrap_or(("", api_version));
            (group.to_owned(), version.to_owned())
        };
        match *query {
            ExternalQuery::ResourceGet {
                api_version,
                resource,
                namespace,
                name,
            } => {
                let (group, version) = parts(api_version);
                let found = self.one(&group, &version, resource, Some(namespace), name);
                Some(Ok(found.unwrap_or_default()))
            }
            ExternalQuery::ResourceList {
                api_version,
                resource,
                namespace,
            } => {
                let (group, version) = parts(api_version);
                let namespace = Some(namespace).filter(|namespace| !namespace.is_empty());
                let items = self.list(&group, &version, resource, namespace);
                Some(Ok(json!({ "items": items })))
            }
            _ => None,
        }
    }

    /// Answer to a GET: an object, or a list of objects. The errors are those of Kyverno's
    /// stand-in (`rawAbsPathForFakeClient` in `pkg/clients/dclient/client.go`).
    ///
    /// # Errors
    /// The reason why there is none.
    pub fn get(&self, path: &str) -> Result<Value, String> {
        let path = path.strip_prefix('/').unwrap_or(path);
        let unparsed = || format!("failed to parse path: {path}");
        let parts: Vec<&str> = path.trim_end_matches('/').split('/').collect();
        let (group, version, rest) = match parts.as_slice() {
            ["api", version, rest @ ..] => ("", *version, rest),
            ["apis", group, version, rest @ ..] => (*group, *version, rest),
            _ => return Err(unparsed()),
        };
        let (namespace, rest) = match rest {
            // Kyverno cannot parse the path of a namespace alone; see docs/differences.md.
            ["namespaces", namespace, rest @ ..] if !rest.is_empty() => (Some(*namespace), rest),
            rest => (None, rest),
        };
        match rest {
            [plural] if !plural.contains('?') => {
                let items: Vec<&Value> = self.select(group, version, plural, namespace).collect();
                Ok(
                    json!({ "apiVersion": version_of(group, version), "kind": "List", "items": items }),
                )
            }
            // Subresources are not told apart.
            [plural, name, ..] => {
                let missing = |error| {
                    let api_version = version_of(group, version);
                    let kind = self.kind_of(group, version, plural);
                    format!("failed to get resource {api_version}/{kind}/{name}: {error}")
                };
                self.one(group, version, plural, namespace, name)
                    .map_err(missing)
            }
            _ => Err(unparsed()),
        }
    }

    /// The kind of a resource: that of its objects, or one derived from its name as Kyverno
    /// derives it (`inferKindFromResourceName` in `pkg/clients/dclient/fake.go`).
    fn kind_of(&self, group: &str, version: &str, plural: &str) -> String {
        if let Some(object) = self.select(group, version, plural, None).next() {
            return field(object, "kind").to_owned();
        }
        let singular = match plural.strip_suffix("ies") {
            Some(stem) => format!("{stem}y"),
            None => {
                let stem = plural.strip_suffix("es").or(plural.strip_suffix('s'));
                stem.unwrap_or(plural).to_owned()
            }
        };
        let mut letters = singular.chars();
        match letters.next() {
            Some(first) => first.to_ascii_uppercase().to_string() + letters.as_str(),
            None => singular,
        }
    }
}

fn version_of(group: &str, version: &str) -> String {
    match group {
        "" => version.to_owned(),
        group => format!("{group}/{version}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Of `pkg/clients/dclient/client.go` and `fake.go`.
    #[test]
    fn errors_of_calls() {
        let mut cluster = Cluster::default();
        cluster.add(json!({"apiVersion": "v1", "kind": "ConfigMap",
            "metadata": {"name": "there", "namespace": "ns"}}));
        let rows = [
            (
                "/api/v1/namespaces/ns/secrets/x",
                "failed to get resource v1/Secret/x: secrets \"x\" not found",
            ),
            (
                "/api/v1/namespaces/ns/configmaps/x",
                "failed to get resource v1/ConfigMap/x: configmaps \"x\" not found",
            ),
            (
                "/apis/apps/v1/namespaces/ns/deployments/x",
                "failed to get resource apps/v1/Deployment/x: deployments.apps \"x\" not found",
            ),
            ("/api/v1", "failed to parse path: api/v1"),
            ("/healthz", "failed to parse path: healthz"),
        ];
        for (path, error) in rows {
            assert_eq!(cluster.get(path), Err(error.to_owned()), "{path}");
        }
        let there = cluster.get("/api/v1/namespaces/ns/configmaps/there/status");
        assert!(there.is_ok(), "{there:?}");
    }
}
