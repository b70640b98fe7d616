//! The bundle: one file with everything that evaluation needs.
//!
//! ```text
//! offset  size
//!      0     8  magic "kpvm\r\n\x1a\n"
//!      8     4  format version
//!     12     4  flags, zero
//!     16     8  length of the whole file
//!     24    32  SHA-256 of everything from byte 56 on
//!     56     4  number of sections
//!     60   12n  section table: kind, offset, length (each 4 bytes)
//!            …  sections, in the order of the table, without gaps
//! ```
//!
//! Integers are little endian. Sections are the symbol table, the text pool, the packed code
//! ([`crate::code`]) and arrays of fixed-size records; all but the code are used in place ([`crate::sections`] lists them).

use std::fmt;

use std::borrow::Cow;
use std::ops;
use std::sync::OnceLock;

use sha2::{Digest, Sha256};
use zerocopy::FromBytes;
use zerocopy::little_endian::U32;

use crate::code;
use crate::instruction::Instruction;
use crate::meta::Meta;
use crate::sections::{SECTION_COUNT, SECTION_NAMES, Tables};
use crate::symbol::SymbolTable;
use crate::verify::{self, VerifyError};

/// The first bytes of every bundle; the line ends show damage by text transfer.
pub const MAGIC: [u8; 8] = *b"kpvm\r\n\x1a\n";

/// The format that this crate reads and writes.
pub const FORMAT_VERSION: u32 = 5;

const CODE_SECTION: usize = 2;
pub(crate) const HEADER_LENGTH: usize = 60;
pub(crate) const DIGEST_START: usize = 56;
pub(crate) const SECTION_ENTRY_LENGTH: usize = 12;

/// Why bytes are not a bundle that can be run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum LoadError {
    /// Not a bundle at all.
    Magic {
        /// The first bytes, shown for people.
        found: String,
    },
    /// Another version of the format.
    Version {
        /// The version of the file.
        found: u32,
    },
    /// Flags that this version does not know.
    Flags {
        /// The flags of the file.
        found: u32,
    },
    /// The file is shorter or longer than it says.
    Length {
        /// Length by the header.
        expected: u64,
        /// Length of the input.
        found: u64,
    },
    /// The content is not what was written.
    Digest,
    /// The section table is not as the format says.
    Sections(String),
    /// A table or the code breaks a rule of the format.
    Verify(VerifyError),
}

impl fmt::Display for LoadError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Magic { found, .. } => write!(
                f,
                "not a bundle: expected the file to start with the kpvm magic, found {found}"
            ),
            Self::Version { found } => write!(
                f,
                "bundle format {found}, this program reads {FORMAT_VERSION}: compile the policies again with this version of kpc"
            ),
            Self::Flags { found, .. } => write!(
                f,
                "the bundle has unknown flags {found:#x}: compile the policies again with this version of kpc"
            ),
            Self::Length {
                expected, found, ..
            } => write!(
                f,
                "the bundle is cut short or has trailing bytes: expected {expected} bytes, found {found}"
            ),
            Self::Digest => {
                f.write_str("the bundle is damaged: its content does not match its digest")
            }
            Self::Sections(value) => write!(f, "the bundle is malformed: {value}"),
            Self::Verify(value) => write!(f, "the bundle is malformed: {value}"),
        }
    }
}

impl std::error::Error for LoadError {}

impl From<VerifyError> for LoadError {
    fn from(error: VerifyError) -> Self {
        Self::Verify(error)
    }
}

/// A verified bundle over borrowed or owned bytes.
///
/// Tables stay where they are in the bytes. Code is unpacked once, and the facts for people
/// when they are first asked for.
#[derive(Debug, Clone)]
pub struct Bundle<'b> {
    bytes: Cow<'b, [u8]>,
    sections: [ops::Range<usize>; SECTION_COUNT],
    code: Vec<Instruction>,
    meta: OnceLock<Meta>,
}

impl<'b> Bundle<'b> {
    /// Checks everything once and gives the bundle.
    ///
    /// # Errors
    /// A [`LoadError`] for anything that is not exactly a bundle of this format:
    /// foreign or damaged bytes, and bytes with a valid digest whose tables or code
    /// could misbehave.
    pub fn load(bytes: impl Into<Cow<'b, [u8]>>) -> Result<Self, LoadError> {
        let bytes = bytes.into();
        let sections = read_sections(&bytes)?;
        let mut bundle = Self {
            bytes,
            sections,
            code: Vec::new(),
            meta: OnceLock::new(),
        };
        let symbols = bundle.section(0);
        SymbolTable::verify(symbols).map_err(VerifyError::from)?;
        if std::str::from_utf8(bundle.section(1)).is_err() {
            return Err(VerifyError::new("the text pool is not UTF-8").into());
        }
        for (number, range) in bundle.sections.iter().enumerate() {
            if range.start > range.end {
                return Err(LoadError::Sections(format!("section {number} is reversed")));
            }
        }
        let no_records = || LoadError::Sections("a table is no whole number of records".into());
        let tables = bundle.cut_tables().ok_or_else(no_records)?;
        let lengths = tables.code_lengths();
        bundle.code = code::unpack(bundle.section(CODE_SECTION), lengths)
            .ok_or_else(|| VerifyError::new("the code cannot be unpacked"))?;
        let tables = bundle.cut_tables().ok_or_else(no_records)?;
        verify::verify(&tables)?;
        Ok(bundle)
    }

