//! Differential testing: kpvm and Kyverno's own engine answer the same generated cases.
//!
//! A [`Dialect`] generates cases from a seed, the [`oracle`] (the peer in
//! `benches/peers/kyverno`) answers them, [`compare`] finds differences and [`shrink`]
//! reduces a differing case. `src/bin/differential.rs` drives them.
//!
//! A new dialect is a file with a function that generates a case, and a row in [`DIALECTS`].

mod cel;
pub mod compare;
mod condition;
mod context;
mod exception;
mod expression;
mod foreach;
mod matching;
pub mod oracle;
mod pattern;
mod pod_security;
pub mod random;
pub mod shrink;
mod variable;
mod vocabulary;

use serde_json::Value;

use random::Random;

/// A part of the policy language for which cases are generated.
#[derive(Debug, Clone, Copy)]
pub struct Dialect {
    /// Name on the command line; cases are numbered within it.
    pub name: &'static str,
    /// Generates the members of a case except its `id`.
    case: fn(&mut Random) -> Value,
}

/// Every dialect.
pub const DIALECTS: [Dialect; 9] = [
    Dialect {
        name: "pattern",
        case: pattern::case,
    },
    Dialect {
        name: "match",
        case: matching::case,
    },
    Dialect {
        name: "condition",
        case: condition::case,
    },
    Dialect {
        name: "variable",
        case: variable::case,
    },
    Dialect {
        name: "foreach",
        case: foreach::case,
    },
    Dialect {
        name: "context",
        case: context::case,
    },
    Dialect {
        name: "exception",
        case: exception::case,
    },
    Dialect {
        name: "pod-security",
        case: pod_security::case,
    },
    Dialect {
        name: "cel",
        case: cel::case,
    },
];

impl Dialect {
    /// Generates case `number`. The same seed gives the same case on every machine.
    pub fn make(&self, seed: u64, number: u64) -> Value {
        let mut random = Random::new(seed, self.name, number);
        let mut case = (self.case)(&mut random);
        case["id"] = format!("{}-{seed}-{number}", self.name).into();
        case
    }
}
