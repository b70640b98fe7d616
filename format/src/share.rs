//! Sharing: equal lists, records, code and sites are in a bundle once.
//!
//! Front ends write what each rule needs; policies that were copied, rules that autogen made
//! and rules about the same kinds have most of it in common. [`BundleBuilder::share`] copies
//! what rules reach into new tables, where each list and each block exists once. Places in
//! policies become relative to the rule's, so that equal rules share them wherever they are
//! written. Sharing twice changes nothing.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::hash::Hash;
use std::mem;

use zerocopy::IntoBytes;
use zerocopy::little_endian::U32;

use crate::builder::TextPool;
use crate::instruction::{Instruction, Op, OperandKind};
use crate::sections::{BundleBuilder, Tables};
use crate::site::Site;
use crate::table::*;

/// How deep blocks may run blocks; deeper ones are left as they are.
const MAX_BLOCK_DEPTH: usize = 64;

impl BundleBuilder {
    /// Lets rules share what is equal and drops what no rule reaches. Afterwards nothing may be
    /// added that refers to texts or sites.
    pub fn share(&mut self) {
        if let Some(shared) = Sharing::new(self).run().map(Sharing::into_tables) {
            let old = mem::take(self);
            *self = BundleBuilder {
                symbols: old.symbols,
                meta: old.meta,
                pool: old.pool,
                site_path_numbers: old.site_path_numbers,
                site_paths: old.site_paths,
                path_texts: old.path_texts,
                paths: old.paths,
                constants: old.constants,
                slices: old.slices,
                slots: old.slots,
                shapes: old.shapes,
                shape_fields: old.shape_fields,
                shape_slots: old.shape_slots,
                controls: old.controls,
                rule_places: old.rule_places,
                entry_places: old.entry_places,
                ..shared
            };
        }
        self.seal();
        self.compact_pool();
    }

    /// Drops texts that nothing refers to, and the ends of other texts.
    fn compact_pool(&mut self) {
        let mut texts: Vec<Text> = Vec::new();
        let mut numbers: HashMap<Text, usize> = HashMap::new();
        self.visit_texts(&mut |text| {
            numbers.entry(*text).or_insert_with(|| {
                texts.push(*text);
                texts.len() - 1
            });
        });
        let old = mem::take(&mut self.pool);
        let strings: Vec<&str> = texts.iter().map(|&text| old.get(text)).collect();
        // A text comes right before those that end with it.
        let mut order: Vec<usize> = (0..texts.len()).collect();
        order.sort_by(|&a, &b| {
            let reversed = |text: usize| strings[text].bytes().rev();
            reversed(a).cmp(reversed(b)).then(a.cmp(&b))
        });
        let mut hosts: Vec<usize> = (0..texts.len()).collect();
        for pair in order.windows(2).rev() {
            if strings[pair[1]].ends_with(strings[pair[0]]) {
                hosts[pair[0]] = hosts[pair[1]];
            }
        }
        let mut pool = TextPool::default();
        let places: Vec<Text> = hosts
            .iter()
            .zip(&strings)
            .map(|(&host, string)| pool.end_of(strings[host], string.len()))
            .collect();
        self.pool = pool;
        self.visit_texts(&mut |text| {
            let place = numbers.get(text).and_then(|&number| places.get(number));
            *text = place.copied().unwrap_or(*text);
        });
    }
}

/// A table in which equal entries are once.
struct Entries<T> {
    numbers: HashMap<T, u32>,
    table: Vec<T>,
}

impl<T: Copy + Eq + Hash> Entries<T> {
    fn add(&mut self, entry: T) -> u32 {
        *self.numbers.entry(entry).or_insert_with(|| {
            self.table.push(entry);
            self.table.len() as u32 - 1
        })
    }
}

impl<T> Default for Entries<T> {
    fn default() -> Self {
        Self {
            numbers: HashMap::new(),
            table: Vec::new(),
        }
    }
}

/// A table in which equal ranges are once.
struct Lists<T> {
    ranges: HashMap<Box<[T]>, Range>,
    table: Vec<T>,
}

impl<T: Copy + Eq + Hash> Lists<T> {
    fn add(&mut self, items: impl IntoIterator<Item = T>) -> Range {
        let items: Box<[T]> = items.into_iter().collect();
        if items.is_empty() {
            return Range::EMPTY;
        }
        if let Some(&known) = self.ranges.get(&items) {
            return known;
        }
        let range = Range::new(self.table.len(), items.len());
        self.table.extend_from_slice(&items);
        self.ranges.insert(items, range);
        range
    }
}

