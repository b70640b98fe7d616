//! Generates ValidatingAdmissionPolicies with their bindings from policies whose only rule
//! is `validate.cel`, and from ValidatingPolicies (docs/spec/cel.md §4).
//!
//! Takes a policy with its exceptions; returns the two objects, or Kyverno's reason for not
//! generating them.

use kpvm_semantics::wildcard::{contains_wildcard, matches};
use kpvm_syntax::tree::Tree;
use serde_json::{Map, Value, json};

use crate::policy::discovery::Discovery;
use crate::policy::kind_selector::KindSelector;
use crate::policy::model::{
    FailureActionOverride, Filter, LabelSelector, MatchBlock, Policy, PolicyException, PolicyKind,
    ResourceDescription, Rule,
};
use crate::policy::read::{bool_of, field, text_of};
use crate::policy::validating_autogen::variants;
use crate::policy::validating_policy::{CelException, ValidatingPolicy};

/// Prefix of most reasons.
const SKIP: &str = "skip generating ValidatingAdmissionPolicy: ";

/// A Kubernetes admission policy and its binding.
#[derive(Debug, Clone, PartialEq)]
pub struct Generated {
    /// The `ValidatingAdmissionPolicy`.
    pub policy: Value,
    /// Its `ValidatingAdmissionPolicyBinding`.
    pub binding: Value,
}

/// Reason why nothing is generated.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Refusal {
    /// Kyverno does not consider policies of this kind.
    NotConsidered(&'static str),
    /// It does not qualify; Kyverno's message.
    Disqualified(String),
    /// It qualifies but cannot be translated; Kyverno's error.
    Failed(String),
}

/// Translates a policy.
///
/// # Errors
/// The reason why nothing is generated.
pub fn generate(
    policy: &Policy,
    exceptions: &[PolicyException],
    discovery: &Discovery,
) -> Result<Generated, Refusal> {
    if policy.kind != PolicyKind::ClusterPolicy {
        return Err(Refusal::NotConsidered(
            "only of a ClusterPolicy, which a Policy of a namespace is not",
        ));
    }
    if !policy.rules.iter().any(|rule| rule.validate.is_some()) {
        return Err(Refusal::NotConsidered("only of policies that validate"));
    }
    let rule = qualified_rule(policy).map_err(Refusal::Disqualified)?;
    let exceptions: Vec<&PolicyException> = exceptions
        .iter()
        .filter(|exception| covers(exception, &policy.name.value, &rule.name.value))
        .collect();
    check_exceptions(&exceptions).map_err(Refusal::Disqualified)?;
    let constraints = match_constraints(rule, &exceptions, discovery).map_err(Refusal::Failed)?;
    let name = format!("cpol-{}", policy.name.value);
    Ok(Generated {
        binding: binding(policy, rule, &name),
        policy: admission_policy(policy, rule, &name, constraints),
    })
}

