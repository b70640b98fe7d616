//! A program connected by two pipes: one line in, one line out.
//!
//! Only the named program is started. `benches/peers/build` builds those of this
//! repository.

use std::io::{BufRead, BufReader, BufWriter, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};

/// Path of a program built by `benches/peers/build`.
pub fn program(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("peers/bin")
        .join(name)
}

/// A running peer.
pub struct Peer {
    child: Child,
    input: BufWriter<ChildStdin>,
    output: BufReader<ChildStdout>,
}

impl Peer {
    /// Starts the program.
    ///
    /// # Errors
    /// When it is not there.
    pub fn start(program: &Path, arguments: &[&str]) -> Result<Self, String> {
        let missing = |error| {
            format!(
                "{}: {error}; `benches/peers/build` builds it where Go is present",
                program.display()
            )
        };
        let mut child = Command::new(program)
            .args(arguments)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .map_err(missing)?;
        match (child.stdin.take(), child.stdout.take()) {
            (Some(input), Some(output)) => Ok(Self {
                child,
                input: BufWriter::new(input),
                output: BufReader::new(output),
            }),
            _ => Err("the peer has no pipes".into()),
        }
    }

    /// Sends all the lines and does `meanwhile` before reading the answers, which are
    /// lines in the same order.
    ///
    /// # Errors
    /// When the peer ends early.
    pub fn ask<T>(
        &mut self,
        lines: &[String],
        meanwhile: impl FnOnce() -> T,
    ) -> Result<(Vec<String>, T), String> {
        let (input, output) = (&mut self.input, &mut self.output);
        std::thread::scope(|scope| {
            // The answers are read while cases are written, or the pipes would fill up.
            let reader = scope.spawn(move || read_lines(output, lines.len()));
            let writer = scope.spawn(move || write_lines(input, lines));
            let other = meanwhile();
            let died = |_| "a thread of the driver panicked".to_owned();
            writer.join().map_err(died)??;
            Ok((reader.join().map_err(died)??, other))
        })
    }
}

fn write_lines(input: &mut impl Write, lines: &[String]) -> Result<(), String> {
    let failed = |error| format!("writing to the peer: {error}");
    for line in lines {
        writeln!(input, "{line}").map_err(failed)?;
    }
    input.flush().map_err(failed)
}

fn read_lines(output: &mut impl BufRead, count: usize) -> Result<Vec<String>, String> {
    (0..count)
        .map(|_| {
            let mut line = String::new();
            let length = output
                .read_line(&mut line)
                .map_err(|error| format!("reading from the peer: {error}"))?;
            match length {
                0 => Err("the peer ended before it answered everything".into()),
                _ => Ok(line),
            }
        })
        .collect()
}

impl Drop for Peer {
    fn drop(&mut self) {
        // It ends by itself when its input does; this is for one that hangs.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
