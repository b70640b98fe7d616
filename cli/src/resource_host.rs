//! Answers to rules in `kpvm apply` and `kpvm eval`: the time, randomness, and what an API
//! server that has exactly the given resources would say.
//!
//! Turns resources into a [`Host`] (docs/spec/cli.md §7.5): API calls are answered from the
//! resources, global references from the GlobalContextEntry objects among them. ConfigMaps
//! and image registries are not provided, as in `kyverno apply`, and services are never
//! called.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use kpvm::host::{ExternalKind, ExternalQuery, Host, Timestamp};
use kpvm_compiler::diagnostic::Diagnostic;
use kpvm_format::Tables;
use kpvm_format::cel::Function;
use kpvm_format::instruction::{Instruction, Op};
use serde_json::Value;

use crate::cel_context::CelContext;
use crate::cluster::Cluster;
use crate::expression::query;
use crate::fake_client::{self, Parameters};
use crate::host::ProcessHost;
use crate::resources::{Resource, Resources};

/// Data for rules other than the resources.
#[derive(Debug, Default)]
pub struct Outside {
    /// CustomResourceDefinitions in addition to those among the resources; they give the
    /// plurals of kinds.
    pub definitions: Resources,
    /// What bindings of ValidatingAdmissionPolicies can refer to.
    pub params: Arc<Parameters>,
    /// Data for CEL expressions.
    pub context: Arc<CelContext>,
}

impl Outside {
    /// A host with the resources, from which the GlobalContextEntry objects are removed.
    pub fn host(&self, resources: &mut Resources, tables: &Tables<'_>) -> ResourceHost {
        let mut host = ResourceHost::new(resources, &self.definitions.list, tables);
        host.params = self.params.clone();
        host.context = self.context.clone();
        host
    }
}

/// Whether rules ask for nothing that other objects would answer: no API calls, global
/// entries or parameters.
pub fn needs_no_other_objects(tables: &Tables<'_>) -> bool {
    let asks = |instruction: &Instruction| match Op::decode(instruction.op) {
        Some(Op::Fetch | Op::JumpUnlessProvided | Op::CelParams) | None => true,
        Some(Op::CelCall) => instruction.c.get() == Function::GlobalContextGet as u32,
        Some(_) => false,
    };
    !tables.code.iter().any(asks)
}

/// Answers from given resources.
#[derive(Debug, Default)]
pub struct ResourceHost {
    cluster: Cluster,
    entries: BTreeMap<String, GlobalEntry>,
    /// Warnings about the entries.
    pub warnings: Vec<Diagnostic>,
    context: Arc<CelContext>,
    /// The services that rules tried to call.
    pub services: BTreeSet<String>,
    /// What bindings of ValidatingAdmissionPolicies can refer to.
    params: Arc<Parameters>,
    process: ProcessHost,
}

/// The data of a GlobalContextEntry.
#[derive(Debug)]
struct GlobalEntry {
    /// A list of objects.
    objects: Value,
    projections: BTreeMap<String, Result<Value, String>>,
}

impl ResourceHost {
    /// A host with the resources, from which the GlobalContextEntry objects are removed.
    /// `definitions` are further CustomResourceDefinitions, which give the plurals of
    /// kinds.
    fn new(resources: &mut Resources, definitions: &[Resource], tables: &Tables<'_>) -> Self {
        let mut host = Self::default();
        let (entries, others) = std::mem::take(&mut resources.list)
            .into_iter()
            .partition(is_global_entry);
        resources.list = others;
        let entries: Vec<Resource> = entries;
        if !entries.is_empty() || asks_for_calls(tables) || fake_client::is_asked(tables) {
            host.fill_cluster(resources, definitions);
        }
        for entry in &entries {
            host.add_entry(entry);
        }
        host
    }

    fn fill_cluster(&mut self, resources: &Resources, definitions: &[Resource]) {
        for resource in resources.list.iter().chain(definitions) {
            let object = resource.tree.to_json();
            if resource.text("kind") == "CustomResourceDefinition" {
                self.cluster.define(&object);
            }
            self.cluster.add(object);
        }
    }