impl<T> Default for Lists<T> {
    fn default() -> Self {
        Self {
            ranges: HashMap::new(),
            table: Vec::new(),
        }
    }
}

/// The block by its content, without its place in the code.
type BlockContent = (Box<[u8]>, Block, Vec<Site>);

/// Copies what rules reach.
struct Sharing<'o> {
    old: &'o BundleBuilder,
    known_texts: HashMap<&'o str, Text>,
    leaves: Entries<Leaf>,
    alternatives: Lists<Range>,
    comparisons: Lists<Comparison>,
    kind_lists: Entries<Range>,
    kind_selectors: Lists<KindSelector>,
    text_lists: Entries<Range>,
    texts: Lists<Text>,
    pair_lists: Entries<Range>,
    pairs: Lists<Pair>,
    selectors: Entries<Selector>,
    requirements: Lists<Requirement>,
    subject_lists: Entries<Range>,
    subjects: Lists<Subject>,
    tag_patterns: Entries<TagPattern>,
    tag_entries: Lists<(TagEntry, SitePlace)>,
    action_overrides: Lists<ActionOverride>,
    index_kinds: Lists<Text>,
    index_keys: Lists<IndexKey>,
    rules: Vec<Rule>,
    policies: Vec<Policy>,
    entries: Vec<Entry>,
    exceptions: Vec<Exception>,
    exclusions: Vec<Exclusion>,
    blocks: Vec<Block>,
    sites: BTreeMap<u32, Vec<Site>>,
    /// Places of pieces of code, and of blocks by their content.
    code: HashMap<(Box<[u8]>, Block), u32>,
    block_numbers: HashMap<BlockContent, u32>,
    instructions: Vec<Instruction>,
    /// New numbers of old blocks, for a rule's place where it matters.
    copied: HashMap<(u32, Option<Place>), u32>,
    /// Old blocks that are being copied.
    copying: HashSet<u32>,
    /// Whether old blocks have absolute places, as far as that is known.
    absolute: HashMap<u32, bool>,
}

impl<'o> Sharing<'o> {
    fn new(old: &'o BundleBuilder) -> Self {
        Self {
            old,
            known_texts: HashMap::new(),
            leaves: Entries::default(),
            alternatives: Lists::default(),
            comparisons: Lists::default(),
            kind_lists: Entries::default(),
            kind_selectors: Lists::default(),
            text_lists: Entries::default(),
            texts: Lists::default(),
            pair_lists: Entries::default(),
            pairs: Lists::default(),
            selectors: Entries::default(),
            requirements: Lists::default(),
            subject_lists: Entries::default(),
            subjects: Lists::default(),
            tag_patterns: Entries::default(),
            tag_entries: Lists::default(),
            action_overrides: Lists::default(),
            index_kinds: Lists::default(),
            index_keys: Lists::default(),
            rules: Vec::new(),
            policies: old.policies.clone(),
            entries: old.entries.clone(),
            exceptions: Vec::new(),
            exclusions: Vec::new(),
            blocks: Vec::new(),
            sites: BTreeMap::new(),
            code: HashMap::new(),
            block_numbers: HashMap::new(),
            instructions: Vec::new(),
            copied: HashMap::new(),
            copying: HashSet::new(),
            absolute: HashMap::new(),
        }
    }

    /// `None` if blocks run blocks too deep, or in a circle.
    fn run(mut self) -> Option<Self> {
        let old = self.old;
        for exclusion in &old.exclusions {
            let values = self.optional(exclusion.values, Self::text_list);
            self.exclusions.push(Exclusion {
                values,
                ..*exclusion
            });
        }
        for policy in 0..self.policies.len() {
            let overrides = self.overrides(self.policies[policy].overrides);
            self.policies[policy].overrides = overrides;
        }
        for (rule, place) in old.rules.iter().zip(&old.rule_places) {
            let rule = self.rule(rule, place)?;
            self.rules.push(rule);
        }
        Some(self)
    }

