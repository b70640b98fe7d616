//! Writes the seeds and the dictionary of every target into a folder, and prints the name and the
//! longest input of each: `seeds FOLDER`.

use std::fmt::Write as _;
use std::fs;
use std::io::{self, Write as _};
use std::path::PathBuf;

use kpvm_fuzz::TARGETS;

fn main() -> io::Result<()> {
    let folder = std::env::args_os().nth(1).map(PathBuf::from);
    let folder = folder.ok_or_else(|| io::Error::other("usage: seeds FOLDER"))?;
    for target in TARGETS {
        let own = folder.join(target.name);
        fs::create_dir_all(&own)?;
        for (number, seed) in (target.seeds)().iter().enumerate() {
            fs::write(own.join(format!("seed-{number}")), seed)?;
        }
        let mut words = String::new();
        for word in target.words {
            let _ = writeln!(words, "\"{}\"", escaped(word));
        }
        fs::write(folder.join(format!("{}.dict", target.name)), words)?;
        writeln!(io::stdout(), "{} {}", target.name, target.max_bytes)?;
    }
    Ok(())
}

/// A word as libFuzzer reads it.
fn escaped(word: &str) -> String {
    let mut text = String::new();
    for byte in word.bytes() {
        match byte {
            b'"' | b'\\' => text.extend(['\\', char::from(byte)]),
            b' '..=b'~' => text.push(char::from(byte)),
            _ => {
                let _ = write!(text, "\\x{byte:02X}");
            }
        }
    }
    text
}
