//! Rules that are not in a bundle, told to people: the rules that autogen would have
//! made of a rule are named with it, not one by one.

use std::collections::HashMap;
use std::io;

use kpvm_format::meta::OmittedRule;

use crate::diagnostics::show_warning;
use crate::stream::Streams;
use crate::text::clean;

/// A rule that was left out, with those generated from it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Omitted<'r> {
    /// The written rule.
    pub rule: &'r OmittedRule,
    /// How many rules were generated from it.
    pub generated: usize,
}

/// Groups rules: those of one policy that are left out at one place for one reason
/// come from the same written rule, which stands first.
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
    /// What was left out, and why.
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

/// Warns of every rule that was left out.
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
