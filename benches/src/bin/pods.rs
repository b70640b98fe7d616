//! Writes the Pods of workload W4 as NDJSON: `pods COUNT [SEED] > pods.ndjson`. A million
//! are about a gigabyte.

use std::io::{self, BufWriter, Write};
use std::process::ExitCode;

use kpvm_bench::workload::write_pods;

fn main() -> ExitCode {
    let mut numbers = std::env::args().skip(1).map(|text| text.parse::<u64>());
    let (count, seed) = match (numbers.next(), numbers.next()) {
        (Some(Ok(count)), None) => (count, 1),
        (Some(Ok(count)), Some(Ok(seed))) => (count, seed),
        _ => {
            let _ = writeln!(io::stderr(), "usage: pods COUNT [SEED]");
            return ExitCode::from(2);
        }
    };
    let mut out = BufWriter::with_capacity(1 << 20, io::stdout().lock());
    let written = write_pods(count as usize, seed, &mut out).and_then(|()| out.flush());
    match written {
        Ok(()) => ExitCode::SUCCESS,
        Err(_) => ExitCode::from(2),
    }
}
