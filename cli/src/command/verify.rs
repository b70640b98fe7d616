//! `kpc verify`: checks a bundle as a host does that takes bundles from strangers.

use std::io;
use std::path::PathBuf;

use kpvm_compiler::analysis;

use crate::command::load_bundle;
use crate::diagnostics::show_error;
use crate::stream::{EXIT_BAD_INPUT, EXIT_FAILED, EXIT_OK, Streams};
use crate::text::{clean, count};

/// Arguments of `kpc verify`.
#[derive(Debug, clap::Args)]
pub struct Arguments {
    /// The bundle
    #[arg(value_name = "FILE")]
    pub bundle: PathBuf,
}

/// Derives again what a bundle stores about its code, and says whether it is the same.
///
/// # Errors
/// Fails if a writer fails.
pub fn run(arguments: &Arguments, streams: &mut Streams<'_>) -> io::Result<u8> {
    let Some(bundle) = load_bundle(&arguments.bundle, streams)? else {
        return Ok(EXIT_BAD_INPUT);
    };
    let path = arguments.bundle.display().to_string();
    let path = clean(&path);
    match analysis::verify(&bundle) {
        Ok(()) => {
            let rules = count(bundle.tables().rules.len(), "rule");
            writeln!(
                streams.out,
                "{path}: plans and projections are those of its {rules}"
            )?;
            Ok(EXIT_OK)
        }
        Err(mismatch) => {
            let text = format!("{path}: {mismatch}; it was changed after kpc wrote it");
            show_error(&text, streams.err)?;
            Ok(EXIT_FAILED)
        }
    }
}
