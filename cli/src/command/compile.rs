//! `kpc compile`

use std::io;
use std::path::{Path, PathBuf};

use kpvm_compiler::compile::Options;

use crate::diagnostics::show_error;
use crate::input::reason;
use crate::policies::{self, PolicyPaths};
use crate::stream::{EXIT_BAD_INPUT, EXIT_FAILED, EXIT_OK, Streams};
use crate::text::{clean, count};

/// Arguments of `kpc compile`.
#[derive(Debug, clap::Args)]
pub struct Arguments {
    /// Policy files, directories (searched recursively), or - for standard input
    #[arg(required = true, value_name = "PATH")]
    pub paths: Vec<PathBuf>,
    /// Exceptions to compile in: files or directories of kind PolicyException
    #[arg(
        short,
        long = "exception",
        visible_alias = "exceptions",
        value_name = "FILE"
    )]
    pub exceptions: Vec<PathBuf>,
    /// Bundle file to write
    #[arg(short, long, value_name = "FILE")]
    pub output: PathBuf,
    /// Omit rules that are not supported yet, and list them
    #[arg(long)]
    pub skip_unsupported: bool,
    /// Ignore validate.assert, as Kyverno does since 1.19
    #[arg(long)]
    pub ignore_assert: bool,
}

/// Compiles policies into a bundle file.
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
        exceptions: &arguments.exceptions,
        exceptions_within_policies: false,
        exceptions_among: None,
    };
    let policies = policies::load(&paths, &mut io::stdin(), &options);
    policies.show(streams)?;
    if !policies.unreadable.is_empty() {
        return Ok(EXIT_BAD_INPUT);
    }
    if policies.is_empty() {
        show_error("there is no policy in the inputs", streams.err)?;
        return Ok(EXIT_BAD_INPUT);
    }
    let compilation = &policies.compilation;
    let Some(bundle) = &compilation.bundle else {
        return Ok(EXIT_FAILED);
    };
    if let Err(error) = write_file(&arguments.output, bundle) {
        let name = arguments.output.display().to_string();
        let message = format!("cannot write {}: {}", clean(&name), clean(&reason(&error)));
        show_error(&message, streams.err)?;
        return Ok(EXIT_BAD_INPUT);
    }
    let exceptions = match compilation.exceptions {
        0 => String::new(),
        number => format!(" and {}", count(number, "exception")),
    };
    writeln!(
        streams.err,
        "compiled {} with {}{exceptions} into {} ({})",
        count(compilation.policies, "policy"),
        count(compilation.rules, "rule"),
        clean(&arguments.output.display().to_string()),
        count(bundle.len(), "byte"),
    )?;
    Ok(EXIT_OK)
}

/// Writes in place: the header reveals a truncated bundle, so no temporary file is needed.
fn write_file(path: &Path, bytes: &[u8]) -> io::Result<()> {
    if path.as_os_str() == "-" {
        return Err(io::Error::other(
            "a bundle is written to a file, not to standard output",
        ));
    }
    std::fs::write(path, bytes)
}
