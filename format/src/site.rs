//! Sites: what instructions look at, in the resource and in the policy. Errors are worded,
//! runs are traced and coverage is counted by them; an evaluation that passes reads none.
//!
//! A block lists its sites in runs of at most [`MAX_RUN`], found by binary search. A run is
//! packed: one byte with the number of its sites and whether their places are relative, then
//! for each site
//!
//! ```text
//! byte      kind in the low four bits (15: varint with the number of the source file, then
//!           another such byte); distance from the instruction of the site before in the high
//!           four (15: varint)
//! varint    number of the label
//! varint    number of the path + 1, 0 for the empty path
//! varint    distance in lines from the site before, zigzag
//! varint    column
//! ```
//!
//! Varints hold seven bits a byte, low bits first. The first site's line counts from the
//! rule's if places are relative, which are in the rule's file then; else from 0.

use std::collections::HashMap;

use zerocopy::little_endian::{I32, U32};

use crate::sections::Tables;
use crate::table::{NONE, Place, Range, SiteKind, SiteLabel, SitePath, SitePlace, SiteRun, Text};
use crate::varint;

/// Most sites of a run: how many are decoded to find one.
pub const MAX_RUN: usize = 64;

/// Bit of a run's first byte: places are relative to the rule's.
const RELATIVE: u8 = 1 << 7;
/// Nibble that stands for "see what follows".
const ESCAPE: u8 = 15;

/// An instruction by its block and its position there.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct InstructionId {
    /// Number of the block.
    pub block: u32,
    /// Position in the block's code.
    pub position: u32,
}

impl Default for InstructionId {
    fn default() -> Self {
        Self::NONE
    }
}

impl InstructionId {
    /// The instruction of no block.
    pub const NONE: InstructionId = InstructionId {
        block: NONE,
        position: NONE,
    };
}

/// Number of a path that messages name.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct SitePathId(pub u32);

impl SitePathId {
    /// The path without segments.
    pub const EMPTY: SitePathId = SitePathId(NONE);
}

/// A piece of a path that messages name.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Segment<'t> {
    /// A text.
    Text(&'t str),
    /// The index of the loop with this slot.
    Loop(u32),
}

/// What an instruction looks at.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Site {
    /// Position of the instruction in its block.
    pub position: u32,
    /// What the instruction does for the policy.
    pub kind: SiteKind,
    /// The path of the value.
    pub path: SitePathId,
    /// The part of the rule and what is written there.
    pub label: SiteLabel,
    /// Where that is written.
    pub place: SitePlace,
}

impl<'a> Tables<'a> {
    /// The site of an instruction, if it has one.
    pub fn site(&self, instruction: InstructionId) -> Option<Site> {
        let block = self.blocks.get(instruction.block as usize)?;
        let runs = Self::range(self.site_runs, block.sites);
        let after = runs.partition_point(|run| run.position.get() <= instruction.position);
        let run = runs.get(after.checked_sub(1)?)?;
        SiteReader::new(self.sites, run).find(instruction.position, self.site_labels)
    }

    /// The sites of a block.
    pub fn sites_of(&self, block: u32) -> impl Iterator<Item = Site> + use<'a> {
        let tables = *self;
        let block = self.blocks.get(block as usize);
        let runs = block.map_or(&[][..], |block| Self::range(tables.site_runs, block.sites));
        runs.iter().flat_map(move |run| tables.sites_of_run(run))
    }

    /// The place of a site of a rule.
    pub fn place_of(&self, rule: u32, place: &SitePlace) -> Place {
        match self.rule_places.get(rule as usize) {
            Some(rule) => place.of(rule),
            None => place.of(&Place::START),
        }
    }

    /// Hands out the segments of a path in order.
    pub fn path_segments(&self, path: SitePathId, visit: &mut dyn FnMut(Segment<'a>)) {
        let Some(path) = self.site_paths.get(path.0 as usize) else {
            return;
        };
        // INVARIANT: parents have smaller numbers and the verifier bounds the depth.
        self.path_segments(SitePathId(path.parent.get()), visit);
        let segment = path.segment.get();
        visit(match segment & SitePath::LOOP {
            0 => {
                let text = self.path_texts.get(segment as usize);
                Segment::Text(text.map_or("", |&text| self.text(text)))
            }
            _ => Segment::Loop(segment & !SitePath::LOOP),
        });
    }

    pub(crate) fn sites_of_run(&self, run: &SiteRun) -> impl Iterator<Item = Site> + use<'a> {
        let labels = self.site_labels;
        let mut reader = SiteReader::new(self.sites, run);
        std::iter::from_fn(move || reader.next(labels))
    }

    /// The position of the last instruction with a site in a run; `None` unless the run is
    /// well formed.
    pub(crate) fn verify_run(&self, run: &SiteRun) -> Option<u32> {
        let mut reader = SiteReader::new(self.sites, run);
        let count = usize::from(reader.left);
        let mut last = None;
        while let Some(site) = reader.next(self.site_labels) {
            let path = site.path.0;
            if path != NONE && path as usize >= self.site_paths.len()
                || !self.has_source(&site.place)
                || last.is_some_and(|last| site.position <= last)
            {
                return None;
            }
            last = Some(site.position);
        }
        last.filter(|_| reader.left == 0 && count <= MAX_RUN)
    }
}