    fn section(&self, number: usize) -> &[u8] {
        self.sections
            .get(number)
            .and_then(|range| self.bytes.get(range.clone()))
            .unwrap_or(&[])
    }

    /// The tables, cut anew from the bytes, which takes a look at every byte of the
    /// text pool: keep them.
    pub fn tables(&self) -> Tables<'_> {
        self.cut_tables().unwrap_or(Tables::EMPTY)
    }

    fn cut_tables(&self) -> Option<Tables<'_>> {
        let sections = (0..SECTION_COUNT).map(|number| self.section(number));
        Tables::cut(sections, &self.code)
    }

    /// The facts for people.
    pub fn meta(&self) -> &Meta {
        self.meta.get_or_init(|| Meta::of(&self.tables()))
    }

    /// The whole file.
    pub fn as_bytes(&self) -> &[u8] {
        &self.bytes
    }

    /// The content digest, in hexadecimal.
    pub fn digest(&self) -> String {
        use std::fmt::Write;
        let digest = self.bytes.get(24..DIGEST_START).unwrap_or(&[]);
        digest.iter().fold(String::new(), |mut text, byte| {
            let _ = write!(text, "{byte:02x}");
            text
        })
    }

    /// Name and size in bytes of every section.
    pub fn section_sizes(&self) -> Vec<(&'static str, usize)> {
        let sizes = self.sections.iter().map(std::ops::Range::len);
        SECTION_NAMES.into_iter().zip(sizes).collect()
    }
}

fn read_u32(bytes: &[u8], offset: usize) -> u32 {
    U32::read_from_prefix(bytes.get(offset..).unwrap_or(&[])).map_or(0, |(number, _)| number.get())
}

fn read_sections(bytes: &[u8]) -> Result<[ops::Range<usize>; SECTION_COUNT], LoadError> {
    if !bytes.starts_with(&MAGIC) {
        let start = &bytes[..bytes.len().min(8)];
        let found = if bytes.is_empty() {
            "an empty file".into()
        } else {
            format!("\"{}\"", start.escape_ascii())
        };
        return Err(LoadError::Magic { found });
    }
    let found = bytes.len() as u64;
    if bytes.len() < HEADER_LENGTH {
        return Err(LoadError::Length {
            expected: HEADER_LENGTH as u64,
            found,
        });
    }
    let version = read_u32(bytes, 8);
    if version != FORMAT_VERSION {
        return Err(LoadError::Version { found: version });
    }
    let flags = read_u32(bytes, 12);
    if flags != 0 {
        return Err(LoadError::Flags { found: flags });
    }
    let expected = u64::from(read_u32(bytes, 16)) | u64::from(read_u32(bytes, 20)) << 32;
    if expected != found {
        return Err(LoadError::Length { expected, found });
    }
    if Sha256::digest(&bytes[DIGEST_START..])[..] != bytes[24..DIGEST_START] {
        return Err(LoadError::Digest);
    }
    let count = read_u32(bytes, DIGEST_START) as usize;
    if count != SECTION_COUNT {
        return Err(LoadError::Sections(format!(
            "expected {SECTION_COUNT} sections, found {count}"
        )));
    }
    let mut sections = [const { 0..0 }; SECTION_COUNT];
    let mut end = HEADER_LENGTH + SECTION_COUNT * SECTION_ENTRY_LENGTH;
    for (number, section) in sections.iter_mut().enumerate() {
        let entry = HEADER_LENGTH + number * SECTION_ENTRY_LENGTH;
        let (kind, offset, length) = (
            read_u32(bytes, entry),
            read_u32(bytes, entry + 4) as usize,
            read_u32(bytes, entry + 8) as usize,
        );
        let next = offset
            .checked_add(length)
            .filter(|&next| next <= bytes.len());
        match next {
            Some(next) if kind as usize == number && offset == end => *section = offset..next,
            _ => {
                return Err(LoadError::Sections(format!(
                    "section {number} is not where it belongs"
                )));
            }
        }
        end = section.end;
    }
    if end != bytes.len() {
        return Err(LoadError::Sections("bytes behind the last section".into()));
    }
    Ok(sections)
}
