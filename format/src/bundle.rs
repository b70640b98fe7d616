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
//! Integers are little endian. Every section but `meta` is an array of fixed-size
//! records (or the symbol table, or the text pool) and is used in place.

use std::borrow::Cow;
use std::ops;

use sha2::{Digest, Sha256};
use zerocopy::little_endian::U32;
use zerocopy::{FromBytes, IntoBytes};

use crate::instruction::Instruction;
use crate::meta::Meta;
use crate::symbol::{SymbolId, SymbolTable, SymbolTableBuilder};
use crate::table::*;
use crate::verify::{self, VerifyError};

/// The first bytes of every bundle; the line ends show damage by text transfer.
pub const MAGIC: [u8; 8] = *b"kpvm\r\n\x1a\n";

/// The format that this crate reads and writes.
pub const FORMAT_VERSION: u32 = 4;

const HEADER_LENGTH: usize = 60;
const DIGEST_START: usize = 56;
const SECTION_ENTRY_LENGTH: usize = 12;

/// Why bytes are not a bundle that can be run.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum LoadError {
    /// Not a bundle at all.
    #[error("not a bundle: expected the file to start with the kpvm magic, found {found}")]
    Magic {
        /// The first bytes, shown for people.
        found: String,
    },
    /// Another version of the format.
    #[error(
        "bundle format {found}, this program reads {FORMAT_VERSION}: compile the policies again with this version of kpc"
    )]
    Version {
        /// The version of the file.
        found: u32,
    },
    /// Flags that this version does not know.
    #[error(
        "the bundle has unknown flags {found:#x}: compile the policies again with this version of kpc"
    )]
    Flags {
        /// The flags of the file.
        found: u32,
    },
    /// The file is shorter or longer than it says.
    #[error(
        "the bundle is cut short or has trailing bytes: expected {expected} bytes, found {found}"
    )]
    Length {
        /// Length by the header.
        expected: u64,
        /// Length of the input.
        found: u64,
    },
    /// The content is not what was written.
    #[error("the bundle is damaged: its content does not match its digest")]
    Digest,
    /// The section table is not as the format says.
    #[error("the bundle is malformed: {0}")]
    Sections(String),
    /// A table or the code breaks a rule of the format.
    #[error("the bundle is malformed: {0}")]
    Verify(#[from] VerifyError),
}

