//! Client of Kyverno's engine, the peer in `benches/peers/kyverno`.

use std::path::Path;

use serde::Deserialize;

use crate::case::RuleAnswer;
use kpvm_bench::peer::Peer;

/// Kyverno's answer to a case.
#[derive(Debug, Deserialize)]
pub struct OracleAnswer {
    /// The case's name.
    pub id: String,
    /// Rule responses in order; absent if Kyverno could not answer.
    rules: Option<Vec<RuleAnswer>>,
    /// The engine's panic.
    #[serde(default)]
    pub panic: String,
    /// Why the case could not run.
    #[serde(default)]
    pub error: String,
    /// Different answers to repetitions of the case.
    #[serde(default)]
    pub variants: Vec<Vec<RuleAnswer>>,
    /// Duration of the evaluation in nanoseconds.
    pub nanos: u64,
}

impl OracleAnswer {
    /// Rule responses in order.
    pub fn rules(&self) -> &[RuleAnswer] {
        self.rules.as_deref().unwrap_or_default()
    }

    /// All distinct answers, the first one first.
    pub fn answers(&self) -> impl Iterator<Item = &[RuleAnswer]> {
        std::iter::once(self.rules()).chain(self.variants.iter().map(Vec::as_slice))
    }
}

/// A running peer.
pub struct Oracle(Peer);

impl Oracle {
    /// Starts the program.
    ///
    /// # Errors
    /// When the program cannot be started.
    pub fn start(program: &Path) -> Result<Self, String> {
        Peer::start(program, &[]).map(Self)
    }

    /// Sends all cases, one per line, and runs `meanwhile` before it reads the answers.
    ///
    /// # Errors
    /// When the peer ends early or its answer cannot be read.
    pub fn ask<T>(
        &mut self,
        cases: &[String],
        meanwhile: impl FnOnce() -> T,
    ) -> Result<(Vec<OracleAnswer>, T), String> {
        let (lines, other) = self.0.ask(cases, meanwhile)?;
        let read = |line: &String| {
            serde_json::from_str(line).map_err(|error| format!("an answer of the peer: {error}"))
        };
        let answers = lines.iter().map(read).collect::<Result<_, _>>()?;
        Ok((answers, other))
    }
}
