//! A module: everything that the front ends make of policies, before it becomes a bundle.

use kpvm_format::Tables;
use kpvm_format::symbol::{SymbolId, SymbolTableBuilder};
use kpvm_semantics::limits::Limits;

use super::Block;
use super::id::*;
use super::intern::Interned;
use super::record::*;
use super::rule::{Exception, Policy, Rule};
use crate::policy::kind_selector::KindSelector;

/// Everything that the front ends make of policies.
///
/// Blocks refer to the other tables by number. A module may extend a bundle: the numbers of
/// its tables then continue those of the bundle, and smaller numbers refer to the bundle's
/// tables.
#[derive(Debug)]
pub struct Module {
    /// The keys that code looks up.
    pub symbols: SymbolTableBuilder,
    /// The blocks.
    pub blocks: Table<BlockId, Block>,
    /// The static paths, parents first.
    pub paths: Table<PathId, PathStep>,
    /// The leaf predicates.
    pub leaves: Table<LeafId, Leaf>,
    /// The lists of kind selectors.
    pub kind_lists: Table<KindListId, Vec<KindSelector>>,
    /// The texts.
    pub texts: Table<TextId, String>,
    /// The lists of texts.
    pub text_lists: Table<TextListId, Vec<String>>,
    /// The lists of annotation pairs.
    pub pair_lists: Table<PairListId, Vec<(String, String)>>,
    /// The label selectors.
    pub selectors: Table<SelectorId, Selector>,
    /// The lists of subjects.
    pub subject_lists: Table<SubjectListId, Vec<Subject>>,
    /// The label and annotation patterns with wildcard keys.
    pub tag_patterns: Table<TagPatternId, TagPattern>,
    /// The constant values.
    pub constants: Table<ConstantId, Constant>,
    /// The slices.
    pub slices: Table<SliceId, Slice>,
    /// The variables of contexts.
    pub slots: Table<SlotId, Slot>,
    /// The context entries.
    pub entries: Table<EntryId, Entry>,
    /// The shapes; a nested shape comes before the one that contains it.
    pub shapes: Table<ShapeId, Shape>,
    /// The controls of the Pod Security Standards.
    pub controls: Table<ControlId, Control>,
    /// The exclusions of findings.
    pub exclusions: Table<ExclusionId, Exclusion>,
    /// The rules, in the order of evaluation.
    pub rules: Table<RuleId, Rule>,
    /// The policies, in the order of evaluation.
    pub policies: Table<PolicyId, Policy>,
    /// The exceptions; those of one rule are in the order in which messages list them.
    pub exceptions: Vec<Exception>,
    /// The limits of the front ends.
    pub limits: Limits,
    pub(crate) interned: Interned,
}

/// What the code of a block belongs to.
#[derive(Debug, Clone, Copy)]
pub enum Owner<'m> {
    /// A rule.
    Rule(&'m Rule),
    /// An exception.
    Exception(&'m Exception),
}

impl Module {
    /// An empty module.
    pub fn new(limits: Limits) -> Self {
        Self {
            symbols: SymbolTableBuilder::new(),
            blocks: Table::default(),
            paths: Table::default(),
            leaves: Table::default(),
            kind_lists: Table::default(),
            texts: Table::default(),
            text_lists: Table::default(),
            pair_lists: Table::default(),
            selectors: Table::default(),
            subject_lists: Table::default(),
            tag_patterns: Table::default(),
            constants: Table::default(),
            slices: Table::default(),
            slots: Table::default(),
            entries: Table::default(),
            shapes: Table::default(),
            controls: Table::default(),
            exclusions: Table::default(),
            rules: Table::default(),
            policies: Table::default(),
            exceptions: Vec::new(),
            limits,
            interned: Interned::default(),
        }
    }

    /// A module that extends a bundle: its numbers continue those of the bundle's tables.
    pub fn extending(tables: &Tables<'_>, limits: Limits) -> Self {
        let mut symbols = SymbolTableBuilder::new();
        for number in 0..tables.symbols.len() as u32 {
            symbols.intern(tables.symbols.text(SymbolId(number)));
        }
        Self {
            symbols,
            blocks: Table::following(tables.blocks.len()),
            paths: Table::following(tables.paths.len()),
            leaves: Table::following(tables.leaves.len()),
            kind_lists: Table::following(tables.kind_lists.len()),
            texts: Table::following(tables.texts.len()),
            text_lists: Table::following(tables.text_lists.len()),
            pair_lists: Table::following(tables.pair_lists.len()),
            selectors: Table::following(tables.selectors.len()),
            subject_lists: Table::following(tables.subject_lists.len()),
            tag_patterns: Table::following(tables.tag_patterns.len()),
            constants: Table::following(tables.constants.len()),
            slices: Table::following(tables.slices.len()),
            slots: Table::following(tables.slots.len()),
            entries: Table::following(tables.entries.len()),
            shapes: Table::following(tables.shapes.len()),
            controls: Table::following(tables.controls.len()),
            exclusions: Table::following(tables.exclusions.len()),
            rules: Table::following(tables.rules.len()),
            policies: Table::following(tables.policies.len()),
            ..Self::new(limits)
        }
    }

    /// Adds a block.
    pub fn add(&mut self, block: Block) -> BlockId {
        self.blocks.push(block)
    }

    /// The text of a symbol.
    pub fn symbol_text(&self, symbol: SymbolId) -> &str {
        self.symbols.text(symbol)
    }

    /// The rule or exception that a block was made for.
    pub fn owner(&self, block: BlockId) -> Option<Owner<'_>> {
        let of_exception = |exception: &&Exception| {
            exception.block == block || exception.exclusion_block == Some(block)
        };
        if let Some(exception) = self.exceptions.iter().find(of_exception) {
            return Some(Owner::Exception(exception));
        }
        // Rules are lowered one after another, so the blocks of one come before those of
        // the next.
        let ends_after = |rule: &&Rule| {
            let blocks = rule.blocks.named().map(|(_, block)| block);
            let entries = self.entries.range(&rule.entries).iter();
            let loaders = entries.filter_map(|entry| entry.loader);
            blocks.chain(loaders).max() >= Some(block)
        };
        let rule = self.rules.entries().iter().find(ends_after);
        rule.map(Owner::Rule)
    }
}