macro_rules! sections {
    ($( $(#[doc = $doc:literal])+ $field:ident : $type:ty = $number:literal;)+) => {
        /// Number of sections that are arrays of records.
        const TABLE_COUNT: usize = [$($number),+].len();

        /// All tables of a bundle, borrowed from its bytes.
        #[derive(Debug, Clone, Copy)]
        pub struct Tables<'a> {
            /// The symbols.
            pub symbols: SymbolTable<'a>,
            /// The text pool.
            pub pool: &'a str,
            $($(#[doc = $doc])+ pub $field: &'a [$type],)+
        }

        /// Collects the tables of a bundle and writes it.
        #[derive(Debug, Default)]
        pub struct BundleBuilder {
            /// The symbols.
            pub symbols: SymbolTableBuilder,
            /// Facts for people.
            pub meta: Meta,
            pool: String,
            pool_texts: std::collections::HashMap<Box<str>, Text>,
            $($(#[doc = $doc])+ pub $field: Vec<$type>,)+
        }

        fn cut_tables<'a>(bytes: &'a [u8], sections: &[ops::Range<usize>]) -> Option<Tables<'a>> {
            Some(Tables {
                symbols: SymbolTable::from_verified(bytes.get(sections.first()?.clone())?)?,
                pool: std::str::from_utf8(bytes.get(sections.get(1)?.clone())?).ok()?,
                $($field: <[$type]>::ref_from_bytes(bytes.get(sections.get($number)?.clone())?).ok()?,)+
            })
        }

        impl BundleBuilder {
            /// Takes over every table as it is.
            fn with_tables(mut self, tables: &Tables<'_>) -> Self {
                $(self.$field = tables.$field.to_vec();)+
                self
            }

            fn table_bytes(&self) -> [&[u8]; TABLE_COUNT] {
                [$(self.$field.as_bytes()),+]
            }
        }

        /// Name of a section, for `kpc inspect`.
        fn section_name(number: usize) -> &'static str {
            match number {
                0 => "symbols",
                1 => "pool",
                $($number => stringify!($field),)+
                _ => "meta",
            }
        }
    };
}

sections! {
    /// The code of all blocks.
    code: Instruction = 2;
    /// The blocks.
    blocks: Block = 3;
    /// The static paths, parents first.
    paths: Path = 4;
    /// The leaf predicates.
    leaves: Leaf = 5;
    /// The alternatives of string patterns: ranges of `comparisons`.
    alternatives: Range = 6;
    /// The comparisons of string patterns.
    comparisons: Comparison = 7;
    /// Lists of kind selectors: ranges of `kind_selectors`.
    kind_lists: Range = 8;
    /// The kind selectors.
    kind_selectors: KindSelector = 9;
    /// Lists of texts: ranges of `texts`.
    text_lists: Range = 10;
    /// The texts of lists.
    texts: Text = 11;
    /// Lists of pairs: ranges of `pairs`.
    pair_lists: Range = 12;
    /// The pairs.
    pairs: Pair = 13;
    /// The label selectors.
    selectors: Selector = 14;
    /// The requirements of selectors.
    requirements: Requirement = 15;
    /// Lists of subjects: ranges of `subjects`.
    subject_lists: Range = 16;
    /// The subjects.
    subjects: Subject = 17;
    /// The label and annotation patterns with wildcard keys.
    tag_patterns: TagPattern = 18;
    /// Their entries.
    tag_entries: TagEntry = 19;
    /// The overrides of failure actions.
    action_overrides: ActionOverride = 20;
    /// The rules, in the order of evaluation.
    rules: Rule = 21;
    /// The policies, in the order of evaluation.
    policies: Policy = 22;
    /// The kinds under which rules are indexed.
    index_kinds: Text = 23;
    /// The match index: kinds ascending by symbol, rules for every kind last.
    index: IndexEntry = 24;
    /// The rules of index entries and nodes.
    index_rules: U32 = 25;
    /// The keys of rules, for the index.
    index_keys: IndexKey = 26;
    /// What instructions look at, ascending by instruction.
    sites: Site = 27;
    /// The pieces of paths.
    path_segments: PathSegment = 28;
    /// The constant values.
    constants: Constant = 29;
    /// The slices.
    slices: Slice = 30;
    /// The variables of contexts.
    slots: Slot = 31;
    /// The context entries.
    entries: Entry = 32;
    /// The shapes, those inside another in front of it.
    shapes: Shape = 33;
    /// The fields of structs.
    shape_fields: ShapeField = 34;
    /// Where the fields of structs are found: places among the struct's fields.
    shape_slots: u8 = 35;
    /// The controls.
    controls: Control = 36;
    /// The exclusions.
    exclusions: Exclusion = 37;
    /// The exceptions of rules.
    exceptions: Exception = 38;
    /// The nodes of index entries: rules by what an object must have.
    index_nodes: IndexNode = 39;
    /// Where the rules are written, one place for each of `rules`.
    rule_places: Place = 40;
    /// Where the context entries are written, one place for each of `entries`.
    entry_places: Place = 41;
    /// Where the entries of label and annotation patterns are written, one place for
    /// each of `tag_entries`.
    tag_places: Place = 42;
}

const META_SECTION: usize = 43;
const SECTION_COUNT: usize = 44;

/// A verified bundle over borrowed or owned bytes.
///
/// Tables stay where they are in the bytes; only the facts for people are decoded, once.
#[derive(Debug, Clone)]
pub struct Bundle<'b> {
    bytes: Cow<'b, [u8]>,
    sections: [ops::Range<usize>; SECTION_COUNT],
    meta: Meta,
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
            meta: Meta::default(),
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
        let Some(tables) = cut_tables(&bundle.bytes, &bundle.sections) else {
            return Err(LoadError::Sections(
                "a table is no whole number of records".into(),
            ));
        };
        verify::verify(&tables)?;
        let meta = bundle
            .decode_meta()
            .ok_or_else(|| VerifyError::new("the facts about policies cannot be read"))?;
        verify::verify_meta(&tables, &meta)?;
        bundle.meta = meta;
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
        cut_tables(&self.bytes, &self.sections).unwrap_or(Tables::EMPTY)
    }

    /// The facts for people.
    pub fn meta(&self) -> &Meta {
        &self.meta
    }

    fn decode_meta(&self) -> Option<Meta> {
        let (meta, rest) = postcard::take_from_bytes(self.section(META_SECTION)).ok()?;
        rest.is_empty().then_some(meta)
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
        self.sections
            .iter()
            .enumerate()
            .map(|(number, range)| (section_name(number), range.len()))
            .collect()
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

impl<'a> Tables<'a> {
    /// No tables at all.
    pub const EMPTY: Tables<'static> = Tables {
        symbols: SymbolTable::EMPTY,
        pool: "",
        code: &[],
        blocks: &[],
        paths: &[],
        leaves: &[],
        alternatives: &[],
        comparisons: &[],
        kind_lists: &[],
        kind_selectors: &[],
        text_lists: &[],
        texts: &[],
        pair_lists: &[],
        pairs: &[],
        selectors: &[],
        requirements: &[],
        subject_lists: &[],
        subjects: &[],
        tag_patterns: &[],
        tag_entries: &[],
        action_overrides: &[],
        rules: &[],
        policies: &[],
        index_kinds: &[],
        index: &[],
        index_rules: &[],
        index_keys: &[],
        sites: &[],
        path_segments: &[],
        constants: &[],
        slices: &[],
        slots: &[],
        entries: &[],
        exceptions: &[],
        shapes: &[],
        shape_fields: &[],
        shape_slots: &[],
        controls: &[],
        exclusions: &[],
        index_nodes: &[],
        rule_places: &[],
        entry_places: &[],
        tag_places: &[],
    };

    /// The text; empty if it does not lie in the pool.
    #[inline]
    pub fn text(&self, text: Text) -> &'a str {
        let start = text.offset.get() as usize;
        self.pool
            .get(start..start.wrapping_add(text.length.get() as usize))
            .unwrap_or("")
    }

    /// The entries of a range; empty if it does not lie in the table.
    #[inline]
    pub fn range<T>(table: &'a [T], range: Range) -> &'a [T] {
        let start = range.start.get() as usize;
        table
            .get(start..start.wrapping_add(range.length.get() as usize))
            .unwrap_or(&[])
    }

    /// How messages name an exception: `namespace/name`, or its name alone.
    pub fn exception_key(&self, exception: &Exception) -> String {
        match self.text(exception.namespace) {
            "" => self.text(exception.name).to_owned(),
            namespace => format!("{namespace}/{}", self.text(exception.name)),
        }
    }

    /// The texts of list number `list`.
    #[inline]
    pub fn text_list(&self, list: u32) -> impl Iterator<Item = &'a str> + use<'a> {
        let tables = *self;
        let range = self
            .text_lists
            .get(list as usize)
            .copied()
            .unwrap_or(Range::EMPTY);
        Self::range(self.texts, range)
            .iter()
            .map(move |&text| tables.text(text))
    }

    /// The code of a block.
    #[inline]
    pub fn block_code(&self, block: &Block) -> &'a [Instruction] {
        let start = block.start.get() as usize;
        self.code
            .get(start..start.wrapping_add(block.length.get() as usize))
            .unwrap_or(&[])
    }

    /// The site of instruction `instruction` of the code section.
    pub fn site(&self, instruction: u32) -> Option<&'a Site> {
        let found = self
            .sites
            .binary_search_by_key(&instruction, |site| site.instruction.get());
        found.ok().and_then(|index| self.sites.get(index))
    }
}

