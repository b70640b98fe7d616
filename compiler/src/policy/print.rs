//! Policies and rules as text for people: one line for each part that is present.

use std::fmt::{self, Write};

use kpvm_syntax::tree::Tree;

use super::admission_policy::AdmissionPolicy;
use super::model::{Filter, LabelSelector, MatchBlock, Policy, Rule, Validate};
use super::validating_policy::{ValidatingPolicy, ValidatingSpec};

/// Writes a policy without its rules.
pub(crate) fn policy_head(policy: &Policy, out: &mut dyn Write) -> fmt::Result {
    write!(out, "{:?} {}", policy.kind, policy.name.value)?;
    if let Some(namespace) = &policy.namespace {
        write!(out, " of namespace {namespace}")?;
    }
    writeln!(out, " ({})", policy.api_version)?;
    line(out, 1, "applyRules", &format!("{:?}", policy.apply_rules))?;
    line(out, 1, "admission", &policy.admission.to_string())?;
    line(out, 1, "background", &policy.background.to_string())?;
    if let Some(action) = &policy.failure_action {
        line(out, 1, "failureAction", action)?;
    }
    for entry in &policy.failure_action_overrides {
        let namespaces = entry.namespaces.as_deref().unwrap_or_default().join(" ");
        let text = format!("{} in [{namespaces}]", entry.action);
        line(out, 1, "failureActionOverride", &text)?;
    }
    tree(out, 1, "matchConditions", policy.match_conditions.as_ref())
}

/// Writes a rule, indented by `depth` steps, after its name.
pub(crate) fn rule_parts(rule: &Rule, depth: usize, out: &mut dyn Write) -> fmt::Result {
    match_block(out, depth, "match", &rule.match_block)?;
    if let Some(exclude) = &rule.exclude_block {
        match_block(out, depth, "exclude", exclude)?;
    }
    for entry in &rule.context {
        tree(out, depth, "context", Some(entry))?;
    }
    let parts = [
        ("preconditions", &rule.preconditions),
        ("celPreconditions", &rule.cel_preconditions),
        ("mutate", &rule.mutate),
        ("generate", &rule.generate),
        ("verifyImages", &rule.verify_images),
        ("imageExtractors", &rule.image_extractors),
    ];
    for (name, part) in parts {
        tree(out, depth, name, part.as_ref())?;
    }
    if let Some(validate) = &rule.validate {
        validate_parts(validate, depth, out)?;
    }
    for (key, value) in &rule.report_properties {
        let text = format!("{key}={:?}", value.value);
        line(out, depth, "reportProperty", &text)?;
    }
    Ok(())
}

fn validate_parts(validate: &Validate, depth: usize, out: &mut dyn Write) -> fmt::Result {
    if let Some(action) = &validate.failure_action {
        line(out, depth, "failureAction", action)?;
    }
    if let Some(message) = &validate.message {
        line(out, depth, "message", &format!("{:?}", message.value))?;
    }
    let parts = [
        ("pattern", &validate.pattern),
        ("anyPattern", &validate.any_pattern),
        ("deny", &validate.deny),
        ("foreach", &validate.foreach),
        ("podSecurity", &validate.pod_security),
        ("cel", &validate.cel),
        ("assert", &validate.assert),
        ("manifests", &validate.manifests),
    ];
    for (name, part) in parts {
        tree(out, depth, name, part.as_ref())?;
    }
    Ok(())
}

/// Writes a policy of policies.kyverno.io without its spec.
pub(crate) fn validating_head(policy: &ValidatingPolicy, out: &mut dyn Write) -> fmt::Result {
    let kind = match policy.is_namespaced {
        false => "ValidatingPolicy",
        true => "NamespacedValidatingPolicy",
    };
    write!(out, "{kind} {}", policy.name.value)?;
    if let Some(namespace) = policy.own_namespace() {
        write!(out, " of namespace {namespace}")?;
    }
    writeln!(out, " ({})", policy.api_version)?;
    line(out, 1, "mode", &format!("{:?}", policy.mode))?;
    line(out, 1, "admission", &policy.admits.to_string())?;
    line(out, 1, "background", &policy.background.to_string())?;
    line(out, 1, "validationActions", &policy.actions.join(" "))
}

/// Writes the part of such a policy that autogen rewrites.
pub(crate) fn validating_parts(
    spec: &ValidatingSpec,
    depth: usize,
    out: &mut dyn Write,
) -> fmt::Result {
    let constraints = spec.constraints.as_ref().map(|matching| &matching.tree);
    tree(out, depth, "matchConstraints", constraints)?;
    let lists = [
        ("matchCondition", &spec.conditions),
        ("variable", &spec.variables),
        ("validation", &spec.validations),
        ("auditAnnotation", &spec.annotations),
    ];
    expressions(&lists, depth, out)
}

