//! Finds the suite files below paths (docs/spec/cli.md §1.2 and §1.3).

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use crate::input::{Unreadable, is_file, reason};
use crate::suite::document::is_url;

/// Default name of suite files.
pub const SUITE_FILE: &str = "kyverno-test.yaml";

/// Suite files that were found, and paths that could not be searched.
#[derive(Debug, Default)]
pub struct Discovery {
    /// The files, grouped by path and sorted by name.
    pub files: Vec<PathBuf>,
    /// Paths that could not be searched.
    pub unreadable: Vec<Unreadable>,
}

/// Finds all files with a name below some paths, including hidden directories and without
/// following links to directories. A path may also be a suite file itself.
pub fn discover(paths: &[PathBuf], file_name: &str) -> Discovery {
    let mut discovery = Discovery::default();
    for path in paths {
        let name = path.display().to_string();
        if is_url(&name) {
            let reason = "git repositories are not fetched; clone it and give the directory";
            discovery.refuse(path, reason.to_owned());
        } else if path.is_dir() {
            discovery.search(path, file_name);
        } else {
            match fs::metadata(path) {
                Ok(_) => discovery.files.push(path.clone()),
                Err(error) => discovery.refuse(path, reason(&error)),
            }
        }
    }
    discovery
}

impl Discovery {
    fn refuse(&mut self, path: &Path, reason: String) {
        let name = path.display().to_string();
        self.unreadable.push(Unreadable { name, reason });
    }

    fn search(&mut self, directory: &Path, file_name: &str) {
        // Pending directories and files; the next one is last.
        let mut waiting = vec![(directory.to_owned(), true)];
        while let Some((path, is_directory)) = waiting.pop() {
            if !is_directory {
                self.files.push(path);
                continue;
            }
            match entries(&path, file_name) {
                Ok(mut entries) => {
                    entries.sort_by(|left, right| right.0.cmp(&left.0));
                    waiting.extend(entries);
                }
                Err(error) => self.refuse(&path, reason(&error)),
            }
        }
    }
}

/// Subdirectories of a directory, and its files with the name.
fn entries(directory: &Path, file_name: &str) -> io::Result<Vec<(PathBuf, bool)>> {
    let mut found = Vec::new();
    for entry in fs::read_dir(directory)? {
        let entry = entry?;
        let is_directory = entry.file_type()?.is_dir();
        let path = entry.path();
        if is_directory || entry.file_name() == file_name && is_file(&path) {
            found.push((path, is_directory));
        }
    }
    Ok(found)
}
