//! The request's context (docs/spec/conditions.md §6) and data from outside (§9).

use kpvm_format::instruction::RegisterId;
use kpvm_format::instruction::immediate::{ForeachDepth, Provision};
use serde_json::{Map, Value};
use smallvec::SmallVec;

use super::failure::Flow;
use super::{Ending, Machine, Setting, World};
use crate::document::{Label, NodeId, Numbers};
use crate::engine::merge;
use crate::function::FunctionError;
use crate::host::ApiCall;

/// Length of the prefix that Kyverno cuts off a service account's user name.
const SERVICE_ACCOUNT_PREFIX: usize = "system:serviceaccount:".len();

impl Machine {
    /// The map of `request`, the service account's names and the host's variables, built
    /// when it is first needed.
    pub(super) fn base_context(
        &mut self,
        setting: Setting<'_>,
        world: &mut World<'_>,
    ) -> Result<NodeId, FunctionError> {
        if let Some(base) = self.base {
            return Ok(base);
        }
        let base = build_base(setting, world)?;
        self.base = Some(base);
        Ok(base)
    }

    /// Queries the host; the answer is kept for the rest of the evaluation.
    pub(super) fn fetch(
        &mut self,
        register: RegisterId,
        request: NodeId,
        provision: Provision,
        setting: Setting<'_>,
        world: &mut World<'_>,
    ) -> Flow {
        let request = setting.view(world).to_value(request);
        if provision == Provision::ApiCall
            && !setting.policy_namespace.is_empty()
            && let Err(error) = confine(text(&request, "urlPath"), setting.policy_namespace)
        {
            // A default does not help either (docs/spec/conditions.md §9.3): nothing was tried.
            self.fail_with(&format!("failed to fetch data for APICall: {error}"));
            return Flow::End(Ending::Failed {
                depth: ForeachDepth::default(),
            });
        }
        match self.ask(provision, &request, setting, world) {
            Ok(found) => self.set(register, found.unwrap_or(NodeId::MISSING)),
            Err(error) => self.fail(&error),
        }
    }

    fn ask(
        &mut self,
        provision: Provision,
        request: &Value,
        setting: Setting<'_>,
        world: &mut World<'_>,
    ) -> Result<Option<NodeId>, String> {
        let key = format!("{provision:?} {request}");
        if let Some(answer) = self.fetched.get(&key) {
            return answer.clone();
        }
        let answer = match provision {
            Provision::ConfigMap => config_map(request, setting, world),
            Provision::ApiCall => api_call(request, world),
            Provision::GlobalReference => {
                let name = text(request, "name");
                world.host.global_reference(name)
            }
            Provision::ImageRegistry => {
                let reference = text(request, "reference");
                world.host.image_registry(reference)
            }
        };
        let answer = answer.and_then(|value| {
            let Some(value) = value else { return Ok(None) };
            let symbols = setting.tables.symbols;
            let node = world.buffer.push_value(&value, &symbols, Numbers::Float);
            node.map(Some).map_err(|error| error.to_string())
        });
        self.fetched.insert(key, answer.clone());
        answer
    }
}

pub(super) fn text<'v>(value: &'v Value, key: &str) -> &'v str {
    value.get(key).and_then(Value::as_str).unwrap_or_default()
}

fn config_map(
    request: &Value,
    setting: Setting<'_>,
    world: &mut World<'_>,
) -> Result<Option<Value>, String> {
    let policy_namespace = setting.policy_namespace;
    let namespace = match text(request, "namespace") {
        "" if policy_namespace.is_empty() => "default",
        "" => policy_namespace,
        namespace => namespace,
    };
    if !policy_namespace.is_empty() && namespace != policy_namespace {
        let entry = text(request, "entry");
        return Err(format!(
            "context entry {entry}: configMap namespace \"{namespace}\" is different from policy namespace \"{policy_namespace}\""
        ));
    }
    let name = text(request, "name");
    let answer = world.host.config_map(namespace, name);
    let answer =
        answer.map_err(|error| format!("failed to get configmap {namespace}/{name} : {error}"))?;
    Ok(answer.map(|value| {
        // Missing data is null, as Go writes a nil map.
        let data = value.get("data").cloned().unwrap_or_default();
        let metadata = value.get("metadata").cloned();
        let metadata = metadata.unwrap_or_else(|| Value::Object(Map::new()));
        serde_json::json!({ "data": data, "metadata": metadata })
    }))
}

