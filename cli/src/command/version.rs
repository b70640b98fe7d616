//! `kpvm version` and `kpc version`, in the format of `kyverno version` (docs/spec/cli.md
//! §11).
//!
//! Time and commit come from the build variables `KPVM_COMMIT_TIME` and `KPVM_COMMIT`.
//! Without them they are `---`, as in Kyverno, so a build does not depend on when and in
//! which checkout it was made.

use std::io;

use serde::Serialize;

use crate::serialised::{write_json, write_yaml};
use crate::stream::{EXIT_OK, Streams};

/// Arguments of the command.
#[derive(Debug, clap::Args)]
pub struct Arguments {
    /// Format of the output; text by default
    #[arg(short, long, value_enum, value_name = "FORMAT")]
    pub output: Option<Format>,
}

/// Formats for programs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub enum Format {
    /// One JSON object
    Json,
    /// The same as YAML
    Yaml,
}

#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
struct Version {
    version: &'static str,
    time: &'static str,
    git_commit_id: &'static str,
}

const VERSION: Version = Version {
    version: env!("CARGO_PKG_VERSION"),
    time: match option_env!("KPVM_COMMIT_TIME") {
        Some(time) => time,
        None => "---",
    },
    git_commit_id: match option_env!("KPVM_COMMIT") {
        Some(commit) => commit,
        None => "---",
    },
};

/// Prints the version.
///
/// # Errors
/// Fails if the writer fails.
pub fn run(arguments: &Arguments, streams: &mut Streams<'_>) -> io::Result<u8> {
    match arguments.output {
        None => {
            writeln!(streams.out, "Version: {}", VERSION.version)?;
            writeln!(streams.out, "Time: {}", VERSION.time)?;
            writeln!(streams.out, "Git commit ID: {}", VERSION.git_commit_id)?;
        }
        Some(Format::Json) => write_json(&VERSION, streams.out)?,
        Some(Format::Yaml) => write_yaml(&VERSION, streams.out)?,
    }
    Ok(EXIT_OK)
}