/// Translates a ValidatingPolicy (docs/spec/cel.md §4.4).
///
/// # Errors
/// The reason why nothing is generated.
pub fn generate_from_validating(
    policy: &ValidatingPolicy,
    exceptions: &[CelException],
) -> Result<Generated, Refusal> {
    if policy.is_namespaced {
        return Err(Refusal::NotConsidered(
            "only of a ValidatingPolicy, which a NamespacedValidatingPolicy is not",
        ));
    }
    let disqualified = |reason: &str| Err(Refusal::Disqualified(format!("{SKIP}{reason}")));
    if variants(policy).len() > 1 {
        return disqualified("pod controllers autogen is enabled.");
    }
    if !policy.becomes_admission_policy {
        return disqualified("not enabled.");
    }
    let spec = &policy.spec;
    let list = |trees: &[Tree]| -> Vec<Value> { trees.iter().map(copied).collect() };
    let mut conditions = list(&spec.conditions);
    let mut variables = list(&spec.variables);
    let own = exceptions.iter().filter(|exception| {
        let mut policies = exception.policies.iter();
        policies.any(|one| one.kind == "ValidatingPolicy" && one.name.value == policy.name.value)
    });
    for exception in own {
        conditions.extend(exception.conditions.iter().map(|condition| {
            let (name, text) = (text_of(condition, "name"), text_of(condition, "expression"));
            json!({"name": name, "expression": format!("!({text})")})
        }));
        for (name, texts) in [
            ("allowedImages", &exception.images),
            ("allowedValues", &exception.values),
        ] {
            if !texts.is_empty() {
                let texts: Vec<String> = texts.iter().map(|text| format!("'{text}'")).collect();
                let list = format!("[{}]", texts.join(", "));
                variables.push(json!({"name": name, "expression": list}));
            }
        }
    }
    let mut validations = list(&spec.validations);
    for validation in &mut validations {
        if let Some(Value::String(text)) = validation.get_mut("expression") {
            for name in ["allowedImages", "allowedValues"] {
                *text = text.replace(&format!("exceptions.{name}"), &format!("variables.{name}"));
            }
        }
    }
    let name = format!("vpol-{}", policy.name.value);
    let mut members = Map::new();
    let constraints = spec.constraints.as_ref();
    let constraints = constraints.map_or_else(|| json!({}), |one| copied(&one.tree));
    members.insert("matchConstraints".to_owned(), constraints);
    for (key, list) in [
        ("matchConditions", conditions),
        ("variables", variables),
        ("validations", validations),
        ("auditAnnotations", list(&spec.annotations)),
    ] {
        if !list.is_empty() {
            members.insert(key.to_owned(), list.into());
        }
    }
    let owner = Owner {
        api_version: &policy.api_version,
        kind: "ValidatingPolicy",
        name: &policy.name.value,
        tree: &policy.tree,
    };
    let actions = match policy.actions.as_slice() {
        [] => vec!["Deny".to_owned()],
        actions => actions.to_vec(),
    };
    Ok(Generated {
        policy: json!({
            "apiVersion": "admissionregistration.k8s.io/v1",
            "kind": "ValidatingAdmissionPolicy",
            "metadata": owner.metadata(&name, true),
            "spec": members,
        }),
        binding: json!({
            "apiVersion": "admissionregistration.k8s.io/v1",
            "kind": "ValidatingAdmissionPolicyBinding",
            "metadata": owner.metadata(&format!("{name}-binding"), false),
            "spec": {"policyName": name, "validationActions": actions},
        }),
    })
}

fn covers(exception: &PolicyException, policy: &str, rule: &str) -> bool {
    exception.covered.iter().any(|covered| {
        let mut rules = covered.rules.iter();
        covered.policy.value == policy && rules.any(|pattern| matches(&pattern.value, rule))
    })
}

type Check = Result<(), String>;

fn skip(reason: &str) -> Check {
    Err(format!("{SKIP}{reason}"))
}

/// The rule of a policy that qualifies, in Kyverno's order of checks (docs/spec/cel.md
/// §4.1).
fn qualified_rule(policy: &Policy) -> Result<&Rule, String> {
    let rule = match policy.rules.as_slice() {
        [] => return Err(format!("{SKIP}no rules found.")),
        [rule] => rule,
        _ => return Err(format!("{SKIP}multiple rules are not applicable.")),
    };
    let validate = rule.validate.as_ref();
    let cel = validate.and_then(|validate| validate.cel.as_ref());
    let (Some(validate), Some(cel)) = (validate, cel) else {
        return Err("skip generating ValidatingAdmissionPolicy for non CEL rules.".to_owned());
    };
    if !bool_of(cel, "generate", false) {
        return Err(format!("{SKIP}validate.cel.generate is not set to true."));
    }
    check_overrides(&policy.failure_action_overrides)?;
    check_overrides(&validate.failure_action_overrides)?;
    check_block(&rule.match_block, true)?;
    if let Some(exclude) = &rule.exclude_block {
        check_block(exclude, false)?;
    }
    Ok(rule)
}

fn check_overrides(overrides: &[FailureActionOverride]) -> Check {
    match overrides {
        [] => Ok(()),
        [only] if only.namespaces.as_ref().is_none_or(Vec::is_empty) => Ok(()),
        [_] => skip("Namespaces in validationFailureActionOverrides is not applicable."),
        _ => skip("multiple validationFailureActionOverrides are not applicable."),
    }
}

fn check_block(block: &MatchBlock, is_match: bool) -> Check {
    check_user(&block.direct)?;
    check_resources(&block.direct.resources, is_match)?;
    check_filters(block.any.as_deref().unwrap_or_default(), is_match)?;
    let all = block.all.as_deref().unwrap_or_default();
    if all.len() > 1 {
        let name = if is_match { "match" } else { "exclude" };
        return skip(&format!(
            "multiple 'all' in the {name} block is not applicable."
        ));
    }
    check_filters(all, is_match)
}

