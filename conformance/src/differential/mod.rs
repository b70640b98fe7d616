//! Differential testing: the same cases to kpvm and to Kyverno's own engine.
//!
//! A [`Dialect`] makes cases from a seed, the [`oracle`] (the peer in
//! `benches/peers/kyverno`) answers them, [`compare`] says what differs and [`shrink`]
//! makes a differing case small. `src/bin/differential.rs` drives all of it.
//!
//! A new dialect is one file with a function that makes a case, and one row in
//! [`DIALECTS`].

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

/// One part of the policy language that cases are made for.
#[derive(Debug, Clone, Copy)]
pub struct Dialect {
    /// Name on the command line; cases are numbered within it.
    pub name: &'static str,
    /// Makes the members of a case, its `id` excepted.
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
    /// The case of a number: the same for the same seed, on every machine.
    pub fn make(&self, seed: u64, number: u64) -> Value {
        let mut random = Random::new(seed, self.name, number);
        let mut case = (self.case)(&mut random);
        case["id"] = format!("{}-{seed}-{number}", self.name).into();
        case
    }
}