impl Tables<'_> {
    /// Whether the source file of a place exists.
    pub(crate) fn has_source(&self, place: &SitePlace) -> bool {
        match place.relative {
            0 => (place.source.get() as usize) < self.sources.len(),
            1 => place.source == U32::ZERO,
            _ => false,
        }
    }
}

impl Place {
    /// What absolute places are relative to.
    const START: Place = Place {
        source: U32::ZERO,
        line: U32::ZERO,
        column: U32::ZERO,
    };
}

/// Unpacks the sites of a run.
struct SiteReader<'a> {
    bytes: &'a [u8],
    left: u8,
    relative: u8,
    position: u32,
    source: u32,
    line: i32,
}

impl<'a> SiteReader<'a> {
    fn new(bytes: &'a [u8], run: &SiteRun) -> Self {
        let bytes = bytes.get(run.offset.get() as usize..).unwrap_or(&[]);
        let (&head, bytes) = bytes.split_first().unwrap_or((&0, &[]));
        Self {
            bytes,
            left: head & !RELATIVE,
            relative: head >> 7,
            position: run.position.get(),
            source: 0,
            line: 0,
        }
    }

    /// The next site; `None` after the last, and from there on if bytes are not as they
    /// should be.
    fn next(&mut self, labels: &[SiteLabel]) -> Option<Site> {
        let kind = self.begin()?;
        self.finish(kind, labels)
    }

    /// The site at this position. Those before it are passed over without being put together,
    /// because every failing rule comes by here.
    fn find(mut self, position: u32, labels: &[SiteLabel]) -> Option<Site> {
        loop {
            let kind = self.begin()?;
            if self.position >= position {
                let site = self.finish(kind, labels);
                return site.filter(|site| site.position == position);
            }
            self.varint()?; // label
            self.varint()?; // path
            self.line = self.line.wrapping_add(unzigzag(self.varint()?));
            self.varint()?; // column
            self.left -= 1;
        }
    }

    /// Reads the first part of a site, up to its position.
    #[inline(always)]
    fn begin(&mut self) -> Option<SiteKind> {
        if self.left == 0 {
            return None;
        }
        let mut head = self.byte()?;
        if head & ESCAPE == ESCAPE {
            self.source = self.varint()?;
            head = self.byte()?;
        }
        let kind = *SiteKind::ALL.get(usize::from(head & ESCAPE))?;
        let distance = match head >> 4 {
            ESCAPE => self.varint()?,
            distance => u32::from(distance),
        };
        self.position = self.position.checked_add(distance)?;
        Some(kind)
    }

    /// Reads the rest of a site.
    #[inline(always)]
    fn finish(&mut self, kind: SiteKind, labels: &[SiteLabel]) -> Option<Site> {
        let label = *labels.get(self.varint()? as usize)?;
        let path = SitePathId(self.varint()?.wrapping_sub(1));
        self.line = self.line.wrapping_add(unzigzag(self.varint()?));
        let column = self.varint()?;
        self.left -= 1;
        Some(Site {
            position: self.position,
            kind,
            path,
            label,
            place: SitePlace {
                relative: self.relative,
                source: U32::new(self.source),
                line: I32::new(self.line),
                column: U32::new(column),
            },
        })
    }

    #[inline(always)]
    fn byte(&mut self) -> Option<u8> {
        let (&byte, rest) = self.bytes.split_first()?;
        self.bytes = rest;
        Some(byte)
    }

