//! The parameters of a rule (docs/spec/cel.md §2.6).
//!
//! Turns `paramKind` and `paramRef` into the objects they name, which the host looks up.
//! For the binding of a ValidatingAdmissionPolicy the host may choose them as it likes
//! (docs/spec/cel.md §5).

use kpvm_format::instruction::RegisterId;
use kpvm_format::instruction::immediate::ParametersFor;
use serde_json::Value;

use super::context::text;
use super::failure::Flow;
use super::{Machine, Setting, World};
use crate::document::{Label, NodeId, Numbers};

/// The error if the host knows no cluster.
const NO_CLUSTER: &str = "nothing is known of a cluster here";

impl Machine {
    /// Finds the parameters and puts them into a list.
    pub(super) fn collect_params(
        &mut self,
        register: RegisterId,
        source: NodeId,
        whose: ParametersFor,
        setting: Setting<'_>,
        world: &mut World<'_>,
    ) -> Flow {
        let wanted = setting.view(world).to_value(source);
        let bound = match whose {
            ParametersFor::Binding => bound(&wanted, world),
            ParametersFor::Rule => Ok(None),
        };
        let found = bound.and_then(|bound| match bound {
            Some(found) => Ok(found),
            None => find(&wanted, setting, world),
        });
        match found.and_then(|found| push(&found, setting, world)) {
            Ok(list) => self.set(register, list),
            Err(error) => self.fail(&error),
        }
    }
}

/// The objects as a list of the evaluation's buffer, their numbers as they are.
fn push(objects: &[Value], setting: Setting<'_>, world: &mut World<'_>) -> Result<NodeId, String> {
    let symbols = setting.tables.symbols;
    let mut nodes = Vec::with_capacity(objects.len());
    for object in objects {
        let node = world.buffer.push_value(object, &symbols, Numbers::Exact);
        nodes.push(node.map_err(|error| error.to_string())?);
    }
    let buffer = &mut *world.buffer;
    buffer.begin(Label::ITEM);
    for node in nodes {
        buffer.push_node(Label::ITEM, node);
    }
    buffer.finish_list();
    buffer.take().map_err(|error| error.to_string())
}

/// The host's objects for a binding; `None` if it leaves the choice to the cluster's rules.
fn bound(wanted: &Value, world: &mut World<'_>) -> Result<Option<Vec<Value>>, String> {
    let reference = wanted.get("paramRef").unwrap_or(&Value::Null);
    world.host.bound_parameters(reference)
}

fn find(wanted: &Value, setting: Setting<'_>, world: &mut World<'_>) -> Result<Vec<Value>, String> {
    let part = |key: &str| wanted.get(key).unwrap_or(&Value::Null);
    let (kind, reference) = (part("paramKind"), part("paramRef"));
    let (api_version, kind) = (text(kind, "apiVersion"), text(kind, "kind"));
    if api_version.matches('/').count() > 1 {
        return Err("can't parse the parameter resource group version".to_owned());
    }
    let is_namespaced = world
        .host
        .is_namespaced(api_version, kind)
        .and_then(|answer| answer.ok_or_else(|| NO_CLUSTER.to_owned()))
        .map_err(|error| format!("failed to check if resource is namespaced or not ({error})"))?;
    let own = text(reference, "namespace");
    let namespace = match (is_namespaced, own) {
        (true, "") => match own_namespace(setting) {
            "" => {
                return Err(
                    "can't use namespaced paramRef to match cluster-scoped resources".to_owned(),
                );
            }
            namespace => namespace,
        },
        (true, namespace) => namespace,
        (false, "") => "",
        (false, _) => {
            return Err(
                "paramRef.namespace must not be provided for a cluster-scoped `paramKind`"
                    .to_owned(),
            );
        }
    };
    let name = text(reference, "name");
    if !name.is_empty() {
        let object = world.host.object(api_version, kind, namespace, name)?;
        return Ok(vec![object.ok_or(NO_CLUSTER)?]);
    }
    let selector = reference.get("selector");
    let found = match selector.filter(|selector| !selector.is_null()) {
        None => Vec::new(),
        Some(selector) => {
            let answer = world.host.objects(api_version, kind, namespace, selector)?;
            answer.ok_or(NO_CLUSTER)?
        }
    };
    if found.is_empty() && text(reference, "parameterNotFoundAction") == "Deny" {
        return Err("no params found".to_owned());
    }
    Ok(found)
}

/// The namespace of the object; empty for a Namespace.
fn own_namespace<'s>(setting: Setting<'s>) -> &'s str {
    match setting.subject.kind {
        "Namespace" => "",
        _ => setting.subject.namespace,
    }
}
