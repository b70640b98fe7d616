//! Webhooks that policies need in an API server (docs/spec/policies.md §13).
//!
//! From policies and the resources of an API server, builds the
//! `ValidatingWebhookConfiguration` that Kyverno would register, and lists the kinds
//! without a resource.

use std::collections::{BTreeMap, BTreeSet};

use kpvm_syntax::tree::Tree;
use serde_json::{Map, Value, json};

use crate::policy::autogen::compute_rules;
use crate::policy::discovery::{Discovery, Resource};
use crate::policy::kind_selector::KindSelector;
use crate::policy::match_resources::ResourceRule;
use crate::policy::model::{Filter, Policy, PolicyKind, Rule};
use crate::policy::read::{bool_of, field, items, text_of};
use crate::policy::validating_autogen::variants;
use crate::policy::validating_policy::{Mode, ValidatingPolicy};
use crate::source::Location;

/// Timeout of Kyverno's webhooks in seconds, unless a policy sets one.
const DEFAULT_TIMEOUT: i64 = 10;
/// Maximum accepted by the API server.
const MAX_TIMEOUT: i64 = 30;

const ALL: [&str; 4] = ["CREATE", "UPDATE", "DELETE", "CONNECT"];

/// The Service of the webhooks, as installed by Kyverno's Helm chart.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Service {
    /// Name of the Service.
    pub name: String,
    /// Its namespace.
    pub namespace: String,
}

impl Default for Service {
    fn default() -> Self {
        Self {
            name: "kyverno-svc".to_owned(),
            namespace: "kyverno".to_owned(),
        }
    }
}

/// A kind of a policy without a resource, so that no webhook is called for it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct UnknownKind {
    /// The policy.
    pub policy: String,
    /// The kind as written.
    pub kind: String,
    /// Location of the policy.
    pub location: Location,
}

/// Webhooks of the policies.
#[derive(Debug, Clone, PartialEq)]
pub struct Webhooks {
    /// A `ValidatingWebhookConfiguration`; `webhooks` is empty if none is needed.
    pub configuration: Value,
    /// Ignored kinds, once per policy.
    pub unknown: Vec<UnknownKind>,
}

/// Derives the webhooks: those of classic policies, then those of ValidatingPolicies.
pub fn derive(
    policies: &[Policy],
    validating: &[ValidatingPolicy],
    discovery: &Discovery,
    service: &Service,
) -> Webhooks {
    let mut unknown = Vec::new();
    let mut ignore = Webhook::new("ignore");
    let mut fail = Webhook::new("fail");
    let (mut fine_ignore, mut fine_fail) = (Vec::new(), Vec::new());
    for policy in policies.iter().filter(|policy| needs_webhook(policy)) {
        let is_ignore = policy.failure_policy.as_deref() == Some("Ignore");
        let conditions = policy.match_conditions.as_ref();
        let conditions =
            conditions.filter(|tree| tree.as_list().is_some_and(|all| !all.is_empty()));
        let Some(conditions) = conditions else {
            let webhook = if is_ignore { &mut ignore } else { &mut fail };
            webhook.add(policy, discovery, &mut unknown);
            continue;
        };
        let (name, list) = match is_ignore {
            true => ("ignore", &mut fine_ignore),
            false => ("fail", &mut fine_fail),
        };
        let mut webhook = Webhook::new(name);
        webhook.policy = Some(policy);
        webhook.match_conditions = Some(conditions);
        webhook.add(policy, discovery, &mut unknown);
        list.push(webhook);
    }
    let all = [ignore, fail]
        .into_iter()
        .chain(fine_ignore)
        .chain(fine_fail);
    let mut webhooks: Vec<Value> = all
        .filter(|webhook| !webhook.entries.is_empty())
        .map(|webhook| webhook.document(service))
        .collect();
    webhooks.extend(of_validating_policies(validating, service));
    Webhooks {
        configuration: json!({
            "apiVersion": "admissionregistration.k8s.io/v1",
            "kind": "ValidatingWebhookConfiguration",
            "metadata": {
                "name": "kyverno-resource-validating-webhook-cfg",
                "labels": {"webhook.kyverno.io/managed-by": "kyverno"},
            },
            "webhooks": webhooks,
        }),
        unknown,
    }
}

