//! `kpc compile`

use std::io;
use std::path::{Path, PathBuf};

use kpvm_compiler::compile::Options;
use kpvm_compiler::phase::Phase;

use crate::diagnostics::show_error;
use crate::input::reason;
use crate::policies::{self, PolicyPaths};
use crate::stream::{EXIT_BAD_INPUT, EXIT_FAILED, EXIT_OK, Streams};
use crate::text::{clean, clean_lines, count};

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
    #[arg(short, long, value_name = "FILE", required_unless_present = "emit")]
    pub output: Option<PathBuf>,
    /// Print the result of a phase to standard output instead of writing a bundle
    #[arg(long, value_enum, value_name = "PHASE", conflicts_with = "output")]
    pub emit: Option<Emit>,
    /// Omit rules that are not supported yet, and list them
    #[arg(long)]
    pub skip_unsupported: bool,
    /// Ignore validate.assert, as Kyverno does since 1.19
    #[arg(long)]
    pub ignore_assert: bool,
}

/// The phases of `--emit`.
#[derive(Debug, Clone, Copy, clap::ValueEnum)]
pub enum Emit {
    /// Policies as read and checked
    Policy,
    /// Rules, with those that autogen adds
    Rules,
    /// Blocks as lowered from rules
    Ir,
    /// Blocks after all passes
    Optimised,
    /// Code of the bundle
    Bytecode,
}

impl From<Emit> for Phase {
    fn from(emit: Emit) -> Self {
        match emit {
            Emit::Policy => Phase::Policy,
            Emit::Rules => Phase::Rules,
            Emit::Ir => Phase::Ir,
            Emit::Optimised => Phase::Optimised,
            Emit::Bytecode => Phase::Bytecode,
        }
    }
}

/// Compiles policies into a bundle file, or prints a phase.
///
/// # Errors
/// Fails if the writer fails.
pub fn run(arguments: &Arguments, streams: &mut Streams<'_>) -> io::Result<u8> {
    let options = Options {
        skip_unsupported: arguments.skip_unsupported,
        ignore_assert: arguments.ignore_assert,
        emit: arguments.emit.map(Phase::from),
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
    let Some(output) = &arguments.output else {
        let printed = compilation.printed.as_deref().unwrap_or_default();
        writeln!(streams.out, "{}", clean_lines(printed.trim_end(), ""))?;
        return Ok(EXIT_OK);
    };
    if let Err(error) = write_file(output, bundle) {
        let name = output.display().to_string();
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
        clean(&output.display().to_string()),
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
