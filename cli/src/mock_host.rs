//! Host that answers from the mocks of a suite, as `kyverno test` does.
//!
//! Built from `apiCallResponses`, `clusterResources` and `globalContextEntries` of a Test
//! (docs/spec/cli.md §7.5 to §7.7). The network is never used; time and random numbers come
//! from the process.
//!
//! A mocked call is answered when a rule first uses it. Kyverno answers it while the
//! context loads, so a failing mock also fails rules that never use it, and rules whose
//! entry has a default; no known suite depends on that.

use std::collections::BTreeMap;
use std::path::{Component, Path};

use kpvm::host::{ExternalKind, ExternalQuery, Host, Timestamp};
use kpvm_syntax::tree::Tree;
use kpvm_syntax::yaml::DuplicateKeys;
use serde_json::{Map, Value, json};

use crate::cel_context::CelContext;
use crate::cluster::Cluster;
use crate::expression::query;
use crate::fake_client::{self, Parameters};
use crate::host::ProcessHost;
use crate::strict::{Decoder, Text, read_documents};

/// Answers from mocks.
#[derive(Debug, Clone, Default)]
pub struct MockHost {
    /// By `METHOD:url`, or only `url` if a mock names no method.
    calls: BTreeMap<String, Response>,
    cluster: Option<Cluster>,
    /// Whether ConfigMaps are read from the cluster.
    has_config_maps: bool,
    global_entries: BTreeMap<String, Value>,
    context: CelContext,
    /// Objects searched for parameters.
    client: Cluster,
    /// Objects that bindings of ValidatingAdmissionPolicies may refer to.
    params: Parameters,
    process: ProcessHost,
}

#[derive(Debug, Clone)]
struct Response {
    status: i64,
    body: Value,
}

impl MockHost {
    /// Reads `apiCallResponses` (docs/spec/cli.md §7.6).
    pub fn read_calls(&mut self, tree: Option<&Tree>, decoder: &mut Decoder) {
        for item in decoder.items(tree) {
            if let Some((key, response)) = read_response(item, decoder)
                && self.calls.insert(key.clone(), response).is_some()
            {
                decoder.refuse(item.span, format!("a second response for {key}"), None);
            }
        }
    }

    /// Reads `globalContextEntries` and their files below the directory of the suite
    /// (docs/spec/cli.md §7.7).
    pub fn read_global_entries(
        &mut self,
        tree: Option<&Tree>,
        directory: &Path,
        decoder: &mut Decoder,
    ) {
        for item in decoder.items(tree) {
            let Some((name, value)) = read_global_entry(item, directory, decoder) else {
                continue;
            };
            if name.text.trim().is_empty() {
                decoder.refuse(item.span, "expected the entry to have a name", None);
            } else if self
                .global_entries
                .insert(name.text.clone(), value)
                .is_some()
            {
                let message = format!("a second entry of the name `{}`", name.text);
                decoder.refuse(name.span, message, None);
            }
        }
    }

    /// Sets the API server. `kyverno test` reads ConfigMaps from it, `kyverno apply` does
    /// not (docs/spec/cli.md §7.5).
    pub fn set_cluster(&mut self, cluster: Cluster, has_config_maps: bool) {
        self.cluster = Some(cluster);
        self.has_config_maps = has_config_maps;
    }

    /// Sets the data of CEL expressions.
    pub fn set_context(&mut self, context: CelContext) {
        self.context = context;
    }

    /// Sets the objects that bindings may refer to.
    pub fn set_params(&mut self, params: Parameters) {
        self.params = params;
    }

    /// Sets the objects that may be parameters, in addition to those of the cluster.
    pub fn set_client(&mut self, objects: impl Iterator<Item = Value>) {
        self.client = self.cluster.clone().unwrap_or_default();
        objects.for_each(|object| self.client.add(object));
    }

    /// The API server, if there is one.
    pub fn cluster(&self) -> Option<&Cluster> {
        self.cluster.as_ref()
    }

