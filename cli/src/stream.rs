//! Output streams, and exit codes for output errors.

use std::io::{self, BufWriter, ErrorKind, Write};
use std::process::ExitCode;

/// Success.
pub const EXIT_OK: u8 = 0;
/// A rule failed, or a policy has errors.
pub const EXIT_FAILED: u8 = 1;
/// Wrong usage, bad input, or the output could not be written.
pub const EXIT_BAD_INPUT: u8 = 2;

/// Output streams of a program.
pub struct Streams<'s> {
    /// The payload: standard output.
    pub out: &'s mut dyn Write,
    /// Messages for people: standard error.
    pub err: &'s mut dyn Write,
}

/// Runs a command with the standard streams and turns its result into an exit code.
///
/// Commands return an error only if output cannot be written. A closed pipe
/// (`kpvm apply … | head`) is not reported.
pub fn run(command: impl FnOnce(&mut Streams<'_>) -> io::Result<u8>) -> ExitCode {
    let mut out = BufWriter::new(anstream::stdout().lock());
    let mut err = BufWriter::new(anstream::stderr().lock());
    let result = command(&mut Streams {
        out: &mut out,
        err: &mut err,
    })
    .and_then(|code| out.flush().map(|()| code));
    let code = match result {
        Ok(code) => code,
        Err(error) => {
            if error.kind() != ErrorKind::BrokenPipe {
                let _ = writeln!(err, "error: the output cannot be written: {error}");
            }
            EXIT_BAD_INPUT
        }
    };
    let _ = err.flush();
    ExitCode::from(code)
}