/// Whether requests are sent for the policy. Policies with a generated
/// ValidatingAdmissionPolicy are left to that.
fn needs_webhook(policy: &Policy) -> bool {
    let status = field(&policy.tree, "status");
    let generated = status
        .and_then(|status| field(status, "validatingadmissionpolicy"))
        .is_some_and(|status| bool_of(status, "generated", false));
    let is_generated = policy.kind == PolicyKind::ClusterPolicy && generated;
    policy.admission && !is_generated && policy.rules.iter().any(is_validating)
}

/// Whether the validating webhook must receive what the rule matches.
fn is_validating(rule: &Rule) -> bool {
    let changes_existing = rule.mutate.as_ref().is_some_and(|mutate| {
        !items(mutate, "targets").is_empty()
            || items(mutate, "foreach")
                .iter()
                .any(|foreach| !items(foreach, "targets").is_empty())
    });
    rule.validate.is_some()
        || rule.generate.is_some()
        || changes_existing
        || rule.verify_images.as_ref().is_some_and(checks_images)
}

/// Whether images are also checked after mutation: they are unless an entry disables it.
fn checks_images(verify_images: &Tree) -> bool {
    let entries = verify_images.as_list().unwrap_or_default();
    entries
        .iter()
        .any(|entry| bool_of(entry, "verifyDigest", true) || bool_of(entry, "required", true))
}

/// A resource and one operation.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
struct Entry {
    group: String,
    version: String,
    resource: String,
    subresource: String,
    scope: &'static str,
    operation: &'static str,
}

/// A webhook under construction.
struct Webhook<'p> {
    /// `ignore` or `fail`.
    failure_policy: &'static str,
    timeout: i64,
    entries: BTreeSet<Entry>,
    /// The only policy it is for.
    policy: Option<&'p Policy>,
    match_conditions: Option<&'p Tree>,
}

impl<'p> Webhook<'p> {
    fn new(failure_policy: &'static str) -> Self {
        Self {
            failure_policy,
            timeout: DEFAULT_TIMEOUT,
            entries: BTreeSet::new(),
            policy: None,
            match_conditions: None,
        }
    }

