//! The copy of the sources that the bugs are planted in.

use std::collections::BTreeMap;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::bug::Bug;

/// The crate that every crate of the copy asks which bug is switched on.
const SWITCH: &str = "\
use std::sync::OnceLock;
pub fn on(number: usize) -> bool {
    static PLANTED: OnceLock<usize> = OnceLock::new();
    let read = || std::env::var(\"KPVM_PLANTED\").ok()?.parse().ok();
    *PLANTED.get_or_init(|| read().unwrap_or(0)) == number
}
";

const SWITCH_MANIFEST: &str = "\
[package]
name = \"kpvm-switch\"
version = \"0.1.0\"
edition = \"2024\"
";

/// The crates whose sources may hold bugs, and which therefore depend on the switch.
pub const CRATES: [&str; 6] = ["semantics", "syntax", "format", "vm", "compiler", "cli"];

/// The files under version control below `root`, relative to it.
pub fn files(root: &Path) -> io::Result<Vec<String>> {
    let listed = Command::new("git")
        .arg("-C")
        .arg(root)
        .args(["ls-files", "-z"])
        .output()?;
    let listed = String::from_utf8_lossy(&listed.stdout).into_owned();
    Ok(listed
        .split('\0')
        .filter(|name| !name.is_empty())
        .map(str::to_owned)
        .collect())
}

/// Whether bugs are planted in this file.
pub fn is_source(file: &str) -> bool {
    let mut parts = file.split('/');
    let in_crate = parts.next().is_some_and(|name| CRATES.contains(&name));
    in_crate
        && parts.next() == Some("src")
        && file.ends_with(".rs")
        && !file
            .split('/')
            .any(|part| part == "tests" || part == "tests.rs" || part == "golden.rs")
}

/// Writes the sources below `root` into `copy` with all `bugs` planted. The number of a bug is its
/// position, from 1. Files that stay as they are are not touched, so that little is built again.
pub fn write(root: &Path, copy: &Path, bugs: &[Option<Bug>]) -> io::Result<()> {
    let mut by_file: BTreeMap<&str, Vec<(usize, &Bug)>> = BTreeMap::new();
    for (number, bug) in (1..).zip(bugs) {
        if let Some(bug) = bug {
            by_file.entry(&bug.file).or_default().push((number, bug));
        }
    }
    for file in files(root)? {
        let from = root.join(&file);
        if !from.is_file() {
            continue;
        }
        let mut contents = fs::read(&from)?;
        if let Some(bugs) = by_file.get(file.as_str()) {
            contents = planted(contents, bugs)?;
        } else if file == "Cargo.toml" {
            let text = String::from_utf8_lossy(&contents);
            contents = text
                .replacen("members = [", "members = [\"switch\", ", 1)
                .into_bytes();
        } else if CRATES
            .iter()
            .any(|name| file == format!("{name}/Cargo.toml"))
        {
            let text = String::from_utf8_lossy(&contents);
            let with = "[dependencies]\nkpvm-switch = { path = \"../switch\" }";
            contents = text.replacen("[dependencies]", with, 1).into_bytes();
        }
        write_if_new(&copy.join(&file), &contents)?;
    }
    write_if_new(&copy.join("switch/src/lib.rs"), SWITCH.as_bytes())?;
    write_if_new(&copy.join("switch/Cargo.toml"), SWITCH_MANIFEST.as_bytes())?;
    beside(root, copy)
}

fn planted(contents: Vec<u8>, bugs: &[(usize, &Bug)]) -> io::Result<Vec<u8>> {
    let mut text = String::from_utf8(contents).map_err(io::Error::other)?;
    let mut bugs = bugs.to_vec();
    bugs.sort_by_key(|(_, bug)| std::cmp::Reverse(bug.bytes.start));
    for (number, bug) in bugs {
        text.replace_range(bug.bytes.clone(), &bug.planted(number));
    }
    Ok(text.into_bytes())
}

fn write_if_new(path: &PathBuf, contents: &[u8]) -> io::Result<()> {
    if fs::read(path).is_ok_and(|found| found == contents) {
        return Ok(());
    }
    if let Some(folder) = path.parent() {
        fs::create_dir_all(folder)?;
    }
    fs::write(path, contents)
}

/// Test data of other projects lies beside the repository; the copy finds it in the same place.
#[cfg(unix)]
fn beside(root: &Path, copy: &Path) -> io::Result<()> {
    let (Some(from), Some(to)) = (root.parent(), copy.parent()) else {
        return Ok(());
    };
    let (from, to) = (from.join("shared"), to.join("shared"));
    if from.exists() && !to.exists() {
        std::os::unix::fs::symlink(from.canonicalize()?, to)?;
    }
    Ok(())
}

#[cfg(not(unix))]
fn beside(_: &Path, _: &Path) -> io::Result<()> {
    Ok(())
}
