//! The host of the commands: what rules may learn beside the object, put together from what a
//! command was given (docs/spec/cli.md §7.5).
//!
//! Of a suite, calls are answered from mocks; elsewhere from the given objects. The network is
//! never used; the time and random numbers come from the process.

use std::collections::BTreeSet;
use std::path::Path;
use std::sync::Arc;

use kpvm::host::{ExternalKind, ExternalQuery, Host, Timestamp};
use kpvm_compiler::diagnostic::Diagnostic;
use kpvm_syntax::tree::Tree;
use serde_json::Value;

use crate::calls::Calls;
use crate::cel_context::CelContext;
use crate::cluster::Cluster;
use crate::fake_client::{self, Parameters};
use crate::global_entries::GlobalEntries;
use crate::host::ProcessHost;
use crate::resources::Resource;
use crate::strict::Decoder;

/// Answers from the data of a command.
#[derive(Debug, Clone, Default)]
pub struct CommandHost {
    /// The mocks of a suite; `None` elsewhere.
    calls: Option<Calls>,
    /// The API server, if there is one.
    cluster: Option<Cluster>,
    /// Whether ConfigMaps are read from the cluster.
    has_config_maps: bool,
    globals: GlobalEntries,
    context: Arc<CelContext>,
    /// Objects searched for parameters; those of the cluster if `None`.
    client: Option<Cluster>,
    /// Objects that bindings of ValidatingAdmissionPolicies may refer to.
    params: Arc<Parameters>,
    process: ProcessHost,
    /// Warnings about global entries.
    pub warnings: Vec<Diagnostic>,
    /// The services that rules tried to call.
    pub services: BTreeSet<String>,
}

impl CommandHost {
    /// A host of a suite.
    pub fn of_suite() -> Self {
        Self {
            calls: Some(Calls::default()),
            client: Some(Cluster::default()),
            ..Self::default()
        }
    }

    /// A host with an API server of these objects.
    pub fn of_cluster(cluster: Cluster) -> Self {
        Self {
            cluster: Some(cluster),
            ..Self::default()
        }
    }

    /// Reads `apiCallResponses` (docs/spec/cli.md §7.6).
    pub fn read_calls(&mut self, tree: Option<&Tree>, decoder: &mut Decoder) {
        self.calls.get_or_insert_default().read(tree, decoder);
    }

    /// Reads `globalContextEntries` and their files below the directory of the suite
    /// (docs/spec/cli.md §7.7).
    pub fn read_global_entries(
        &mut self,
        tree: Option<&Tree>,
        directory: &Path,
        decoder: &mut Decoder,
    ) {
        self.globals.read(tree, directory, decoder);
    }

    /// Adds the data of a GlobalContextEntry.
    pub fn add_entry(&mut self, entry: &Resource) {
        let name = entry.metadata("name");
        let cluster = self.cluster.get_or_insert_default();
        if !self.globals.add(name, &entry.tree.to_json(), cluster) {
            let message =
                format!("the GlobalContextEntry {name} is not of the type kubernetesResource");
            let hint = "rules that refer to it cannot be evaluated here; give its data under the name of the context entry in a values file";
            let warning = Diagnostic::warning("global-context-entry", message, entry.location());
            self.warnings.push(warning.hint(hint));
        }
    }

    /// Sets the API server. `kyverno test` reads ConfigMaps from it, `kyverno apply` does
    /// not (docs/spec/cli.md §7.5).
    pub fn set_cluster(&mut self, cluster: Cluster, has_config_maps: bool) {
        self.cluster = Some(cluster);
        self.has_config_maps = has_config_maps;
    }

    /// Sets the data of CEL expressions.
    pub fn set_context(&mut self, context: Arc<CelContext>) {
        self.context = context;
    }

    /// Sets the objects that bindings may refer to.
    pub fn set_params(&mut self, params: Arc<Parameters>) {
        self.params = params;
    }

    /// Sets the objects that may be parameters, in addition to those of the cluster.
    pub fn set_client(&mut self, objects: impl Iterator<Item = Value>) {
        let mut client = self.cluster.clone().unwrap_or_default();
        objects.for_each(|object| client.add(object));
        self.client = Some(client);
    }

    /// The API server, if there is one.
    pub fn cluster(&self) -> Option<&Cluster> {
        self.cluster.as_ref()
    }

    /// Answer to a call; `None` means that the entry counts as absent.
    fn call(&mut self, method: &str, url: &str, is_service: bool) -> Result<Option<Value>, String> {
        match &self.calls {
            None if is_service => {
                self.services.insert(url.to_owned());
                return Ok(None);
            }
            None => {}
            Some(calls) => {
                if let Some(answer) = calls.answer(method, url)? {
                    return Ok(Some(answer));
                }
            }
        }
        let answer = match &self.cluster {
            None => return Ok(None),
            Some(_) if is_service => return Err(format!("no mock for {method} {url}")),
            Some(cluster) if method == "GET" => cluster.get(url),
            Some(_) => Err(format!("method {method} not supported for fake client")),
        };
        answer
            .map(Some)
            .map_err(|error| format!("failed to {method} resource with raw url: {url}: {error}"))
    }