fn api_call(request: &Value, world: &mut World<'_>) -> Result<Option<Value>, String> {
    let url_path = text(request, "urlPath");
    require_plain(url_path)?;
    let pairs = |list: Option<&Value>| -> Vec<(String, Value)> {
        let items = list
            .and_then(Value::as_array)
            .map_or(&[][..], Vec::as_slice);
        items
            .iter()
            .map(|item| {
                (
                    text(item, "key").to_owned(),
                    item.get("value").cloned().unwrap_or(Value::Null),
                )
            })
            .collect()
    };
    let data: Map<String, Value> = pairs(request.get("data")).into_iter().collect();
    let data = Value::Object(data);
    let service = request.get("service");
    let headers = pairs(service.and_then(|service| service.get("headers")));
    let headers: Vec<(&str, &str)> = headers
        .iter()
        .map(|(key, value)| (key.as_str(), value.as_str().unwrap_or_default()))
        .collect();
    world.host.api_call(&ApiCall {
        url_path,
        method: match text(request, "method") {
            "" => "GET",
            method => method,
        },
        data: request.get("data").map(|_| &data),
        service_url: service.map(|service| text(service, "url")),
        headers: &headers,
        ca_bundle: service
            .and_then(|service| service.get("caBundle"))
            .and_then(Value::as_str),
    })
}

/// Paths with parts that a server might resolve or decode differently are refused for every
/// policy.
fn require_plain(url_path: &str) -> Result<(), String> {
    let path = url_path.split('?').next().unwrap_or_default();
    let suspicious = path.contains("//") || path.contains(';') || path.contains('\\');
    let dotted = path.split('/').any(|part| {
        let part = part.to_ascii_lowercase().replace("%2e", ".");
        part == ".." || part == "."
    });
    if suspicious || dotted || path.to_ascii_lowercase().contains("%2f") {
        return Err(format!(
            "path {url_path} is not plain: expected no `..`, `//`, `;`, `\\` or encoded parts"
        ));
    }
    Ok(())
}

/// A namespaced policy may use only its own namespace (docs/spec/conditions.md §9.3).
fn confine(url_path: &str, policy_namespace: &str) -> Result<(), String> {
    require_plain(url_path)?;
    let path = url_path.split('?').next().unwrap_or_default();
    let url_path = match url_path.trim_end_matches('/') {
        "" => ".",
        cleaned => cleaned,
    };
    let mut parts = path.split('/').skip_while(|part| *part != "namespaces");
    match (
        path.starts_with("/api/") || path.starts_with("/apis/"),
        parts.nth(1),
    ) {
        (true, Some(namespace)) if namespace == policy_namespace => Ok(()),
        (true, Some(namespace)) if !namespace.is_empty() => Err(format!(
            "path {url_path} refers to namespace {namespace}, which is different from the policy namespace {policy_namespace}"
        )),
        _ => Err(format!(
            "path {url_path} does not contain a namespace segment, which is required for namespaced policies"
        )),
    }
}

/// Members of a map of the base context, inline for as many as a request has without the
/// host's variables, so that nothing is allocated for them.
type Members<'m> = SmallVec<[(&'m str, NodeId); 8]>;

