//! Rules about the files of this repository: source files of at most 800 lines, prose of at
//! most 100 columns, one integration test binary per crate. `conformance/house.toml` lists
//! the exceptions.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use serde::Deserialize;

/// Lines of a source file, at most.
const LINES: usize = 800;

/// Columns of a line of prose, at most.
const COLUMNS: usize = 100;

/// The exceptions: path and reason.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Exceptions {
    long_files: BTreeMap<String, String>,
    wide_pages: BTreeMap<String, String>,
}

fn exceptions() -> Exceptions {
    toml::from_str(include_str!("../../house.toml")).unwrap()
}

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("..")
}

/// Files of the repository with this extension, by their path from its root.
fn files(extension: &str) -> BTreeMap<String, PathBuf> {
    let root = root();
    let (mut files, mut open) = (BTreeMap::new(), vec![root.clone()]);
    while let Some(folder) = open.pop() {
        for entry in fs::read_dir(&folder).unwrap() {
            let path = entry.unwrap().path();
            let name = path.file_name().unwrap().to_string_lossy();
            if path.is_dir() {
                if name != "target" && !name.starts_with('.') {
                    open.push(path);
                }
            } else if path.extension().is_some_and(|found| found == extension) {
                let shown = path.strip_prefix(&root).unwrap().to_string_lossy();
                files.insert(shown.into_owned(), path);
            }
        }
    }
    files
}

/// Compares the files that break a rule, with what is shown of each, with the exceptions.
/// An exception without a reason or without a file that needs it is an error too.
fn check(rule: &str, found: &BTreeMap<String, String>, excepted: &BTreeMap<String, String>) {
    println!("{rule}:");
    let mut problems = Vec::new();
    for (path, shown) in found {
        match excepted.get(path) {
            Some(reason) => println!("  {path}: {shown} ({reason})"),
            None => problems.push(format!("{path}: {shown}")),
        }
    }
    for (path, reason) in excepted {
        if !found.contains_key(path) {
            problems.push(format!("{path}: remove it from house.toml"));
        } else if reason.len() < 10 {
            problems.push(format!("{path}: give a reason in house.toml"));
        }
    }
    assert!(problems.is_empty(), "{rule}:\n{}", problems.join("\n"));
}

#[test]
fn source_files_have_at_most_800_lines() {
    let mut long = BTreeMap::new();
    for (shown, path) in files("rs") {
        let lines = fs::read_to_string(path).unwrap().lines().count();
        if lines > LINES {
            long.insert(shown, format!("{lines} lines"));
        }
    }
    check("more than 800 lines", &long, &exceptions().long_files);
}

/// Tables, code blocks and the targets of links cannot be wrapped and do not count.
#[test]
fn prose_has_at_most_100_columns() {
    let mut wide = BTreeMap::new();
    for (shown, path) in files("md") {
        let text = fs::read_to_string(path).unwrap();
        let mut is_code = false;
        let mut numbers = Vec::new();
        for (line, number) in text.lines().zip(1..) {
            let start = line.trim_start();
            if start.starts_with("```") {
                is_code = !is_code;
            } else if !is_code && !start.starts_with('|') && columns(line) > COLUMNS {
                numbers.push(number.to_string());
            }
        }
        if !numbers.is_empty() {
            wide.insert(shown, format!("lines {}", numbers.join(", ")));
        }
    }
    check("more than 100 columns", &wide, &exceptions().wide_pages);
}

/// Width of a line without the targets of its links.
fn columns(line: &str) -> usize {
    let mut parts = line.split("](");
    let first = parts.next().unwrap_or_default();
    let rest = parts.map(|part| part.split_once(')').map_or(part, |(_, rest)| rest));
    let texts = std::iter::once(first).chain(rest);
    let words = texts.flat_map(str::split_whitespace);
    let prose = words.filter(|word| !word.contains("://"));
    let indent = line.len() - line.trim_start().len();
    let width: usize = prose.map(|word| word.chars().count() + 1).sum();
    indent + width.saturating_sub(1)
}

#[test]
fn each_crate_has_at_most_one_integration_test_binary() {
    let mut binaries: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
    let sources = files("rs");
    for path in sources.keys() {
        let Some((krate, file)) = path.split_once("/tests/") else {
            continue;
        };
        if !file.contains('/') || (file.ends_with("/main.rs") && file.matches('/').count() == 1) {
            binaries.entry(krate).or_default().push(path);
        }
    }
    binaries.retain(|_, paths| paths.len() > 1);
    assert!(binaries.is_empty(), "{binaries:#?}");
}
