//! What a suite says that the world outside answers: the mocks of `kyverno test`.
//!
//! A test document enters, a [`Host`] leaves that answers from its `apiCallResponses`,
//! `clusterResources` and `globalContextEntries` (sheet 08, sections 7.5 to 7.7). What
//! no mock covers is never asked of a network, and the only thing taken from the
//! process is the time.
//!
//! A mocked call is answered when a rule first uses it. Kyverno answers it while the
//! context loads, so that a failing mock fails rules that never use it, and rules whose
//! entry has a default; no suite at hand depends on it.

use std::collections::BTreeMap;
use std::path::{Component, Path};

use kpvm::document::Numbers;
use kpvm::engine::{Bundle, ExpressionSession};
use kpvm::host::{ExternalKind, ExternalQuery, Host, Timestamp};
use kpvm::tree::Tree;
use kpvm::yaml::DuplicateKeys;
use kpvm_compiler::expression::compile_expression;
use serde_json::{Map, Value, json};

use crate::case::value_of;
use crate::suites::{Step, Stop, list, read_documents, text, texts};

/// Answers from the mocks of one suite.
#[derive(Default)]
pub(crate) struct MockHost {
    /// By `METHOD:url`, or `url` alone where a mock names no method.
    calls: BTreeMap<String, Response>,
    /// Only with `clusterResources`.
    cluster: Option<Cluster>,
    global_entries: BTreeMap<String, Value>,
}

struct Response {
    status: i64,
    body: Value,
}

/// The objects that the API server has.
#[derive(Default)]
struct Cluster {
    objects: Vec<Value>,
    /// Plural name by group and kind, from definitions of custom resources.
    plurals: BTreeMap<(String, String), String>,
}