fn build_base(setting: Setting<'_>, world: &mut World<'_>) -> Result<NodeId, FunctionError> {
    let facts = setting.request;
    let extra = facts.variables.and_then(Value::as_object);
    let extra_request = extra
        .and_then(|extra| extra.get("request"))
        .and_then(Value::as_object);
    // Values given for an object are merged into it in the context only.
    let with_additions = |object: Option<NodeId>, key: &str, world: &World<'_>| {
        let additions = extra_request.and_then(|request| request.get(key))?;
        let mut whole = setting.view(world).to_value(object?);
        merge(&mut whole, additions);
        Some(whole)
    };
    let objects = [("object", facts.object), ("oldObject", facts.old_object)];
    let added = objects.map(|(key, object)| with_additions(object, key, world));
    let mut builder = Builder { setting, world };
    // Values are pushed completely before the map is begun: pushing uses the same stack.
    let mut request: Members<'_> = SmallVec::new();
    for (key, value) in extra_request.into_iter().flatten() {
        let node = builder.value(value)?;
        request.push((key, node));
    }
    let has =
        |request: &[(&str, NodeId)], key: &str| request.iter().any(|(known, _)| *known == key);
    for ((key, object), added) in objects.into_iter().zip(&added) {
        let object = match added {
            Some(whole) => Some(builder.value(whole)?),
            None => object,
        };
        if let Some(object) = object {
            request.retain(|(known, _)| *known != key);
            request.push((key, object));
        }
    }
    for (key, text) in [
        ("operation", facts.operation_name),
        ("namespace", facts.namespace),
    ] {
        if !has(&request, key) {
            let node = builder.text(text)?;
            request.push((key, node));
        }
    }
    let mut root: Members<'_> = SmallVec::new();
    for (key, value) in extra
        .into_iter()
        .flatten()
        .filter(|(key, _)| *key != "request")
    {
        let node = builder.value(value)?;
        root.push((key, node));
    }
    if let Some(user) = facts.context_user {
        if !has(&request, "userInfo") {
            let mut info: Members<'_> = SmallVec::new();
            if !user.username.is_empty() {
                info.push(("username", builder.text(user.username)?));
            }
            if !user.groups.is_empty() {
                info.push(("groups", builder.texts(user.groups)?));
            }
            let info = builder.map(&info)?;
            request.push(("userInfo", info));
        }
        for (key, list) in [("roles", user.roles), ("clusterRoles", user.cluster_roles)] {
            if !list.is_empty() && !has(&request, key) {
                let node = builder.texts(list)?;
                request.push((key, node));
            }
        }
        let (namespace, name) = service_account(user.username);
        for (key, text) in [
            ("serviceAccountName", name),
            ("serviceAccountNamespace", namespace),
        ] {
            if !has(&root, key) {
                let node = builder.text(text)?;
                root.push((key, node));
            }
        }
    }
    let request = builder.map(&request)?;
    root.push(("request", request));
    builder.map(&root)
}

/// Namespace and name of a service account, cut out of a user name as Kyverno does.
fn service_account(username: &str) -> (&str, &str) {
    let Some(rest) = username.get(SERVICE_ACCOUNT_PREFIX..) else {
        return ("", "");
    };
    let mut parts = rest.split(':');
    match (parts.next(), parts.next()) {
        (Some(namespace), Some(name)) => (namespace, name),
        _ => ("", ""),
    }
}

/// Pushes the parts of the base context.
struct Builder<'b, 's, 'w> {
    setting: Setting<'s>,
    world: &'b mut World<'w>,
}

impl Builder<'_, '_, '_> {
    fn value(&mut self, value: &Value) -> Result<NodeId, FunctionError> {
        let symbols = self.setting.tables.symbols;
        Ok(self
            .world
            .buffer
            .push_value(value, &symbols, Numbers::Float)?)
    }

    fn text(&mut self, text: &str) -> Result<NodeId, FunctionError> {
        let text = self.world.buffer.copy_text(text.as_bytes())?;
        self.world.buffer.push_text(Label::ITEM, text);
        Ok(self.world.buffer.take()?)
    }

    fn texts(&mut self, texts: &[&str]) -> Result<NodeId, FunctionError> {
        let buffer = &mut *self.world.buffer;
        buffer.begin(Label::ITEM);
        for text in texts {
            let text = buffer.copy_text(text.as_bytes())?;
            buffer.push_text(Label::ITEM, text);
        }
        buffer.finish_list();
        Ok(buffer.take()?)
    }

    fn map(&mut self, members: &[(&str, NodeId)]) -> Result<NodeId, FunctionError> {
        let symbols = self.setting.tables.symbols;
        let buffer = &mut *self.world.buffer;
        buffer.begin(Label::ITEM);
        for &(key, value) in members {
            let label = buffer.label(key, &symbols)?;
            buffer.push_node(label, value);
        }
        buffer.finish_map(self.setting.texts);
        Ok(buffer.take()?)
    }
}
