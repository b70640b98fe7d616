//! Warnings and notes besides the report: silence must not look like success.

use std::io;

use crate::diagnostics::{show_error, show_note, show_warning};
use crate::part::Outcome;
use crate::scan::Scan;
use crate::stream::Streams;
use crate::text::{clean, count};
use crate::unmatched::{Reason, Unmatched};

/// Maximum number of policies named individually; the rest is counted.
const POLICIES: usize = 5;

/// Shows everything that the report may not make obvious. `verbose` omits nothing.
///
/// # Errors
/// Fails if the writer fails.
pub fn show(outcome: &Outcome<'_>, verbose: bool, streams: &mut Streams<'_>) -> io::Result<()> {
    let scan = &outcome.scan;
    if outcome.empty_lists > 0 {
        let lists = count(outcome.empty_lists, "list");
        show_note(&format!("{lists} held no items"), streams.err)?;
    }
    let nothing_applied = nothing_applied(scan);
    if scan.evaluated == 0 && outcome.problems == 0 {
        show_warning("there is no resource in the inputs", streams.err)?;
    } else if nothing_applied {
        let (rules, objects) = (
            count(scan.facts.rules, "rule"),
            count(scan.evaluated, "resource"),
        );
        let message = format!("no rule applied to any resource ({rules}, {objects})");
        show_warning(&message, streams.err)?;
    }
    show_unmatched(scan, verbose, streams)?;
    if scan.summary.skip > 0 && !verbose {
        let results = count(scan.summary.skip, "result");
        let message = format!("{results} skipped, e.g. by preconditions (--verbose says why)");
        show_note(&message, streams.err)?;
    }
    if outcome.problems > 0 {
        let inputs = count(outcome.problems, "input");
        let message = format!("{inputs} could not be used; the others were evaluated");
        show_error(&message, streams.err)?;
    }
    Ok(())
}

fn nothing_applied(scan: &Scan<'_>) -> bool {
    scan.summary.total() == 0
}

/// Whether to explain why objects did not match policies.
pub fn tell_unmatched(scan: &Scan<'_>, verbose: bool) -> bool {
    verbose || nothing_applied(scan)
}

/// Reasons are given if nothing applied at all, and for kinds that look misspelled.
/// Otherwise policies without matching objects are common, and one line summarises them.
fn show_unmatched(scan: &Scan<'_>, verbose: bool, streams: &mut Streams<'_>) -> io::Result<()> {
    let (explained, named): (Vec<&Unmatched>, Vec<&Unmatched>) = scan
        .unmatched
        .iter()
        // Omitted rules are reported elsewhere.
        .filter(|unmatched| verbose || unmatched.reason != Reason::NoRules)
        .partition(|unmatched| tell_unmatched(scan, verbose) || is_misspelled(unmatched));
    let number = if verbose { usize::MAX } else { POLICIES };
    for unmatched in explained.iter().take(number) {
        let (name, reason) = (name(scan, unmatched), unmatched.reason.to_string());
        let message = format!("the policy {name} matched no resource: {}", clean(&reason));
        if is_misspelled(unmatched) {
            show_warning(&message, streams.err)?;
        } else {
            show_note(&message, streams.err)?;
        }
    }
    let unexplained = explained.iter().skip(number).chain(&named);
    let names: Vec<String> = unexplained.map(|one| name(scan, one)).collect();
    if names.is_empty() {
        return Ok(());
    }
    let shown = names
        .iter()
        .take(POLICIES)
        .cloned()
        .collect::<Vec<_>>()
        .join(", ");
    let more = match names.len().saturating_sub(POLICIES) {
        0 => String::new(),
        more => format!(" and {more} more"),
    };
    let policies = count(names.len(), "policy");
    let message = format!("{policies} matched no resource: {shown}{more} (--verbose says why)");
    show_note(&message, streams.err)
}

fn is_misspelled(unmatched: &Unmatched) -> bool {
    matches!(
        &unmatched.reason,
        Reason::Kinds {
            nearest: Some(_),
            ..
        }
    )
}

fn name(scan: &Scan<'_>, unmatched: &Unmatched) -> String {
    let policy = scan.facts.policies.get(unmatched.policy);
    policy.map_or(String::new(), |policy| {
        clean(&policy.full_name()).into_owned()
    })
}
