//! `kpvm eval`: takes a compiled bundle instead of policies, and the options of
//! `kpvm apply` that concern resources.

use std::io;
use std::path::PathBuf;

use kpvm::engine::{Bundle, Engine};
use kpvm_compiler::compile::{self, Options};

use crate::command::evaluate::{CommonArguments, Given, Inputs, evaluate};
use crate::command::load_bundle;
use crate::diagnostics::show_error;
use crate::omitted;
use crate::policies::{self, Exceptions, PolicyPaths};
use crate::resources::{Resources, read_resources};
use crate::stream::{EXIT_BAD_INPUT, Streams};

/// Arguments of `kpvm eval`.
#[derive(Debug, clap::Args)]
pub struct EvalArguments {
    /// Bundle written by kpc compile
    #[arg(value_name = "BUNDLE")]
    pub bundle: PathBuf,
    /// Resource files, directories (searched recursively), or - for standard input
    #[arg(required = true, value_name = "RESOURCE")]
    pub resources: Vec<PathBuf>,
    /// How to evaluate and report.
    #[command(flatten)]
    pub common: CommonArguments,
}

/// Evaluates resources against a bundle.
///
/// # Errors
/// Fails if the writer fails.
pub fn eval(arguments: &EvalArguments, streams: &mut Streams<'_>) -> io::Result<u8> {
    if !arguments.common.check(streams)? {
        return Ok(EXIT_BAD_INPUT);
    }
    let Some(bundle) = load_bundle(&arguments.bundle, streams)? else {
        return Ok(EXIT_BAD_INPUT);
    };
    omitted::show(&bundle.meta().omitted, streams)?;
    let Some(circumstances) = arguments.common.circumstances.read(streams)? else {
        return Ok(EXIT_BAD_INPUT);
    };
    let common = &arguments.common;
    let mut whole = None;
    if common.exceptions_with_resources {
        let resources = read_resources(&arguments.resources, &mut io::stdin());
        whole = Some(Box::new(resources));
    }
    let Some((bundle, exceptions)) = with_exceptions(bundle, common, whole.as_deref(), streams)?
    else {
        return Ok(EXIT_BAD_INPUT);
    };
    let resources = match whole {
        Some(resources) => Given::Whole(resources),
        None => Given::new(&arguments.resources, &bundle, common, &circumstances),
    };
    let engine = Engine::new(bundle);
    let inputs = Inputs {
        engine: &engine,
        policies: None,
        exceptions,
        resources,
        circumstances,
        has_heading: false,
    };
    evaluate(inputs, common, streams)
}

/// Adds exceptions to the bundle, including those among the resources if they are given;
/// returns it with their number. Reports problems and returns `None` if they cannot be
/// added.
fn with_exceptions(
    bundle: Bundle<'static>,
    arguments: &CommonArguments,
    among: Option<&Resources>,
    streams: &mut Streams<'_>,
) -> io::Result<Option<(Bundle<'static>, usize)>> {
    if arguments.exceptions().is_empty() && among.is_none() {
        return Ok(Some((bundle, 0)));
    }
    let options = Options::default();
    let paths = PolicyPaths {
        policies: &[],
        exceptions: arguments.exceptions(),
        exceptions_within_policies: false,
        exceptions_among: among,
    };
    let Exceptions {
        mut read,
        documents,
    } = policies::load_exceptions(&paths, &mut io::stdin(), &options);
    let found = std::mem::take(&mut read.compilation.diagnostics);
    let mut compilation =
        compile::add_exceptions(&bundle, &documents, &read.sources, &options, found);
    let bytes = compilation.bundle.take();
    let number = compilation.exceptions;
    // The bundle's own omitted rules have already been shown.
    compilation.omitted.clear();
    read.compilation = compilation;
    read.show(streams)?;
    match bytes.map(Bundle::load) {
        Some(Ok(bundle)) if read.unreadable.is_empty() => Ok(Some((bundle, number))),
        Some(Err(error)) => {
            let message = format!("the exceptions cannot be added: {error}");
            show_error(&message, streams.err)?;
            Ok(None)
        }
        _ => Ok(None),
    }
}