    /// An HTTP request of CEL.
    fn http(&mut self, method: &str, url: &str) -> Result<Value, String> {
        match &self.calls {
            Some(calls) => calls.http(method, url),
            None => {
                self.services.insert(url.to_owned());
                Err(format!("services are never asked: {method} {url}"))
            }
        }
    }
}

impl Host for CommandHost {
    fn now(&mut self) -> Option<Timestamp> {
        self.process.now()
    }

    fn random(&mut self) -> Option<u64> {
        self.process.random()
    }

    fn provides(&self, kind: ExternalKind) -> bool {
        match kind {
            ExternalKind::ConfigMap => self.cluster.is_some() && self.has_config_maps,
            ExternalKind::ApiCall => {
                let has_calls = self.calls.as_ref().is_some_and(|calls| !calls.is_empty());
                self.cluster.is_some() || has_calls
            }
            ExternalKind::GlobalReference => !self.globals.is_empty(),
            ExternalKind::ImageRegistry => false,
        }
    }

    fn fetch(&mut self, query: &ExternalQuery<'_>) -> Result<Option<Value>, String> {
        match *query {
            ExternalQuery::ConfigMap { namespace, name } => {
                let cluster = self.cluster.as_ref().filter(|_| self.has_config_maps);
                let one =
                    |cluster: &Cluster| cluster.one("", "v1", "configmaps", Some(namespace), name);
                cluster.map(one).transpose()
            }
            ExternalQuery::ApiCall {
                url_path,
                method,
                service_url,
                ..
            } => {
                let url = service_url.unwrap_or(url_path);
                self.call(method, url, service_url.is_some())
            }
            ExternalQuery::GlobalReference { name } => self.globals.reference(name).map(Some),
            ExternalQuery::GlobalContext { name, projection } => {
                self.globals.cel(name, projection).map(Some)
            }
            ExternalQuery::Http { method, url, .. } => self.http(method, url).map(Some),
            ExternalQuery::ResourceGet { .. } | ExternalQuery::ResourceList { .. } => {
                // The resources of `kyverno apply` are no objects of a cluster to CEL.
                let cluster = self.cluster.as_ref().filter(|_| self.calls.is_some());
                let answer = cluster.and_then(|cluster| cluster.answer(query));
                answer.or_else(|| self.context.answer(query)).transpose()
            }
            ExternalQuery::ImageData { .. } => self.context.answer(query).transpose(),
            ExternalQuery::BoundParameters { reference } => {
                Ok(Some(Value::Array(vec![self.params.bound(reference)])))
            }
            ExternalQuery::KindScope { .. }
            | ExternalQuery::Object { .. }
            | ExternalQuery::Objects { .. } => {
                match self.client.as_ref().or(self.cluster.as_ref()) {
                    Some(client) => fake_client::answer(client, query),
                    None => Ok(None),
                }
            }
            ExternalQuery::ImageRegistry { .. }
            | ExternalQuery::AccessReview { .. }
            | ExternalQuery::HostAddresses { .. } => Ok(None),
        }
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::*;
    use kpvm_compiler::source::SourceId;
    use kpvm_syntax::tree::Tree;
    use serde_json::json;
    use std::path::Path;

    fn host(test: Value) -> Result<CommandHost, String> {
        let (mut host, test) = (CommandHost::of_suite(), Tree::from(&test));
        let mut decoder = Decoder::new("test", SourceId(0));
        host.read_calls(test.get("apiCallResponses"), &mut decoder);
        let entries = test.get("globalContextEntries");
        host.read_global_entries(entries, Path::new("."), &mut decoder);
        match decoder.diagnostics.into_iter().next() {
            Some(diagnostic) => Err(diagnostic.message),
            None => Ok(host),
        }
    }

    fn cluster(objects: Value) -> CommandHost {
        let mut cluster = Cluster::default();
        for object in objects.as_array().unwrap() {
            cluster.add(object.clone());
        }
        let definition =
            json!({"spec": {"group": "shop.io", "names": {"kind": "Goose", "plural": "geese"}}});
        cluster.define(&definition);
        let mut host = CommandHost::of_suite();
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
        let mut host = host(json!({"apiCallResponses": [
            {"url": "http://h/x", "response": {"body": {"by": "url"}}},
            {"url": "http://h/x", "method": " post", "response": {"body": {"by": "post"}}},
            {"urlPath": "/api/v1/pods", "response": {"statusCode": 404, "body": {}}},
        ]}))
        .unwrap();
        let mut ask = |method, url| host.call(method, url, true);
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
            assert_eq!(host.globals.reference(name), Ok(value), "{name}");
        }
        for (name, error) in [
            ("none", "failed to fetch entry key=none"),
            ("many.c", "global context mock: projection \"c\" not found"),
        ] {
            assert_eq!(host.globals.reference(name), Err(error.to_owned()));
        }
    }

    /// The paths of the Kubernetes API: an object, or a list of one or all namespaces.
    #[test]
    fn a_cluster_answers_paths() {
        let mut host = cluster(objects());
        let mut get = |path: &str| host.call("GET", path, false);
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
