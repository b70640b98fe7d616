//! `kpc check`: checks policies, and the exceptions among them.

use std::io;
use std::path::PathBuf;

use kpvm_compiler::compile::Options;

use crate::diagnostics::show_error;
use crate::policies::{self, PolicyPaths};
use crate::stream::{EXIT_BAD_INPUT, EXIT_FAILED, EXIT_OK, Streams};
use crate::text::count;

/// Arguments of `kpc check`.
#[derive(Debug, clap::Args)]
pub struct Arguments {
    /// Files of policies and exceptions, directories (searched recursively), or - for
    /// standard input
    #[arg(required = true, value_name = "PATH")]
    pub paths: Vec<PathBuf>,
    /// Do not treat rules that are not supported yet as errors
    #[arg(long)]
    pub skip_unsupported: bool,
    /// Ignore validate.assert, as Kyverno does since 1.19
    #[arg(long)]
    pub ignore_assert: bool,
}

/// Compiles policies and exceptions and discards the bundle.
///
/// # Errors
/// Fails if the writer fails.
pub fn run(arguments: &Arguments, streams: &mut Streams<'_>) -> io::Result<u8> {
    let options = Options {
        skip_unsupported: arguments.skip_unsupported,
        ignore_assert: arguments.ignore_assert,
        ..Options::default()
    };
    let paths = PolicyPaths {
        policies: &arguments.paths,
        exceptions: &[],
        exceptions_within_policies: true,
        exceptions_among: None,
    };
    let policies = policies::load(&paths, &mut io::stdin(), &options);
    policies.show(streams)?;
    if !policies.unreadable.is_empty() {
        return Ok(EXIT_BAD_INPUT);
    }
    let exceptions = policies.compilation.exceptions;
    if policies.is_empty() && exceptions == 0 {
        show_error("there is no policy in the inputs", streams.err)?;
        return Ok(EXIT_BAD_INPUT);
    }
    if policies.has_errors() {
        return Ok(EXIT_FAILED);
    }
    let compilation = &policies.compilation;
    let (policies, rules) = (
        count(compilation.policies, "policy"),
        count(compilation.rules, "rule"),
    );
    let exceptions = match exceptions {
        0 => String::new(),
        number => format!(", {}", count(number, "exception")),
    };
    writeln!(
        streams.err,
        "{policies} with {rules}{exceptions}: no errors"
    )?;
    Ok(EXIT_OK)
}