    fn rule(&mut self, rule: &Rule, place: &Place) -> Option<Rule> {
        let old = self.old;
        let first = rule.entries.start.get() as usize;
        for (number, entry) in (first..).zip(Tables::range(&old.entries, rule.entries)) {
            let block = self.block(entry.block, place, 0)?;
            if let Some(entry) = self.entries.get_mut(number) {
                entry.block = block;
            }
        }
        let exceptions = Tables::range(&old.exceptions, rule.exceptions);
        let first = self.exceptions.len();
        for exception in exceptions {
            let exception = Exception {
                block: self.block(exception.block, place, 0)?,
                exclusion_block: self.block(exception.exclusion_block, place, 0)?,
                allowed: exception
                    .allowed
                    .map(|list| self.optional(list, Self::text_list)),
                ..*exception
            };
            self.exceptions.push(exception);
        }
        let kinds = |sharing: &mut Self, kinds| {
            let kinds = Tables::range(&old.index_kinds, kinds).iter();
            let kinds: Vec<Text> = kinds.map(|&kind| sharing.text(kind)).collect();
            sharing.index_kinds.add(kinds)
        };
        let keys = Tables::range(&old.index_keys, rule.keys).iter();
        let keys: Vec<IndexKey> = keys
            .map(|key| IndexKey {
                text: self.text(key.text),
                ..*key
            })
            .collect();
        Some(Rule {
            match_block: self.block(rule.match_block, place, 0)?,
            body_block: self.block(rule.body_block, place, 0)?,
            precondition_block: self.block(rule.precondition_block, place, 0)?,
            message_block: self.block(rule.message_block, place, 0)?,
            properties_block: self.block(rule.properties_block, place, 0)?,
            kinds: kinds(self, rule.kinds),
            keys: self.index_keys.add(keys),
            dropped_kinds: kinds(self, rule.dropped_kinds),
            overrides: self.overrides(rule.overrides),
            properties: self.pairs(rule.properties),
            exceptions: Range::new(first, exceptions.len()),
            ..*rule
        })
    }

    /// Copies an entry that may be none.
    fn optional(&mut self, number: U32, copy: impl FnOnce(&mut Self, u32) -> u32) -> U32 {
        match number.get() {
            NONE => number,
            some => U32::new(copy(self, some)),
        }
    }

    /// Equal texts have one place.
    fn text(&mut self, text: Text) -> Text {
        *self
            .known_texts
            .entry(self.old.pool.get(text))
            .or_insert(text)
    }

    fn overrides(&mut self, overrides: Range) -> Range {
        let old = self.old;
        let overrides = Tables::range(&old.action_overrides, overrides).iter();
        let overrides: Vec<ActionOverride> = overrides
            .map(|entry| ActionOverride {
                namespaces: self.optional(entry.namespaces, Self::text_list),
                selector: self.optional(entry.selector, Self::selector),
                ..*entry
            })
            .collect();
        self.action_overrides.add(overrides)
    }

    fn leaf(&mut self, number: u32) -> u32 {
        let old = self.old;
        let Some(leaf) = old.leaves.get(number as usize) else {
            return number;
        };
        let alternatives: Vec<Range> = Tables::range(&old.alternatives, leaf.alternatives)
            .iter()
            .map(|&comparisons| {
                let comparisons = Tables::range(&old.comparisons, comparisons).iter();
                let comparisons: Vec<Comparison> = comparisons
                    .map(|comparison| Comparison {
                        operand: self.text(comparison.operand),
                        ..*comparison
                    })
                    .collect();
                self.comparisons.add(comparisons)
            })
            .collect();
        let leaf = Leaf {
            text: self.text(leaf.text),
            alternatives: self.alternatives.add(alternatives),
            ..*leaf
        };
        self.leaves.add(leaf)
    }

    fn single_text(&mut self, number: u32) -> u32 {
        match self.old.texts.get(number as usize) {
            Some(&text) => {
                let text = self.text(text);
                self.texts.add([text]).start.get()
            }
            None => number,
        }
    }

    fn text_list(&mut self, number: u32) -> u32 {
        let old = self.old;
        let Some(&list) = old.text_lists.get(number as usize) else {
            return number;
        };
        let texts = Tables::range(&old.texts, list).iter();
        let texts: Vec<Text> = texts.map(|&text| self.text(text)).collect();
        let list = self.texts.add(texts);
        self.text_lists.add(list)
    }

    fn kinds(&mut self, number: u32) -> u32 {
        let old = self.old;
        let Some(&list) = old.kind_lists.get(number as usize) else {
            return number;
        };
        let kinds = Tables::range(&old.kind_selectors, list).iter();
        let kinds: Vec<KindSelector> = kinds
            .map(|kind| KindSelector {
                group: self.text(kind.group),
                version: self.text(kind.version),
                kind: self.text(kind.kind),
                subresource: self.text(kind.subresource),
            })
            .collect();
        let list = self.kind_selectors.add(kinds);
        self.kind_lists.add(list)
    }

    fn pairs(&mut self, pairs: Range) -> Range {
        let old = self.old;
        let pairs = Tables::range(&old.pairs, pairs).iter();
        let pairs: Vec<Pair> = pairs
            .map(|pair| Pair {
                key: self.text(pair.key),
                value: self.text(pair.value),
            })
            .collect();
        self.pairs.add(pairs)
    }

