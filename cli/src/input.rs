//! Reads texts from files, directories and standard input.
//!
//! An input that cannot be read becomes an [`Unreadable`], never a silent gap, and the
//! other inputs are still read.

use std::fs;
use std::io::{self, Read};
use std::path::{Path, PathBuf};

/// Maximum size of one file.
const FILE_BYTES: u64 = 256 << 20;

/// Displayed name of standard input.
pub const STDIN_NAME: &str = "<stdin>";

/// A text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct InputFile {
    /// The path as given (for a file of a directory: the path including the directory), or
    /// [`STDIN_NAME`].
    pub name: String,
    /// The whole text.
    pub text: String,
    /// Whether it was found in a directory instead of being named.
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

/// Target of a path.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Found {
    /// Standard input, on its first use.
    Stdin,
    /// A file, found in a directory or named.
    File {
        /// Its path.
        path: PathBuf,
        /// Whether it was found in a directory.
        from_directory: bool,
    },
    /// An unreadable path.
    Unreadable(Unreadable),
}

/// Iterates over the files of paths. `-` is standard input. A directory is searched
/// recursively for files that end in `.yaml`, `.yml` or `.json`, without names that begin
/// with a dot and without following links to directories. Only pending names are held in
/// memory.
#[derive(Debug)]
pub struct Walk {
    /// Remaining paths.
    paths: std::vec::IntoIter<PathBuf>,
    /// The current directory argument.
    directory: PathBuf,
    /// Number of files found in it.
    found: usize,
    /// Its pending directories and files; the next one is last.
    waiting: Vec<(PathBuf, bool)>,
    stdin_used: bool,
}

impl Walk {
    /// An iterator at the start of the paths.
    pub fn new(paths: Vec<PathBuf>) -> Self {
        Self {
            paths: paths.into_iter(),
            directory: PathBuf::new(),
            found: 0,
            waiting: Vec::new(),
            stdin_used: false,
        }
    }

    /// Next file below the current directory argument; once, an error if it has none.
    fn next_below(&mut self) -> Option<Found> {
        while let Some((path, is_directory)) = self.waiting.pop() {
            if !is_directory {
                self.found += 1;
                let from_directory = true;
                return Some(Found::File {
                    path,
                    from_directory,
                });
            }
            match visible_entries(&path) {
                Ok(mut entries) => {
                    entries.sort_by(|left, right| right.0.cmp(&left.0));
                    self.waiting.extend(entries);
                }
                Err(error) => {
                    return Some(unreadable(path.display().to_string(), reason(&error)));
                }
            }
        }
        let directory = std::mem::take(&mut self.directory);
        let is_empty = self.found == 0 && !directory.as_os_str().is_empty();
        is_empty.then(|| {
            let reason = "the directory holds no .yaml, .yml or .json file";
            unreadable(directory.display().to_string(), reason.into())
        })
    }
}

impl Iterator for Walk {
    type Item = Found;

    fn next(&mut self) -> Option<Found> {
        loop {
            if let Some(found) = self.next_below() {
                return Some(found);
            }
            let path = self.paths.next()?;
            if path.as_os_str() == "-" {
                return Some(match std::mem::replace(&mut self.stdin_used, true) {
                    true => {
                        let reason = "standard input can be read only once";
                        unreadable(STDIN_NAME.to_owned(), reason.into())
                    }
                    false => Found::Stdin,
                });
            }
            if !path.is_dir() {
                let from_directory = false;
                return Some(Found::File {
                    path,
                    from_directory,
                });
            }
            self.found = 0;
            self.waiting.push((path.clone(), true));
            self.directory = path;
        }
    }
}

fn unreadable(name: String, reason: String) -> Found {
    Found::Unreadable(Unreadable { name, reason })
}

/// Everything read from the paths.
#[derive(Debug, Default)]
pub struct Inputs {
    /// The texts, in the order of the paths; those of a directory sorted by name.
    pub files: Vec<InputFile>,
    /// Inputs that could not be read.
    pub unreadable: Vec<Unreadable>,
}

/// Reads all paths, in the order of [`Walk`].
pub fn read_inputs(paths: &[PathBuf], stdin: &mut dyn Read) -> Inputs {
    let mut inputs = Inputs::default();
    for found in Walk::new(paths.to_vec()) {
        match found {
            Found::Stdin => inputs.add(STDIN_NAME.to_owned(), read_text(stdin), false),
            Found::File {
                path,
                from_directory,
            } => inputs.add(path.display().to_string(), read_file(&path), from_directory),
            Found::Unreadable(unreadable) => inputs.unreadable.push(unreadable),
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
}

/// Subdirectories and relevant files of a directory.
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

/// Whether a path in a directory is to be read: a link to a directory may be named like a
/// file, and reading a pipe could block forever. A dangling link is read, to report it.
pub(crate) fn is_file(path: &Path) -> bool {
    fs::metadata(path).map_or(true, |metadata| metadata.is_file())
}

/// Reads a text file.
///
/// # Errors
/// A message for people.
pub fn read_file(path: &Path) -> Result<String, String> {
    let mut file = fs::File::open(path).map_err(|error| reason(&error))?;
    read_text(&mut file)
}

/// Reads a text file named in another file: only a regular one, because reading a pipe
/// could block forever.
///
/// # Errors
/// A message for people.
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
    let bytes = read_bytes(reader)?;
    utf8(bytes, 0)
}

/// Reads all bytes, up to a limit.
///
/// # Errors
/// A message for people.
pub fn read_bytes(reader: &mut dyn Read) -> Result<Vec<u8>, String> {
    let mut bytes = Vec::new();
    let read = reader.take(FILE_BYTES + 1).read_to_end(&mut bytes);
    read.map_err(|error| reason(&error))?;
    if bytes.len() as u64 > FILE_BYTES {
        return Err(format!("larger than {FILE_BYTES} bytes"));
    }
    Ok(bytes)
}

/// Bytes as text; `lines` is the number of preceding lines.
///
/// # Errors
/// A message for people.
pub fn utf8(bytes: Vec<u8>, lines: u32) -> Result<String, String> {
    String::from_utf8(bytes).map_err(|error| {
        let at = error.utf8_error().valid_up_to();
        let before = error.as_bytes().get(..at).unwrap_or_default();
        let line = memchr::memchr_iter(b'\n', before).count() + 1 + lines as usize;
        format!("expected UTF-8 text, found other bytes on line {line}")
    })
}

/// The system's error text without its number.
pub fn reason(error: &io::Error) -> String {
    match error.kind() {
        io::ErrorKind::NotFound => "no such file or directory".into(),
        io::ErrorKind::PermissionDenied => "permission denied".into(),
        _ => error.to_string(),
    }
}