    /// Adds the matches of a policy.
    fn add(&mut self, policy: &Policy, discovery: &Discovery, unknown: &mut Vec<UnknownKind>) {
        let mut matched: Matched = BTreeMap::new();
        for rule in compute_rules(policy, None)
            .iter()
            .filter(|rule| is_validating(rule))
        {
            for (kind, operations) in matched_by(rule) {
                matched.entry(kind).or_default().extend(operations);
            }
            if let Some(generate) = &rule.generate {
                for kind in generated_kinds(generate) {
                    matched
                        .entry(kind)
                        .or_default()
                        .extend(["CREATE", "UPDATE", "DELETE"]);
                }
            }
        }
        for (kind, operations) in matched {
            if operations.is_empty() {
                continue;
            }
            let found = resources(&kind, policy, discovery);
            if found.is_empty() {
                unknown.push(UnknownKind {
                    policy: policy.name.value.clone(),
                    kind,
                    location: Location {
                        source: policy.source,
                        span: policy.name.span,
                    },
                });
            }
            for (resource, scope) in found {
                let entry = |operation: &&'static str| Entry {
                    group: resource.group.clone(),
                    version: resource.version.clone(),
                    resource: resource.name.clone(),
                    subresource: resource.subresource.clone(),
                    scope,
                    operation,
                };
                self.entries.extend(operations.iter().map(entry));
            }
        }
        if let Some(timeout) = timeout(policy) {
            self.timeout = self.timeout.max(timeout);
        }
    }

    /// Whether a broader entry covers this one.
    fn is_covered(&self, entry: &Entry) -> bool {
        let broader = |text: &str| match text {
            "*" => vec!["*".to_owned()],
            text => vec![text.to_owned(), "*".to_owned()],
        };
        let scopes = match entry.scope {
            "*" => &["*"][..],
            _ => &["Namespaced", "*"][..],
        };
        let pair =
            |resource: &str, subresource: &str| (resource.to_owned(), subresource.to_owned());
        let resources = match (entry.resource.as_str(), entry.subresource.as_str()) {
            ("*", "") => vec![pair("*", ""), pair("*", "*")],
            (resource, "") => vec![pair(resource, ""), pair("*", ""), pair("*", "*")],
            ("*", "*") => vec![pair("*", "*")],
            (resource, "*") => vec![pair(resource, "*"), pair("*", "*")],
            ("*", subresource) => vec![pair("*", subresource), pair("*", "*")],
            (resource, subresource) => vec![
                pair(resource, subresource),
                pair(resource, "*"),
                pair("*", subresource),
                pair("*", "*"),
            ],
        };
        let versions = broader(&entry.version);
        scopes.iter().any(|&scope| {
            broader(&entry.group).into_iter().any(|group| {
                versions.iter().any(|version| {
                    resources.iter().any(|(resource, subresource)| {
                        let other = Entry {
                            group: group.clone(),
                            version: version.clone(),
                            resource: resource.clone(),
                            subresource: subresource.clone(),
                            scope,
                            operation: entry.operation,
                        };
                        other != *entry && self.entries.contains(&other)
                    })
                })
            })
        })
    }

    fn rules(&self) -> Vec<Value> {
        type Operations = BTreeSet<&'static str>;
        let mut operations: BTreeMap<(&str, &str, &str), BTreeMap<String, Operations>> =
            BTreeMap::new();
        for entry in self.entries.iter().filter(|entry| !self.is_covered(entry)) {
            let path = match entry.subresource.as_str() {
                "" => entry.resource.clone(),
                subresource => format!("{}/{subresource}", entry.resource),
            };
            let key = (entry.group.as_str(), entry.version.as_str(), entry.scope);
            let resources = operations.entry(key).or_default();
            resources.entry(path).or_default().insert(entry.operation);
        }
        let mut rules = Vec::new();
        for ((group, version, scope), resources) in operations {
            let mut by_operations: BTreeMap<Operations, BTreeSet<String>> = BTreeMap::new();
            for (resource, operations) in resources {
                by_operations
                    .entry(operations)
                    .or_default()
                    .insert(resource);
            }
            for (operations, mut resources) in by_operations {
                let is_core = matches!(group, "" | "*") && matches!(version, "v1" | "*");
                if is_core && (resources.contains("pods") || resources.contains("*")) {
                    resources.insert("pods/ephemeralcontainers".to_owned());
                }
                rules.push((group, version, resources, operations, scope));
            }
        }
        // Kyverno's order: shorter lists first.
        rules.sort_by(|left, right| {
            let resources = |rule: &(_, _, BTreeSet<String>, Operations, _)| {
                (rule.2.len(), rule.2.clone(), rule.3.len(), rule.3.clone())
            };
            (left.0, left.1, resources(left), left.4).cmp(&(
                right.0,
                right.1,
                resources(right),
                right.4,
            ))
        });
        let rule = |(group, version, resources, operations, scope)| {
            json!({
                "apiGroups": [group],
                "apiVersions": [version],
                "operations": operations,
                "resources": resources,
                "scope": scope,
            })
        };
        rules.into_iter().map(rule).collect()
    }

    fn document(&self, service: &Service) -> Value {
        let own = |separator: &str| match self.policy {
            None => String::new(),
            Some(policy) => match policy.namespace.as_deref() {
                None | Some("") => policy.name.value.clone(),
                Some(namespace) => format!("{namespace}{separator}{}", policy.name.value),
            },
        };
        let mut name = format!("validate.kyverno.svc-{}", self.failure_policy);
        let mut path = format!("/validate/{}", self.failure_policy);
        if self.policy.is_some() {
            name = format!("{name}-finegrained-{}", own("-"));
            path = format!("{path}/finegrained/{}", own("/"));
        }
        let failure_policy = match self.failure_policy {
            "ignore" => "Ignore",
            _ => "Fail",
        };
        let mut webhook = Map::new();
        let mut set = |key: &str, value: Value| webhook.insert(key.to_owned(), value);
        set("name", name.into());
        set(
            "clientConfig",
            json!({"service": {
                "name": service.name, "namespace": service.namespace, "path": path, "port": 443,
            }}),
        );
        set("rules", self.rules().into());
        set("failurePolicy", failure_policy.into());
        set("sideEffects", "NoneOnDryRun".into());
        set("admissionReviewVersions", json!(["v1"]));
        set("objectSelector", json!({}));
        set("timeoutSeconds", self.timeout.min(MAX_TIMEOUT).into());
        set("matchPolicy", "Equivalent".into());
        if let Some(conditions) = self.match_conditions {
            set("matchConditions", conditions.to_json());
        }
        Value::Object(webhook)
    }
}

