//! Exceptions of policies.kyverno.io: which policies each exception names, and for each
//! variant of a policy the block that says whether it applies (docs/spec/cel.md §6.5).

use kpvm_format::table::{BodyKind, RuleFlags};

use super::targets::{TargetPolicy, TargetRule, Targets};
use crate::diagnostic::Diagnostic;
use crate::frontend::cel::validating_policy::ExceptionPrograms;
use crate::ir::{self, Module};
use crate::lower::validating_policy::refused;
use crate::policy::spelling::nearest;
use crate::policy::validating_policy::{CelException, Mode, PolicyRef};
use crate::source::{Location, Sources};

/// Adds exceptions for the policies that they name. One that names a policy which is not
/// among the targets gives a warning; one that does not compile for its policy, an error.
pub(super) fn add(
    module: &mut Module,
    targets: &Targets,
    exceptions: &[CelException],
    sources: &Sources,
    diagnostics: &mut Vec<Diagnostic>,
) {
    if exceptions.is_empty() {
        return;
    }
    let mut names: Vec<(String, String)> = Vec::new();
    for rule in &targets.rules {
        let Some((kind, policy)) = policy_of(rule, targets) else {
            continue;
        };
        for exception in exceptions {
            let is_about = |one: &PolicyRef| one.kind == kind && one.name.value == policy.name;
            if exception.policies.iter().any(is_about) {
                let namespace = policy.namespace.as_deref();
                let namespace = namespace.filter(|namespace| !namespace.is_empty());
                let added = add_exception(exception, rule, namespace, module, sources);
                diagnostics.extend(added.err().unwrap_or_default());
            }
        }
        names.push((kind.to_owned(), policy.name.clone()));
    }
    let mut seen: Vec<Diagnostic> = Vec::new();
    // The error is the same for each variant of a policy.
    diagnostics.retain(|one| {
        let is_new = !seen.contains(one);
        seen.push(one.clone());
        is_new
    });
    if !targets.policies.is_empty() {
        for exception in exceptions {
            check_names(exception, &names, diagnostics);
        }
    }
}

/// Kind and policy of a rule, if it belongs to a CEL policy.
fn policy_of<'t>(
    rule: &TargetRule,
    targets: &'t Targets,
) -> Option<(&'static str, &'t TargetPolicy)> {
    if rule.body != BodyKind::Validations {
        return None;
    }
    let policy = targets.policies.get(rule.policy)?;
    let kind = match policy.namespace {
        None => "ValidatingPolicy",
        Some(_) => "NamespacedValidatingPolicy",
    };
    Some((kind, policy))
}

fn add_exception(
    exception: &CelException,
    rule: &TargetRule,
    namespace: Option<&str>,
    module: &mut Module,
    sources: &Sources,
) -> Result<(), Vec<Diagnostic>> {
    let mode = match rule.flags & RuleFlags::PAYLOAD {
        0 => Mode::Kubernetes,
        _ => Mode::Json,
    };
    let ignores_failure = rule.flags & RuleFlags::IGNORE_FAILURE != 0;
    let text = &sources.file(exception.source).text;
    let subject = |found: Vec<Diagnostic>| -> Vec<Diagnostic> {
        let found = found.into_iter();
        found.map(|one| one.subject(exception.key())).collect()
    };
    let conditions = &exception.conditions;
    let programs = ExceptionPrograms::compile(conditions, mode, namespace, ignores_failure)
        .map_err(|failures| subject(refused(failures, exception.source, text)))?;
    let block = programs.lower(exception.source, module);
    let block = module.add(block);
    let mut list = |texts: &[String]| match texts {
        [] => None,
        texts => Some(module.text_list(texts)),
    };
    let allowed = [list(&exception.images), list(&exception.values)];
    module.exceptions.push(ir::Exception {
        rule: rule.id,
        namespace: exception.namespace.clone(),
        name: exception.name.value.clone(),
        block,
        exclusion_block: None,
        passes: exception.reports_pass,
        priority: exception.priority,
        allowed,
        location: Location {
            source: exception.source,
            span: exception.tree.span,
        },
    });
    Ok(())
}

/// Warns about names that no policy has.
fn check_names(
    exception: &CelException,
    names: &[(String, String)],
    diagnostics: &mut Vec<Diagnostic>,
) {
    for policy in &exception.policies {
        let (kind, name) = (&policy.kind, &policy.name.value);
        // For other kinds it is not known which policies exist.
        let is_validating = kind.ends_with("ValidatingPolicy") && !kind.contains("Image");
        let is_there = |(known_kind, known): &(String, String)| known_kind == kind && known == name;
        if !is_validating || names.iter().any(is_there) {
            continue;
        }
        let location = Location {
            source: exception.source,
            span: policy.name.span,
        };
        let known: Vec<&str> = names.iter().map(|(_, name)| name.as_str()).collect();
        let hint = match nearest(name, &known) {
            Some(near) if near != name => format!("did you mean `{near}`?"),
            _ => "the exception has no effect on the policies that are compiled".to_owned(),
        };
        let message = format!("there is no {kind} `{name}` here");
        let warning = Diagnostic::warning("exception-unknown-policy", message, location)
            .label("no such policy")
            .hint(hint)
            .subject(exception.key());
        diagnostics.push(warning);
    }
}
