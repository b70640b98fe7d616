//! `request`, `namespaceObject` and `exceptions` of CEL (docs/spec/cel.md §2.4 and §6.2):
//! maps without empty members.

use kpvm_format::Tables;
use serde_json::{Map, Number, Value, json};

use super::{RequestFacts, Subject};
use crate::document::{Label, NodeId, Numbers, Opaque};
use crate::function::{FunctionError, Values};

/// A map under construction.
struct Members<'v, 'w> {
    values: &'v mut Values<'w>,
    members: Vec<(Label, NodeId)>,
}

impl<'v, 'w> Members<'v, 'w> {
    fn new(values: &'v mut Values<'w>) -> Self {
        Self {
            values,
            members: Vec::new(),
        }
    }

    fn set(&mut self, key: &str, value: NodeId) -> Result<(), FunctionError> {
        let label = self.values.label(key)?;
        self.members.push((label, value));
        Ok(())
    }

    fn text(&mut self, key: &str, text: &str) -> Result<(), FunctionError> {
        let value = self.values.new_text(text)?;
        self.set(key, value)
    }

    /// Adds a text unless it is empty.
    fn some_text(&mut self, key: &str, text: &str) -> Result<(), FunctionError> {
        if text.is_empty() {
            return Ok(());
        }
        self.text(key, text)
    }

    fn finish(self) -> Result<NodeId, FunctionError> {
        self.values.new_map(&self.members)
    }
}

/// The request as a map. Nothing is known about its resource except the kind.
pub(super) fn request(
    facts: &RequestFacts<'_>,
    subject: &Subject<'_>,
    values: &mut Values<'_>,
) -> Result<NodeId, FunctionError> {
    make_request(facts, subject, ["", "", ""], &[], values)
}

/// The request with its resource.
pub(super) fn resource_request(
    facts: &RequestFacts<'_>,
    subject: &Subject<'_>,
    values: &mut Values<'_>,
) -> Result<NodeId, FunctionError> {
    let resource = [facts.group, facts.version, facts.resource];
    make_request(facts, subject, resource, &[], values)
}

/// The request with its resource and its objects.
pub(super) fn full_request(
    facts: &RequestFacts<'_>,
    subject: &Subject<'_>,
    values: &mut Values<'_>,
) -> Result<NodeId, FunctionError> {
    let mut objects = Vec::new();
    for (key, object) in [("object", facts.object), ("oldObject", facts.old_object)] {
        let object = match object {
            Some(object) => whole_numbers(facts, object, values)?,
            None => values.new_null()?,
        };
        objects.push((key, object));
    }
    let resource = [facts.group, facts.version, facts.resource];
    make_request(facts, subject, resource, &objects, values)
}

/// The object of a request: it has been through JSON once more, so that integral numbers
/// are ints again (docs/spec/cel.md §3.3).
fn whole_numbers(
    facts: &RequestFacts<'_>,
    object: NodeId,
    values: &mut Values<'_>,
) -> Result<NodeId, FunctionError> {
    if facts.numbers == Numbers::Exact {
        return Ok(object);
    }
    let view = values.view();
    let steps = view.len(object) as u64;
    let mut value = view.to_value(object);
    values.charge(steps)?;
    restore_integers(&mut value);
    values.new_value(&value)
}

/// The recursion is as deep as the document, which is bounded when it is read.
fn restore_integers(value: &mut Value) {
    match value {
        Value::Number(number) => {
            let float = number.as_f64().filter(|float| {
                number.is_f64() && float.fract() == 0.0 && float.abs() < 9_007_199_254_740_992.0
            });
            if let Some(float) = float {
                *number = Number::from(float as i64);
            }
        }
        Value::Array(items) => items.iter_mut().for_each(restore_integers),
        Value::Object(members) => members.values_mut().for_each(restore_integers),
        Value::Null | Value::Bool(_) | Value::String(_) => {}
    }
}

fn make_request(
    facts: &RequestFacts<'_>,
    subject: &Subject<'_>,
    names: [&str; 3],
    objects: &[(&str, NodeId)],
    values: &mut Values<'_>,
) -> Result<NodeId, FunctionError> {
    let kind = {
        let mut kind = Members::new(values);
        kind.text("group", facts.group)?;
        kind.text("version", facts.version)?;
        kind.text("kind", facts.kind)?;
        kind.finish()?
    };
    let resource = {
        let mut resource = Members::new(values);
        for (key, name) in ["group", "version", "resource"].into_iter().zip(names) {
            resource.text(key, name)?;
        }
        resource.finish()?
    };
    let user = user_info(facts, values)?;
    let dry_run = values.new_bool(false)?;
    let options = values.new_null()?;
    let mut request = Members::new(values);
    request.text("uid", "")?;
    request.set("kind", kind)?;
    request.set("resource", resource)?;
    request.set("requestKind", kind)?;
    request.set("requestResource", resource)?;
    request.some_text("subResource", facts.subresource)?;
    request.some_text("requestSubResource", facts.subresource)?;
    request.some_text("name", subject.name)?;
    if subject.kind != "Namespace" {
        request.some_text("namespace", subject.namespace)?;
    }
    request.text("operation", facts.operation_name)?;
    request.set("userInfo", user)?;
    request.set("dryRun", dry_run)?;
    request.set("options", options)?;
    for &(key, object) in objects {
        request.set(key, object)?;
    }
    request.finish()
}

