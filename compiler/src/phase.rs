//! The phases of compilation, and how the result of each is printed.

use std::fmt::{self, Write};

use kpvm_format::Bundle;
use kpvm_format::disassemble::disassemble;

use crate::ir::{self, Module};
use crate::lower::computed_rules::computed_rules;
use crate::policy::any_policy::AnyPolicy;
use crate::policy::print;
use crate::policy::validating_autogen::variants;
use crate::source::Sources;

/// A phase whose result can be printed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Phase {
    /// The policies as read and checked.
    Policy,
    /// Their rules, including generated ones.
    Rules,
    /// The module after lowering.
    Ir,
    /// The module after all passes.
    Optimised,
    /// The bundle's code.
    Bytecode,
}

/// The policies as text.
pub(crate) fn policies_text(policies: &[AnyPolicy]) -> String {
    let mut out = String::new();
    // Writing to a string does not fail.
    let _ = policies.iter().try_for_each(|one| policy(one, &mut out));
    out
}

/// The rules of the policies as text.
pub(crate) fn rules_text(policies: &[AnyPolicy]) -> String {
    let mut out = String::new();
    let _ = policies.iter().try_for_each(|one| rules(one, &mut out));
    out
}

/// A module as text.
pub(crate) fn module_text(module: &Module, sources: &Sources) -> String {
    let mut out = String::new();
    let _ = ir::print::print(module, sources, &mut out);
    out
}

/// The code of a bundle as text.
pub(crate) fn bytecode_text(bytes: &[u8]) -> Option<String> {
    let bundle = Bundle::load(bytes).ok()?;
    let mut out = String::new();
    let _ = disassemble(&bundle, &|_, _| true, &mut out);
    Some(out)
}

fn policy(policy: &AnyPolicy, out: &mut String) -> fmt::Result {
    match policy {
        AnyPolicy::Classic(policy) => {
            print::policy_head(policy, out)?;
            for rule in &policy.rules {
                writeln!(out, "  rule {}", rule.name.value)?;
                print::rule_parts(rule, 2, out)?;
            }
        }
        AnyPolicy::Validating(policy) => {
            print::validating_head(policy, out)?;
            print::validating_parts(&policy.spec, 1, out)?;
        }
        AnyPolicy::Admission(policy) => print::admission_policy(policy, out)?,
    }
    out.write_str("\n")
}

fn rules(policy: &AnyPolicy, out: &mut String) -> fmt::Result {
    let name = &policy.name().value;
    match policy {
        AnyPolicy::Classic(policy) => {
            for computed in computed_rules(policy) {
                let generated = if computed.generated {
                    " (generated)"
                } else {
                    ""
                };
                let kinds = computed.kinds.join(", ");
                let rule = &computed.rule;
                writeln!(
                    out,
                    "rule {name}/{}{generated} for {kinds}",
                    rule.name.value
                )?;
                if !computed.dropped_kinds.is_empty() {
                    writeln!(out, "  not for: {}", computed.dropped_kinds.join(", "))?;
                }
                print::rule_parts(rule, 1, out)?;
                out.write_str("\n")?;
            }
        }
        AnyPolicy::Validating(policy) => {
            for variant in variants(policy) {
                let generated = if variant.is_generated {
                    " (generated)"
                } else {
                    ""
                };
                writeln!(out, "rule {name}{generated}")?;
                print::validating_parts(&variant.spec, 1, out)?;
                out.write_str("\n")?;
            }
        }
        AnyPolicy::Admission(policy) => {
            if policy.bindings.is_empty() {
                writeln!(out, "rule {name} without a binding\n")?;
            }
            for binding in &policy.bindings {
                writeln!(out, "rule {name} by binding {}\n", binding.name.value)?;
            }
        }
    }
    Ok(())
}
