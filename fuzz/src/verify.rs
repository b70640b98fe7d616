//! Bundles from strangers: whether what a bundle stores about its code is right.

use kpvm::engine::Bundle;
use kpvm_compiler::analysis::{self, UntrustedError, add_analyses};
use kpvm_format::BundleBuilder;

use crate::answers::assert_same_answers;
use crate::bundle::{HEADER, sealed};
use crate::seeds;
use crate::target::Target;

/// The target.
pub const TARGET: Target = Target {
    name: "verify",
    run,
    seeds,
    words: &[],
    max_bytes: 8 << 10,
};

/// Analyses that are derived again are right, and change no answer. An odd first byte leaves the
/// header as it is.
pub fn run(input: &[u8]) {
    let Some((first, rest)) = input.split_first() else {
        return;
    };
    let bytes = match first % 2 {
        0 => sealed(rest.get(HEADER..).unwrap_or_default()),
        _ => rest.to_vec(),
    };
    let loaded = Bundle::load(bytes.clone());
    match (analysis::load(bytes), &loaded) {
        (Ok(bundle), Ok(_)) => assert_same_answers(&bundle, true),
        (Err(UntrustedError::Load(one)), Err(other)) => assert_eq!(one, *other),
        (Err(UntrustedError::Mismatch(_)), Ok(bundle)) => {
            let mut builder = BundleBuilder::from_bundle(bundle);
            add_analyses(&mut builder);
            let derived = analysis::load(builder.finish()).expect("analyses are right");
            assert_same_answers(&derived, true);
        }
        (found, _) => panic!("{found:?} for {:?}", loaded.map(|_| ())),
    }
}

fn seeds() -> Vec<Vec<u8>> {
    let mut seeds = Vec::new();
    for bytes in seeds::bundles(4 << 10) {
        seeds.push([&[0], &bytes[..]].concat());
    }
    seeds.extend(
        seeds::bundles(1 << 10)
            .into_iter()
            .map(|bytes| [&[1], &bytes[..]].concat()),
    );
    seeds
}
