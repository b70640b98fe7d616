//! Checks that what a bundle stores about its code is what the compiler derives from it.
//!
//! `Bundle::load` proves that stored analyses are safe to use, not that they are right: a forged
//! plan can make a rule pass. A host that takes bundles from strangers loads them with
//! [`load`], which derives everything again.

use std::borrow::Cow;

use kpvm_format::{Bundle, BundleBuilder, LoadError, Tables};
use zerocopy::IntoBytes;

use super::add_analyses;

/// Stored analyses that are not those of the code.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("the bundle does not store what its code says: {} differ", self.sections.join(", "))]
pub struct Mismatch {
    /// Names of the sections that differ.
    pub sections: Vec<&'static str>,
}

/// Why a bundle of unknown origin is rejected.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum UntrustedError {
    /// It is not a bundle, or unsafe to run.
    #[error(transparent)]
    Load(#[from] LoadError),
    /// It is safe to run but could give wrong verdicts.
    #[error(transparent)]
    Mismatch(#[from] Mismatch),
}

/// Loads a bundle of unknown origin: as `Bundle::load`, and what it stores about its code is
/// derived again and compared.
///
/// # Errors
/// An [`UntrustedError`].
pub fn load<'b>(bytes: impl Into<Cow<'b, [u8]>>) -> Result<Bundle<'b>, UntrustedError> {
    let bundle = Bundle::load(bytes)?;
    verify(&bundle)?;
    Ok(bundle)
}

/// Derives again what a bundle stores about its code, and compares the bytes.
///
/// # Errors
/// A [`Mismatch`] that names the sections that differ.
pub fn verify(bundle: &Bundle<'_>) -> Result<(), Mismatch> {
    let stored = bundle.tables();
    let mut builder = BundleBuilder::from_bundle(bundle);
    add_analyses(&mut builder);
    let symbols = builder.symbols.finish();
    let derived = builder.tables(&symbols).unwrap_or(Tables::EMPTY);
    let differing = sections(&stored).into_iter().zip(sections(&derived));
    let sections: Vec<&str> = differing
        .filter(|((_, stored), (_, derived))| stored != derived)
        .map(|((name, _), _)| name)
        .collect();
    match sections.is_empty() {
        true => Ok(()),
        false => Err(Mismatch { sections }),
    }
}

/// The sections that are derived from others, with their bytes.
fn sections<'t>(tables: &Tables<'t>) -> [(&'static str, &'t [u8]); 14] {
    [
        ("topics", tables.topics.as_bytes()),
        ("kind_plans", tables.kind_plans.as_bytes()),
        ("plain_rules", tables.plain_rules.as_bytes()),
        ("plans", tables.plans.as_bytes()),
        ("plan_spots", tables.plan_spots.as_bytes()),
        ("plan_slots", tables.plan_slots.as_bytes()),
        ("plan_bodies", tables.plan_bodies.as_bytes()),
        ("plan_tests", tables.plan_tests.as_bytes()),
        ("plan_breaks", tables.plan_breaks.as_bytes()),
        ("projections", tables.projections.as_bytes()),
        ("projection_places", tables.projection_places.as_bytes()),
        ("outside_demands", tables.outside_demands.as_bytes()),
        ("outside_fields", tables.outside_fields.as_bytes()),
        ("outside_text", tables.outside_text),
    ]
}
