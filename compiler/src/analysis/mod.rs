//! What can be known from the policies alone: everything that the VM would otherwise have to
//! find out about code at run time.
//!
//! [`flow`] is the framework: control flow, lattices and a forward pass. The analyses over it
//! are what bodies demand of an object (`body`), what rules can read of one (`projection`) and
//! what they ask of the host (`demands`). `kinds` runs them for every kind that rules name; `write` makes records of the results,
//! which the VM uses in place.

mod body;
mod demands;
pub mod flow;
mod kinds;
mod places;
mod projection;
mod spots;
#[cfg(test)]
mod tests;
mod verify;
mod write;

use kpvm_format::BundleBuilder;

pub use verify::{Mismatch, UntrustedError, load, verify};

/// Analyses the rules of a bundle that is about to be written, and adds the results to it.
pub fn add_analyses(bundle: &mut BundleBuilder) {
    bundle.seal();
    let symbols = bundle.symbols.finish();
    let sections = bundle
        .tables(&symbols)
        .map(|tables| kinds::analyse(&tables))
        .unwrap_or_default();
    sections.write(bundle);
}