/// Webhooks of ValidatingPolicies: one for each with match conditions, a timeout or exact
/// matching, and one per failure policy for all others. Their matches are already written
/// as rules.
fn of_validating_policies(policies: &[ValidatingPolicy], service: &Service) -> Vec<Value> {
    let needs = |policy: &&ValidatingPolicy| {
        let status = field(&policy.tree, "status");
        let is_generated = status.is_some_and(|status| bool_of(status, "generated", false));
        policy.mode == Mode::Kubernetes && policy.admits && !is_generated
    };
    let (fine, basic): (Vec<_>, Vec<_>) = policies.iter().filter(needs).partition(|policy| {
        !policy.spec.conditions.is_empty() || policy.timeout().is_some() || policy.is_exact()
    });
    let mut webhooks = Vec::new();
    for is_ignore in [false, true] {
        let fine = fine
            .iter()
            .filter(|policy| policy.spec.ignores_failure == is_ignore);
        webhooks.extend(fine.map(|policy| of_one(policy, service)));
    }
    let mut names: Vec<&str> = basic
        .iter()
        .map(|policy| policy.name.value.as_str())
        .collect();
    names.sort_unstable();
    for is_ignore in [false, true] {
        let members = basic
            .iter()
            .filter(|policy| policy.spec.ignores_failure == is_ignore);
        let rules: Vec<Value> = members.flat_map(|policy| rules_of(policy, false)).collect();
        if !rules.is_empty() {
            let path = format!("/vpol/{}", names.join("/"));
            webhooks.push(validating_webhook(is_ignore, "", &path, rules, service));
        }
    }
    webhooks
}

fn of_one(policy: &ValidatingPolicy, service: &Service) -> Value {
    let name = &policy.name.value;
    let own = format!("-finegrained-{name}");
    let path = format!("/vpol/{name}");
    let is_ignore = policy.spec.ignores_failure;
    let rules = rules_of(policy, true);
    let mut webhook = validating_webhook(is_ignore, &own, &path, rules, service);
    let mut set = |key: &str, value: Value| {
        if let Value::Object(webhook) = &mut webhook {
            webhook.insert(key.to_owned(), value);
        }
    };
    let conditions = conditions_of(policy);
    if !conditions.is_empty() {
        set("matchConditions", conditions.into());
    }
    if policy.is_exact() {
        set("matchPolicy", "Exact".into());
    }
    if let Some(timeout) = policy.timeout() {
        set("timeoutSeconds", timeout.into());
    }
    webhook
}