    /// Answer to a call; `None` means that the entry counts as absent.
    fn call(&self, method: &str, url: &str, is_service: bool) -> Result<Option<Value>, String> {
        let keyed = self.calls.get(&format!("{method}:{url}"));
        if let Some(response) = keyed.or_else(|| self.calls.get(url)) {
            return match response.status {
                200..=299 => Ok(Some(response.body.clone())),
                status => Err(format!("HTTP {status} from apiCall mock")),
            };
        }
        match &self.cluster {
            None => Ok(None),
            Some(_) if is_service => Err(format!("no mock for {method} {url}")),
            Some(cluster) if method == "GET" => cluster.get(url).map(Some),
            Some(_) => Err(format!("the mocked cluster does not answer {method} {url}")),
        }
    }

    /// An HTTP request of CEL: a mock with the method takes precedence over one without
    /// (docs/spec/cli.md §7.6); the network is never used.
    fn mocked_http(&self, method: &str, url: &str) -> Result<Value, String> {
        let keyed = self.calls.get(&format!("{method}:{url}"));
        match keyed.or_else(|| self.calls.get(url)) {
            Some(Response { status, body }) => Ok(json!({ "body": body, "statusCode": status })),
            None => Err(format!("no mock for {method} {url}")),
        }
    }

    /// Null if there is no such entry (docs/spec/cel.md §6.6).
    fn entry_or_null(&self, name: &str, projection: &str) -> Result<Value, String> {
        let entry = self.global_entries.get(name);
        match (entry, projection) {
            (None, _) => Ok(Value::Null),
            (Some(value), "") => Ok(value.clone()),
            (Some(value), projection) => value.get(projection).cloned().ok_or_else(|| {
                format!("projection \"{projection}\" not found in global context entry \"{name}\"")
            }),
        }
    }

    fn entry(&self, name: &str) -> Result<Value, String> {
        let (entry, projection) = match name.split_once('.') {
            Some((entry, projection)) => (entry, Some(projection)),
            None => (name, None),
        };
        let value = self.global_entries.get(entry);
        let value = value.ok_or_else(|| format!("failed to fetch entry key={entry}"))?;
        let Some(projection) = projection else {
            return Ok(value.clone());
        };
        let member = value.get(projection).cloned();
        member.ok_or_else(|| format!("global context mock: projection \"{projection}\" not found"))
    }
}

impl Host for MockHost {
    fn now(&mut self) -> Option<Timestamp> {
        self.process.now()
    }

    fn random(&mut self) -> Option<u64> {
        self.process.random()
    }

    fn provides(&self, kind: ExternalKind) -> bool {
        match kind {
            ExternalKind::ConfigMap => self.cluster.is_some() && self.has_config_maps,
            ExternalKind::ApiCall => self.cluster.is_some() || !self.calls.is_empty(),
            ExternalKind::GlobalReference => !self.global_entries.is_empty(),
            ExternalKind::ImageRegistry => false,
        }
    }

    fn fetch(&mut self, query: &ExternalQuery<'_>) -> Result<Option<Value>, String> {
        match *query {
            ExternalQuery::ConfigMap { namespace, name } => {
                let Some(cluster) = self.cluster.as_ref().filter(|_| self.has_config_maps) else {
                    return Ok(None);
                };
                cluster
                    .one("", "v1", "configmaps", Some(namespace), name)
                    .map(Some)
            }
            ExternalQuery::ApiCall {
                url_path,
                method,
                service_url,
                ..
            } => self.call(
                method,
                service_url.unwrap_or(url_path),
                service_url.is_some(),
            ),
            ExternalQuery::GlobalReference { name } => self.entry(name).map(Some),
            ExternalQuery::GlobalContext { name, projection } => {
                self.entry_or_null(name, projection).map(Some)
            }
            ExternalQuery::Http { method, url, .. } => self.mocked_http(method, url).map(Some),
            ExternalQuery::ResourceGet { .. } | ExternalQuery::ResourceList { .. } => {
                let of_cluster = self.cluster.as_ref();
                let answer = of_cluster.and_then(|cluster| cluster.answer(query));
                answer.or_else(|| self.context.answer(query)).transpose()
            }
            ExternalQuery::ImageData { .. } => self.context.answer(query).transpose(),
            ExternalQuery::BoundParameters { reference } => {
                Ok(Some(Value::Array(vec![self.params.bound(reference)])))
            }
            ExternalQuery::KindScope { .. }
            | ExternalQuery::Object { .. }
            | ExternalQuery::Objects { .. } => fake_client::answer(&self.client, query),
            ExternalQuery::ImageRegistry { .. }
            | ExternalQuery::AccessReview { .. }
            | ExternalQuery::HostAddresses { .. } => Ok(None),
        }
    }
}

