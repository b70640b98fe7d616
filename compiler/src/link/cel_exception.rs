//! Exceptions of policies.kyverno.io into a bundle: which policies each of them names,
//! and for each variant of these the block that says whether it holds
//! (docs/spec/cel.md §6.5).

use kpvm_format::Tables;
use kpvm_format::table::{self, BodyKind, NONE, PolicyFlags, Range, RuleFlags};
use kpvm_semantics::limits::Limits;
use zerocopy::little_endian::U32;

use crate::diagnostic::Diagnostic;
use crate::frontend::cel::validating_policy::ExceptionPrograms;
use crate::lower::Lowerer;
use crate::lower::validating_policy::refused;
use crate::policy::spelling::nearest;
use crate::policy::validating_policy::{CelException, Mode, PolicyRef};
use crate::source::{Location, Sources};

/// Adds exceptions behind those that rules have already. One that names a policy which is
/// not in the bundle is a warning; one that does not compile for its policy, an error.
pub(super) fn add(
    lowerer: &mut Lowerer,
    exceptions: &[CelException],
    sources: &Sources,
    limits: &Limits,
    diagnostics: &mut Vec<Diagnostic>,
) {
    if exceptions.is_empty() {
        return;
    }
    let known = std::mem::take(&mut lowerer.bundle().exceptions);
    let mut names: Vec<(String, String)> = Vec::new();
    for number in 0..lowerer.bundle().rules.len() {
        let Some(&rule) = lowerer.bundle().rules.get(number) else {
            continue;
        };
        let mut records = Tables::range(&known, rule.exceptions).to_vec();
        if let Some((kind, name, namespace)) = policy_of(&rule, lowerer) {
            for exception in exceptions {
                let is_about = |one: &PolicyRef| one.kind == kind && one.name.value == name;
                if !exception.policies.iter().any(is_about) {
                    continue;
                }
                match record(
                    exception,
                    &rule,
                    namespace.as_deref(),
                    lowerer,
                    sources,
                    limits,
                ) {
                    Ok(record) => records.push(record),
                    Err(found) => diagnostics.extend(found),
                }
            }
            names.push((kind.to_owned(), name));
        }
        let bundle = lowerer.bundle();
        let range = Range::new(bundle.exceptions.len(), records.len());
        bundle.exceptions.extend(records);
        if let Some(rule) = bundle.rules.get_mut(number) {
            rule.exceptions = range;
        }
    }
    let mut seen: Vec<Diagnostic> = Vec::new();
    // The same is wrong for each variant of a policy.
    diagnostics.retain(|one| {
        let is_new = !seen.contains(one);
        seen.push(one.clone());
        is_new
    });
    if !lowerer.bundle().policies.is_empty() {
        for exception in exceptions {
            check_names(exception, &names, diagnostics);
        }
    }
}

/// Kind, name and namespace of the policy of a rule, where it is one of CEL.
fn policy_of(
    rule: &table::Rule,
    lowerer: &mut Lowerer,
) -> Option<(&'static str, String, Option<String>)> {
    if rule.body != BodyKind::Validations as u8 {
        return None;
    }
    let bundle = lowerer.bundle();
    let policy = *bundle.policies.get(rule.policy.get() as usize)?;
    let kind = match policy.flags & PolicyFlags::NAMESPACED {
        0 => "ValidatingPolicy",
        _ => "NamespacedValidatingPolicy",
    };
    let is_namespaced = policy.flags & PolicyFlags::NAMESPACED != 0;
    let namespace = is_namespaced.then(|| bundle.text_of(policy.namespace).to_owned());
    Some((kind, bundle.text_of(policy.name).to_owned(), namespace))
}

fn record(
    exception: &CelException,
    rule: &table::Rule,
    namespace: Option<&str>,
    lowerer: &mut Lowerer,
    sources: &Sources,
    limits: &Limits,
) -> Result<table::Exception, Vec<Diagnostic>> {
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
    let mut pools = lowerer.pools(sources, limits);
    let block = programs.lower(exception.source, &mut pools);
    let block = pools.generate(block).map_err(|error| {
        let location = Location {
            source: exception.source,
            span: exception.tree.span,
        };
        let message = format!("the conditions of the exception are too big: {error}");
        let found = Diagnostic::error("exception-too-big", message, location);
        subject(vec![found.hint("split the exception into several")])
    })?;
    let mut list = |texts: &[String]| match texts {
        [] => U32::new(NONE),
        texts => U32::new(pools.text_list(texts)),
    };
    let allowed = [list(&exception.images), list(&exception.values)];
    Ok(table::Exception {
        namespace: pools.bundle.text(&exception.namespace),
        name: pools.bundle.text(&exception.name.value),
        block: U32::new(block),
        exclusion_block: U32::new(NONE),
        passes: u8::from(exception.reports_pass),
        priority: U32::new(exception.priority),
        allowed,
    })
}

/// Warns of policies that nothing is called.
fn check_names(
    exception: &CelException,
    names: &[(String, String)],
    diagnostics: &mut Vec<Diagnostic>,
) {
    for policy in &exception.policies {
        let (kind, name) = (&policy.kind, &policy.name.value);
        // Of other kinds it is not known what there is.
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