    #[inline(always)]
    fn varint(&mut self) -> Option<u32> {
        varint::read(&mut self.bytes)
    }
}

fn zigzag(value: i32) -> u32 {
    ((value << 1) ^ (value >> 31)) as u32
}

fn unzigzag(value: u32) -> i32 {
    (value >> 1) as i32 ^ -((value & 1) as i32)
}

/// Packs sites, equal runs once.
#[derive(Debug, Default)]
pub(crate) struct SiteWriter {
    labels: HashMap<SiteLabel, u32>,
    runs: HashMap<Box<[u8]>, u32>,
    lists: HashMap<Box<[SiteRun]>, Range>,
    /// The sections.
    pub(crate) site_labels: Vec<SiteLabel>,
    pub(crate) site_runs: Vec<SiteRun>,
    pub(crate) sites: Vec<u8>,
}

impl SiteWriter {
    /// Packs the sites of a block, which ascend by position.
    pub(crate) fn write(&mut self, sites: &[Site]) -> Range {
        let runs: Box<[SiteRun]> = sites
            .chunk_by({
                let mut length = 0;
                move |site, next| {
                    length += 1;
                    let goes_on = length < MAX_RUN && site.place.relative == next.place.relative;
                    if !goes_on {
                        length = 0;
                    }
                    goes_on
                }
            })
            .map(|run| self.write_run(run))
            .collect();
        if let Some(&known) = self.lists.get(&runs) {
            return known;
        }
        let range = Range::new(self.site_runs.len(), runs.len());
        self.site_runs.extend(&runs);
        self.lists.insert(runs, range);
        range
    }

    fn write_run(&mut self, sites: &[Site]) -> SiteRun {
        let relative = sites.first().map_or(0, |site| site.place.relative);
        let first = sites.first().map_or(0, |site| site.position);
        let mut bytes = vec![sites.len() as u8 | relative << 7];
        let (mut position, mut source, mut line) = (first, 0u32, 0i32);
        for site in sites {
            if site.place.source.get() != source {
                bytes.push(ESCAPE);
                varint::write(site.place.source.get(), &mut bytes);
            }
            let distance = site.position - position;
            match u8::try_from(distance) {
                Ok(short) if short < ESCAPE => bytes.push(site.kind as u8 | short << 4),
                _ => {
                    bytes.push(site.kind as u8 | ESCAPE << 4);
                    varint::write(distance, &mut bytes);
                }
            }
            varint::write(self.label(site.label), &mut bytes);
            varint::write(site.path.0.wrapping_add(1), &mut bytes);
            let distance = site.place.line.get().wrapping_sub(line);
            varint::write(zigzag(distance), &mut bytes);
            varint::write(site.place.column.get(), &mut bytes);
            position = site.position;
            source = site.place.source.get();
            line = site.place.line.get();
        }
        let bytes = bytes.into_boxed_slice();
        let offset = match self.runs.get(&bytes) {
            Some(&offset) => offset,
            None => {
                let offset = self.sites.len() as u32;
                self.sites.extend_from_slice(&bytes);
                self.runs.insert(bytes, offset);
                offset
            }
        };
        SiteRun {
            position: U32::new(first),
            offset: U32::new(offset),
        }
    }

    fn label(&mut self, label: SiteLabel) -> u32 {
        *self.labels.entry(label).or_insert_with(|| {
            self.site_labels.push(label);
            self.site_labels.len() as u32 - 1
        })
    }
}

/// Interns the paths that messages name.
#[derive(Debug, Default)]
pub(crate) struct SitePathInterner {
    paths: HashMap<SitePath, u32>,
    texts: HashMap<Text, u32>,
}

impl SitePathInterner {
    /// The interner of tables that exist already.
    pub(crate) fn of(paths: &[SitePath], texts: &[Text]) -> Self {
        Self {
            paths: (0..)
                .zip(paths)
                .map(|(number, &path)| (path, number))
                .collect(),
            texts: (0..)
                .zip(texts)
                .map(|(number, &text)| (text, number))
                .collect(),
        }
    }

    /// The number of a text.
    pub(crate) fn text(&mut self, text: Text, texts: &mut Vec<Text>) -> u32 {
        *self.texts.entry(text).or_insert_with(|| {
            texts.push(text);
            texts.len() as u32 - 1
        })
    }

