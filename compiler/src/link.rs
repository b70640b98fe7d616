//! Linking of exceptions: which rules each exception names, and for each pair the block
//! that says whether it applies.
//!
//! Rules are identified by what a bundle says about them, so that exceptions can be added
//! to policies that were compiled before.

mod cel_exception;
mod targets;

use std::collections::HashMap;

use kpvm_format::meta::OmittedRule;
use kpvm_format::table::BodyKind;
use kpvm_semantics::wildcard;

use self::targets::TargetRule;
pub(crate) use self::targets::Targets;
use crate::diagnostic::Diagnostic;
use crate::frontend::exception::{lower_exception, lower_exclusions};
use crate::ir::{self, Module};
use crate::policy::model::{CoveredRules, PolicyException, Spanned};
use crate::policy::spelling::nearest;
use crate::policy::validating_policy::CelException;
use crate::source::{Location, Sources};

/// Number of rules that a message lists if none is close to a misspelled name.
const LISTED_RULES: usize = 8;

/// Exceptions of both groups, each in their order.
#[derive(Debug, Default)]
pub(crate) struct Exceptions {
    /// For policies of kyverno.io.
    pub(crate) classic: Vec<PolicyException>,
    /// For policies of policies.kyverno.io.
    pub(crate) cel: Vec<CelException>,
}

impl Exceptions {
    pub(crate) fn len(&self) -> usize {
        self.classic.len() + self.cel.len()
    }
}

/// Adds exceptions to a module, for the rules that they name. An exception that names a
/// policy or a rule that is neither among the targets nor among those left out gives a
/// warning.
pub(crate) fn add_exceptions(
    module: &mut Module,
    targets: &Targets,
    exceptions: &Exceptions,
    omitted: &[OmittedRule],
    sources: &Sources,
    diagnostics: &mut Vec<Diagnostic>,
) {
    cel_exception::add(module, targets, &exceptions.cel, sources, diagnostics);
    let exceptions = exceptions.classic.as_slice();
    if exceptions.is_empty() {
        return;
    }
    let policies = PolicyNames::of(targets, omitted);
    if !policies.policies.is_empty() {
        for exception in exceptions {
            check_names(exception, &policies, diagnostics);
        }
    }
    let mut by_policy: HashMap<&str, Vec<&PolicyException>> = HashMap::new();
    for exception in exceptions {
        for covered in &exception.covered {
            let named = by_policy.entry(&covered.policy.value).or_default();
            // An exception that names a policy twice applies once.
            if !named
                .last()
                .is_some_and(|&last| std::ptr::eq(last, exception))
            {
                named.push(exception);
            }
        }
    }
    for rule in &targets.rules {
        // An exception applies only to policies of its own group.
        let policy = match rule.body {
            BodyKind::Validations | BodyKind::AdmissionPolicy => "",
            _ => policies.key(rule.policy),
        };
        for exception in by_policy.get(policy).into_iter().flatten() {
            if covers(exception, policy, &rule.name) {
                add_exception(exception, rule, module);
            }
        }
    }
}

/// docs/spec/policies.md §9: the policy is compared exactly, the rule as a wildcard.
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

fn add_exception(exception: &PolicyException, rule: &TargetRule, module: &mut Module) {
    let block = lower_exception(exception, rule.scope(), module);
    let block = module.add(block);
    let is_pod_security = rule.body == BodyKind::PodSecurity;
    let exclusion_block = (is_pod_security && !exception.pod_security.is_empty()).then(|| {
        let block = lower_exclusions(exception, module);
        module.add(block)
    });
    module.exceptions.push(ir::Exception {
        rule: rule.id,
        namespace: exception.namespace.clone(),
        name: exception.name.value.clone(),
        block,
        exclusion_block,
        passes: false,
        priority: 0,
        allowed: [None; 2],
        location: Location {
            source: exception.source,
            span: exception.tree.span,
        },
    });
}

/// The policies as exceptions name them, with the names of their rules.
struct PolicyNames {
    policies: Vec<PolicyName>,
}

struct PolicyName {
    /// `name`, or `namespace/name` of a `Policy`.
    key: String,
    rules: Vec<String>,
}

impl PolicyNames {
    fn of(targets: &Targets, omitted: &[OmittedRule]) -> Self {
        let mut policies: Vec<PolicyName> = targets
            .policies
            .iter()
            .map(|policy| PolicyName {
                key: policy.key(),
                rules: Vec::new(),
            })
            .collect();
        for rule in &targets.rules {
            if let Some(policy) = policies.get_mut(rule.policy) {
                policy.rules.push(rule.name.clone());
            }
        }
        for (known, policy) in policies.iter_mut().zip(&targets.policies) {
            let left_out = omitted.iter().filter(|rule| rule.policy == policy.name);
            known.rules.extend(left_out.map(|rule| rule.rule.clone()));
        }
        Self { policies }
    }

    /// The key of the policy with this number.
    fn key(&self, number: usize) -> &str {
        self.policies.get(number).map_or("", |policy| &policy.key)
    }
}

/// Warns about names that do not exist.
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