fn check_exceptions(exceptions: &[&PolicyException]) -> Check {
    for exception in exceptions {
        if exception.covered.iter().any(|one| one.rules.len() > 1) {
            return skip("multiple ruleNames in PolicyException is not applicable.");
        }
        if exception.conditions.is_some() {
            return skip("Conditions in PolicyException is not applicable.");
        }
        let block = &exception.match_block;
        check_filters(block.any.as_deref().unwrap_or_default(), false)?;
        let all = block.all.as_deref().unwrap_or_default();
        if all.len() > 1 {
            return skip("multiple 'all' in the PolicyException's match block is not applicable.");
        }
        check_filters(all, false)?;
    }
    Ok(())
}

fn check_user(filter: &Filter) -> Check {
    let is_empty = |list: &Option<Vec<String>>| list.as_ref().is_none_or(Vec::is_empty);
    let is_free = is_empty(&filter.roles)
        && is_empty(&filter.cluster_roles)
        && filter.subjects.as_ref().is_none_or(Vec::is_empty);
    match is_free {
        true => Ok(()),
        false => skip("Roles / ClusterRoles / Subjects in `any/all` is not applicable."),
    }
}

fn check_resources(resources: &ResourceDescription, is_match: bool) -> Check {
    if !is_match && !resources.kinds.is_empty() && !resources.namespaces.is_empty() {
        return skip("excluding a resource within a namespace is not applicable.");
    }
    if resources
        .annotations
        .as_ref()
        .is_some_and(|all| !all.is_empty())
    {
        return skip("Annotations in resource description is not applicable.");
    }
    let mut names = std::iter::once(&resources.name).chain(&resources.names);
    if names.any(|name| contains_wildcard(name)) {
        return skip("wildcards in resource name is not applicable.");
    }
    if resources
        .namespaces
        .iter()
        .any(|name| contains_wildcard(name))
    {
        return skip("wildcards in namespace name is not applicable.");
    }
    Ok(())
}

fn check_filters(filters: &[Filter], is_match: bool) -> Check {
    for filter in filters {
        check_user(filter)?;
        check_resources(&filter.resources, is_match)?;
    }
    let has_selector = filters.iter().any(|filter| {
        filter.resources.namespace_selector.is_some() || filter.resources.selector.is_some()
    });
    match (has_selector, is_match) {
        (true, false) => {
            skip("NamespaceSelector / ObjectSelector in the exclude block is not applicable.")
        }
        (true, true) if filters.len() > 1 => skip(
            "NamespaceSelector / ObjectSelector across multiple resources in the match block are not applicable.",
        ),
        _ => Ok(()),
    }
}

/// `resourceRules` or `excludeResourceRules` under construction.
#[derive(Debug, Default)]
struct ResourceRules(Vec<ResourceRule>);

#[derive(Debug)]
struct ResourceRule {
    group: String,
    version: String,
    resources: Vec<String>,
    operations: Vec<String>,
    names: Vec<String>,
}

impl ResourceRules {
    /// Adds the resources of a block. Kinds of an existing group and version join its rule,
    /// whatever their operations and names.
    fn add(&mut self, block: &ResourceDescription, is_match: bool, discovery: &Discovery) -> Check {
        let operations = operations(&block.operations);
        let mut names = block.names.clone();
        names.extend(Some(block.name.clone()).filter(|name| !name.is_empty()));
        for kind in &block.kinds {
            let (group, version, mut resources) = if kind.value == "*" {
                ("*".to_owned(), "*".to_owned(), vec!["*".to_owned()])
            } else {
                let selector = KindSelector::parse(&kind.value);
                let found = match discovery.find(&selector).as_slice() {
                    [] => {
                        return Err(format!(
                            "failed to find resource ({}/{}/{}/{})",
                            selector.group, selector.version, selector.kind, selector.subresource
                        ));
                    }
                    [only] => (*only).clone(),
                    _ => return Err(format!("no unique match for kind {}", selector.kind)),
                };
                let path = found.path();
                (found.group, found.version, vec![path])
            };
            if resources == ["pods"] {
                resources.push("pods/ephemeralcontainers".to_owned());
            }
            let known = self
                .0
                .iter_mut()
                .find(|rule| kind.value != "*" && rule.group == group && rule.version == version);
            match known {
                Some(rule) => {
                    rule.resources.extend(resources);
                    rule.resources.sort();
                }
                None => self.0.push(ResourceRule {
                    group,
                    version,
                    resources,
                    operations: operations.clone(),
                    names: names.clone(),
                }),
            }
        }
        if !is_match && !block.namespaces.is_empty() && block.kinds.is_empty() {
            self.0.push(ResourceRule {
                group: String::new(),
                version: "v1".to_owned(),
                resources: vec!["namespaces".to_owned()],
                operations,
                names: block.namespaces.clone(),
            });
        }
        Ok(())
    }

