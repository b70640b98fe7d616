//! Reports omitted rules: rules that autogen would have generated are counted with their
//! source rule.

use std::collections::HashMap;
use std::io;

use kpvm_format::meta::OmittedRule;

use crate::diagnostics::show_warning;
use crate::stream::Streams;
use crate::text::clean;

/// An omitted rule, with the rules generated from it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Omitted<'r> {
    /// The written rule.
    pub rule: &'r OmittedRule,
    /// Number of rules generated from it.
    pub generated: usize,
}

/// Groups rules: those of one policy omitted at the same location for the same reason have
/// the same source rule, which comes first.
pub fn group(rules: &[OmittedRule]) -> Vec<Omitted<'_>> {
    let mut groups: Vec<Omitted<'_>> = Vec::new();
    let mut known = HashMap::new();
    for rule in rules {
        let key = (&rule.policy, &rule.place, &rule.reason);
        let index = *known.entry(key).or_insert(groups.len());
        match groups.get_mut(index) {
            Some(group) => group.generated += 1,
            None => groups.push(Omitted { rule, generated: 0 }),
        }
    }
    groups
}

impl Omitted<'_> {
    /// What was omitted, and why.
    pub fn describe(&self) -> String {
        let OmittedRule {
            policy,
            rule,
            reason,
            place: _,
        } = self.rule;
        let more = match self.generated {
            0 => String::new(),
            number => format!(" and {number} generated from it"),
        };
        format!("left out the rule {policy}/{rule}{more}: {reason}")
    }
}

/// Warns of every omitted rule.
///
/// # Errors
/// Fails if the writer fails.
pub fn show(rules: &[OmittedRule], streams: &mut Streams<'_>) -> io::Result<()> {
    for group in group(rules) {
        let message = format!("{} ({})", group.describe(), group.rule.place);
        show_warning(&clean(&message), streams.err)?;
    }
    Ok(())
}
