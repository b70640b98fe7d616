//! Building bundles: front ends fill the tables of a [`BundleBuilder`], which writes them.

use std::collections::HashMap;

use sha2::{Digest, Sha256};
use zerocopy::little_endian::U32;

use crate::bundle::{
    Bundle, DIGEST_START, FORMAT_VERSION, HEADER_LENGTH, MAGIC, SECTION_ENTRY_LENGTH,
};
use crate::code;
pub use crate::sections::BundleBuilder;
use crate::sections::Tables;
use crate::site::{Segment, Site, SitePathId, SitePathInterner, SiteWriter};
use crate::symbol::SymbolId;
use crate::table::{BundleFacts, OmittedFacts, Pair, PolicyFacts, Range, SitePath, Text};

/// The texts of a bundle under construction, equal ones once.
#[derive(Debug, Default)]
pub(crate) struct TextPool {
    texts: String,
    known: HashMap<Box<str>, Text>,
}

impl TextPool {
    /// The pool of a bundle.
    fn of(pool: &str) -> Self {
        Self {
            texts: pool.to_owned(),
            known: HashMap::new(),
        }
    }

    /// All texts after one another.
    pub(crate) fn as_str(&self) -> &str {
        &self.texts
    }

    /// A text of the pool; empty if it is none.
    pub(crate) fn get(&self, text: Text) -> &str {
        let start = text.offset.get() as usize;
        let end = start.wrapping_add(text.length.get() as usize);
        self.texts.get(start..end).unwrap_or("")
    }

    /// A text inside of others. Only small pools are searched, as that takes quadratic time.
    fn find(&self, text: &str) -> Option<Text> {
        const SEARCHED_BYTES: usize = 1 << 15;
        if self.texts.len() > SEARCHED_BYTES {
            return None;
        }
        let start = self.texts.find(text)?;
        Some(Text {
            offset: U32::new(start as u32),
            length: U32::new(text.len() as u32),
        })
    }

    /// The end of a text, so many bytes of it.
    pub(crate) fn end_of(&mut self, text: &str, length: usize) -> Text {
        let whole = match self.find(text) {
            Some(known) => known,
            None => self.intern(text),
        };
        let start = whole.offset.get() as usize + text.len().saturating_sub(length);
        Text {
            offset: U32::new(start as u32),
            length: U32::new(length as u32),
        }
    }

    fn intern(&mut self, text: &str) -> Text {
        if let Some(&known) = self.known.get(text) {
            return known;
        }
        let entry = Text {
            offset: U32::new(self.texts.len() as u32),
            length: U32::new(text.len() as u32),
        };
        self.texts.push_str(text);
        self.known.insert(text.into(), entry);
        entry
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
        let sites = (0..tables.blocks.len() as u32).filter_map(|block| {
            let sites: Vec<Site> = tables.sites_of(block).collect();
            (!sites.is_empty()).then_some((block, sites))
        });
        let mut builder = Self {
            pool: TextPool::of(tables.pool),
            meta: bundle.meta().clone(),
            sites_of_blocks: sites.collect(),
            site_path_numbers: SitePathInterner::of(tables.site_paths, tables.path_texts),
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
        self.pool.get(text)
    }

    /// Puts a text into the pool, once.
    pub fn text(&mut self, text: &str) -> Text {
        self.pool.intern(text)
    }

    /// The number of a path that messages name.
    pub fn site_path<'t>(&mut self, segments: impl IntoIterator<Item = Segment<'t>>) -> SitePathId {
        let mut path = SitePathId::EMPTY;
        for segment in segments {
            let segment = match segment {
                Segment::Text(text) => {
                    let text = self.pool.intern(text);
                    self.site_path_numbers.text(text, &mut self.path_texts)
                }
                Segment::Loop(slot) => slot | SitePath::LOOP,
            };
            let paths = &mut self.site_paths;
            path = self.site_path_numbers.path(path, segment, paths);
        }
        path
    }

    /// Sets the sites of a block, ascending by position.
    pub fn set_sites(&mut self, block: u32, sites: Vec<Site>) {
        self.sites_of_blocks.insert(block, sites);
    }

    /// Fills the tables that derive from others: the match index, the facts, the packed
    /// sites. Nothing may be added afterwards.
    pub fn seal(&mut self) {
        if std::mem::replace(&mut self.is_sealed, true) {
            return;
        }
        crate::index::build(self);
        self.write_facts();
        let mut writer = SiteWriter::default();
        for (number, block) in (0u32..).zip(&mut self.blocks) {
            let sites = self.sites_of_blocks.get(&number);
            block.sites = writer.write(sites.map_or(&[], Vec::as_slice));
        }
        self.site_labels = writer.site_labels;
        self.site_runs = writer.site_runs;
        self.sites = writer.sites;
    }

    fn write_facts(&mut self) {
        let meta = std::mem::take(&mut self.meta);
        let compiler = self.text(&meta.compiler);
        self.bundle_facts = vec![BundleFacts { compiler }];
        self.sources = meta.sources.iter().map(|name| self.text(name)).collect();
        self.policy_facts.clear();
        let mut annotations: HashMap<Vec<Pair>, Range> = HashMap::new();
        for policy in &meta.policies {
            let pairs = policy.annotations.iter().map(|(key, value)| Pair {
                key: self.text(key),
                value: self.text(value),
            });
            let pairs: Vec<Pair> = pairs.collect();
            let known = annotations.entry(pairs).or_insert_with_key(|pairs| {
                let range = Range::new(self.pairs.len(), pairs.len());
                self.pairs.extend(pairs);
                range
            });
            let facts = PolicyFacts {
                annotations: *known,
                kind: self.pool.intern(&policy.kind),
                api_version: self.pool.intern(&policy.api_version),
                background: u8::from(policy.background),
            };
            self.policy_facts.push(facts);
        }
        let omitted = meta.omitted.iter().map(|rule| OmittedFacts {
            policy: self.text(&rule.policy),
            rule: self.text(&rule.rule),
            reason: self.text(&rule.reason),
            place: self.text(&rule.place),
        });
        self.omitted = omitted.collect();
        self.meta = meta;
    }

    /// The bundle's bytes. Equal input gives equal bytes on every machine.
    ///
    /// # Panics
    /// When a section is 4 GiB or longer.
    pub fn finish(mut self) -> Vec<u8> {
        self.seal();
        let symbols = self.symbols.finish();
        let tables = Tables {
            blocks: &self.blocks,
            code: &self.code,
            ..Tables::EMPTY
        };
        let mut code = Vec::new();
        let mut rest = self.code.as_slice();
        for length in tables.code_lengths() {
            let (piece, behind) = rest.split_at(rest.len().min(length as usize));
            code::pack(piece, &mut code);
            rest = behind;
        }
        let mut sections: Vec<&[u8]> = vec![&symbols, self.pool.as_str().as_bytes(), &code];
        sections.extend(self.table_bytes());
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
}