    fn document(&self) -> Value {
        let rule = |rule: &ResourceRule| {
            let mut document = json!({
                "apiGroups": [rule.group],
                "apiVersions": [rule.version],
                "operations": rule.operations,
                "resources": rule.resources,
            });
            if !rule.names.is_empty() {
                document["resourceNames"] = json!(rule.names);
            }
            document
        };
        self.0.iter().map(rule).collect()
    }
}

/// Kubernetes' operations among the given ones, in the given order; all if there are none.
fn operations(given: &[String]) -> Vec<String> {
    let all = ["CREATE", "UPDATE", "CONNECT", "DELETE"];
    let known: Vec<String> = given
        .iter()
        .filter(|name| all.contains(&name.as_str()))
        .cloned()
        .collect();
    match known.is_empty() {
        true => all.map(str::to_owned).to_vec(),
        false => known,
    }
}

/// `matchConstraints` (docs/spec/cel.md §4.2). Each block of `match` overwrites both
/// selectors.
fn match_constraints(
    rule: &Rule,
    exceptions: &[&PolicyException],
    discovery: &Discovery,
) -> Result<Value, String> {
    let mut constraints = Map::new();
    let mut rules = ResourceRules::default();
    for block in blocks(&rule.match_block, true) {
        rules.add(block, true, discovery)?;
        let namespaces = match block.namespaces.as_slice() {
            [] => block.namespace_selector.as_ref().map(selector),
            names => Some(json!({"matchExpressions": [
                {"key": "kubernetes.io/metadata.name", "operator": "In", "values": names}]})),
        };
        let objects = block.selector.as_ref().map(selector);
        for (key, selector) in [
            ("namespaceSelector", namespaces),
            ("objectSelector", objects),
        ] {
            match selector {
                Some(selector) => constraints.insert(key.to_owned(), selector),
                None => constraints.remove(key),
            };
        }
    }
    let mut excluded = ResourceRules::default();
    let of_rule = rule
        .exclude_block
        .iter()
        .flat_map(|block| blocks(block, true));
    let of_exceptions = exceptions
        .iter()
        .flat_map(|exception| blocks(&exception.match_block, false));
    for block in of_rule.chain(of_exceptions) {
        excluded.add(block, false, discovery)?;
    }
    for (key, rules) in [("resourceRules", rules), ("excludeResourceRules", excluded)] {
        if !rules.0.is_empty() {
            constraints.insert(key.to_owned(), rules.document());
        }
    }
    Ok(Value::Object(constraints))
}

/// Resource descriptions of a match block: the direct one if it counts, those of `any`,
/// those of `all`.
fn blocks(block: &MatchBlock, with_direct: bool) -> Vec<&ResourceDescription> {
    let direct = &block.direct.resources;
    let direct = Some(direct).filter(|direct| with_direct && **direct != Default::default());
    let any = block.any.iter().flatten();
    let filters = any.chain(block.all.iter().flatten());
    let filters = filters.map(|filter| &filter.resources);
    direct.into_iter().chain(filters).collect()
}

fn selector(selector: &LabelSelector) -> Value {
    let mut document = Map::new();
    if !selector.match_labels.is_empty() {
        let labels = selector.match_labels.iter();
        let labels: Map<String, Value> = labels
            .map(|(key, value)| (key.clone(), value.as_str().into()))
            .collect();
        document.insert("matchLabels".to_owned(), labels.into());
    }
    if !selector.match_expressions.is_empty() {
        let requirement = |one: &crate::policy::model::LabelRequirement| {
            let mut document = json!({"key": one.key, "operator": one.operator});
            if !one.values.is_empty() {
                document["values"] = json!(one.values);
            }
            document
        };
        let all: Value = selector.match_expressions.iter().map(requirement).collect();
        document.insert("matchExpressions".to_owned(), all);
    }
    Value::Object(document)
}