/// One of `apiCallResponses`, checked as in docs/spec/cli.md §7.6.
fn read_response(tree: &Tree, decoder: &mut Decoder) -> Option<(String, Response)> {
    let fields = decoder.fields(tree, &["url", "urlPath", "method", "response"]);
    let (url, path) = (
        decoder.text(fields.get("url")),
        decoder.text(fields.get("urlPath")),
    );
    let mut wrong = |tree: &Tree, what: &str| {
        decoder.refuse(tree.span, format!("apiCallResponses: {what}"), None);
    };
    if url.is_empty() == path.is_empty() {
        wrong(tree, "expected one of url and urlPath");
        return None;
    }
    let host = url.split_once("://").filter(|(scheme, host)| {
        ["http", "https"].contains(scheme) && !host.is_empty() && !host.starts_with('/')
    });
    if (path.is_empty() && host.is_none()) || (url.is_empty() && !path.starts_with('/')) {
        let message = format!("expected an http(s) URL or a path from the root, found {url}{path}");
        wrong(tree, &message);
        return None;
    }
    let method = decoder.text(fields.get("method")).trim().to_uppercase();
    let key = match method.as_str() {
        "" => format!("{url}{path}"),
        "GET" | "POST" => format!("{method}:{url}{path}"),
        _ => {
            let message =
                format!("apiCallResponses: expected the method GET or POST, found {method}");
            decoder.refuse(tree.span, message, None);
            return None;
        }
    };
    let Some(response) = fields.get("response") else {
        decoder.refuse(tree.span, "apiCallResponses: expected a response", None);
        return None;
    };
    let response = decoder.fields(response, &["statusCode", "body"]);
    // Without a status the call succeeded.
    let status = match decoder.integer(response.get("statusCode")) {
        0 => 200,
        status @ 100..=599 => status,
        status => {
            let message =
                format!("apiCallResponses: expected a status code from 100 to 599, found {status}");
            decoder.refuse(tree.span, message, None);
            return None;
        }
    };
    match response.get("body").map(Tree::to_json) {
        Some(body @ Value::Object(_)) => Some((key, Response { status, body })),
        _ => {
            let message = "apiCallResponses: expected the response to have a body that is a map";
            decoder.refuse(tree.span, message, None);
            None
        }
    }
}

/// Name and value of one of `globalContextEntries` (docs/spec/cli.md §7.7).
fn read_global_entry(
    tree: &Tree,
    directory: &Path,
    decoder: &mut Decoder,
) -> Option<(Text, Value)> {
    let sources = ["data", "resources", "resourceFiles"];
    let known = &[
        "name",
        "data",
        "resources",
        "resourceFiles",
        "fieldPath",
        "projections",
    ];
    let fields = decoder.fields(tree, known);
    let mut given = sources
        .into_iter()
        .filter_map(|source| Some((source, fields.get(source)?)));
    let (Some((source, value)), None) = (given.next(), given.next()) else {
        let message = "expected one of data, resources and resourceFiles";
        decoder.refuse(tree.span, message, None);
        return None;
    };
    let root = match source {
        "resourceFiles" => {
            let mut objects = Vec::new();
            for file in decoder.texts(Some(value)) {
                let is_inside = Path::new(&file.text)
                    .components()
                    .all(|part| matches!(part, Component::Normal(_) | Component::CurDir));
                if is_inside {
                    let lax = DuplicateKeys::LastWins;
                    let documents =
                        read_documents(&directory.join(&file.text), lax, file.span, decoder);
                    objects.extend(documents.iter().map(Tree::to_json));
                } else {
                    let message = format!("the file {} is outside of the suite", file.text);
                    decoder.refuse(file.span, message, None);
                }
            }
            Value::Array(objects)
        }
        _ => value.to_json(),
    };
    let name = decoder.spanned(fields.get("name"));
    let projections = decoder.items(fields.get("projections"));
    let value = if projections.is_empty() {
        match decoder.text(fields.get("fieldPath")) {
            path if path.is_empty() => root,
            path => project(&path, &root, tree, decoder),
        }
    } else {
        let mut members = Map::new();
        for projection in projections {
            let fields = decoder.fields(projection, &["name", "path"]);
            let path = decoder.text(fields.get("path"));
            let value = project(&path, &root, projection, decoder);
            members.insert(decoder.text(fields.get("name")), value);
        }
        Value::Object(members)
    };
    Some((name, value))
}