    fn pair_list(&mut self, number: u32) -> u32 {
        let Some(&list) = self.old.pair_lists.get(number as usize) else {
            return number;
        };
        let list = self.pairs(list);
        self.pair_lists.add(list)
    }

    fn selector(&mut self, number: u32) -> u32 {
        let old = self.old;
        let Some(selector) = old.selectors.get(number as usize) else {
            return number;
        };
        let requirements = Tables::range(&old.requirements, selector.requirements).iter();
        let requirements: Vec<Requirement> = requirements
            .map(|requirement| Requirement {
                key: self.text(requirement.key),
                values: U32::new(self.text_list(requirement.values.get())),
                ..*requirement
            })
            .collect();
        let selector = Selector {
            labels: self.pairs(selector.labels),
            requirements: self.requirements.add(requirements),
            ..*selector
        };
        self.selectors.add(selector)
    }

    fn subjects(&mut self, number: u32) -> u32 {
        let old = self.old;
        let Some(&list) = old.subject_lists.get(number as usize) else {
            return number;
        };
        let subjects = Tables::range(&old.subjects, list).iter();
        let subjects: Vec<Subject> = subjects
            .map(|subject| Subject {
                name: self.text(subject.name),
                ..*subject
            })
            .collect();
        let list = self.subjects.add(subjects);
        self.subject_lists.add(list)
    }

    fn tag_pattern(&mut self, number: u32, rule: &Place) -> u32 {
        let old = self.old;
        let Some(pattern) = old.tag_patterns.get(number as usize) else {
            return number;
        };
        let entries = Tables::range(&old.tag_entries, pattern.entries).iter();
        let places = Tables::range(&old.tag_places, pattern.entries);
        let entries: Vec<(TagEntry, SitePlace)> = entries
            .zip(places)
            .map(|(entry, place)| {
                let entry = TagEntry {
                    key: self.text(entry.key),
                    leaf: U32::new(self.leaf(entry.leaf.get())),
                    ..*entry
                };
                (entry, place.relative_to(rule))
            })
            .collect();
        let pattern = TagPattern {
            entries: self.tag_entries.add(entries),
            ..*pattern
        };
        self.tag_patterns.add(pattern)
    }

    /// Whether places of a block, or of one that it runs, are absolute.
    fn has_absolute_places(&mut self, number: u32, depth: usize) -> bool {
        if let Some(&known) = self.absolute.get(&number) {
            return known;
        }
        let old = self.old;
        let Some(block) = old.blocks.get(number as usize) else {
            return false;
        };
        if depth > MAX_BLOCK_DEPTH {
            return false;
        }
        // Ends a circle; [`Sharing::block`] leaves it as it is.
        self.absolute.insert(number, false);
        let sites = old.sites_of_blocks.get(&number);
        let is_absolute = sites
            .into_iter()
            .flatten()
            .any(|site| site.place.relative == 0)
            || Tables::range(&old.code, block.code())
                .iter()
                .flat_map(operands)
                .any(|(kind, value)| match kind {
                    OperandKind::Block | OperandKind::OptionalBlock => {
                        self.has_absolute_places(value, depth + 1)
                    }
                    OperandKind::TagPattern => {
                        let pattern = old.tag_patterns.get(value as usize);
                        let entries = pattern.map_or(Range::EMPTY, |pattern| pattern.entries);
                        let mut places = Tables::range(&old.tag_places, entries).iter();
                        places.any(|place| place.relative == 0)
                    }
                    _ => false,
                });
        self.absolute.insert(number, is_absolute);
        is_absolute
    }

    /// Copies a block, and the blocks that it runs, for a rule.
    fn block(&mut self, number: U32, rule: &Place, depth: usize) -> Option<U32> {
        let old = self.old;
        let Some(block) = old.blocks.get(number.get() as usize) else {
            return Some(number);
        };
        if depth > MAX_BLOCK_DEPTH {
            return None;
        }
        let is_absolute = self.has_absolute_places(number.get(), depth);
        let key = (number.get(), is_absolute.then_some(*rule));
        if let Some(&copied) = self.copied.get(&key) {
            return Some(U32::new(copied));
        }
        if !self.copying.insert(number.get()) {
            return None;
        }
        let mut code = Tables::range(&old.code, block.code()).to_vec();
        for instruction in &mut code {
            self.remap(instruction, rule, depth)?;
        }
        let sites = old.sites_of_blocks.get(&number.get());
        let sites: Vec<Site> = sites
            .into_iter()
            .flatten()
            .map(|site| self.site(site, rule))
            .collect();
        let copied = self.add_block(&code, *block, sites);
        self.copying.remove(&number.get());
        self.copied.insert(key, copied);
        Some(U32::new(copied))
    }

