//! `kpc webhooks`: the webhook configuration with which an API server would send requests
//! to Kyverno.

use std::io;

use kpvm_compiler::diagnostic::Diagnostic;
use kpvm_compiler::webhooks::{Service, derive};

use crate::diagnostics::{self, show_note};
use crate::models::{self, ModelArguments};
use crate::stream::{EXIT_OK, Streams};

/// Help text after the options.
pub const HELP: &str = "\
Examples:
  kpc webhooks policies/
  kpc webhooks policies/ --crd crds/ -o json | jq '.webhooks[].rules'

A kind that is neither built in nor defined by --crd has no resource: it is reported and
omitted, as Kyverno does until the definition exists.";

/// Arguments of `kpc webhooks`.
#[derive(Debug, clap::Args)]
pub struct Arguments {
    #[command(flatten)]
    models: ModelArguments,
    /// Name of the Service that handles the requests
    #[arg(long, value_name = "NAME", default_value = "kyverno-svc")]
    pub service: String,
    /// Namespace of that Service
    #[arg(long, value_name = "NAME", default_value = "kyverno")]
    pub namespace: String,
}

/// Prints a ValidatingWebhookConfiguration.
///
/// # Errors
/// Fails if the writer fails.
pub fn run(arguments: &Arguments, streams: &mut Streams<'_>) -> io::Result<u8> {
    let models = match models::load(&arguments.models, &[], streams)? {
        Ok(models) => models,
        Err(code) => return Ok(code),
    };
    let service = Service {
        name: arguments.service.clone(),
        namespace: arguments.namespace.clone(),
    };
    let webhooks = derive(
        &models.policies,
        &models.validating,
        &models.discovery,
        &service,
    );
    for unknown in &webhooks.unknown {
        let message = format!("no resource of the kind `{}` is known", unknown.kind);
        let warning = Diagnostic::warning("unknown-kind", message, unknown.location)
            .subject(&unknown.policy)
            .hint("give its CustomResourceDefinition with --crd; without it no request is sent");
        diagnostics::show(&warning, &models.read.sources, streams.err)?;
    }
    let configuration = webhooks.configuration;
    let is_empty = configuration
        .get("webhooks")
        .and_then(serde_json::Value::as_array)
        .is_none_or(Vec::is_empty);
    if is_empty {
        show_note("the policies need no webhook", streams.err)?;
    }
    models::write(&[configuration], arguments.models.output, streams.out)?;
    Ok(EXIT_OK)
}