/// Result of an expression on a value; errors are reported at a location.
fn project(path: &str, root: &Value, place: &Tree, decoder: &mut Decoder) -> Value {
    query(path, root).unwrap_or_else(|error| {
        decoder.refuse(place.span, error, None);
        Value::Null
    })
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::*;
    use kpvm_compiler::source::SourceId;

    fn host(test: Value) -> Result<MockHost, String> {
        let (mut host, test) = (MockHost::default(), Tree::from(&test));
        let mut decoder = Decoder::new("test", SourceId(0));
        host.read_calls(test.get("apiCallResponses"), &mut decoder);
        let entries = test.get("globalContextEntries");
        host.read_global_entries(entries, Path::new("."), &mut decoder);
        match decoder.diagnostics.into_iter().next() {
            Some(diagnostic) => Err(diagnostic.message),
            None => Ok(host),
        }
    }

    fn cluster(objects: Value) -> MockHost {
        let mut cluster = Cluster::default();
        for object in objects.as_array().unwrap() {
            cluster.add(object.clone());
        }
        let definition =
            json!({"spec": {"group": "shop.io", "names": {"kind": "Goose", "plural": "geese"}}});
        cluster.define(&definition);
        let mut host = MockHost::default();
        host.set_cluster(cluster, true);
        host
    }

    fn objects() -> Value {
        let object = |api: &str, kind: &str, namespace: &str, name: &str| {
            json!({"apiVersion": api, "kind": kind,
                   "metadata": {"namespace": namespace, "name": name}})
        };
        json!([
            object("v1", "ConfigMap", "a", "one"),
            object("v1", "ConfigMap", "b", "one"),
            object("networking.k8s.io/v1", "NetworkPolicy", "a", "two"),
            object("networking.k8s.io/v1", "IngressClass", "", "three"),
            object("shop.io/v1", "Goose", "", "four"),
            {"apiVersion": "v1", "kind": "Namespace",
             "metadata": {"name": "a", "labels": {"team": "x"}}},
        ])
    }

    /// docs/spec/cli.md §7.6: the method with the url goes before the url.
    #[test]
    fn calls_are_looked_up_with_their_method_first() {
        let host = host(json!({"apiCallResponses": [
            {"url": "http://h/x", "response": {"body": {"by": "url"}}},
            {"url": "http://h/x", "method": " post", "response": {"body": {"by": "post"}}},
            {"urlPath": "/api/v1/pods", "response": {"statusCode": 404, "body": {}}},
        ]}))
        .unwrap();
        let ask = |method, url| host.call(method, url, true);
        assert_eq!(ask("GET", "http://h/x"), Ok(Some(json!({"by": "url"}))));
        assert_eq!(ask("POST", "http://h/x"), Ok(Some(json!({"by": "post"}))));
        assert!(ask("GET", "/api/v1/pods").unwrap_err().contains("HTTP 404"));
        // §7.5: without a cluster the entry counts as absent.
        assert_eq!(ask("GET", "http://h/y"), Ok(None));
        assert!(host.provides(ExternalKind::ApiCall));
        assert!(!host.provides(ExternalKind::ConfigMap));
    }

    /// docs/spec/cli.md §7.6 and 7.7.
    #[test]
    fn mocks_that_are_wrong_are_refused() {
        let response = json!({"body": {}});
        let call = |call: Value| json!({"apiCallResponses": [call]});
        let entry = |entry: Value| json!({"globalContextEntries": [entry]});
        for test in [
            call(json!({"response": response})),
            call(json!({"url": "http://h", "urlPath": "/p", "response": response})),
            call(json!({"url": "h/p", "response": response})),
            call(json!({"urlPath": "p", "response": response})),
            call(json!({"urlPath": "/p", "method": "PUT", "response": response})),
            call(json!({"urlPath": "/p", "response": {"body": []}})),
            call(json!({"urlPath": "/p", "response": {"body": {}, "statusCode": 99}})),
            json!({"apiCallResponses": [{"urlPath": "/p", "response": response},
                                        {"urlPath": "/p", "response": response}]}),
            entry(json!({"name": "e"})),
            entry(json!({"name": " ", "data": {}})),
            entry(json!({"name": "e", "data": {}, "resources": []})),
            entry(json!({"name": "e", "resourceFiles": ["../outside.yaml"]})),
        ] {
            assert!(host(test.clone()).is_err(), "{test}");
        }
    }

    /// docs/spec/cli.md §7.7.
    #[test]
    fn global_entries_take_a_field_or_have_projections() {
        let host = host(json!({"globalContextEntries": [
            {"name": "whole", "resources": [{"n": 1}, {"n": 2}]},
            {"name": "part", "data": {"a": {"b": "x"}}, "fieldPath": "a.b"},
            {"name": "many", "data": {"a": {"b": "x"}}, "projections": [
                {"name": "keys", "path": "keys(a)"}, {"name": "b", "path": "a.b"}]},
        ]}))
        .unwrap();
        for (name, value) in [
            ("whole", json!([{"n": 1}, {"n": 2}])),
            ("part", json!("x")),
            ("many", json!({"keys": ["b"], "b": "x"})),
            ("many.b", json!("x")),
        ] {
            assert_eq!(host.entry(name), Ok(value), "{name}");
        }
        for (name, error) in [
            ("none", "failed to fetch entry key=none"),
            ("many.c", "global context mock: projection \"c\" not found"),
        ] {
            assert_eq!(host.entry(name), Err(error.to_owned()));
        }
    }

    /// The paths of the Kubernetes API: an object, or a list of one or all namespaces.
    #[test]
    fn a_cluster_answers_paths() {
        let host = cluster(objects());
        let get = |path: &str| host.call("GET", path, false);
        for (path, name) in [
            ("/api/v1/namespaces/b/configmaps/one", "one"),
            (
                "/apis/networking.k8s.io/v1/namespaces/a/networkpolicies/two",
                "two",
            ),
            ("/apis/networking.k8s.io/v1/ingressclasses/three", "three"),
            ("/apis/shop.io/v1/geese/four", "four"),
            ("/api/v1/namespaces/a", "a"),
        ] {
            let object = get(path).unwrap().unwrap();
            assert_eq!(object["metadata"]["name"], *name, "{path}");
        }
        for (path, count) in [
            ("/api/v1/configmaps", 2),
            ("/api/v1/namespaces/a/configmaps", 1),
            ("/api/v1/namespaces", 1),
            ("/api/v1/pods", 0),
        ] {
            let list = get(path).unwrap().unwrap();
            assert_eq!(list["items"].as_array().unwrap().len(), count, "{path}");
        }
        for path in [
            "/version",
            "/apis/shop.io/v1/geese/five",
            "/api/v1/pods?limit=1",
        ] {
            assert!(get(path).is_err(), "{path}");
        }
        assert!(host.call("POST", "/api/v1/pods", false).is_err());
        assert!(host.call("GET", "http://h/x", true).is_err());
    }

    #[test]
    fn a_cluster_has_config_maps_and_labels_of_namespaces() {
        let mut host = cluster(objects());
        let mut config_map = |namespace| {
            let name = "one";
            host.fetch(&ExternalQuery::ConfigMap { namespace, name })
        };
        assert!(config_map("a").unwrap().is_some());
        let error = "configmaps \"one\" not found".to_owned();
        assert_eq!(config_map("c"), Err(error));
        let labels = vec![("team".to_owned(), "x".to_owned())];
        let namespaces = host.cluster().unwrap().namespace_labels();
        assert_eq!(namespaces.get("a"), Some(&labels));
        assert_eq!(namespaces.get("b"), None);
    }
}