    /// Adds the data of a GlobalContextEntry.
    pub fn add_entry(&mut self, entry: &Resource) {
        let object = entry.tree.to_json();
        let name = entry.metadata("name");
        let text = |pointer: &str| object.pointer(pointer).and_then(Value::as_str);
        let of_kind = |field: &str| text(&format!("/spec/kubernetesResource/{field}"));
        let Some(plural) = of_kind("resource") else {
            let message =
                format!("the GlobalContextEntry {name} is not of the type kubernetesResource");
            let hint = "rules that refer to it cannot be evaluated here; give its data under the name of the context entry in a values file";
            let warning = Diagnostic::warning("global-context-entry", message, entry.location());
            self.warnings.push(warning.hint(hint));
            return;
        };
        let objects = self.cluster.list(
            of_kind("group").unwrap_or_default(),
            of_kind("version").unwrap_or_default(),
            plural,
            of_kind("namespace").filter(|namespace| !namespace.is_empty()),
        );
        let objects = Value::Array(objects);
        let projections = object
            .pointer("/spec/projections")
            .and_then(Value::as_array);
        let field = |projection: &Value, name: &str| {
            let text = projection.get(name).and_then(Value::as_str);
            text.unwrap_or_default().to_owned()
        };
        let projections = projections.into_iter().flatten().map(|projection| {
            let value = query(&field(projection, "jmesPath"), &objects);
            (field(projection, "name"), value)
        });
        let projections = projections.collect();
        let entry = GlobalEntry {
            objects,
            projections,
        };
        self.entries.insert(name.to_owned(), entry);
    }

    /// docs/spec/conditions.md §9.4.
    fn entry(&self, name: &str) -> Result<Value, String> {
        let (entry, projection) = match name.split_once('.') {
            Some((entry, projection)) => (entry, Some(projection)),
            None => (name, None),
        };
        let found = self.entries.get(entry);
        let found = found.ok_or_else(|| format!("failed to fetch entry key={entry}"))?;
        let Some(projection) = projection else {
            return Ok(found.objects.clone());
        };
        match found.projections.get(projection) {
            Some(value) => value.clone(),
            None => Err(format!("projection \"{projection}\" not found")),
        }
    }
}

/// Whether an object is a GlobalContextEntry.
pub fn is_global_entry(resource: &Resource) -> bool {
    let [group, _, kind] = resource.group_version_kind();
    group == "kyverno.io" && kind == "GlobalContextEntry"
}

/// Whether any rule has an apiCall context entry.
fn asks_for_calls(tables: &Tables<'_>) -> bool {
    let is_call = |instruction: &kpvm_format::instruction::Instruction| {
        instruction.op == Op::JumpUnlessProvided as u8
            && instruction.e == ExternalKind::ApiCall as u8
    };
    tables.code.iter().any(is_call)
}

impl Host for ResourceHost {
    fn now(&mut self) -> Option<Timestamp> {
        self.process.now()
    }

    fn random(&mut self) -> Option<u64> {
        self.process.random()
    }

    fn provides(&self, kind: ExternalKind) -> bool {
        match kind {
            ExternalKind::ApiCall => true,
            ExternalKind::GlobalReference => !self.entries.is_empty(),
            ExternalKind::ConfigMap | ExternalKind::ImageRegistry => false,
        }
    }

    fn fetch(&mut self, query: &ExternalQuery<'_>) -> Result<Option<Value>, String> {
        match *query {
            ExternalQuery::ApiCall {
                service_url: Some(url),
                ..
            } => {
                self.services.insert(url.to_owned());
                Ok(None)
            }
            ExternalQuery::ApiCall {
                url_path,
                method: "GET",
                ..
            } => self.cluster.get(url_path).map(Some),
            ExternalQuery::ApiCall {
                url_path, method, ..
            } => Err(format!(
                "the given resources do not answer {method} {url_path}"
            )),
            ExternalQuery::GlobalReference { name } => self.entry(name).map(Some),
            ExternalQuery::GlobalContext { name, .. } if !self.entries.contains_key(name) => {
                Ok(Some(Value::Null))
            }
            ExternalQuery::GlobalContext { name, projection } => {
                let name = match projection {
                    "" => name.to_owned(),
                    projection => format!("{name}.{projection}"),
                };
                self.entry(&name).map(Some)
            }
            ExternalQuery::Http { method, url, .. } => {
                self.services.insert(url.to_owned());
                Err(format!("services are never asked: {method} {url}"))
            }
            ExternalQuery::ResourceGet { .. }
            | ExternalQuery::ResourceList { .. }
            | ExternalQuery::ImageData { .. } => self.context.answer(query).transpose(),
            ExternalQuery::BoundParameters { reference } => {
                Ok(Some(Value::Array(vec![self.params.bound(reference)])))
            }
            ExternalQuery::KindScope { .. }
            | ExternalQuery::Object { .. }
            | ExternalQuery::Objects { .. } => fake_client::answer(&self.cluster, query),
            ExternalQuery::ConfigMap { .. }
            | ExternalQuery::ImageRegistry { .. }
            | ExternalQuery::AccessReview { .. }
            | ExternalQuery::HostAddresses { .. } => Ok(None),
        }
    }
}
