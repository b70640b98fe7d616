//! Recorded answers of Kyverno's own engine, read from the compressed files beside this
//! crate. The README lists the files and says how to read them.
//!
//! The crate depends on nothing of kpvm, so that the unit tests of every crate can use it.

use std::fs::File;
use std::io::{self, Read, Write};
use std::path::{Path, PathBuf};

use flate2::read::MultiGzDecoder;
use flate2::{Compression, GzBuilder};

/// The folder that holds the files.
pub fn folder() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

/// Text of a file by its name without `.gz`: `read("golden/patterns.ndjson")`.
///
/// # Errors
/// When the file does not exist or is damaged; the text names the path.
pub fn read(name: &str) -> io::Result<String> {
    read_file(&folder().join(format!("{name}.gz")))
}

/// Text of any file, decompressed when its name ends in `.gz`.
///
/// # Errors
/// When it cannot be read or is not UTF-8; the text names the path.
pub fn read_file(path: &Path) -> io::Result<String> {
    let read = || {
        let mut text = String::new();
        let mut file = File::open(path)?;
        if path.extension().is_some_and(|extension| extension == "gz") {
            MultiGzDecoder::new(file).read_to_string(&mut text)?;
        } else {
            file.read_to_string(&mut text)?;
        }
        Ok(text)
    };
    read().map_err(|error: io::Error| {
        io::Error::new(error.kind(), format!("{}: {error}", path.display()))
    })
}

/// Files of cases in a folder, `*.ndjson` and `*.ndjson.gz`, by name.
///
/// # Errors
/// When the folder cannot be listed; the text names it.
pub fn case_files(folder: &Path) -> io::Result<Vec<PathBuf>> {
    let list = || -> io::Result<Vec<PathBuf>> {
        let mut files = Vec::new();
        for entry in folder.read_dir()? {
            let path = entry?.path();
            let name = path.to_string_lossy();
            if name.ends_with(".ndjson") || name.ends_with(".ndjson.gz") {
                files.push(path);
            }
        }
        files.sort();
        Ok(files)
    };
    list().map_err(|error| io::Error::new(error.kind(), format!("{}: {error}", folder.display())))
}

/// Compresses a file's content. The result depends on the content alone: the header holds
/// no name and no time.
///
/// # Errors
/// Never in practice: the compressor writes to memory.
pub fn pack(content: &[u8]) -> io::Result<Vec<u8>> {
    let mut encoder = GzBuilder::new().write(Vec::new(), Compression::best());
    encoder.write_all(content)?;
    encoder.finish()
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::*;

    #[test]
    fn packed_content_is_read_back_and_packed_to_the_same_bytes() {
        let content = read("operators/images.json").unwrap();
        let packed = pack(content.as_bytes()).unwrap();
        let mut back = String::new();
        MultiGzDecoder::new(packed.as_slice())
            .read_to_string(&mut back)
            .unwrap();
        assert!(content == back);
        assert_eq!(packed, pack(content.as_bytes()).unwrap());
    }

    /// The repository stays small; and each file is whole.
    #[test]
    fn all_files_can_be_read_and_stay_below_five_megabytes() {
        let mut bytes = 0;
        for name in [
            "cel",
            "golden",
            "golden-mutate",
            "jmespath-kyverno",
            "operators",
        ] {
            for entry in folder().join(name).read_dir().unwrap() {
                let path = entry.unwrap().path();
                assert!(!read_file(&path).unwrap().is_empty());
                bytes += path.metadata().unwrap().len();
            }
        }
        assert!(bytes < 5_000_000, "{bytes} bytes");
    }
}
