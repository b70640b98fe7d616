//! Stand-in for Kyverno's fake client, which answers `paramRef` without a cluster
//! (docs/spec/cel.md §2.6).
//!
//! Like Kyverno's, it treats every kind as cluster-scoped, with the kind plus `s` as its
//! plural.

use kpvm::host::ExternalQuery;
use serde_json::Value;

use crate::cluster::Cluster;

/// Resources known without any object.
const REGISTERED: [&str; 9] = [
    "configmaps",
    "daemonsets",
    "deployments",
    "endpoints",
    "namespaces",
    "resourcequotas",
    "secrets",
    "serviceaccounts",
    "statefulsets",
];

/// Answer to a query for parameters; `None` for other queries.
///
/// # Errors
/// The client's error.
pub fn answer(cluster: &Cluster, query: &ExternalQuery<'_>) -> Result<Option<Value>, String> {
    let resource = |kind: &str| format!("{}s", kind.to_lowercase());
    match *query {
        ExternalQuery::KindScope { kind, .. } => {
            let resource = resource(kind);
            if !REGISTERED.contains(&resource.as_str()) && !cluster.has_resource(&resource) {
                return Err("not found".to_owned());
            }
            Ok(Some(Value::Bool(false)))
        }
        ExternalQuery::Object {
            api_version,
            kind,
            namespace,
            name,
        } => {
            let (group, version) = group_version(api_version);
            let resource = resource(kind);
            let found = cluster.one(group, version, &resource, Some(namespace), name);
            found.map(Some)
        }
        ExternalQuery::Objects {
            api_version,
            kind,
            namespace,
            selector,
        } => {
            let (group, version) = group_version(api_version);
            let namespace = Some(namespace).filter(|namespace| !namespace.is_empty());
            let mut found = cluster.list(group, version, &resource(kind), namespace);
            found.retain(|object| selects(selector, object.pointer("/metadata/labels")));
            Ok(Some(Value::Array(found)))
        }
        _ => Ok(None),
    }
}

/// Objects that bindings of ValidatingAdmissionPolicies may use as parameters.
#[derive(Debug, Clone, Default)]
pub struct Parameters {
    objects: Vec<Value>,
}

impl Parameters {
    /// Those objects.
    pub fn new(objects: Vec<Value>) -> Self {
        Self { objects }
    }

    /// Object of a `paramRef` without a cluster (docs/spec/cel.md §5): the first object
    /// with the name, in any namespace, or one list of all selected objects; null if there
    /// is none.
    pub fn bound(&self, reference: &Value) -> Value {
        let text = |value: &Value, key: &str| -> String {
            let text = value.get(key).and_then(Value::as_str);
            text.unwrap_or_default().to_owned()
        };
        if let Some(selector) = reference.get("selector").filter(|one| !one.is_null()) {
            let is_selected =
                |object: &&Value| selects(selector, object.pointer("/metadata/labels"));
            let items: Vec<&Value> = self.objects.iter().filter(is_selected).collect();
            return match items.as_slice() {
                [] => Value::Null,
                items => serde_json::json!({ "items": items }),
            };
        }
        let (name, namespace) = (text(reference, "name"), text(reference, "namespace"));
        let is_meant = |object: &&Value| {
            let metadata = object.get("metadata").unwrap_or(&Value::Null);
            match name.as_str() {
                "" => text(metadata, "namespace") == namespace,
                name => text(metadata, "name") == name,
            }
        };
        self.objects
            .iter()
            .find(is_meant)
            .cloned()
            .unwrap_or_default()
    }
}

fn group_version(api_version: &str) -> (&str, &str) {
    api_version.split_once('/').unwrap_or(("", api_version))
}

/// Whether a label selector matches labels. An unknown operator matches nothing.
pub fn selects(selector: &Value, labels: Option<&Value>) -> bool {
    let label = |key: &str| {
        let labels = labels.and_then(Value::as_object);
        labels.and_then(|labels| labels.get(key))
    };
    let equal = selector.get("matchLabels").and_then(Value::as_object);
    let mut equal = equal.into_iter().flatten();
    let requirements = selector.get("matchExpressions").and_then(Value::as_array);
    let mut requirements = requirements.into_iter().flatten();
    equal.all(|(key, value)| label(key) == Some(value))
        && requirements.all(|requirement| {
            let text = |key: &str| {
                let text = requirement.get(key).and_then(Value::as_str);
                text.unwrap_or_default()
            };
            let values = requirement.get("values").and_then(Value::as_array);
            let found = label(text("key"));
            let is_one =
                || found.is_some_and(|found| values.is_some_and(|all| all.contains(found)));
            match text("operator") {
                "In" => is_one(),
                "NotIn" => !is_one(),
                "Exists" => found.is_some(),
                "DoesNotExist" => found.is_none(),
                _ => false,
            }
        })
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use serde_json::json;

    use super::*;

    #[test]
    fn selectors() {
        let labels = json!({"a": "1", "b": "2"});
        let rule = |key: &str, operator: &str, values: &[&str]| json!({"matchExpressions": [{"key": key, "operator": operator, "values": values}]});
        for (selector, expected) in [
            (json!({}), true),
            (json!({"matchLabels": {"a": "1"}}), true),
            (json!({"matchLabels": {"a": "1", "b": "1"}}), false),
            (rule("a", "In", &["1", "9"]), true),
            (rule("c", "In", &["1"]), false),
            (rule("a", "NotIn", &["1"]), false),
            (rule("c", "NotIn", &["1"]), true),
            (rule("b", "Exists", &[]), true),
            (rule("b", "DoesNotExist", &[]), false),
            (rule("a", "Gt", &["0"]), false),
        ] {
            assert_eq!(selects(&selector, Some(&labels)), expected, "{selector}");
        }
        assert!(!selects(&json!({"matchLabels": {"a": "1"}}), None));
    }

    /// docs/spec/cel.md §2.6.
    #[test]
    fn every_kind_is_cluster_scoped() {
        let mut cluster = Cluster::default();
        let object = |namespace: &str, name: &str| {
            json!({"apiVersion": "shop.io/v1", "kind": "Limit",
                   "metadata": {"namespace": namespace, "name": name, "labels": {"a": name}}})
        };
        cluster.add(object("", "one"));
        cluster.add(object("n", "two"));
        let scope = |kind| {
            let api_version = "shop.io/v1";
            answer(&cluster, &ExternalQuery::KindScope { api_version, kind })
        };
        assert_eq!(scope("Limit"), Ok(Some(json!(false))));
        assert_eq!(scope("ConfigMap"), Ok(Some(json!(false))));
        assert_eq!(scope("Other"), Err("not found".to_owned()));
        let get = |name| {
            let query = ExternalQuery::Object {
                api_version: "shop.io/v1",
                kind: "Limit",
                namespace: "",
                name,
            };
            answer(&cluster, &query)
        };
        assert_eq!(get("one"), Ok(Some(object("", "one"))));
        assert_eq!(
            get("two"),
            Err("limits.shop.io \"two\" not found".to_owned())
        );
        let list = |selector: &Value| {
            let query = ExternalQuery::Objects {
                api_version: "shop.io/v1",
                kind: "Limit",
                namespace: "",
                selector,
            };
            answer(&cluster, &query)
                .unwrap()
                .unwrap()
                .as_array()
                .unwrap()
                .len()
        };
        assert_eq!(list(&json!({})), 2);
        assert_eq!(list(&json!({"matchLabels": {"a": "two"}})), 1);
    }
}
