//! `kpvm limits`

use std::io;

use kpvm_semantics::limits::Limits;

use crate::stream::{EXIT_OK, Streams};

/// Prints every limit with its value.
///
/// # Errors
/// Fails if the writer fails.
pub fn run(streams: &mut Streams<'_>) -> io::Result<u8> {
    for (name, value, meaning) in Limits::DEFAULT.table() {
        writeln!(streams.out, "{name:<16} {value:>12}  {meaning}")?;
    }
    Ok(EXIT_OK)
}
