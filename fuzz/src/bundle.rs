//! Bundles with arbitrary tables: what loads can be evaluated, written again and shown.

use std::fmt;

use kpvm::engine::Bundle;
use kpvm_compiler::analysis;
use kpvm_format::disassemble::disassemble;
use kpvm_format::{BundleBuilder, FORMAT_VERSION};
use sha2::{Digest, Sha256};

use crate::answers::assert_same_answers;
use crate::seeds;
use crate::target::Target;

/// The target.
pub const TARGET: Target = Target {
    name: "bundle",
    run,
    seeds,
    words: &[],
    max_bytes: 8 << 10,
};

/// Bytes before the sections' table: magic, version, length and digest.
pub(crate) const HEADER: usize = 56;

/// A file with a proper header in front of these bytes.
pub(crate) fn sealed(body: &[u8]) -> Vec<u8> {
    let mut bytes = b"kpvm\r\n\x1a\n".to_vec();
    bytes.extend_from_slice(&FORMAT_VERSION.to_le_bytes());
    bytes.resize(16, 0);
    bytes.extend_from_slice(&((HEADER + body.len()) as u64).to_le_bytes());
    bytes.extend_from_slice(&Sha256::digest(body));
    bytes.extend_from_slice(body);
    bytes
}

/// Runs the harness.
pub fn run(input: &[u8]) {
    let Ok(bundle) = Bundle::load(sealed(input)) else {
        return;
    };
    let is_verified = analysis::verify(&bundle).is_ok();
    assert_same_answers(&bundle, is_verified);
    let written = BundleBuilder::from_bundle(&bundle).finish();
    if let Err(error) = Bundle::load(written) {
        panic!("what loads cannot be written again: {error}");
    }
    let _ = disassemble(&bundle, &|_, _| true, &mut Start(1 << 16));
}

/// Accepts only so many bytes: a bundle can share what its text repeats.
struct Start(usize);

impl fmt::Write for Start {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        self.0 = self.0.checked_sub(text.len()).ok_or(fmt::Error)?;
        Ok(())
    }
}

fn seeds() -> Vec<Vec<u8>> {
    let bundles = seeds::bundles(8 << 10).into_iter();
    bundles.map(|bytes| bytes[HEADER..].to_vec()).collect()
}