fn validating_webhook(
    is_ignore: bool,
    own: &str,
    path: &str,
    rules: Vec<Value>,
    service: &Service,
) -> Value {
    let (suffix, failure_policy) = match is_ignore {
        true => ("ignore", "Ignore"),
        false => ("fail", "Fail"),
    };
    json!({
        "name": format!("vpol.validate.kyverno.svc-{suffix}{own}"),
        "clientConfig": {"service": {
            "name": service.name, "namespace": service.namespace, "path": path, "port": 443,
        }},
        "rules": rules,
        "failurePolicy": failure_policy,
        "sideEffects": "NoneOnDryRun",
        "admissionReviewVersions": ["v1"],
    })
}

/// Resource rules of a policy and of its autogen variants.
fn rules_of(policy: &ValidatingPolicy, own_first: bool) -> Vec<Value> {
    let mut variants = variants(policy);
    if !own_first && !variants.is_empty() {
        variants.rotate_left(1);
    }
    let constraints = variants
        .iter()
        .filter_map(|variant| variant.spec.constraints.as_ref());
    let rules = constraints.flat_map(|constraints| &constraints.resource_rules);
    let rule = |rule: &ResourceRule| {
        let mut document = Map::new();
        for (key, list) in [
            ("apiGroups", &rule.api_groups),
            ("apiVersions", &rule.api_versions),
            ("operations", &rule.operations),
            ("resources", &rule.resources),
        ] {
            if !list.is_empty() {
                document.insert(key.to_owned(), json!(list));
            }
        }
        if !rule.scope.is_empty() {
            document.insert("scope".to_owned(), rule.scope.as_str().into());
        }
        Value::Object(document)
    };
    rules.map(rule).collect()
}

/// Match conditions. With autogen, those of each variant apply only to its own kinds.
fn conditions_of(policy: &ValidatingPolicy) -> Vec<Value> {
    let variants = variants(policy);
    let is_alone = variants.len() == 1;
    let mut all = Vec::new();
    for variant in &variants {
        let rules = variant.spec.constraints.iter();
        let rules = rules.flat_map(|constraints| &constraints.resource_rules);
        let mut kinds: Vec<String> = rules
            .flat_map(|rule| rule.resources.iter().map(move |resource| (rule, resource)))
            .map(|(rule, resource)| guard(rule, resource))
            .collect();
        kinds.sort();
        let config = match (variant.is_generated, kinds.as_slice()) {
            (false, _) => "",
            (true, [only]) if only.contains("'CronJob'") => "-cronjobs",
            (true, _) => "-defaults",
        };
        for condition in &variant.spec.conditions {
            let (name, expression) = (text_of(condition, "name"), text_of(condition, "expression"));
            all.push(match is_alone {
                true => json!({"name": name, "expression": expression}),
                false => json!({
                    "name": format!("autogen{config}-{name}"),
                    "expression": format!("!({}) || ({expression})", kinds.join(" || ")),
                }),
            });
        }
    }
    all
}

/// Condition that an object has a kind, as written by Kyverno.
fn guard(rule: &ResourceRule, resource: &str) -> String {
    let group = rule.api_groups.first().map_or("", String::as_str);
    let version = rule.api_versions.first().map_or("", String::as_str);
    let mut kinds = kpvm_semantics::resource_kind::built_in();
    let kind = kinds.find(|kind| kind.group == group && kind.resource() == resource);
    let kind = kind.map_or("", |kind| kind.kind);
    let separator = if group.is_empty() { "" } else { "/" };
    format!("(object.apiVersion == '{group}{separator}{version}' && object.kind =='{kind}')")
}

/// Kinds as written, with the operations of their rules.
type Matched = BTreeMap<String, BTreeSet<&'static str>>;

