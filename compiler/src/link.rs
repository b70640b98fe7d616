//! Exceptions into a bundle: which rules each of them names, and for each pair the
//! block that says whether it holds.
//!
//! All that is asked of a rule stands in the bundle's tables, so that exceptions can
//! join policies that were compiled long before.

mod cel_exception;

use std::collections::HashMap;

use kpvm_format::BundleBuilder;
use kpvm_format::meta::OmittedRule;
use kpvm_format::symbol::SymbolId;
use kpvm_format::table::{self, BodyKind, NONE, PolicyFlags, Range};
use kpvm_semantics::limits::Limits;
use kpvm_semantics::wildcard;
use zerocopy::little_endian::U32;

use crate::codegen::CodegenError;
use crate::diagnostic::Diagnostic;
use crate::frontend::exception::{lower_exception, lower_exclusions};
use crate::frontend::scope::Scope;
use crate::lower::Lowerer;
use crate::policy::model::{CoveredRules, PolicyException, Spanned};
use crate::policy::spelling::nearest;
use crate::policy::validating_policy::CelException;
use crate::source::{Location, Sources};

/// Rules that a message lists where none is close to a misspelled name.
const LISTED_RULES: usize = 8;

/// Exceptions of both groups, each in their order.
#[derive(Debug, Default)]
pub(crate) struct Exceptions {
    /// To policies of kyverno.io.
    pub(crate) classic: Vec<PolicyException>,
    /// To policies of policies.kyverno.io.
    pub(crate) cel: Vec<CelException>,
}

impl Exceptions {
    pub(crate) fn len(&self) -> usize {
        self.classic.len() + self.cel.len()
    }
}

/// Adds exceptions behind those that rules have already. One that names a policy or a
/// rule that is neither in the bundle nor among those left out is a warning.
pub(crate) fn add_exceptions(
    lowerer: &mut Lowerer,
    exceptions: &Exceptions,
    omitted: &[OmittedRule],
    sources: &Sources,
    limits: &Limits,
    diagnostics: &mut Vec<Diagnostic>,
) {
    cel_exception::add(lowerer, &exceptions.cel, sources, limits, diagnostics);
    let exceptions = exceptions.classic.as_slice();
    if exceptions.is_empty() {
        return;
    }
    let policies = PolicyNames::of(lowerer.bundle(), omitted);
    if !policies.policies.is_empty() {
        for exception in exceptions {
            check_names(exception, &policies, diagnostics);
        }
    }
    let mut by_policy: HashMap<&str, Vec<&PolicyException>> = HashMap::new();
    for exception in exceptions {
        for covered in &exception.covered {
            let named = by_policy.entry(&covered.policy.value).or_default();
            // One that names a policy twice holds once.
            if !named
                .last()
                .is_some_and(|&last| std::ptr::eq(last, exception))
            {
                named.push(exception);
            }
        }
    }
    let known = std::mem::take(&mut lowerer.bundle().exceptions);
    for number in 0..lowerer.bundle().rules.len() {
        let Some(&rule) = lowerer.bundle().rules.get(number) else {
            continue;
        };
        let mut records = kpvm_format::Tables::range(&known, rule.exceptions).to_vec();
        // Exceptions of another group are about the one, none about the other.
        let others = [BodyKind::Validations, BodyKind::AdmissionPolicy];
        let policy = match others.iter().any(|&kind| rule.body == kind as u8) {
            false => policies.key(rule.policy.get()),
            true => "",
        };
        let name = lowerer.bundle().text_of(rule.name).to_owned();
        for exception in by_policy.get(policy).into_iter().flatten() {
            if !covers(exception, policy, &name) {
                continue;
            }
            match record(exception, &rule, lowerer, sources, limits) {
                Ok(record) => records.push(record),
                Err(error) => diagnostics.push(too_big(exception, &error)),
            }
        }
        let bundle = lowerer.bundle();
        let range = Range::new(bundle.exceptions.len(), records.len());
        bundle.exceptions.extend(records);
        if let Some(rule) = bundle.rules.get_mut(number) {
            rule.exceptions = range;
        }
    }
}

/// docs/spec/policies.md §9: the policy exactly, the rule by a wildcard.
fn covers(exception: &PolicyException, policy: &str, rule: &str) -> bool {
    exception
        .covered
        .iter()
        .filter(|covered| covered.policy.value == policy)
        .flat_map(|covered| &covered.rules)
        .any(|pattern| names(pattern, rule))
}

fn names(pattern: &Spanned<String>, rule: &str) -> bool {
    wildcard::matches(pattern.value.as_bytes(), rule.as_bytes())
}

fn record(
    exception: &PolicyException,
    rule: &table::Rule,
    lowerer: &mut Lowerer,
    sources: &Sources,
    limits: &Limits,
) -> Result<table::Exception, CodegenError> {
    let scope = scope_of(rule, lowerer.bundle());
    let mut pools = lowerer.pools(sources, limits);
    let block = lower_exception(exception, scope, &mut pools);
    let block = pools.generate(block)?;
    let is_pod_security = rule.body == BodyKind::PodSecurity as u8;
    let exclusion_block = if is_pod_security && !exception.pod_security.is_empty() {
        let block = lower_exclusions(exception, &mut pools);
        pools.generate(block)?
    } else {
        NONE
    };
    Ok(table::Exception {
        namespace: pools.bundle.text(&exception.namespace),
        name: pools.bundle.text(&exception.name.value),
        block: U32::new(block),
        exclusion_block: U32::new(exclusion_block),
        passes: 0,
        priority: U32::ZERO,
        allowed: [U32::new(NONE); 2],
    })
}

