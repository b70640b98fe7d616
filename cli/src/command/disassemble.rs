//! `kpc disasm`

use std::io;
use std::path::PathBuf;

use kpvm_format::disassemble::disassemble;

use crate::command::load_bundle;
use crate::diagnostics::show_error;
use crate::stream::{EXIT_BAD_INPUT, EXIT_OK, Streams};
use crate::text::{clean, clean_lines};

/// Arguments of `kpc disasm`.
#[derive(Debug, clap::Args)]
pub struct Arguments {
    /// The bundle
    #[arg(value_name = "FILE")]
    pub bundle: PathBuf,
    /// Only this rule; generated rules have their own names (autogen-RULE)
    #[arg(long, value_name = "POLICY/RULE")]
    pub rule: Option<String>,
}

/// Prints the code of a bundle.
///
/// # Errors
/// Fails if the writer fails.
pub fn run(arguments: &Arguments, streams: &mut Streams<'_>) -> io::Result<u8> {
    let Some(bundle) = load_bundle(&arguments.bundle, streams)? else {
        return Ok(EXIT_BAD_INPUT);
    };
    let wanted = |policy: &str, rule: &str| match &arguments.rule {
        Some(name) => name.split_once('/') == Some((policy, rule)),
        None => true,
    };
    let mut text = String::new();
    disassemble(&bundle, &wanted, &mut text).map_err(io::Error::other)?;
    if let Some(rule) = arguments.rule.as_ref().filter(|_| text.is_empty()) {
        show_error(
            &format!("the bundle has no rule {}", clean(rule)),
            streams.err,
        )?;
        return Ok(EXIT_BAD_INPUT);
    }
    writeln!(streams.out, "{}", clean_lines(&text, ""))?;
    Ok(EXIT_OK)
}