impl MockHost {
    /// The mocks of a test. A cluster also has the suite's resources (sheet 08,
    /// section 3, step 4).
    pub(crate) fn read<'r>(
        test: &Tree,
        directory: &Path,
        resources: impl Iterator<Item = &'r Tree>,
    ) -> Step<Self> {
        let mut host = Self::default();
        for entry in list(test, "apiCallResponses") {
            let (key, response) = read_response(entry).map_err(Stop::Broken)?;
            if host.calls.insert(key.clone(), response).is_some() {
                return broken(&format!("two apiCallResponses for {key}"));
            }
        }
        for entry in list(test, "globalContextEntries") {
            let name = text(entry, "name");
            let value = read_global_entry(entry, directory)?;
            let is_new = host.global_entries.insert(name.clone(), value).is_none();
            if name.trim().is_empty() || !is_new {
                return broken(&format!(
                    "globalContextEntries: bad or repeated name {name:?}"
                ));
            }
        }
        let files = texts(test, "clusterResources");
        if !files.is_empty() {
            let mut cluster = Cluster::read(&files, directory)?;
            cluster.objects.extend(resources.map(value_of));
            host.cluster = Some(cluster);
        }
        Ok(host)
    }

    /// Whether there is a cluster to ask.
    pub(crate) fn has_cluster(&self) -> bool {
        self.cluster.is_some()
    }

    /// The labels of a namespace of the cluster (sheet 08, section 7.3). None where the
    /// cluster has no such namespace: the suites with `clusterResources` leave theirs out.
    pub(crate) fn namespace_labels(&self, name: &str) -> Vec<(String, String)> {
        let namespace = self.cluster.as_ref().and_then(|cluster| {
            let mut all = cluster.select("", "v1", "namespaces", None);
            all.find(|object| metadata(object, "name") == name)
        });
        let labels = namespace.and_then(|namespace| namespace.pointer("/metadata/labels"));
        let labels = labels.and_then(Value::as_object).into_iter().flatten();
        labels
            .filter_map(|(key, value)| Some((key.clone(), value.as_str()?.to_owned())))
            .collect()
    }

    /// The answer to a call; `None`: as if the entry were not written.
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

    fn global_reference(&self, name: &str) -> Result<Value, String> {
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
        let elapsed = std::time::SystemTime::now()
            .duration_since(std::time::UNIX_EPOCH)
            .ok()?;
        Some(Timestamp {
            seconds: elapsed.as_secs() as i64,
            nanoseconds: elapsed.subsec_nanos(),
            offset_seconds: 0,
        })
    }

    fn random(&mut self) -> Option<u64> {
        None
    }

    fn provides(&self, kind: ExternalKind) -> bool {
        match kind {
            ExternalKind::ConfigMap => self.has_cluster(),
            ExternalKind::ApiCall => self.has_cluster() || !self.calls.is_empty(),
            ExternalKind::GlobalReference => !self.global_entries.is_empty(),
            ExternalKind::ImageRegistry => false,
        }
    }

    fn fetch(&mut self, query: &ExternalQuery<'_>) -> Result<Option<Value>, String> {
        match *query {
            ExternalQuery::ConfigMap { namespace, name } => {
                let Some(cluster) = &self.cluster else {
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
            ExternalQuery::GlobalReference { name } => self.global_reference(name).map(Some),
            ExternalQuery::ImageRegistry { .. } | ExternalQuery::HostAddresses { .. } => Ok(None),
        }
    }
}

fn broken<T>(reason: &str) -> Step<T> {
    Err(Stop::Broken(reason.to_owned()))
}

/// One of `apiCallResponses`, checked as section 7.6 says.
fn read_response(entry: &Tree) -> Result<(String, Response), String> {
    let (url, path) = (text(entry, "url"), text(entry, "urlPath"));
    let wrong = |what: &str| Err(format!("apiCallResponses: {what} ({url}{path})"));
    if url.is_empty() == path.is_empty() {
        return wrong("expected one of url and urlPath");
    }
    let host = url.split_once("://").filter(|(scheme, host)| {
        ["http", "https"].contains(scheme) && !host.is_empty() && !host.starts_with('/')
    });
    if (path.is_empty() && host.is_none()) || (url.is_empty() && !path.starts_with('/')) {
        return wrong("expected an http(s) URL or a path from the root");
    }
    let method = text(entry, "method").trim().to_uppercase();
    let key = match method.as_str() {
        "" => format!("{url}{path}"),
        "GET" | "POST" => format!("{method}:{url}{path}"),
        _ => return wrong("expected the method GET or POST"),
    };
    let response = entry.get("response").map(value_of).unwrap_or_default();
    // Without a status the call succeeded.
    let status = match response.get("statusCode").and_then(Value::as_i64) {
        None | Some(0) => 200,
        Some(status @ 100..=599) => status,
        Some(_) => return wrong("expected a status code from 100 to 599"),
    };
    match response.get("body") {
        Some(body @ Value::Object(_)) => {
            let body = body.clone();
            Ok((key, Response { status, body }))
        }
        _ => wrong("expected a body that is a map"),
    }
}

/// The value of one of `globalContextEntries` (section 7.7).
fn read_global_entry(entry: &Tree, directory: &Path) -> Step<Value> {
    let sources = ["data", "resources", "resourceFiles"];
    let given: Vec<&str> = sources
        .into_iter()
        .filter(|source| entry.get(source).is_some_and(|value| !value.is_null()))
        .collect();
    let root = match given.as_slice() {
        ["resourceFiles"] => {
            let mut objects = Vec::new();
            for file in texts(entry, "resourceFiles") {
                let is_inside = Path::new(&file)
                    .components()
                    .all(|part| matches!(part, Component::Normal(_) | Component::CurDir));
                if !is_inside {
                    return broken(&format!(
                        "globalContextEntries: {file} is outside the suite"
                    ));
                }
                let documents = read_documents(&directory.join(file), DuplicateKeys::LastWins)?;
                objects.extend(documents.iter().map(value_of));
            }
            Value::Array(objects)
        }
        [source] => entry.get(source).map(value_of).unwrap_or_default(),
        _ => return broken("globalContextEntries: expected one source"),
    };
    project(entry, root).map_err(Stop::Broken)
}

/// `fieldPath`, and `projections` on the root.
fn project(entry: &Tree, root: Value) -> Result<Value, String> {
    let projections = list(entry, "projections");
    if !projections.is_empty() {
        let member = |projection: &Tree| {
            let value = query(&text(projection, "path"), &root)?;
            Ok((text(projection, "name"), value))
        };
        let members: Result<Map<String, Value>, String> = projections.iter().map(member).collect();
        return members.map(Value::Object);
    }
    match text(entry, "fieldPath") {
        path if path.is_empty() => Ok(root),
        path => query(&path, &root),
    }
}

fn query(expression: &str, root: &Value) -> Result<Value, String> {
    let shown = |error: &dyn std::fmt::Display| format!("{expression}: {error}");
    let code = compile_expression(expression).map_err(|error| shown(&error))?;
    let bundle = Bundle::load(code).map_err(|error| shown(&error))?;
    let mut session = ExpressionSession::new(&bundle);
    session
        .set_input(root, Numbers::Float)
        .map_err(|error| shown(&error))?;
    session
        .evaluate(0)
        .and_then(|answer| answer.to_value())
        .map_err(|error| shown(&error))
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
    /// Files of the kind ClusterResource (sheet 08, section 2).
    fn read(files: &[String], directory: &Path) -> Step<Self> {
        let mut cluster = Self::default();
        for file in files {
            let path = directory.join(file);
            let beside = path.parent().unwrap_or(directory);
            for document in read_documents(&path, DuplicateKeys::Refuse)? {
                let Some(spec) = document.get("spec") else {
                    continue;
                };
                let objects = list(spec, "resources").iter().map(value_of);
                cluster.objects.extend(objects);
                for definition in texts(spec, "crds") {
                    cluster.define(&beside.join(definition))?;
                }
            }
        }
        Ok(cluster)
    }

    fn define(&mut self, file: &Path) -> Step<()> {
        for definition in read_documents(file, DuplicateKeys::Refuse)? {
            let definition = value_of(&definition);
            let name = |pointer: &str| {
                let name = definition.pointer(pointer).and_then(Value::as_str);
                name.unwrap_or_default().to_owned()
            };
            let key = (name("/spec/group"), name("/spec/names/kind"));
            self.plurals.insert(key, name("/spec/names/plural"));
        }
        Ok(())
    }

    /// Whether an object is of a resource, which goes by the plural of its kind.
    fn is_of(&self, object: &Value, group: &str, version: &str, plural: &str) -> bool {
        let (api_version, kind) = (field(object, "apiVersion"), field(object, "kind"));
        let own = api_version.split_once('/').unwrap_or(("", api_version));
        let defined = self.plurals.get(&(group.to_owned(), kind.to_owned()));
        let is_plural = match defined {
            Some(defined) => defined == plural,
            None => plural_of(kind) == plural,
        };
        own == (group, version) && is_plural
    }

    /// The objects of a resource: of one namespace, or of all.
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

    fn one(
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

    /// The answer to a GET: an object, or a list of objects.
    fn get(&self, path: &str) -> Result<Value, String> {
        let parts: Vec<&str> = path.trim_matches('/').split('/').collect();
        let (group, version, rest) = match parts.as_slice() {
            ["api", version, rest @ ..] => ("", *version, rest),
            ["apis", group, version, rest @ ..] => (*group, *version, rest),
            _ => return Err(format!("the server could not find {path}")),
        };
        let (namespace, rest) = match rest {
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
            [plural, name] if !name.contains('?') => {
                self.one(group, version, plural, namespace, name)
            }
            _ => Err(format!("the mocked cluster does not answer GET {path}")),
        }
    }
}

fn version_of(group: &str, version: &str) -> String {
    match group {
        "" => version.to_owned(),
        group => format!("{group}/{version}"),
    }
}

/// The plural as Kubernetes guesses it from a kind.
fn plural_of(kind: &str) -> String {
    let kind = kind.to_lowercase();
    match (kind.strip_suffix('y'), kind.ends_with('s')) {
        _ if kind.ends_with("endpoints") => kind,
        (Some(stem), _) => format!("{stem}ies"),
        (None, true) => format!("{kind}es"),
        (None, false) => format!("{kind}s"),
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::*;
    use crate::case::tree_of;

    fn host(test: Value) -> Result<MockHost, String> {
        let found = MockHost::read(&tree_of(&test), Path::new("."), std::iter::empty());
        found.map_err(|stop| match stop {
            Stop::Broken(reason) | Stop::Unsupported(reason) => reason,
        })
    }

    fn cluster(objects: Value) -> MockHost {
        let mut cluster = Cluster {
            objects: objects.as_array().unwrap().clone(),
            ..Cluster::default()
        };
        let definition = ("shop.io".to_owned(), "Goose".to_owned());
        cluster.plurals.insert(definition, "geese".to_owned());
        MockHost {
            cluster: Some(cluster),
            ..MockHost::default()
        }
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

    /// Sheet 08, section 7.6: the method with the url goes before the url.
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
        // Section 7.5: without a cluster the entry is as if it were not written.
        assert_eq!(ask("GET", "http://h/y"), Ok(None));
        assert!(host.provides(ExternalKind::ApiCall));
        assert!(!host.provides(ExternalKind::ConfigMap));
    }

    /// Sheet 08, sections 7.6 and 7.7.
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

    /// Sheet 08, section 7.7.
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
            assert_eq!(host.global_reference(name), Ok(value), "{name}");
        }
        for (name, error) in [
            ("none", "failed to fetch entry key=none"),
            ("many.c", "global context mock: projection \"c\" not found"),
        ] {
            assert_eq!(host.global_reference(name), Err(error.to_owned()));
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
            assert_eq!(metadata(&object, "name"), name, "{path}");
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
        assert_eq!(host.namespace_labels("a"), labels);
        assert!(host.namespace_labels("b").is_empty());
    }
}