/// The variables and entries that the rule's preconditions see: those of foreach
/// blocks are not bound when exceptions are looked at.
fn scope_of(rule: &table::Rule, bundle: &BundleBuilder) -> Scope {
    let mut scope = Scope::default();
    scope.rewrites_delete = true;
    let name_of = |slot: u32| {
        let slot = bundle.slots.get(slot as usize)?;
        Some(bundle.symbols.text(SymbolId(slot.name.get())).to_owned())
    };
    let numbers = |range: Range| range.start.get()..range.start.get() + range.length.get();
    for slot in numbers(rule.slots) {
        if let Some(name) = name_of(slot).filter(|name| scope.slot(name).is_none()) {
            scope.add_slot(&name, slot);
        }
    }
    for number in numbers(rule.entries) {
        let entry = bundle.entries.get(number as usize);
        if let Some(entry) = entry.filter(|entry| entry.nested == 0)
            && let Some(name) = name_of(entry.slot.get())
        {
            scope.add_entry(&name, number, false);
        }
    }
    scope
}

fn too_big(exception: &PolicyException, error: &CodegenError) -> Diagnostic {
    let location = Location {
        source: exception.source,
        span: exception.tree.span,
    };
    // The words are those of a rule; nothing but conditions can be too big here.
    let message = format!("the conditions of the exception are too big: {error}");
    Diagnostic::error("exception-too-big", message, location)
        .hint("split the exception into several")
        .subject(exception.key())
}

/// The policies of a bundle as exceptions name them, with the names of their rules.
struct PolicyNames {
    policies: Vec<PolicyName>,
}

struct PolicyName {
    /// `name`, or `namespace/name` of a `Policy`.
    key: String,
    rules: Vec<String>,
}

impl PolicyNames {
    fn of(bundle: &BundleBuilder, omitted: &[OmittedRule]) -> Self {
        let policy_name = |policy: &table::Policy| {
            let name = bundle.text_of(policy.name);
            let key = if policy.flags & PolicyFlags::NAMESPACED != 0 {
                format!("{}/{name}", bundle.text_of(policy.namespace))
            } else {
                name.to_owned()
            };
            let compiled = kpvm_format::Tables::range(&bundle.rules, policy.rules)
                .iter()
                .map(|rule| bundle.text_of(rule.name));
            let left_out = omitted
                .iter()
                .filter(|rule| rule.policy == name)
                .map(|rule| rule.rule.as_str());
            PolicyName {
                key,
                rules: compiled.chain(left_out).map(str::to_owned).collect(),
            }
        };
        Self {
            policies: bundle.policies.iter().map(policy_name).collect(),
        }
    }

    /// The key of policy `number`.
    fn key(&self, number: u32) -> &str {
        self.policies
            .get(number as usize)
            .map_or("", |policy| &policy.key)
    }
}

/// Warns of names that nothing has.
fn check_names(
    exception: &PolicyException,
    policies: &PolicyNames,
    diagnostics: &mut Vec<Diagnostic>,
) {
    let at = |name: &Spanned<String>| Location {
        source: exception.source,
        span: name.span,
    };
    for covered in &exception.covered {
        let CoveredRules { policy, rules } = covered;
        let known = policies
            .policies
            .iter()
            .find(|known| known.key == policy.value);
        let Some(known) = known else {
            let message = format!("there is no policy `{}` here", policy.value);
            let warning = Diagnostic::warning("exception-unknown-policy", message, at(policy))
                .label("no such policy")
                .hint(policy_hint(&policy.value, policies))
                .subject(exception.key());
            diagnostics.push(warning);
            continue;
        };
        for pattern in rules {
            if known.rules.iter().any(|rule| names(pattern, rule)) {
                continue;
            }
            let message = format!(
                "the policy `{}` has no rule `{}`",
                policy.value, pattern.value
            );
            let warning = Diagnostic::warning("exception-unknown-rule", message, at(pattern))
                .label("no such rule")
                .hint(rule_hint(&pattern.value, &known.rules))
                .subject(exception.key());
            diagnostics.push(warning);
        }
    }
}

fn policy_hint(name: &str, policies: &PolicyNames) -> String {
    if wildcard::contains_wildcard(name) {
        return "policyName is no wildcard: name each policy".into();
    }
    let bare = |key: &str| key.rsplit('/').next().unwrap_or_default().to_owned();
    let twin = policies
        .policies
        .iter()
        .find(|known| bare(&known.key) == bare(name));
    if let Some(twin) = twin {
        return format!(
            "write `{}`: a Policy is named with its namespace, a ClusterPolicy without one",
            twin.key
        );
    }
    let keys: Vec<&str> = policies
        .policies
        .iter()
        .map(|known| known.key.as_str())
        .collect();
    match nearest(name, &keys) {
        Some(key) => format!("did you mean `{key}`?"),
        None => "the exception has no effect on the policies that are compiled".into(),
    }
}

fn rule_hint(name: &str, rules: &[String]) -> String {
    let names: Vec<&str> = rules.iter().map(String::as_str).collect();
    match nearest(name, &names) {
        Some(rule) => format!("did you mean `{rule}`?"),
        None if names.is_empty() => "the policy has no rules".into(),
        None => {
            let more = if names.len() > LISTED_RULES {
                ", …"
            } else {
                ""
            };
            let listed = names.get(..LISTED_RULES).unwrap_or(&names).join(", ");
            format!("its rules: {listed}{more}")
        }
    }
}