fn matched_by(rule: &Rule) -> Matched {
    let mut matched: Matched = BTreeMap::new();
    let block = &rule.match_block;
    let filters = std::iter::once(&block.direct)
        .chain(block.all.iter().flatten())
        .chain(block.any.iter().flatten());
    for filter in filters {
        let operations = operations_of(filter);
        for kind in &filter.resources.kinds {
            let entry = matched.entry(kind.value.clone()).or_default();
            entry.extend(operations.clone());
        }
    }
    let excluded = rule.exclude_block.iter().flat_map(|block| &block.any);
    for filter in excluded.flatten().filter(|filter| is_only_kinds(filter)) {
        let operations = operations_of(filter);
        let kinds: Vec<String> = match filter.resources.kinds.as_slice() {
            [] => matched.keys().cloned().collect(),
            kinds => kinds.iter().map(|kind| kind.value.clone()).collect(),
        };
        for kind in kinds {
            if let Some(known) = matched.get_mut(&kind) {
                known.retain(|operation| !operations.contains(operation));
            }
        }
    }
    matched
}

/// Operations of a filter; all if it names none.
fn operations_of(filter: &Filter) -> Vec<&'static str> {
    let named = &filter.resources.operations;
    let is_named =
        |known: &&&'static str| named.is_empty() || named.iter().any(|name| name == **known);
    ALL.iter().filter(is_named).copied().collect()
}

/// Whether a filter only restricts kinds and operations.
fn is_only_kinds(filter: &Filter) -> bool {
    let resources = &filter.resources;
    let is_empty = |list: &Option<Vec<String>>| list.as_ref().is_none_or(Vec::is_empty);
    is_empty(&filter.roles)
        && is_empty(&filter.cluster_roles)
        && filter.subjects.as_ref().is_none_or(Vec::is_empty)
        && resources.name.is_empty()
        && resources.names.is_empty()
        && resources.namespaces.is_empty()
        && resources.annotations.as_ref().is_none_or(Vec::is_empty)
        && resources.selector.is_none()
        && resources.namespace_selector.is_none()
}

/// Kinds created by a generate rule, which are also watched.
fn generated_kinds(generate: &Tree) -> Vec<String> {
    let parts = std::iter::once(generate).chain(items(generate, "foreach"));
    parts
        .flat_map(|part| match text_of(part, "kind").as_str() {
            "" => {
                let clones = field(part, "cloneList");
                let kinds = clones.map_or(&[][..], |clones| items(clones, "kinds"));
                let kinds = kinds.iter().filter_map(Tree::as_str);
                kinds.map(str::to_owned).collect()
            }
            kind => vec![kind.to_owned()],
        })
        .collect()
}

/// Resources of a kind, with their scopes.
fn resources(kind: &str, policy: &Policy, discovery: &Discovery) -> Vec<(Resource, &'static str)> {
    let selector = KindSelector::parse(kind);
    let scope = |is_namespaced: bool| if is_namespaced { "Namespaced" } else { "*" };
    if selector.kind == "*" {
        let resource = Resource {
            group: selector.group,
            version: selector.version,
            name: selector.kind,
            subresource: selector.subresource,
            is_namespaced: policy.kind == PolicyKind::Policy,
        };
        let scope = scope(resource.is_namespaced);
        return vec![(resource, scope)];
    }
    let found = discovery.find(&selector).into_iter();
    found
        .map(|resource| (resource.clone(), scope(resource.is_namespaced)))
        .collect()
}

/// `webhookConfiguration.timeoutSeconds`, or the deprecated field.
fn timeout(policy: &Policy) -> Option<i64> {
    let spec = field(&policy.tree, "spec")?;
    let webhook = field(spec, "webhookConfiguration");
    let own = webhook.and_then(|webhook| field(webhook, "timeoutSeconds"));
    match own.or_else(|| field(spec, "webhookTimeoutSeconds"))?.value {
        kpvm_syntax::tree::TreeValue::Int(seconds) => Some(seconds),
        _ => None,
    }
}