impl BundleBuilder {
    /// A bundle without policies.
    pub fn new() -> Self {
        Self::default()
    }

    /// What a bundle holds, to add to it: every number keeps its meaning.
    pub fn from_bundle(bundle: &Bundle<'_>) -> Self {
        let tables = bundle.tables();
        let mut builder = Self {
            pool: tables.pool.to_owned(),
            meta: bundle.meta().clone(),
            ..Self::default()
        }
        .with_tables(&tables);
        for number in 0..tables.symbols.len() as u32 {
            builder
                .symbols
                .intern(tables.symbols.text(SymbolId(number)));
        }
        builder
    }

    /// The text that an entry of the pool stands for.
    pub fn text_of(&self, text: Text) -> &str {
        let start = text.offset.get() as usize;
        self.pool
            .get(start..start.wrapping_add(text.length.get() as usize))
            .unwrap_or("")
    }

    /// Puts a text into the pool, once.
    pub fn text(&mut self, text: &str) -> Text {
        if let Some(&known) = self.pool_texts.get(text) {
            return known;
        }
        let entry = Text {
            offset: U32::new(self.pool.len() as u32),
            length: U32::new(text.len() as u32),
        };
        self.pool.push_str(text);
        self.pool_texts.insert(text.into(), entry);
        entry
    }

    /// The bundle's bytes. Equal input gives equal bytes on every machine.
    ///
    /// # Panics
    /// When a section is 4 GiB or longer.
    pub fn finish(mut self) -> Vec<u8> {
        crate::index::build(&mut self);
        let symbols = self.symbols.finish();
        let meta = postcard::to_allocvec(&self.meta).unwrap_or_default();
        let mut sections: Vec<&[u8]> = vec![&symbols, self.pool.as_bytes()];
        sections.extend(self.table_bytes());
        sections.push(&meta);
        let mut bytes = vec![0; HEADER_LENGTH];
        let mut offset = HEADER_LENGTH + sections.len() * SECTION_ENTRY_LENGTH;
        for (number, section) in sections.iter().enumerate() {
            for word in [number, offset, section.len()] {
                assert!(word <= u32::MAX as usize, "a bundle holds less than 4 GiB");
                bytes.extend((word as u32).to_le_bytes());
            }
            offset += section.len();
        }
        sections
            .iter()
            .for_each(|section| bytes.extend_from_slice(section));
        bytes[..8].copy_from_slice(&MAGIC);
        bytes[8..12].copy_from_slice(&FORMAT_VERSION.to_le_bytes());
        let length = bytes.len() as u64;
        bytes[16..24].copy_from_slice(&length.to_le_bytes());
        bytes[DIGEST_START..HEADER_LENGTH].copy_from_slice(&(sections.len() as u32).to_le_bytes());
        let digest = Sha256::digest(&bytes[DIGEST_START..]);
        bytes[24..DIGEST_START].copy_from_slice(&digest);
        bytes
    }

    /// The texts of the pool so far, for [`crate::index`].
    pub(crate) fn pool(&self) -> &str {
        &self.pool
    }
}
