//! `--explain` of `kpvm apply` and `kpvm eval`: replaces the report by the trace of a rule.

use std::io;

use kpvm::engine::Engine;
use kpvm::host::Host;
use kpvm_compiler::diagnostic::Diagnostic;

use crate::diagnostics::show_error;
use crate::evaluation::{Circumstances, Evaluator};
use crate::explain::{self, ExplainArguments, Explainer, Format, Outcome};
use crate::nearest::did_you_mean;
use crate::problem::Problem;
use crate::resources::Resources;
use crate::stream::{EXIT_BAD_INPUT, EXIT_FAILED, EXIT_OK, Streams};
use crate::text::clean;

/// Explains a rule for every selected resource.
///
/// # Errors
/// Fails if the writer fails.
pub fn run(
    arguments: &ExplainArguments,
    format: Format,
    engine: &Engine,
    resources: &mut Resources,
    circumstances: &Circumstances,
    host: &mut dyn Host,
    streams: &mut Streams<'_>,
) -> io::Result<u8> {
    let rule = arguments.explain.as_deref().unwrap_or_default();
    let bundle = engine.bundle();
    let Some(explainer) = Explainer::new(bundle, rule) else {
        let known = explain::rule_names(&bundle.tables());
        let message = explain::unknown_rule(rule, known.iter().map(String::as_str));
        show_error(&clean(&message), streams.err)?;
        return Ok(EXIT_BAD_INPUT);
    };
    let wanted = arguments.explain_resource.as_deref();
    let mut evaluator = Evaluator::new(engine, circumstances);
    let (mut traces, mut problems, mut is_there) = (Vec::new(), Vec::new(), false);
    for resource in &resources.list {
        if !explain::is_wanted(resource, wanted) {
            continue;
        }
        is_there = true;
        match explainer.trace(resource, resources, None, &mut evaluator, host) {
            Ok(found) => traces.extend(found),
            Err(error) => {
                let location = resource.location();
                let diagnostic = Diagnostic::error("resource", error.to_string(), location);
                problems.push(Problem::InText(diagnostic));
            }
        }
    }
    resources.problems.extend(problems);
    for problem in &resources.problems {
        problem.show(&resources.sources, streams)?;
    }
    streams.err.flush()?;
    explain::write(format, &traces, streams.out)?;
    streams.out.flush()?;
    if !is_there {
        let message = missing_resource(resources, wanted);
        show_error(&clean(&message), streams.err)?;
    }
    let failed = |outcome| matches!(outcome, Outcome::Fail | Outcome::Error);
    Ok(if !is_there || !resources.problems.is_empty() {
        EXIT_BAD_INPUT
    } else if traces.iter().any(|trace| failed(trace.result)) {
        EXIT_FAILED
    } else {
        EXIT_OK
    })
}

fn missing_resource(resources: &Resources, wanted: Option<&str>) -> String {
    let Some(wanted) = wanted else {
        return "there is no resource in the inputs".into();
    };
    let mut message = format!("there is no resource {wanted} to explain the rule for");
    let names = resources.list.iter();
    let hint = did_you_mean(wanted, names.map(|resource| resource.metadata("name")));
    if let Some(hint) = hint {
        message.push_str("; ");
        message.push_str(&hint);
    }
    message
}
