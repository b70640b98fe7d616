//! Kyverno's engine, the peer in `benches/peers/kyverno`.

use std::path::Path;

use serde::Deserialize;

use crate::case::RuleAnswer;
use kpvm_bench::peer::Peer;

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
pub struct Oracle(Peer);

impl Oracle {
    /// Starts the program.
    ///
    /// # Errors
    /// When it is not there.
    pub fn start(program: &Path) -> Result<Self, String> {
        Peer::start(program, &[]).map(Self)
    }

    /// Sends all the cases, a line each, and does `meanwhile` before reading the answers.
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
