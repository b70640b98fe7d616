//! Compresses files of recorded answers: `pack FILE… FOLDER` writes `FOLDER/NAME.gz` for
//! each file. The same content always gives the same bytes.

#![allow(clippy::print_stderr)] // a program talks to people

use std::path::{Path, PathBuf};
use std::process::ExitCode;

fn main() -> ExitCode {
    let mut paths: Vec<PathBuf> = std::env::args_os().skip(1).map(PathBuf::from).collect();
    let folder = paths.pop().filter(|_| !paths.is_empty());
    let Some(folder) = folder.filter(|folder| folder.is_dir()) else {
        eprintln!("usage: pack FILE… FOLDER");
        return ExitCode::from(2);
    };
    for path in paths {
        if let Err(error) = pack(&path, &folder) {
            eprintln!("{}: {error}", path.display());
            return ExitCode::from(2);
        }
    }
    ExitCode::SUCCESS
}

fn pack(path: &Path, folder: &Path) -> std::io::Result<()> {
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    let packed = kpvm_golden::pack(&std::fs::read(path)?)?;
    std::fs::write(folder.join(format!("{name}.gz")), packed)
}
