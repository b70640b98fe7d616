//! `kpc vap`: ValidatingAdmissionPolicies with their bindings, generated from policies.

use std::io;
use std::path::PathBuf;

use kpvm_compiler::diagnostic::Diagnostic;
use kpvm_compiler::generated_admission_policy::{Refusal, generate, generate_from_validating};
use kpvm_compiler::source::Location;

use crate::diagnostics;
use crate::models::{self, ModelArguments};
use crate::stream::{EXIT_FAILED, EXIT_OK, Streams};

/// Help text after the options.
pub const HELP: &str = "\
Examples:
  kpc vap policies/
  kpc vap policy.yaml --exception exceptions/ | kubectl apply -f -

A ClusterPolicy qualifies if it has one rule with validate.cel and `generate: true`, a
ValidatingPolicy if it requests generation. For other policies Kyverno's reason is shown.
Exceptions become exclusions.

Exit codes:
  0  success; also if no policy qualifies
  1  a policy has errors, or qualifies and cannot be translated
  2  wrong usage, or unreadable input";

/// Arguments of `kpc vap`.
#[derive(Debug, clap::Args)]
pub struct Arguments {
    #[command(flatten)]
    models: ModelArguments,
    /// Exceptions: files or directories of kind PolicyException; those among the policies
    /// also count
    #[arg(
        short,
        long = "exception",
        visible_alias = "exceptions",
        value_name = "FILE"
    )]
    pub exceptions: Vec<PathBuf>,
}

/// Prints two documents for each policy that qualifies.
///
/// # Errors
/// Fails if the writer fails.
pub fn run(arguments: &Arguments, streams: &mut Streams<'_>) -> io::Result<u8> {
    let models = match models::load(&arguments.models, &arguments.exceptions, streams)? {
        Ok(models) => models,
        Err(code) => return Ok(code),
    };
    let mut documents = Vec::new();
    let mut exit_code = EXIT_OK;
    let classic = models.policies.iter().map(|policy| {
        let found = generate(policy, &models.exceptions, &models.discovery);
        (&policy.name, policy.source, found)
    });
    let validating = models.validating.iter().map(|policy| {
        let found = generate_from_validating(policy, &models.cel_exceptions);
        (&policy.name, policy.source, found)
    });
    for (name, source, found) in classic.chain(validating) {
        let refusal = match found {
            Ok(generated) => {
                documents.extend([generated.policy, generated.binding]);
                continue;
            }
            Err(refusal) => refusal,
        };
        let location = Location {
            source,
            span: name.span,
        };
        let diagnostic = match refusal {
            Refusal::Disqualified(reason) => Diagnostic::warning("not-generated", reason, location),
            Refusal::NotConsidered(why) => {
                let message = format!("a ValidatingAdmissionPolicy is made {why}");
                Diagnostic::warning("not-generated", message, location)
            }
            Refusal::Failed(reason) => {
                exit_code = EXIT_FAILED;
                Diagnostic::error("not-generated", reason, location)
                    .hint("name the kind with group and version; a kind that is not built in needs its CustomResourceDefinition (--crd)")
            }
        };
        let diagnostic = diagnostic.subject(&name.value);
        diagnostics::show(&diagnostic, &models.read.sources, streams.err)?;
    }
    if !documents.is_empty() {
        models::write(&documents, arguments.models.output, streams.out)?;
    }
    Ok(exit_code)
}
