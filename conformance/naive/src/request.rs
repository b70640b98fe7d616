//! What a policy is evaluated on.

use std::collections::BTreeMap;

use serde_json::Value;

/// A request, with the outside data that context entries may ask for.
#[derive(Debug, Clone, Default)]
pub struct Request {
    /// The new object.
    pub object: Option<Value>,
    /// The old object.
    pub old_object: Option<Value>,
    /// `CREATE`, `UPDATE`, `DELETE` or `CONNECT`.
    pub operation: String,
    /// Group, version and kind of the request; those of the object if absent.
    pub gvk: Option<[String; 3]>,
    /// Subresource, or nothing.
    pub subresource: String,
    /// The user, unknown in a background scan.
    pub user: Option<User>,
    /// Labels of the namespace.
    pub namespace_labels: BTreeMap<String, String>,
    /// Data from outside.
    pub outside: Outside,
}

/// Who asks.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct User {
    /// Name.
    pub name: String,
    /// Groups.
    pub groups: Vec<String>,
    /// `namespace:name` of roles.
    pub roles: Vec<String>,
    /// Names of cluster roles.
    pub cluster_roles: Vec<String>,
}

impl User {
    /// Whether nothing is known about the user (docs/spec/policies.md §5.2).
    pub(crate) fn is_empty(&self) -> bool {
        *self == Self::default()
    }
}

/// Data of context entries; a kind of entry whose table is absent has no client.
#[derive(Debug, Clone, Default)]
pub struct Outside {
    /// Values by name.
    pub values: Option<Value>,
    /// By `namespace/name`.
    pub config_maps: Option<BTreeMap<String, Value>>,
    /// By `METHOD path`.
    pub api_calls: Option<BTreeMap<String, Value>>,
    /// By name.
    pub global_entries: Option<BTreeMap<String, Value>>,
}

impl Request {
    /// The object that rules match: the new one, else the old one (docs/spec/policies.md
    /// §5.6).
    pub(crate) fn subject(&self) -> Option<&Value> {
        self.object.as_ref().or(self.old_object.as_ref())
    }

    /// Group, version and kind of the request (docs/spec/policies.md §4.1).
    pub(crate) fn kind(&self) -> [String; 3] {
        match &self.gvk {
            Some(gvk) => gvk.clone(),
            None => gvk_of(self.subject().unwrap_or(&Value::Null)),
        }
    }

    /// Whether a pattern has no object to match (docs/spec/patterns.md §2).
    pub(crate) fn is_delete(&self) -> bool {
        self.operation == "DELETE" || (self.operation.is_empty() && self.object.is_none())
    }
}

/// Group, version and kind that an object states.
pub(crate) fn gvk_of(object: &Value) -> [String; 3] {
    let api_version = text_at(object, "apiVersion");
    let (group, version) = api_version.split_once('/').unwrap_or(("", api_version));
    [group, version, text_at(object, "kind")].map(str::to_owned)
}

/// A text member, or nothing.
pub(crate) fn text_at<'v>(value: &'v Value, key: &str) -> &'v str {
    value.get(key).and_then(Value::as_str).unwrap_or_default()
}

/// A text member of `metadata`, or nothing.
pub(crate) fn metadata_text<'v>(object: &'v Value, key: &str) -> &'v str {
    object
        .get("metadata")
        .map_or("", |metadata| text_at(metadata, key))
}

/// Labels or annotations: the entries that are texts.
pub(crate) fn metadata_map<'v>(object: &'v Value, key: &str) -> BTreeMap<&'v str, &'v str> {
    let members = object
        .get("metadata")
        .and_then(|metadata| metadata.get(key));
    let members = members.and_then(Value::as_object).into_iter().flatten();
    members
        .filter_map(|(key, value)| Some((key.as_str(), value.as_str()?)))
        .collect()
}
