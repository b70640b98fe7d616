//! Resources that an API server knows: the built-in ones and those of the given
//! CustomResourceDefinitions.
//!
//! Resolves a kind selector of a policy to resources, as the discovery of a cluster does
//! (docs/spec/policies.md §4 and §13).

use kpvm_semantics::resource_kind::{self, Scope};
use kpvm_semantics::wildcard::matches;
use kpvm_syntax::tree::Tree;

use super::kind_selector::KindSelector;
use super::read::{bool_of, field, items, text_of};

/// A resource or subresource of one group and version.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Resource {
    /// API group; empty for core.
    pub group: String,
    /// Version.
    pub version: String,
    /// Name of the resource, e.g. `pods`.
    pub name: String,
    /// Subresource; empty for the resource itself.
    pub subresource: String,
    /// Whether its objects live in namespaces.
    pub is_namespaced: bool,
}

impl Resource {
    /// `pods`, or `pods/exec` for a subresource.
    pub fn path(&self) -> String {
        match self.subresource.as_str() {
            "" => self.name.clone(),
            subresource => format!("{}/{subresource}", self.name),
        }
    }
}

/// Everything that an API server has.
#[derive(Debug, Clone)]
pub struct Discovery {
    /// Resources with their kinds, subresources behind their resource.
    resources: Vec<(String, Resource)>,
}

impl Default for Discovery {
    /// What every cluster has.
    fn default() -> Self {
        let mut discovery = Self {
            resources: Vec::new(),
        };
        for kind in resource_kind::built_in() {
            let name = kind.resource();
            let subresources = resource_kind::subresources(kind.group, kind.kind);
            for version in kind.versions {
                let resource = Resource {
                    group: kind.group.to_owned(),
                    version: (*version).to_owned(),
                    name: name.clone(),
                    subresource: String::new(),
                    is_namespaced: kind.scope == Scope::Namespaced,
                };
                discovery.add(kind.kind, &resource, subresources);
            }
        }
        discovery
    }
}

impl Discovery {
    /// Adds what a CustomResourceDefinition defines: its served versions.
    pub fn define(&mut self, definition: &Tree) {
        let Some(spec) = field(definition, "spec") else {
            return;
        };
        let Some(names) = field(spec, "names") else {
            return;
        };
        let kind = text_of(names, "kind");
        for version in items(spec, "versions") {
            if !bool_of(version, "served", false) {
                continue;
            }
            let resource = Resource {
                group: text_of(spec, "group"),
                version: text_of(version, "name"),
                name: text_of(names, "plural"),
                subresource: String::new(),
                is_namespaced: text_of(spec, "scope") == "Namespaced",
            };
            let subresources = field(version, "subresources");
            let has = |name: &&str| subresources.is_some_and(|all| field(all, name).is_some());
            let subresources: Vec<&str> = ["scale", "status"].into_iter().filter(has).collect();
            self.add(&kind, &resource, &subresources);
        }
    }

    fn add(&mut self, kind: &str, resource: &Resource, subresources: &[&str]) {
        self.resources.push((kind.to_owned(), resource.clone()));
        for subresource in subresources {
            let resource = Resource {
                subresource: (*subresource).to_owned(),
                ..resource.clone()
            };
            self.resources.push((kind.to_owned(), resource));
        }
    }

    /// The resources that a selector means, each version by itself.
    pub fn find(&self, selector: &KindSelector) -> Vec<&Resource> {
        let is_everything = selector.kind == "*" && selector.subresource == "*";
        let is_meant = |(kind, resource): &&(String, Resource)| {
            matches(&selector.group, &resource.group)
                && matches(&selector.version, &resource.version)
                && matches(&selector.kind, kind)
                && match (resource.subresource.as_str(), selector.subresource.as_str()) {
                    ("", "") => true,
                    ("", _) => is_everything,
                    (_, "") => false,
                    (subresource, pattern) => matches(pattern, subresource),
                }
        };
        let found = self.resources.iter().filter(is_meant);
        found.map(|(_, resource)| resource).collect()
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use serde_json::json;

    use super::*;
    use crate::policy::test_tree::tree;

    #[test]
    fn kinds_stand_for_resources() {
        let mut discovery = Discovery::default();
        discovery.define(&tree(&json!({
            "kind": "CustomResourceDefinition",
            "spec": {"group": "shop.io", "scope": "Cluster",
                "names": {"kind": "Goose", "plural": "geese"},
                "versions": [
                    {"name": "v1", "served": true, "subresources": {"status": {}}},
                    {"name": "v0", "served": false}]},
        })));
        for (kind, expected) in [
            ("Pod", "/v1/pods"),
            ("Pod/exec", "/v1/pods/exec"),
            ("apps/v1/Deployment", "apps/v1/deployments"),
            ("apps/v2/Deployment", ""),
            ("Deployment/scale", "apps/v1/deployments/scale"),
            (
                "HorizontalPodAutoscaler",
                "autoscaling/v2/horizontalpodautoscalers autoscaling/v1/horizontalpodautoscalers",
            ),
            ("Event", "/v1/events events.k8s.io/v1/events"),
            ("Stateful*", "apps/v1/statefulsets"),
            ("Goose", "shop.io/v1/geese"),
            ("Goose/*", "shop.io/v1/geese/status"),
            ("Swan", ""),
        ] {
            let found = discovery.find(&KindSelector::parse(kind));
            let shown: Vec<String> = found
                .iter()
                .map(|found| format!("{}/{}/{}", found.group, found.version, found.path()))
                .collect();
            assert_eq!(shown.join(" "), expected, "{kind}");
        }
        let scope = |kind| discovery.find(&KindSelector::parse(kind))[0].is_namespaced;
        assert!(scope("Pod") && !scope("Node") && !scope("Goose"));
    }
}
