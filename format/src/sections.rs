//! The sections of a bundle, listed once: [`Tables`] borrows them, [`BundleBuilder`] collects
//! them.

use std::collections::BTreeMap;

use zerocopy::little_endian::{U16, U32};
use zerocopy::{FromBytes, IntoBytes};

use crate::builder::TextPool;
use crate::instruction::Instruction;
use crate::meta::Meta;
use crate::outside::{OutsideDemand, OutsideField};
use crate::plan::{
    KindPlan, PlainRule, Plan, PlanBody, PlanSpot, PlanTest, ProjectionPlace, Topic,
};
use crate::site::{InstructionId, Site, SitePathInterner};
use crate::symbol::{SymbolTable, SymbolTableBuilder};
use crate::table::*;

macro_rules! sections {
    ($( $(#[doc = $doc:literal])+ $field:ident : $type:ty;)+) => {
        /// Number of sections: the symbols, the text pool, the code and the tables.
        pub(crate) const SECTION_COUNT: usize = 3 + [$(stringify!($field)),+].len();

        /// Names of the sections in their order.
        pub(crate) const SECTION_NAMES: [&str; SECTION_COUNT] =
            ["symbols", "pool", "code", $(stringify!($field)),+];

        /// All tables of a bundle, borrowed from its bytes.
        #[derive(Debug, Clone, Copy)]
        pub struct Tables<'a> {
            /// The symbols.
            pub symbols: SymbolTable<'a>,
            /// The text pool.
            pub pool: &'a str,
            /// The code of all blocks, unpacked.
            pub code: &'a [Instruction],
            $($(#[doc = $doc])+ pub $field: &'a [$type],)+
        }

        impl<'a> Tables<'a> {
            /// No tables at all.
            pub const EMPTY: Tables<'static> = Tables {
                symbols: SymbolTable::EMPTY,
                pool: "",
                code: &[],
                $($field: &[],)+
            };

            /// Cuts the tables from the bytes of the sections, which come in order.
            pub(crate) fn cut(
                mut sections: impl Iterator<Item = &'a [u8]>,
                code: &'a [Instruction],
            ) -> Option<Self> {
                let symbols = SymbolTable::from_verified(sections.next()?)?;
                let pool = std::str::from_utf8(sections.next()?).ok()?;
                let _packed_code = sections.next()?;
                Some(Tables {
                    symbols,
                    pool,
                    code,
                    $($field: <[$type]>::ref_from_bytes(sections.next()?).ok()?,)+
                })
            }
        }

        /// A bundle under construction: front ends fill its tables.
        #[derive(Debug, Default)]
        pub struct BundleBuilder {
            /// The symbols.
            pub symbols: SymbolTableBuilder,
            /// Facts for people.
            pub meta: Meta,
            pub(crate) pool: TextPool,
            pub(crate) site_path_numbers: SitePathInterner,
            /// The sites of each block, for blocks that have some.
            pub(crate) sites_of_blocks: BTreeMap<u32, Vec<Site>>,
            /// Whether the tables that derive from others are there.
            pub(crate) is_sealed: bool,
            /// The code of all blocks.
            pub code: Vec<Instruction>,
            $($(#[doc = $doc])+ pub $field: Vec<$type>,)+
        }

        impl BundleBuilder {
            /// Takes over the tables of a bundle as they are.
            pub(crate) fn with_tables(mut self, tables: &Tables<'_>) -> Self {
                self.code = tables.code.to_vec();
                $(self.$field = tables.$field.to_vec();)+
                self
            }

            /// The tables so far; `symbols` are the bytes of the symbol table.
            pub fn tables<'a>(&'a self, symbols: &'a [u8]) -> Option<Tables<'a>> {
                Some(Tables {
                    symbols: SymbolTable::from_verified(symbols)?,
                    pool: self.pool.as_str(),
                    code: &self.code,
                    $($field: &self.$field,)+
                })
            }

            /// The tables as they are written.
            pub(crate) fn table_bytes(&self) -> [&[u8]; SECTION_COUNT - 3] {
                [$(self.$field.as_bytes()),+]
            }

            /// Visits every text of every record.
            pub(crate) fn visit_texts(&mut self, visit: &mut dyn FnMut(&mut Text)) {
                $(for record in &mut self.$field {
                    record.visit_texts(visit);
                })+
            }
        }
    };
}

sections! {
    /// The blocks.
    blocks: Block;
    /// The static paths, parents first.
    paths: Path;
    /// The leaf predicates.
    leaves: Leaf;
    /// The alternatives of string patterns: ranges of `comparisons`.
    alternatives: Range;
    /// The comparisons of string patterns.
    comparisons: Comparison;
    /// Lists of kind selectors: ranges of `kind_selectors`.
    kind_lists: Range;
    /// The kind selectors.
    kind_selectors: KindSelector;
    /// Lists of texts: ranges of `texts`.
    text_lists: Range;
    /// The texts of lists.
    texts: Text;
    /// Lists of pairs: ranges of `pairs`.
    pair_lists: Range;
    /// The pairs.
    pairs: Pair;
    /// The label selectors.
    selectors: Selector;
    /// The requirements of selectors.
    requirements: Requirement;
    /// Lists of subjects: ranges of `subjects`.
    subject_lists: Range;
    /// The subjects.
    subjects: Subject;
    /// The label and annotation patterns with wildcard keys.
    tag_patterns: TagPattern;
    /// Their entries.
    tag_entries: TagEntry;
    /// The overrides of failure actions.
    action_overrides: ActionOverride;
    /// The rules, in the order of evaluation.
    rules: Rule;
    /// The policies, in the order of evaluation.
    policies: Policy;
    /// The kinds under which rules are indexed.
    index_kinds: Text;
    /// The match index: kinds ascending by symbol, rules for every kind last.
    index: IndexEntry;
    /// The rules of index entries and nodes.
    index_rules: U32;
    /// The keys of rules, for the index.
    index_keys: IndexKey;
    /// The runs of sites.
    site_runs: SiteRun;
    /// The packed sites.
    sites: u8;
    /// The texts of sites.
    site_labels: SiteLabel;
    /// The paths that sites name, parents first.
    site_paths: SitePath;
    /// The texts of these paths.
    path_texts: Text;
    /// The constant values.
    constants: Constant;
    /// The slices.
    slices: Slice;
    /// The variables of contexts.
    slots: Slot;
    /// The context entries.
    entries: Entry;
    /// The shapes, those inside another in front of it.
    shapes: Shape;
    /// The fields of structs.
    shape_fields: ShapeField;
    /// Where the fields of structs are found: places among the struct's fields.
    shape_slots: u8;
    /// The controls.
    controls: Control;
    /// The exclusions.
    exclusions: Exclusion;
    /// The exceptions of rules.
    exceptions: Exception;
    /// The nodes of index entries: rules by what an object must have.
    index_nodes: IndexNode;
    /// Where the rules are written, one place for each of `rules`.
    rule_places: Place;
    /// Where the context entries are written, one place for each of `entries`.
    entry_places: Place;
    /// Where the entries of label and annotation patterns are written, one place for
    /// each of `tag_entries`.
    tag_places: SitePlace;
    /// One record: facts about the bundle.
    bundle_facts: BundleFacts;
    /// Names of the policy files.
    sources: Text;
    /// Facts about policies, one for each of `policies`.
    policy_facts: PolicyFacts;
    /// Rules that were left out.
    omitted: OmittedFacts;
    /// What is known about the objects of each kind, ascending by kind and resource.
    topics: Topic;
    /// What is known about the objects of a kind that come with an operation.
    kind_plans: KindPlan;
    /// The plain rules of kind plans, ascending by rule.
    plain_rules: PlainRule;
    /// The plans.
    plans: Plan;
    /// The spots of plans.
    plan_spots: PlanSpot;
    /// The hash tables of plans: from spot and key to spot.
    plan_slots: U16;
    /// The bodies of plans.
    plan_bodies: PlanBody;
    /// The tests of spots.
    plan_tests: PlanTest;
    /// Lists of alternatives that tests break.
    plan_breaks: U16;
    /// The projections: ranges of `projection_places`.
    projections: Range;
    /// The places of projections.
    projection_places: ProjectionPlace;
    /// What rules ask of the host, by rule.
    outside_demands: OutsideDemand;
    /// The fields of requests for data.
    outside_fields: OutsideField;
    /// Names and values of these fields.
    outside_text: u8;
}

impl<'a> Tables<'a> {
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

    /// An instruction, if there is one.
    pub fn instruction(&self, id: InstructionId) -> Option<&'a Instruction> {
        let block = self.blocks.get(id.block as usize)?;
        self.block_code(block).get(id.position as usize)
    }

    /// Lengths of the pieces of code that blocks have, each once, in their order.
    pub(crate) fn code_lengths(&self) -> impl Iterator<Item = u32> + use<'a> {
        let mut end = 0u32;
        self.blocks.iter().filter_map(move |block| {
            let is_new = block.start.get() == end;
            if is_new {
                end = end.saturating_add(block.length.get());
            }
            is_new.then_some(block.length.get())
        })
    }

    /// The code of a block.
    #[inline]
    pub fn block_code(&self, block: &Block) -> &'a [Instruction] {
        let start = block.start.get() as usize;
        self.code
            .get(start..start.wrapping_add(block.length.get() as usize))
            .unwrap_or(&[])
    }
}
