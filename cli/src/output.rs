//! Writes output files atomically.
//!
//! An existing file is replaced in one step when the new one is complete. Other targets (a
//! pipe, `/dev/null`) are written to directly.

use std::ffi::OsString;
use std::fs::{self, File, OpenOptions};
use std::io::{self, BufWriter, ErrorKind, Write};
use std::path::{Path, PathBuf};

use crate::input::reason;

/// Maximum number of names tried for the temporary file.
const ATTEMPTS: u32 = 100;

/// Writes a file with the output of `write`.
///
/// # Errors
/// Fails if the system or `write` fails. The old file is then unchanged.
pub fn write_file(
    path: &Path,
    write: impl FnOnce(&mut (dyn Write + 'static)) -> io::Result<()>,
) -> io::Result<()> {
    // Resolves links, so that they are kept.
    let path = path.canonicalize().unwrap_or_else(|_| path.to_owned());
    let old = fs::metadata(&path).ok();
    if old.as_ref().is_some_and(|old| !old.is_file()) {
        let mut file = BufWriter::new(OpenOptions::new().write(true).open(&path)?);
        write(&mut file)?;
        return file.flush();
    }
    let (new_path, new) = create_beside(&path)?;
    let result = fill(new, old, write).and_then(|()| fs::rename(&new_path, &path));
    if result.is_err() {
        let _ = fs::remove_file(&new_path);
    }
    result
}

/// Prefixes the error with the name of the file.
pub fn with_name(path: &Path, error: &io::Error) -> io::Error {
    let message = format!("{}: {}", path.display(), reason(error));
    io::Error::new(error.kind(), message)
}

fn fill(
    new: File,
    old: Option<fs::Metadata>,
    write: impl FnOnce(&mut (dyn Write + 'static)) -> io::Result<()>,
) -> io::Result<()> {
    if let Some(old) = old {
        new.set_permissions(old.permissions())?;
    }
    let mut new = BufWriter::new(new);
    write(&mut new)?;
    new.flush()
}

/// Creates a temporary file in the same directory, so that it can replace the old file.
fn create_beside(path: &Path) -> io::Result<(PathBuf, File)> {
    let name = path
        .file_name()
        .ok_or_else(|| io::Error::other("the path does not name a file"))?;
    let mut attempt = 0;
    loop {
        let mut new_name = OsString::from(".");
        new_name.push(name);
        new_name.push(format!(".{}-{attempt}.tmp", std::process::id()));
        let new_path = path.with_file_name(new_name);
        let opened = OpenOptions::new()
            .write(true)
            .create_new(true)
            .open(&new_path);
        match opened {
            Err(error) if error.kind() == ErrorKind::AlreadyExists && attempt < ATTEMPTS => {
                attempt += 1;
            }
            Err(error) => return Err(error),
            Ok(file) => return Ok((new_path, file)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A temporary directory, removed at the end.
    struct Directory(PathBuf);

    impl Directory {
        fn new(name: &str) -> Self {
            let name = format!("kpvm-output-{}-{name}", std::process::id());
            let path = std::env::temp_dir().join(name);
            let _ = fs::remove_dir_all(&path);
            fs::create_dir(&path).unwrap();
            Self(path)
        }

        fn names(&self) -> Vec<String> {
            let entries = fs::read_dir(&self.0).unwrap();
            let name = |entry: io::Result<fs::DirEntry>| entry.unwrap().file_name();
            entries
                .map(|entry| name(entry).into_string().unwrap())
                .collect()
        }
    }

    impl Drop for Directory {
        fn drop(&mut self) {
            let _ = fs::remove_dir_all(&self.0);
        }
    }

    #[test]
    fn a_file_is_replaced_as_a_whole() {
        let directory = Directory::new("replaced");
        let path = directory.0.join("report");
        for text in ["long text of the first run\n", "short\n"] {
            write_file(&path, |out| out.write_all(text.as_bytes())).unwrap();
            assert_eq!(fs::read_to_string(&path).unwrap(), text);
        }
        assert_eq!(directory.names(), ["report"]);
    }

    #[test]
    fn a_failure_leaves_the_old_file_and_nothing_else() {
        let directory = Directory::new("failure");
        let path = directory.0.join("report");
        fs::write(&path, "old").unwrap();
        let result = write_file(&path, |out| {
            out.write_all(b"half")?;
            Err(io::Error::other("no more"))
        });
        assert_eq!(result.unwrap_err().to_string(), "no more");
        assert_eq!(fs::read_to_string(&path).unwrap(), "old");
        assert_eq!(directory.names(), ["report"]);
    }

    #[test]
    fn what_cannot_be_a_file_is_an_error() {
        let directory = Directory::new("error");
        for path in [
            directory.0.clone(),
            directory.0.join("no/such/place"),
            PathBuf::from("/"),
            PathBuf::new(),
        ] {
            let result = write_file(&path, |out| out.write_all(b"x"));
            assert!(result.is_err(), "{}", path.display());
        }
        assert!(directory.names().is_empty());
    }

    #[cfg(unix)]
    #[test]
    fn links_and_devices_stay_what_they_are() {
        let directory = Directory::new("links");
        let (file, link) = (directory.0.join("file"), directory.0.join("link"));
        fs::write(&file, "old").unwrap();
        std::os::unix::fs::symlink(&file, &link).unwrap();
        write_file(&link, |out| out.write_all(b"new")).unwrap();
        assert!(fs::symlink_metadata(&link).unwrap().is_symlink());
        assert_eq!(fs::read_to_string(&file).unwrap(), "new");
        write_file(Path::new("/dev/null"), |out| out.write_all(b"x")).unwrap();
        assert!(!fs::metadata("/dev/null").unwrap().is_file());
    }
}