    /// The path that is `segment` after `parent`.
    pub(crate) fn path(
        &mut self,
        parent: SitePathId,
        segment: u32,
        paths: &mut Vec<SitePath>,
    ) -> SitePathId {
        let path = SitePath {
            parent: U32::new(parent.0),
            segment: U32::new(segment),
        };
        SitePathId(*self.paths.entry(path).or_insert_with(|| {
            paths.push(path);
            paths.len() as u32 - 1
        }))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn site(position: u32, kind: SiteKind, line: i32) -> Site {
        Site {
            position,
            kind,
            path: SitePathId::EMPTY,
            label: SiteLabel {
                part: text(position, 3),
                written: text(0, 0),
            },
            place: SitePlace {
                relative: 1,
                source: U32::ZERO,
                line: I32::new(line),
                column: U32::new(position * 7 + 1),
            },
        }
    }

    fn text(offset: u32, length: u32) -> Text {
        Text {
            offset: U32::new(offset),
            length: U32::new(length),
        }
    }

    fn tables(writer: &SiteWriter) -> Tables<'_> {
        Tables {
            site_labels: &writer.site_labels,
            site_runs: &writer.site_runs,
            sites: &writer.sites,
            ..Tables::EMPTY
        }
    }

    #[test]
    fn sites_are_read_as_written() {
        let mut position = 0;
        let sites: Vec<Site> = (0..100i32)
            .map(|number| {
                let kind = SiteKind::ALL[number as usize % SiteKind::ALL.len()];
                position += 1 + number as u32 % 40;
                site(position, kind, (number - 50) * 300)
            })
            .collect();
        let mut writer = SiteWriter::default();
        let range = writer.write(&sites);
        assert_eq!(writer.write(&sites), range, "equal lists are stored once");
        let tables = tables(&writer);
        let runs = Tables::range(tables.site_runs, range);
        assert_eq!(runs.len(), 100usize.div_ceil(MAX_RUN));
        let read: Vec<Site> = runs
            .iter()
            .flat_map(|run| tables.sites_of_run(run))
            .collect();
        assert_eq!(read, sites);
        for (run, chunk) in runs.iter().zip(sites.chunks(MAX_RUN)) {
            let last = chunk.last().map(|site| site.position);
            assert_eq!(tables.verify_run(run), last);
        }
    }

    #[test]
    fn bytes_that_are_no_run_are_refused_and_never_panic() {
        let mut writer = SiteWriter::default();
        writer.write(&[site(0, SiteKind::Leaf, 3), site(900, SiteKind::Tags, -1)]);
        for at in 0..writer.sites.len() {
            let whole = writer.sites.clone();
            for value in 0..=255 {
                writer.sites[at] = value;
                let tables = tables(&writer);
                let found = tables.sites_of_run(&tables.site_runs[0]).count();
                assert!(found <= usize::from(u8::MAX));
                let _ = tables.verify_run(&tables.site_runs[0]);
            }
            writer.sites = whole;
        }
        let refused = |bytes: &[u8]| {
            let run = SiteRun {
                position: U32::ZERO,
                offset: U32::ZERO,
            };
            let labels = [SiteLabel {
                part: text(0, 0),
                written: text(0, 0),
            }];
            let tables = Tables {
                site_labels: &labels,
                sites: bytes,
                ..Tables::EMPTY
            };
            tables.verify_run(&run).is_none()
        };
        let relative = RELATIVE | 1;
        assert!(!refused(&[relative, 0, 0, 0, 0, 1]));
        for (what, bytes) in [
            ("no sites", &[RELATIVE][..]),
            ("too many sites", &[RELATIVE | 17, 0, 0, 0, 0, 1]),
            ("cut short", &[relative, 0, 0, 0, 0]),
            ("a kind that does not exist", &[relative, 10, 0, 0, 0, 1]),
            ("a label that does not exist", &[relative, 0, 1, 0, 0, 1]),
            ("a path that does not exist", &[relative, 0, 0, 1, 0, 1]),
            (
                "another file than the rule's",
                &[relative, 15, 1, 0, 0, 0, 0, 1],
            ),
            ("a file that does not exist", &[1, 0, 0, 0, 0, 1]),
            (
                "a number without end",
                &[relative, 0, 128, 128, 128, 128, 128, 0, 0, 1],
            ),
            (
                "two of one instruction",
                &[RELATIVE | 2, 0, 0, 0, 0, 1, 0, 0, 0, 0, 1],
            ),
        ] {
            assert!(refused(bytes), "{what}");
        }
    }
}
