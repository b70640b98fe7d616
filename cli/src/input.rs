//! From paths to texts: files, directories and standard input.
//!
//! What cannot be read becomes a [`Unreadable`], never a silent gap, and the other
//! inputs are still read.

use std::fs;
use std::io::{self, Read};
use std::path::{Path, PathBuf};

/// More bytes than this are not read from one file.
const FILE_BYTES: u64 = 256 << 20;

/// The name shown for standard input.
pub const STDIN_NAME: &str = "<stdin>";

/// One text that was read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct InputFile {
    /// The path as given (for a file of a directory: below it), or [`STDIN_NAME`].
    pub name: String,
    /// The whole text.
    pub text: String,
    /// Whether it was found in a directory rather than named.
    pub from_directory: bool,
}

/// An input that could not be read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Unreadable {
    /// Its name.
    pub name: String,
    /// Why.
    pub reason: String,
}

/// Everything that the paths led to.
#[derive(Debug, Default)]
pub struct Inputs {
    /// The texts, in the order of the paths; those of a directory by name.
    pub files: Vec<InputFile>,
    /// What could not be read.
    pub unreadable: Vec<Unreadable>,
}

/// Reads all paths. `-` is standard input. A directory is read with all directories
/// below it: files that end in `.yaml`, `.yml` or `.json`, names that begin with a dot
/// left out, links to directories not followed.
pub fn read_inputs(paths: &[PathBuf], stdin: &mut dyn Read) -> Inputs {
    let mut inputs = Inputs::default();
    let mut stdin_used = false;
    for path in paths {
        if path.as_os_str() == "-" {
            let again = std::mem::replace(&mut stdin_used, true);
            let text = if again {
                Err("standard input can be read only once".to_owned())
            } else {
                read_text(stdin)
            };
            inputs.add(STDIN_NAME.to_owned(), text, false);
        } else if path.is_dir() {
            inputs.add_directory(path);
        } else {
            inputs.add(path.display().to_string(), read_file(path), false);
        }
    }
    inputs
}

impl Inputs {
    fn add(&mut self, name: String, text: Result<String, String>, from_directory: bool) {
        match text {
            Ok(text) => self.files.push(InputFile {
                name,
                text,
                from_directory,
            }),
            Err(reason) => self.unreadable.push(Unreadable { name, reason }),
        }
    }

    fn add_directory(&mut self, directory: &Path) {
        let mut found = 0;
        // Directories and files that wait, the next one last.
        let mut waiting = vec![(directory.to_owned(), true)];
        while let Some((path, is_directory)) = waiting.pop() {
            if !is_directory {
                found += 1;
                self.add(path.display().to_string(), read_file(&path), true);
                continue;
            }
            match visible_entries(&path) {
                Ok(mut entries) => {
                    entries.sort_by(|left, right| right.0.cmp(&left.0));
                    waiting.extend(entries);
                }
                Err(error) => self.add(path.display().to_string(), Err(reason(&error)), true),
            }
        }
        if found == 0 {
            self.unreadable.push(Unreadable {
                name: directory.display().to_string(),
                reason: "the directory holds no .yaml, .yml or .json file".into(),
            });
        }
    }
}

/// The directories and the files of interest in a directory.
fn visible_entries(directory: &Path) -> io::Result<Vec<(PathBuf, bool)>> {
    let mut entries = Vec::new();
    for entry in fs::read_dir(directory)? {
        let entry = entry?;
        if entry.file_name().to_string_lossy().starts_with('.') {
            continue;
        }
        let path = entry.path();
        let is_directory = entry.file_type()?.is_dir();
        let is_text = path.extension().is_some_and(|extension| {
            ["yaml", "yml", "json"]
                .iter()
                .any(|known| extension == *known)
        });
        if is_directory || is_text && is_file(&path) {
            entries.push((path, is_directory));
        }
    }
    Ok(entries)
}

/// Whether a path of a directory is to be read: a link to a directory may be named like
/// a file, and a pipe would wait for ever. A link to nothing is read, to say so.
pub(crate) fn is_file(path: &Path) -> bool {
    fs::metadata(path).map_or(true, |metadata| metadata.is_file())
}

/// Reads one file of text.
///
/// # Errors
/// In words for people.
pub fn read_file(path: &Path) -> Result<String, String> {
    let mut file = fs::File::open(path).map_err(|error| reason(&error))?;
    read_text(&mut file)
}

/// Reads one file of text that is named in another file: only a regular one, as a pipe
/// would wait for ever.
///
/// # Errors
/// In words for people.
pub fn read_regular_file(path: &Path) -> Result<String, String> {
    let metadata = fs::metadata(path).map_err(|error| reason(&error))?;
    if metadata.is_dir() {
        return Err("expected a file, found a directory".into());
    }
    if !metadata.is_file() {
        return Err("expected a file, found a device or a pipe".into());
    }
    read_file(path)
}

fn read_text(reader: &mut dyn Read) -> Result<String, String> {
    let mut bytes = Vec::new();
    let read = reader.take(FILE_BYTES + 1).read_to_end(&mut bytes);
    read.map_err(|error| reason(&error))?;
    if bytes.len() as u64 > FILE_BYTES {
        return Err(format!("larger than {FILE_BYTES} bytes"));
    }
    String::from_utf8(bytes).map_err(|error| {
        let at = error.utf8_error().valid_up_to();
        let before = error.as_bytes().get(..at).unwrap_or_default();
        let line = before.iter().filter(|&&byte| byte == b'\n').count() + 1;
        format!("expected UTF-8 text, found other bytes on line {line}")
    })
}

/// The system's reason without its error number.
pub fn reason(error: &io::Error) -> String {
    match error.kind() {
        io::ErrorKind::NotFound => "no such file or directory".into(),
        io::ErrorKind::PermissionDenied => "permission denied".into(),
        _ => error.to_string(),
    }
}