fn user_info(facts: &RequestFacts<'_>, values: &mut Values<'_>) -> Result<NodeId, FunctionError> {
    let user = facts.context_user.unwrap_or_default();
    let groups = if user.groups.is_empty() {
        None
    } else {
        Some(values.new_texts(user.groups)?)
    };
    let mut members = Members::new(values);
    members.some_text("username", user.username)?;
    members.some_text("uid", user.uid)?;
    if let Some(groups) = groups {
        members.set("groups", groups)?;
    }
    members.finish()
}

/// The user of the request, asking for access to anything, or to the object of the request,
/// whose resource is not known.
pub(super) fn authorizer(
    facts: &RequestFacts<'_>,
    subject: &Subject<'_>,
    is_whole: bool,
    values: &mut Values<'_>,
) -> Result<NodeId, FunctionError> {
    let user = facts.context_user.unwrap_or_default();
    let mut review = json!({ "user": user.username, "groups": user.groups });
    if is_whole {
        return values.new_opaque(Opaque::Authorizer, &review.to_string());
    }
    let mut attributes = Map::new();
    for (key, text) in [
        ("group", ""),
        ("resource", ""),
        ("subresource", facts.subresource),
        ("namespace", subject.namespace),
        ("name", subject.name),
    ] {
        attributes.insert(key.to_owned(), text.into());
    }
    if let Some(review) = review.as_object_mut() {
        review.insert("resourceAttributes".to_owned(), attributes.into());
    }
    values.new_opaque(Opaque::ResourceCheck, &review.to_string())
}

/// The namespace as far as it is known: its name. Null for cluster-wide objects and for a
/// namespace.
pub(super) fn namespace(
    subject: &Subject<'_>,
    values: &mut Values<'_>,
) -> Result<NodeId, FunctionError> {
    if subject.namespace.is_empty() || subject.kind == "Namespace" {
        return values.new_null();
    }
    let metadata = {
        let mut metadata = Members::new(values);
        metadata.text("name", subject.namespace)?;
        metadata.finish()?
    };
    let empty = values.new_map(&[])?;
    let mut namespace = Members::new(values);
    namespace.set("metadata", metadata)?;
    namespace.set("spec", empty)?;
    namespace.set("status", empty)?;
    namespace.finish()
}

/// The namespace with its name and labels; without either for cluster-wide objects.
pub(super) fn labelled_namespace(
    facts: &RequestFacts<'_>,
    subject: &Subject<'_>,
    values: &mut Values<'_>,
) -> Result<NodeId, FunctionError> {
    let mut metadata = Map::new();
    if !subject.namespace.is_empty() && subject.kind != "Namespace" {
        metadata.insert("name".to_owned(), subject.namespace.into());
        let labels = facts.namespace_labels.iter();
        let labels: Map<String, Value> = labels
            .map(|&(key, value)| (key.to_owned(), value.into()))
            .collect();
        if !labels.is_empty() {
            metadata.insert("labels".to_owned(), labels.into());
        }
    }
    values.new_value(&json!({ "metadata": metadata, "spec": {}, "status": {} }))
}

/// The namespace as the host gave it; null if it did not, and for cluster-wide objects.
pub(super) fn given_namespace(
    facts: &RequestFacts<'_>,
    subject: &Subject<'_>,
    values: &mut Values<'_>,
) -> Result<NodeId, FunctionError> {
    let given = facts.namespace_object;
    match given.filter(|_| !subject.namespace.is_empty() && subject.kind != "Namespace") {
        Some(namespace) => values.new_value(namespace),
        None => values.new_null(),
    }
}

/// What the exceptions with these numbers allow.
pub(super) fn exceptions(
    numbers: &[u32],
    tables: &Tables<'_>,
    values: &mut Values<'_>,
) -> Result<NodeId, FunctionError> {
    let mut lists = Vec::new();
    for which in 0..2 {
        let records = numbers
            .iter()
            .filter_map(|&number| tables.exceptions.get(number as usize));
        let listed = records.filter_map(|record| record.allowed.get(which));
        let texts: Vec<&str> = listed
            .flat_map(|list| tables.text_list(list.get()))
            .collect();
        lists.push(values.new_texts(&texts)?);
    }
    let mut members = Members::new(values);
    for (key, list) in ["allowedImages", "allowedValues"].into_iter().zip(lists) {
        members.set(key, list)?;
    }
    members.finish()
}