/// The policy that an object is generated from.
struct Owner<'p> {
    api_version: &'p str,
    kind: &'static str,
    name: &'p str,
    tree: &'p Tree,
}

impl<'p> Owner<'p> {
    fn of(policy: &'p Policy) -> Self {
        Self {
            api_version: &policy.api_version,
            kind: "ClusterPolicy",
            name: &policy.name.value,
            tree: &policy.tree,
        }
    }

    /// `metadata` of both objects. The owner reference is omitted if the policy's uid is
    /// unknown, because the API server requires one.
    fn metadata(&self, name: &str, is_policy: bool) -> Value {
        let own = field(self.tree, "metadata");
        let mut labels = json!({"app.kubernetes.io/managed-by": "kyverno"});
        let has_label = |key: &str| {
            let labels = own.and_then(|own| field(own, "labels"));
            labels.is_some_and(|labels| labels.get(key).is_some())
        };
        if is_policy && has_label("reports.kyverno.io/disabled") {
            labels["reports.kyverno.io/disabled"] = "true".into();
        }
        let mut metadata = json!({"name": name, "labels": labels});
        let uid = own.map(|own| text_of(own, "uid")).unwrap_or_default();
        if !uid.is_empty() {
            metadata["ownerReferences"] = json!([{
                "apiVersion": self.api_version,
                "kind": self.kind,
                "name": self.name,
                "uid": uid,
            }]);
        }
        metadata
    }
}

fn admission_policy(policy: &Policy, rule: &Rule, name: &str, constraints: Value) -> Value {
    let mut spec = Map::new();
    spec.insert("matchConstraints".to_owned(), constraints);
    let cel = rule
        .validate
        .as_ref()
        .and_then(|validate| validate.cel.as_ref());
    let of_cel = |key: &str| cel.and_then(|cel| field(cel, key));
    for (key, part) in [
        ("matchConditions", rule.cel_preconditions.as_ref()),
        ("paramKind", of_cel("paramKind")),
        ("variables", of_cel("variables")),
        ("validations", of_cel("expressions")),
        ("auditAnnotations", of_cel("auditAnnotations")),
    ] {
        if let Some(part) = part {
            spec.insert(key.to_owned(), copied(part));
        }
    }
    json!({
        "apiVersion": "admissionregistration.k8s.io/v1",
        "kind": "ValidatingAdmissionPolicy",
        "metadata": Owner::of(policy).metadata(name, true),
        "spec": spec,
    })
}

/// docs/spec/cel.md §4.3.
fn binding(policy: &Policy, rule: &Rule, name: &str) -> Value {
    let validate = rule.validate.as_ref();
    let action = validate.and_then(|validate| validate.failure_action.as_deref());
    let action = action
        .or(policy.failure_action.as_deref())
        .unwrap_or("Audit");
    let mut spec = json!({"policyName": name});
    match action {
        "Enforce" | "enforce" => spec["validationActions"] = json!(["Deny"]),
        "Audit" | "audit" => spec["validationActions"] = json!(["Audit", "Warn"]),
        _ => {}
    }
    let cel = validate.and_then(|validate| validate.cel.as_ref());
    if let Some(reference) = cel.and_then(|cel| field(cel, "paramRef")) {
        spec["paramRef"] = copied(reference);
    }
    json!({
        "apiVersion": "admissionregistration.k8s.io/v1",
        "kind": "ValidatingAdmissionPolicyBinding",
        "metadata": Owner::of(policy).metadata(&format!("{name}-binding"), false),
        "spec": spec,
    })
}

/// Copied unchanged, without null members.
fn copied(tree: &Tree) -> Value {
    fn strip(value: Value) -> Value {
        match value {
            Value::Object(members) => members
                .into_iter()
                .filter(|(_, value)| !value.is_null())
                .map(|(key, value)| (key, strip(value)))
                .collect(),
            Value::Array(items) => items.into_iter().map(strip).collect(),
            other => other,
        }
    }
    strip(tree.to_json())
}
