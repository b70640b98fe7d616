//! `kpvm man` and `kpc man`: manual pages from the definition of the command line.

use std::io;
use std::path::PathBuf;

use clap::Command;
use clap_mangen::Man;

use crate::output::{with_name, write_file};
use crate::stream::{EXIT_OK, Streams};
use crate::text::{clean, count};

/// Help text of both programs.
pub const HELP: &str = "\
Examples, for kpvm (kpc likewise):
  kpvm man | man -l -
  kpvm man --output /usr/local/share/man/man1";

/// Arguments of the command.
#[derive(Debug, clap::Args)]
pub struct Arguments {
    /// Write one page for the program and each command into this directory, instead of
    /// printing the first
    #[arg(short, long, value_name = "DIRECTORY")]
    pub output: Option<PathBuf>,
}

/// Prints or writes the pages.
///
/// # Errors
/// Fails if a writer or the directory fails.
pub fn run(arguments: &Arguments, command: Command, streams: &mut Streams<'_>) -> io::Result<u8> {
    let mut command = command.disable_help_subcommand(true);
    command.build();
    let Some(directory) = &arguments.output else {
        Man::new(command).render(&mut streams.out)?;
        return Ok(EXIT_OK);
    };
    std::fs::create_dir_all(directory).map_err(|error| with_name(directory, &error))?;
    let mut written = 0;
    let mut waiting = vec![command];
    while let Some(command) = waiting.pop() {
        waiting.extend(command.get_subcommands().cloned());
        let man = Man::new(command);
        let path = directory.join(man.get_filename());
        write_file(&path, |out| man.render(&mut &mut *out))
            .map_err(|error| with_name(&path, &error))?;
        written += 1;
    }
    let directory = directory.display().to_string();
    let pages = count(written, "page");
    writeln!(streams.err, "wrote {pages} into {}", clean(&directory))?;
    Ok(EXIT_OK)
}
