//! `kpvm completion` and `kpc completion`: completions of commands and options for a shell.

use std::io;

use clap::Command;
use clap_complete::{Generator, Shell as Known, generate};
use clap_complete_nushell::Nushell;

use crate::stream::{EXIT_OK, Streams};

/// Help text of both programs.
pub const HELP: &str = "\
Examples, for kpvm (kpc likewise):
  bash    kpvm completion bash > /etc/bash_completion.d/kpvm
  zsh     kpvm completion zsh > \"${fpath[1]}/_kpvm\"
  fish    kpvm completion fish > ~/.config/fish/completions/kpvm.fish";

/// Arguments of the command.
#[derive(Debug, clap::Args)]
pub struct Arguments {
    /// The shell
    #[arg(value_enum)]
    pub shell: Shell,
}

/// The shells.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub enum Shell {
    /// Bash
    Bash,
    /// Z shell
    Zsh,
    /// Fish
    Fish,
    /// PowerShell
    #[value(name = "powershell")]
    PowerShell,
    /// Elvish
    Elvish,
    /// Nushell
    Nushell,
}

/// Prints the script for a shell.
///
/// # Errors
/// Fails if the writer fails.
pub fn run(arguments: &Arguments, command: Command, streams: &mut Streams<'_>) -> io::Result<u8> {
    let script = match arguments.shell {
        Shell::Bash => script(Known::Bash, command),
        Shell::Zsh => script(Known::Zsh, command),
        Shell::Fish => script(Known::Fish, command),
        Shell::PowerShell => script(Known::PowerShell, command),
        Shell::Elvish => script(Known::Elvish, command),
        Shell::Nushell => script(Nushell, command),
    };
    streams.out.write_all(&script)?;
    Ok(EXIT_OK)
}

/// Writes to memory because the generators panic on write errors.
fn script(shell: impl Generator, mut command: Command) -> Vec<u8> {
    let name = command.get_name().to_owned();
    let mut script = Vec::new();
    generate(shell, &mut command, name, &mut script);
    script
}
