//! What rules in `kpvm apply` and `kpvm eval` may learn beside the object: what an API server
//! that has exactly the given resources would say (docs/spec/cli.md §7.5).
//!
//! API calls are answered from the resources, global references from the GlobalContextEntry
//! objects among them. ConfigMaps and image registries are not provided, as in `kyverno apply`,
//! and services are never called.

use std::sync::Arc;

use kpvm_format::Tables;

use crate::cel_context::CelContext;
use crate::cluster::Cluster;
use crate::command_host::CommandHost;
use crate::fake_client::Parameters;
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
    pub fn host(&self, resources: &mut Resources, tables: &Tables<'_>) -> CommandHost {
        let (entries, others): (Vec<Resource>, _) = std::mem::take(&mut resources.list)
            .into_iter()
            .partition(is_global_entry);
        resources.list = others;
        let asked = tables.outside_data();
        let is_asked = asked.api_calls || asked.parameters;
        let mut host = CommandHost::of_cluster(match entries.is_empty() && !is_asked {
            true => Cluster::default(),
            false => self.cluster(resources),
        });
        host.set_params(self.params.clone());
        host.set_context(self.context.clone());
        for entry in &entries {
            host.add_entry(entry);
        }
        host
    }

    fn cluster(&self, resources: &Resources) -> Cluster {
        let mut cluster = Cluster::default();
        for resource in resources.list.iter().chain(&self.definitions.list) {
            let object = resource.tree.to_json();
            if resource.text("kind") == "CustomResourceDefinition" {
                cluster.define(&object);
            }
            cluster.add(object);
        }
        cluster
    }
}

/// Whether rules ask for nothing that other objects would answer: no API calls, global
/// entries or parameters.
pub fn needs_no_other_objects(tables: &Tables<'_>) -> bool {
    let asked = tables.outside_data();
    !(asked.context_entries || asked.global_context || asked.parameters)
}

/// Whether an object is a GlobalContextEntry.
pub fn is_global_entry(resource: &Resource) -> bool {
    let [group, _, kind] = resource.group_version_kind();
    group == "kyverno.io" && kind == "GlobalContextEntry"
}