    fn add_block(&mut self, code: &[Instruction], block: Block, sites: Vec<Site>) -> u32 {
        let bytes: Box<[u8]> = code.as_bytes().into();
        let frame = Block {
            start: U32::ZERO,
            sites: Range::EMPTY,
            ..block
        };
        let content = (bytes, frame, sites);
        if let Some(&known) = self.block_numbers.get(&content) {
            return known;
        }
        let (bytes, frame, sites) = content.clone();
        let start = *self.code.entry((bytes, frame)).or_insert_with(|| {
            self.instructions.extend_from_slice(code);
            (self.instructions.len() - code.len()) as u32
        });
        let number = self.blocks.len() as u32;
        self.blocks.push(Block {
            start: U32::new(start),
            ..frame
        });
        if !sites.is_empty() {
            self.sites.insert(number, sites);
        }
        self.block_numbers.insert(content, number);
        number
    }

    fn remap(&mut self, instruction: &mut Instruction, rule: &Place, depth: usize) -> Option<()> {
        let Some(op) = Op::decode(instruction.op) else {
            return Some(());
        };
        for operand in op.operands() {
            let value = instruction.operand(operand.field);
            let copied = match operand.kind {
                OperandKind::Leaf => self.leaf(value),
                OperandKind::Text => self.single_text(value),
                OperandKind::Kinds => self.kinds(value),
                OperandKind::Texts => self.text_list(value),
                OperandKind::Pairs => self.pair_list(value),
                OperandKind::Selector => self.selector(value),
                OperandKind::Subjects => self.subjects(value),
                OperandKind::TagPattern => self.tag_pattern(value, rule),
                OperandKind::Block | OperandKind::OptionalBlock => {
                    self.block(U32::new(value), rule, depth + 1)?.get()
                }
                OperandKind::Source
                | OperandKind::Destination
                | OperandKind::Loop
                | OperandKind::Fold
                | OperandKind::Symbol
                | OperandKind::Path
                | OperandKind::Constant
                | OperandKind::Slice
                | OperandKind::Slot
                | OperandKind::Entry
                | OperandKind::List
                | OperandKind::Accumulator
                | OperandKind::Shape
                | OperandKind::Control
                | OperandKind::Exclusion
                | OperandKind::Immediate(_)
                | OperandKind::Forward
                | OperandKind::Backward => continue,
            };
            instruction.set(operand.field, copied);
        }
        Some(())
    }

    fn site(&mut self, site: &Site, rule: &Place) -> Site {
        Site {
            label: SiteLabel {
                part: self.text(site.label.part),
                written: self.text(site.label.written),
            },
            place: site.place.relative_to(rule),
            ..*site
        }
    }

    /// The tables that were copied.
    fn into_tables(self) -> BundleBuilder {
        let (tag_entries, tag_places) = self.tag_entries.table.into_iter().unzip();
        BundleBuilder {
            code: self.instructions,
            blocks: self.blocks,
            sites_of_blocks: self.sites,
            leaves: self.leaves.table,
            alternatives: self.alternatives.table,
            comparisons: self.comparisons.table,
            kind_lists: self.kind_lists.table,
            kind_selectors: self.kind_selectors.table,
            text_lists: self.text_lists.table,
            texts: self.texts.table,
            pair_lists: self.pair_lists.table,
            pairs: self.pairs.table,
            selectors: self.selectors.table,
            requirements: self.requirements.table,
            subject_lists: self.subject_lists.table,
            subjects: self.subjects.table,
            tag_patterns: self.tag_patterns.table,
            tag_entries,
            tag_places,
            action_overrides: self.action_overrides.table,
            rules: self.rules,
            policies: self.policies,
            index_kinds: self.index_kinds.table,
            index_keys: self.index_keys.table,
            entries: self.entries,
            exceptions: self.exceptions,
            exclusions: self.exclusions,
            ..BundleBuilder::default()
        }
    }
}

/// The operands of an instruction with their kinds.
fn operands(instruction: &Instruction) -> impl Iterator<Item = (OperandKind, u32)> {
    let operands = Op::decode(instruction.op).map_or(&[][..], Op::operands);
    operands
        .iter()
        .map(|operand| (operand.kind, instruction.operand(operand.field)))
}
