//! Commands of `kpc` and `kpvm`. Each takes its arguments and the streams and returns the
//! exit code; the only error is that output cannot be written.

pub mod apply;
pub mod check;
pub mod circumstances;
pub mod compile;
pub mod completion;
pub mod disassemble;
pub mod eval;
pub mod evaluate;
pub mod explain;
pub mod flags;
pub mod inspect;
pub mod jp;
pub mod later;
pub mod limits;
pub mod man;
pub mod test;
pub mod vap;
pub mod verify;
pub mod version;
pub mod webhooks;

use std::io;
use std::path::Path;

use kpvm_format::Bundle;
use kpvm_semantics::limits::Limits;

use crate::diagnostics::show_error;
use crate::input::reason;
use crate::stream::Streams;
use crate::text::clean;

/// Loads a bundle. Reports problems and returns `None` if it is invalid.
///
/// # Errors
/// Fails if the writer fails.
pub fn load_bundle(path: &Path, streams: &mut Streams<'_>) -> io::Result<Option<Bundle<'static>>> {
    let limit = Limits::DEFAULT.bundle_bytes;
    let name = path.display().to_string();
    let read = std::fs::File::open(path).and_then(|file| {
        let mut bytes = Vec::new();
        io::Read::read_to_end(&mut io::Read::take(file, limit as u64 + 1), &mut bytes)?;
        Ok(bytes)
    });
    let loaded = match read {
        Ok(bytes) if bytes.len() > limit => {
            Err(format!("larger than {limit} bytes (bundle-bytes)"))
        }
        Ok(bytes) => Bundle::load(bytes).map_err(|error| error.to_string()),
        Err(error) => Err(reason(&error)),
    };
    match loaded {
        Ok(bundle) => Ok(Some(bundle)),
        Err(reason) => {
            let message = format!(
                "cannot load the bundle {}: {}",
                clean(&name),
                clean(&reason)
            );
            show_error(&message, streams.err)?;
            Ok(None)
        }
    }
}
