//! What rules test, for explanations and statistics: records that describe an instruction's
//! test to readers who do not know the instructions.

use crate::Tables;
use crate::cel::Function;
use crate::condition::ConditionOperator;
use crate::instruction::immediate::{ItemCount, ObjectScope, Operations, Provision};
use crate::instruction::{
    Decoded, KindListId, LeafId, Op, OperandKind, Operation, PairListId, PathId, SelectorId,
    SubjectListId, TagPatternId, TextListId,
};
use crate::symbol::SymbolId;
use crate::table::{Block, Rule};

/// What is tested.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Criterion {
    /// The request passes the filter.
    Filter(Filter),
    /// The user is known.
    User,
    /// The two sides of a condition compare like this.
    Condition(ConditionOperator),
    /// An expression of CEL is true.
    Expression,
    /// A value matches a leaf of a pattern.
    Leaf(LeafId),
    /// A map has the key.
    Present(SymbolId),
    /// A value is missing.
    Absent,
    /// A value is a map.
    Map,
    /// A value is a list.
    List,
    /// A list has this number of items.
    Length(ItemCount),
    /// An item of a list matches an existence anchor.
    ExistingItem,
    /// A pattern is a list that is not empty.
    NonEmptyPattern,
    /// An existence anchor is used with a list of maps.
    ExistencePattern,
    /// Labels or annotations match a pattern with wildcards in its keys.
    Tags(TagPatternId),
    /// Something else, which only its place in the source tells.
    Other,
}

/// What a filter of `match` or `exclude` requires.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Filter {
    /// One of the kinds.
    Kinds(KindListId),
    /// One of the operations.
    Operations(Operations),
    /// A name.
    Names(TextListId),
    /// A namespace.
    Namespaces(TextListId),
    /// All of the annotations.
    Annotations(PairListId),
    /// Labels of the object.
    Labels(SelectorId),
    /// Labels of the namespace.
    NamespaceLabels(SelectorId),
    /// One of the user's roles.
    Roles(TextListId),
    /// One of the user's cluster roles.
    ClusterRoles(TextListId),
    /// One of the subjects.
    Subjects(SubjectListId),
    /// An API group.
    ApiGroups(TextListId),
    /// An API version.
    ApiVersions(TextListId),
    /// A resource, possibly with a subresource.
    Resources(TextListId),
    /// Whether the object is namespaced.
    Scope(ObjectScope),
}

/// Which data from outside the code of a bundle can ask for.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct OutsideData {
    /// Any data of context entries.
    pub context_entries: bool,
    /// API calls of context entries.
    pub api_calls: bool,
    /// Global context entries, of CEL.
    pub global_context: bool,
    /// Parameters of admission policies.
    pub parameters: bool,
}

impl<'a> Tables<'a> {
    /// Which data from outside rules can ask for.
    pub fn outside_data(&self) -> OutsideData {
        let mut asked = OutsideData::default();
        for instruction in self.code.iter().filter_map(Decoded::of) {
            match instruction {
                Decoded::Fetch(_) => asked.context_entries = true,
                Decoded::JumpUnlessProvided(jump) => {
                    asked.context_entries = true;
                    asked.api_calls |= jump.provision() == Provision::ApiCall;
                }
                Decoded::CelCall(call) => {
                    asked.global_context |= call.function() == Function::GlobalContextGet;
                }
                Decoded::CelParams(_) => asked.parameters = true,
                _ => {}
            }
        }
        asked
    }

    /// What an instruction of the code section tests; `None` if there is no such instruction.
    pub fn criterion(&self, instruction: u32) -> Option<Criterion> {
        let instruction = self.code.get(instruction as usize)?;
        Operation::decode(instruction).map(|operation| Criterion::of(&operation))
    }

    /// The static paths that a block's code loads, with repetitions.
    pub fn loaded_paths(&self, block: &Block) -> impl Iterator<Item = PathId> + use<'a> {
        self.block_code(block).iter().flat_map(|instruction| {
            let operands = Op::decode(instruction.op).map_or(&[][..], Op::operands);
            operands
                .iter()
                .filter(|operand| operand.kind == OperandKind::Path)
                .map(|operand| PathId(instruction.operand(operand.field)))
        })
    }

    /// The filters of a rule, in the order of its code.
    pub fn filters(&self, rule: &Rule) -> impl Iterator<Item = Filter> + use<'a> {
        let block = self.blocks.get(rule.match_block.get() as usize);
        let code = block.map_or(&[][..], |block| self.block_code(block));
        code.iter().filter_map(|instruction| {
            match Criterion::of(&Operation::decode(instruction)?) {
                Criterion::Filter(filter) => Some(filter),
                _ => None,
            }
        })
    }
}

impl Criterion {
    fn of(operation: &Operation) -> Self {
        Self::Filter(match *operation {
            Operation::MatchKinds { kinds, .. } => Filter::Kinds(kinds),
            Operation::MatchOperations { operations, .. } => Filter::Operations(operations),
            Operation::MatchNames { names, .. } | Operation::MatchResourceNames { names, .. } => {
                Filter::Names(names)
            }
            Operation::MatchNamespaces { namespaces, .. } => Filter::Namespaces(namespaces),
            Operation::MatchAnnotations { annotations, .. } => Filter::Annotations(annotations),
            Operation::MatchSelector { selector, .. }
            | Operation::MatchObjectLabels { selector, .. } => Filter::Labels(selector),
            Operation::MatchNamespaceSelector { selector, .. }
            | Operation::MatchNamespaceLabels { selector, .. } => Filter::NamespaceLabels(selector),
            Operation::MatchRoles { roles, .. } => Filter::Roles(roles),
            Operation::MatchClusterRoles { roles, .. } => Filter::ClusterRoles(roles),
            Operation::MatchSubjects { subjects, .. } => Filter::Subjects(subjects),
            Operation::MatchApiGroups { groups, .. } => Filter::ApiGroups(groups),
            Operation::MatchApiVersions { versions, .. } => Filter::ApiVersions(versions),
            Operation::MatchResources { resources, .. } => Filter::Resources(resources),
            Operation::MatchScope { scope, .. } => Filter::Scope(scope),
            Operation::JumpIfNoUser { .. } => return Self::User,
            Operation::TestCondition { operator, .. } => return Self::Condition(operator),
            Operation::CelTest { .. } => return Self::Expression,
            Operation::TestLeaf { leaf, .. } => return Self::Leaf(leaf),
            Operation::RequirePresent { key, .. } => return Self::Present(key),
            Operation::JumpIfMissing { .. } => return Self::Absent,
            Operation::RequireMap { .. } => return Self::Map,
            Operation::RequireList { .. } | Operation::RequireExistenceList { .. } => {
                return Self::List;
            }
            Operation::RequireLength { length, .. } => return Self::Length(length),
            Operation::FailExistence { .. } => return Self::ExistingItem,
            Operation::FailEmptyPattern { .. } => return Self::NonEmptyPattern,
            Operation::FailExistencePattern { .. } => return Self::ExistencePattern,
            Operation::TestTags { tags, .. } => return Self::Tags(tags),
            // Instructions that test nothing, or that explanations show as written.
            _ => return Self::Other,
        })
    }
}
