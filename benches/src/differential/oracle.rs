//! Kyverno's engine at the other end of two pipes.
//!
//! Cases go in as lines, answers come out as lines in the same order. Nothing is
//! started but the program named.

use std::io::{BufRead, BufReader, BufWriter, Write};
use std::path::Path;
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};

use serde::Deserialize;

use crate::case::RuleAnswer;

/// What Kyverno answers to a case.
#[derive(Debug, Deserialize)]
pub struct OracleAnswer {
    /// The case's name.
    pub id: String,
    /// Rule responses in order; none where it could not answer.
    rules: Option<Vec<RuleAnswer>>,
    /// The engine's panic.
    #[serde(default)]
    pub panic: String,
    /// Why the case could not be run.
    #[serde(default)]
    pub error: String,
    /// Other answers of the repeated case.
    #[serde(default)]
    pub variants: Vec<Vec<RuleAnswer>>,
    /// How long the evaluation took, in nanoseconds.
    pub nanos: u64,
}

impl OracleAnswer {
    /// Rule responses in order.
    pub fn rules(&self) -> &[RuleAnswer] {
        self.rules.as_deref().unwrap_or_default()
    }

    /// All answers that were seen, the first one first.
    pub fn answers(&self) -> impl Iterator<Item = &[RuleAnswer]> {
        std::iter::once(self.rules()).chain(self.variants.iter().map(Vec::as_slice))
    }
}

/// A running peer.
pub struct Oracle {
    child: Child,
    input: BufWriter<ChildStdin>,
    output: BufReader<ChildStdout>,
}

impl Oracle {
    /// Starts the program.
    ///
    /// # Errors
    /// When it is not there.
    pub fn start(program: &Path) -> Result<Self, String> {
        let missing = |error| {
            format!(
                "{}: {error}; `benches/peers/build` builds it where Go is present",
                program.display()
            )
        };
        let mut child = Command::new(program)
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

    /// Sends all the lines and does `meanwhile` before reading the answers.
    ///
    /// # Errors
    /// When the peer ends early or its answer cannot be read.
    pub fn ask<T>(
        &mut self,
        lines: &[String],
        meanwhile: impl FnOnce() -> T,
    ) -> Result<(Vec<OracleAnswer>, T), String> {
        let (input, output) = (&mut self.input, &mut self.output);
        std::thread::scope(|scope| {
            // The answers are read while cases are written, or the pipes would fill up.
            let reader = scope.spawn(move || read_answers(output, lines.len()));
            let writer = scope.spawn(move || write_lines(input, lines));
            let other = meanwhile();
            let died = |_| "a thread of the driver panicked".to_owned();
            writer.join().map_err(died)??;
            Ok((reader.join().map_err(died)??, other))
        })
    }
}

fn write_lines(input: &mut impl Write, lines: &[String]) -> Result<(), String> {
    for line in lines {
        writeln!(input, "{line}").map_err(|error| format!("writing to the peer: {error}"))?;
    }
    input
        .flush()
        .map_err(|error| format!("writing to the peer: {error}"))
}

fn read_answers(output: &mut impl BufRead, count: usize) -> Result<Vec<OracleAnswer>, String> {
    let mut line = String::new();
    (0..count)
        .map(|_| {
            line.clear();
            let length = output
                .read_line(&mut line)
                .map_err(|error| format!("reading from the peer: {error}"))?;
            if length == 0 {
                return Err("the peer ended before it answered everything".into());
            }
            serde_json::from_str(&line).map_err(|error| format!("an answer of the peer: {error}"))
        })
        .collect()
}

impl Drop for Oracle {
    fn drop(&mut self) {
        // It ends by itself when its input does; this is for one that hangs.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
