//! What people are told beside the report: silence must not look like success.
//!
//! What a run found goes in, warnings and notes leave on the stream for people.

use std::io;

use crate::diagnostics::{show_error, show_note, show_warning};
use crate::part::Outcome;
use crate::scan::Scan;
use crate::stream::Streams;
use crate::text::{clean, count};
use crate::unmatched::{Reason, Unmatched};

/// Policies that are named one by one before the rest is counted.
const POLICIES: usize = 5;

/// Shows everything that the report may not have made plain. `verbose` leaves nothing
/// out.
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

/// Whether people are told what did not fit in the objects that policies did not match.
pub fn tell_unmatched(scan: &Scan<'_>, verbose: bool) -> bool {
    verbose || nothing_applied(scan)
}

/// Reasons are given where nothing applied at all, and of kinds that seem misspelled.
/// Else a policy that has nothing to look at is common, and one line tells of all.
fn show_unmatched(scan: &Scan<'_>, verbose: bool, streams: &mut Streams<'_>) -> io::Result<()> {
    let (explained, named): (Vec<&Unmatched>, Vec<&Unmatched>) = scan
        .unmatched
        .iter()
        // That its rules were left out is told where they are.
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
