//! A host with a cache: `cargo run -p kpvm --example host_with_cache`.
//!
//! The host answers questions about ConfigMaps and nothing else. Answers are kept for all
//! sessions, so that a cluster is asked once for each ConfigMap. A real host would also forget
//! what changes: with a watch, or after some time.

#![allow(clippy::print_stdout)]

use std::collections::BTreeMap;
use std::error::Error;
use std::sync::{Mutex, PoisonError};

use kpvm::engine::{Engine, Input, Request, Session, Status};
use kpvm::host::{Answer, ExternalKind, Host};
use kpvm_compiler::compile::{Options, compile};
use kpvm_compiler::source::Sources;
use serde_json::{Value, json};

const POLICY: &str = "
apiVersion: kyverno.io/v1
kind: ClusterPolicy
metadata: {name: known-teams}
spec:
  rules:
  - name: team-is-known
    match: {any: [{resources: {kinds: [Pod]}}]}
    context: [{name: teams, configMap: {name: teams, namespace: platform}}]
    validate:
      message: 'The team {{ request.object.metadata.labels.team }} is not known.'
      deny:
        conditions:
          any:
          - key: '{{ request.object.metadata.labels.team }}'
            operator: AnyNotIn
            value: '{{ teams.data.names }}'
";

/// ConfigMaps by namespace and name, shared by the hosts of all threads.
#[derive(Default)]
struct Cache {
    config_maps: Mutex<BTreeMap<(String, String), Value>>,
}

/// The host of one thread.
struct CachingHost<'c> {
    cache: &'c Cache,
    /// Requests to the cluster.
    requests: u64,
}

impl CachingHost<'_> {
    /// Stands for a request to the API server.
    fn request(&mut self, namespace: &str, name: &str) -> Result<Value, String> {
        self.requests += 1;
        match (namespace, name) {
            ("platform", "teams") => Ok(json!({
                "metadata": {"name": name, "namespace": namespace},
                "data": {"names": "[\"blue\", \"green\"]"},
            })),
            _ => Err(format!("configmaps \"{name}\" not found")),
        }
    }
}

impl Host for CachingHost<'_> {
    fn provides(&self, kind: ExternalKind) -> bool {
        kind == ExternalKind::ConfigMap
    }

    fn config_map(&mut self, namespace: &str, name: &str) -> Answer<Value> {
        let key = (namespace.to_owned(), name.to_owned());
        let cache = self.cache;
        let lock = || {
            cache
                .config_maps
                .lock()
                .unwrap_or_else(PoisonError::into_inner)
        };
        if let Some(known) = lock().get(&key) {
            return Ok(Some(known.clone()));
        }
        let found = self.request(namespace, name)?;
        lock().insert(key, found.clone());
        Ok(Some(found))
    }
}

fn main() -> Result<(), Box<dyn Error>> {
    let mut sources = Sources::new();
    sources.add("known-teams.yaml", POLICY);
    let compilation = compile(&sources, &Options::default());
    let engine = Engine::load(compilation.bundle.ok_or("the policy has errors")?)?;

    let cache = Cache::default();
    let mut host = CachingHost {
        cache: &cache,
        requests: 0,
    };
    let mut session = Session::new(&engine);
    for (team, expected) in [
        ("blue", Status::Pass),
        ("green", Status::Pass),
        ("red", Status::Fail),
    ] {
        let pod = format!(
            r#"{{"apiVersion": "v1", "kind": "Pod",
                "metadata": {{"name": "web", "labels": {{"team": "{team}"}}}}}}"#
        );
        let request = Request::create(Input::Json(pod.as_bytes()));
        let evaluation = session.evaluate_with(&request, &mut host)?;
        let response = evaluation.responses().next().ok_or("the rule applies")?;
        println!("{team}: {} ({})", response.status(), response.message());
        assert_eq!(response.status(), expected);
    }
    println!("requests to the cluster: {}", host.requests);
    assert_eq!(host.requests, 1);
    Ok(())
}
