//! `kpc check`

use std::io;
use std::path::PathBuf;

use kpvm_compiler::compile::Options;

use crate::diagnostics::show_error;
use crate::policies;
use crate::stream::{EXIT_BAD_INPUT, EXIT_FAILED, EXIT_OK, Streams};
use crate::text::count;

/// Arguments of `kpc check`.
#[derive(Debug, clap::Args)]
pub struct Arguments {
    /// Policy files, directories (read with all below them), or - for standard input
    #[arg(required = true, value_name = "PATH")]
    pub paths: Vec<PathBuf>,
    /// Do not take rules that are not supported yet for errors
    #[arg(long)]
    pub skip_unsupported: bool,
}

/// Compiles policies and throws the bundle away.
///
/// # Errors
/// Those of the writers.
pub fn run(arguments: &Arguments, streams: &mut Streams<'_>) -> io::Result<u8> {
    let options = Options {
        skip_unsupported: arguments.skip_unsupported,
        ..Options::default()
    };
    let policies = policies::load(&arguments.paths, &mut io::stdin(), &options);
    policies.show(streams)?;
    if !policies.unreadable.is_empty() {
        return Ok(EXIT_BAD_INPUT);
    }
    if policies.is_empty() {
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
    writeln!(streams.err, "{policies} with {rules}: no errors")?;
    Ok(EXIT_OK)
}
