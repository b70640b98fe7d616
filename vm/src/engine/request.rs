//! What a session is asked to evaluate.

use kpvm_format::instruction::immediate::Operations;
use serde_json::Value;

use crate::document::Numbers;
use kpvm_syntax::tree::Tree;

/// An object in one of the forms that sessions read.
#[derive(Debug, Clone, Copy)]
pub enum Input<'i> {
    /// JSON text, the fastest form.
    Json(&'i [u8]),
    /// A value that has been parsed already.
    Value(&'i Value),
    /// A value read from YAML.
    Tree(&'i Tree),
}

/// What is done to the object.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Operation {
    /// The object is created; also every background scan.
    #[default]
    Create,
    /// The object replaces the old one.
    Update,
    /// The old object is deleted; there is no new one.
    Delete,
    /// A connection to a subresource.
    Connect,
}

impl Operation {
    /// Parses Kubernetes' name of an operation: `CREATE`, `UPDATE`, `DELETE`, `CONNECT`.
    pub fn parse(text: &str) -> Option<Self> {
        match text {
            "CREATE" => Some(Self::Create),
            "UPDATE" => Some(Self::Update),
            "DELETE" => Some(Self::Delete),
            "CONNECT" => Some(Self::Connect),
            _ => None,
        }
    }

    /// Kubernetes' name for it.
    pub fn name(self) -> &'static str {
        match self {
            Self::Create => "CREATE",
            Self::Update => "UPDATE",
            Self::Delete => "DELETE",
            Self::Connect => "CONNECT",
        }
    }

    /// The operation as a bit of `MatchOperations`.
    pub(crate) fn bit(self) -> Operations {
        match self {
            Self::Create => Operations::CREATE,
            Self::Update => Operations::UPDATE,
            Self::Delete => Operations::DELETE,
            Self::Connect => Operations::CONNECT,
        }
    }
}

/// A kind with its group and version.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct GroupVersionKind<'r> {
    /// API group; empty for core.
    pub group: &'r str,
    /// Version.
    pub version: &'r str,
    /// Kind.
    pub kind: &'r str,
}

/// Who makes the request.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct UserInfo<'r> {
    /// User name.
    pub username: &'r str,
    /// Distinguishes users of the same name; CEL expressions can see it.
    pub uid: &'r str,
    /// Groups.
    pub groups: &'r [&'r str],
    /// Roles as `namespace:name`.
    pub roles: &'r [&'r str],
    /// Cluster roles.
    pub cluster_roles: &'r [&'r str],
}

impl UserInfo<'_> {
    /// Whether nothing is known about the user, as in a background scan.
    pub(crate) fn is_empty(&self) -> bool {
        self.username.is_empty()
            && self.groups.is_empty()
            && self.roles.is_empty()
            && self.cluster_roles.is_empty()
    }
}

/// Merges a value into another: maps are merged member by member, anything else is
/// replaced.
pub fn merge(target: &mut Value, from: &Value) {
    match (target, from) {
        (Value::Object(target), Value::Object(from)) => {
            for (key, value) in from {
                match target.get_mut(key) {
                    Some(member) => merge(member, value),
                    None => {
                        target.insert(key.clone(), value.clone());
                    }
                }
            }
        }
        (target, from) => *target = from.clone(),
    }
}

/// One request.
#[derive(Debug, Clone, Copy, Default)]
pub struct Request<'r> {
    /// The new object; absent on DELETE.
    pub object: Option<Input<'r>>,
    /// The object before the change, on UPDATE and DELETE.
    pub old_object: Option<Input<'r>>,
    /// The operation.
    pub operation: Operation,
    /// The kind of the request's resource; `None` means that of the object itself.
    pub kind: Option<GroupVersionKind<'r>>,
    /// Name of the kind's resource, e.g. `pods`. If empty, it is guessed from the kind as
    /// Kubernetes does, which is right for every built-in kind.
    pub resource: &'r str,
    /// The subresource; empty for the resource itself.
    pub subresource: &'r str,
    /// The user; `None` in a background scan.
    pub user: Option<UserInfo<'r>>,
    /// Labels of the object's namespace.
    pub namespace_labels: &'r [(&'r str, &'r str)],
    /// The object's namespace as an object, including its labels, for CEL's
    /// `namespaceObject`; `None` if only the labels are known.
    pub namespace_object: Option<&'r Value>,
    /// Further values of the context: a map whose members are added beside `request`, and
    /// whose `request` is merged into it by [`merge`] (`kyverno test` takes them from a
    /// values file). Patterns and match blocks see the objects without them.
    pub variables: Option<&'r Value>,
    /// Whether the object is arbitrary JSON: only policies for such payloads are evaluated.
    pub is_payload: bool,
    /// Whether a NamespacedValidatingPolicy applies to objects of every namespace, as in
    /// Kyverno's command line, or only to those of its own (docs/spec/cel.md §6.6).
    pub every_namespace: bool,
    /// How the object's numbers are read: kept as they are, or all as float64 as in
    /// `kyverno apply` and `kyverno test`.
    pub numbers: Numbers,
}

impl<'r> Request<'r> {
    /// The creation of an object, with nothing else known.
    pub fn create(object: Input<'r>) -> Self {
        Self {
            object: Some(object),
            ..Self::default()
        }
    }

    /// The replacement of an object.
    pub fn update(old_object: Input<'r>, object: Input<'r>) -> Self {
        Self {
            object: Some(object),
            old_object: Some(old_object),
            operation: Operation::Update,
            ..Self::default()
        }
    }

    /// The deletion of an object.
    pub fn delete(old_object: Input<'r>) -> Self {
        Self {
            old_object: Some(old_object),
            operation: Operation::Delete,
            ..Self::default()
        }
    }
}