/// Writes a policy of Kubernetes with its bindings.
pub(crate) fn admission_policy(policy: &AdmissionPolicy, out: &mut dyn Write) -> fmt::Result {
    let name = &policy.name.value;
    writeln!(
        out,
        "ValidatingAdmissionPolicy {name} ({})",
        policy.api_version
    )?;
    let constraints = policy.constraints.as_ref().map(|matching| &matching.tree);
    tree(out, 1, "matchConstraints", constraints)?;
    tree(out, 1, "paramKind", policy.param_kind.as_ref())?;
    let lists = [
        ("matchCondition", &policy.conditions),
        ("variable", &policy.variables),
        ("validation", &policy.validations),
        ("auditAnnotation", &policy.audit_annotations),
    ];
    expressions(&lists, 1, out)?;
    for binding in &policy.bindings {
        let text = format!("{} [{}]", binding.name.value, binding.actions.join(" "));
        line(out, 1, "binding", &text)?;
        let matching = binding.matching.as_ref().map(|matching| &matching.tree);
        tree(out, 2, "matchResources", matching)?;
        tree(out, 2, "paramRef", binding.param_ref.as_ref())?;
    }
    Ok(())
}

fn expressions(lists: &[(&str, &Vec<Tree>)], depth: usize, out: &mut dyn Write) -> fmt::Result {
    for (name, list) in lists {
        for part in *list {
            tree(out, depth, name, Some(part))?;
        }
    }
    Ok(())
}

fn line(out: &mut dyn Write, depth: usize, name: &str, text: &str) -> fmt::Result {
    writeln!(out, "{:indent$}{name}: {text}", "", indent = 2 * depth)
}

fn tree(out: &mut dyn Write, depth: usize, name: &str, part: Option<&Tree>) -> fmt::Result {
    match part {
        Some(part) => line(out, depth, name, &part.to_json().to_string()),
        None => Ok(()),
    }
}

fn match_block(out: &mut dyn Write, depth: usize, name: &str, block: &MatchBlock) -> fmt::Result {
    let lists = [("any", &block.any), ("all", &block.all)];
    let lists = lists.map(|(list, filters)| (list, filters.as_deref().unwrap_or_default()));
    if lists.iter().all(|(_, filters)| filters.is_empty()) {
        return line(out, depth, name, &filter_text(&block.direct));
    }
    for (list, filters) in lists {
        for filter in filters {
            line(out, depth, &format!("{name} {list}"), &filter_text(filter))?;
        }
    }
    Ok(())
}

fn filter_text(filter: &Filter) -> String {
    let resources = &filter.resources;
    let kinds = resources.kinds.iter().map(|kind| kind.value.as_str());
    let kinds: Vec<&str> = kinds.collect();
    let name = match resources.name.as_str() {
        "" => Vec::new(),
        name => vec![name],
    };
    let texts = |list: &[String]| list.join(" ");
    let optional = |list: &Option<Vec<String>>| list.as_deref().map(texts).unwrap_or_default();
    let pairs = |pairs: &[(String, String)]| {
        let pairs = pairs.iter().map(|(key, value)| format!("{key}={value}"));
        pairs.collect::<Vec<_>>().join(" ")
    };
    let selector = |selector: &Option<LabelSelector>| {
        let Some(selector) = selector else {
            return String::new();
        };
        let requirements = selector.match_expressions.iter().map(|one| {
            let values = one.values.join(" ");
            format!("{} {} [{values}]", one.key, one.operator)
        });
        let labels = Some(pairs(&selector.match_labels)).filter(|labels| !labels.is_empty());
        let parts: Vec<String> = labels.into_iter().chain(requirements).collect();
        match parts.as_slice() {
            [] => "everything".to_owned(),
            parts => parts.join(", "),
        }
    };
    let subjects = filter.subjects.iter().flatten().map(|subject| {
        let namespace = match subject.namespace.as_str() {
            "" => String::new(),
            namespace => format!("{namespace}/"),
        };
        format!("{}:{namespace}{}", subject.kind, subject.name)
    });
    let parts = [
        ("kinds", kinds.join(" ")),
        ("name", name.join(" ")),
        ("names", texts(&resources.names)),
        ("namespaces", texts(&resources.namespaces)),
        (
            "annotations",
            pairs(resources.annotations.as_deref().unwrap_or_default()),
        ),
        ("selector", selector(&resources.selector)),
        ("namespaceSelector", selector(&resources.namespace_selector)),
        ("operations", texts(&resources.operations)),
        ("roles", optional(&filter.roles)),
        ("clusterRoles", optional(&filter.cluster_roles)),
        ("subjects", subjects.collect::<Vec<_>>().join(" ")),
    ];
    let parts = parts.iter().filter(|(_, text)| !text.is_empty());
    let parts: Vec<String> = parts
        .map(|(name, text)| format!("{name} [{text}]"))
        .collect();
    match parts.as_slice() {
        [] => "everything".to_owned(),
        parts => parts.join(", "),
    }
}
