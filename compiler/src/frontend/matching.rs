//! `match` and `exclude` (docs/spec/policies.md §4 and §5), and `match` of an exception
//! (§9): lowers filters to IR.

use crate::ir::TextListId;
use kpvm_format::instruction::immediate::{NamespaceSelection, Operations};
use kpvm_format::table::{RequirementOperator, SubjectKind};
use kpvm_semantics::labels;
use kpvm_semantics::wildcard::contains_wildcard;
use kpvm_syntax::tree::Tree;

use super::emitter::Emitter;
use crate::ir;
use crate::ir::{
    AtSite, Block, KindListId, Label, Module, Operation, Requirement, Selector, SelectorId, Site,
    SiteKind, SubjectListId,
};
use crate::policy::kind_selector::KindSelector;
use crate::policy::model;
use crate::policy::model::{Filter, LabelSelector, MatchBlock, PolicyException, Rule};
use crate::source::{Location, SourceId};

/// Lowers `match` and `exclude` of a rule into a block that ends matched or unmatched.
pub fn lower_matching(rule: &Rule, source: SourceId, module: &mut Module) -> Block {
    let mut lowering = Lowering {
        block: Block::new(),
        module,
        rule: &rule.tree,
        source,
    };
    let unmatched = lowering.block.label();
    lowering.lower_block(&rule.match_block, Side::Match, unmatched);
    if let Some(exclude) = rule
        .exclude_block
        .as_ref()
        .filter(|exclude| !is_empty_exclude(exclude))
    {
        let kept = lowering.block.label();
        lowering.lower_block(exclude, Side::Exclude, kept);
        lowering.block.jump(unmatched);
        lowering.block.place(kept);
    }
    lowering.block.push(Operation::ReturnMatched);
    lowering.block.place(unmatched);
    lowering.block.push(Operation::ReturnUnmatched);
    lowering.block
}

/// Lowers `match` of an exception: falls through if it matches, else continues at
/// `otherwise`. One with neither `any` nor `all` never matches.
pub fn lower_exception_match(
    exception: &PolicyException,
    otherwise: Label,
    emitter: &mut Emitter<'_>,
) {
    let block = &exception.match_block;
    let mut lowering = Lowering {
        block: std::mem::replace(&mut emitter.block, Block::new()),
        module: emitter.module,
        rule: exception.tree.get("spec").unwrap_or(&exception.tree),
        source: exception.source,
    };
    if filters(&block.any).is_empty() && filters(&block.all).is_empty() {
        lowering.block.jump(otherwise);
    } else {
        lowering.lower_block(block, Side::Exception, otherwise);
    }
    emitter.block = lowering.block;
}

/// The block that a filter belongs to. `match` and `exclude` differ in what an empty filter
/// and missing user information mean (docs/spec/policies.md §5.2). An exception ignores the
/// operation, and does not apply a `namespaceSelector` to a Namespace (§9).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Side {
    Match,
    Exclude,
    Exception,
}

impl Side {
    fn key(self) -> &'static str {
        match self {
            Side::Match | Side::Exception => "match",
            Side::Exclude => "exclude",
        }
    }

    fn site_kind(self) -> SiteKind {
        match self {
            Side::Match | Side::Exception => SiteKind::Filter,
            Side::Exclude => SiteKind::Exclusion,
        }
    }
}

/// The place of a filter in its rule.
#[derive(Clone, Copy)]
struct Position<'f> {
    side: Side,
    /// `any` or `all` with the filter's number; `None` for the direct form.
    item: Option<(&'static str, usize)>,
    filter: &'f Filter,
}

impl Position<'_> {
    /// `match.any[0]`
    fn part(&self) -> String {
        let side = self.side.key();
        match self.item {
            Some((list, index)) => format!("{side}.{list}[{index}]"),
            None => side.to_owned(),
        }
    }

    /// The filter as written in the rule.
    fn tree<'t>(&self, rule: &'t Tree) -> Option<&'t Tree> {
        let block = rule.get(self.side.key())?;
        match self.item {
            Some((list, index)) => block.get(list)?.as_list()?.get(index),
            None => Some(block),
        }
    }
}

fn has_resources(filter: &Filter) -> bool {
    let resources = &filter.resources;
    !(resources.kinds.is_empty()
        && resources.name.is_empty()
        && resources.names.is_empty()
        && resources.namespaces.is_empty()
        && resources.annotations.as_ref().is_none_or(Vec::is_empty)
        && resources.selector.is_none()
        && resources.namespace_selector.is_none()
        && resources.operations.is_empty())
}

fn has_user_info(filter: &Filter) -> bool {
    filter.roles.is_some() || filter.cluster_roles.is_some() || filter.subjects.is_some()
}

fn is_empty_filter(filter: &Filter) -> bool {
    !has_resources(filter) && !has_user_info(filter)
}

/// Whether an exception's filter is empty: explicit empty lists of users count as absent
/// there.
fn is_empty_exception(filter: &Filter) -> bool {
    let is_empty = |count: Option<usize>| count.is_none_or(|count| count == 0);
    !has_resources(filter)
        && is_empty(filter.roles.as_ref().map(Vec::len))
        && is_empty(filter.cluster_roles.as_ref().map(Vec::len))
        && is_empty(filter.subjects.as_ref().map(Vec::len))
}

fn is_empty_exclude(block: &MatchBlock) -> bool {
    filters(&block.any).is_empty()
        && filters(&block.all).is_empty()
        && is_empty_filter(&block.direct)
}

fn filters(list: &Option<Vec<Filter>>) -> &[Filter] {
    list.as_deref().unwrap_or(&[])
}

struct Lowering<'p> {
    block: Block,
    module: &'p mut Module,
    /// The rule as read, or the `spec` of the exception.
    rule: &'p Tree,
    source: SourceId,
}

impl Lowering<'_> {
    /// Falls through if the block matches, else jumps to `otherwise`.
    fn lower_block(&mut self, block: &MatchBlock, side: Side, otherwise: Label) {
        let (any, all) = (filters(&block.any), filters(&block.all));
        let position = |item, filter| Position { side, item, filter };
        if !any.is_empty() {
            let held = self.block.label();
            for (index, filter) in any.iter().enumerate() {
                let next = self.block.label();
                self.lower_filter(position(Some(("any", index)), filter), next);
                self.block.jump(held);
                self.block.place(next);
            }
            self.block.jump(otherwise);
            self.block.place(held);
        } else if !all.is_empty() {
            for (index, filter) in all.iter().enumerate() {
                self.lower_filter(position(Some(("all", index)), filter), otherwise);
            }
        } else {
            self.lower_filter(position(None, &block.direct), otherwise);
        }
    }

    /// Falls through if the filter matches, else jumps to `otherwise`.
    fn lower_filter(&mut self, position: Position<'_>, otherwise: Label) {
        let filter = position.filter;
        let is_empty = match position.side {
            Side::Match | Side::Exclude => is_empty_filter(filter),
            Side::Exception => is_empty_exception(filter),
        };
        if is_empty {
            self.block.jump(otherwise);
            return;
        }
        self.lower_resources(position, otherwise);
        if !has_user_info(filter) {
            return;
        }
        let no_user = self.block.label();
        let site = self.site(position, SiteKind::Structure, &[], "");
        let jump = |target| Operation::JumpIfNoUser { target }.site(site);
        match position.side {
            Side::Match if has_resources(filter) => self.block.push(jump(no_user)),
            // Without user information nothing is left of the filter: it cannot match.
            Side::Match => self.block.push(jump(otherwise)),
            Side::Exclude | Side::Exception => {}
        }
        self.lower_user(position, otherwise);
        self.block.place(no_user);
    }

    /// The site of the value under a field of a filter, below `parents`.
    fn site(&self, position: Position<'_>, kind: SiteKind, parents: &[&str], field: &str) -> Site {
        let tree = position.tree(self.rule);
        let parent = parents
            .iter()
            .try_fold(tree, |tree, parent| Some(tree?.get(parent)));
        let member = parent.flatten().and_then(|parent| parent.member(field));
        let location = Location {
            source: self.source,
            span: member.map_or(position.filter.span, |member| member.key_span),
        };
        Site::new(kind, &position.part(), location).written(field)
    }

    /// Appends a test of a field of `resources`.
    fn test(&mut self, test: Operation, position: Position<'_>, field: &str) {
        let site = self.site(position, position.side.site_kind(), &["resources"], field);
        self.block.push(test.site(site));
    }

    /// docs/spec/policies.md §5.3. Every test is independent, so the cheap and selective
    /// ones come first.
    fn lower_resources(&mut self, position: Position<'_>, otherwise: Label) {
        let resources = &position.filter.resources;
        if !resources.operations.is_empty() && position.side != Side::Exception {
            let set = operation_set(&resources.operations);
            if set != Operations::ALL {
                let test = Operation::MatchOperations {
                    operations: set,
                    target: otherwise,
                };
                self.test(test, position, "operations");
            }
        }
        if !resources.kinds.is_empty() {
            let kinds: Vec<&str> = resources
                .kinds
                .iter()
                .map(|kind| kind.value.as_str())
                .collect();
            let kinds = self.module.kinds(&kinds);
            let test = Operation::MatchKinds {
                kinds,
                target: otherwise,
            };
            self.test(test, position, "kinds");
        }
        let names = |names| Operation::MatchNames {
            names,
            target: otherwise,
        };
        let namespaces = |namespaces| Operation::MatchNamespaces {
            namespaces,
            target: otherwise,
        };
        let texts: [(&dyn Fn(TextListId) -> Operation, _, _); 3] = [
            (&names, "name", std::slice::from_ref(&resources.name)),
            (&names, "names", &resources.names),
            (&namespaces, "namespaces", &resources.namespaces),
        ];
        for (test, field, texts) in texts {
            // A lone `*` matches every text, including the empty one.
            let is_absent = texts.is_empty() || field == "name" && resources.name.is_empty();
            if !is_absent && texts.iter().all(|text| text != "*") {
                let texts = self.module.text_list(texts);
                self.test(test(texts), position, field);
            }
        }
        if let Some(annotations) = resources
            .annotations
            .as_ref()
            .filter(|pairs| !pairs.is_empty())
        {
            let pairs = self.module.pair_lists.push(annotations.clone());
            let test = Operation::MatchAnnotations {
                annotations: pairs,
                target: otherwise,
            };
            self.test(test, position, "annotations");
        }
        if let Some(selector) = &resources.selector {
            let selector = self.module.selector(selector);
            let test = Operation::MatchSelector {
                selector,
                target: otherwise,
            };
            self.test(test, position, "selector");
        }
        if let Some(selector) = &resources.namespace_selector {
            let selector = self.module.selector(selector);
            let any_kind = resources.kinds.iter().any(|kind| kind.value == "*");
            let selection = match position.side {
                Side::Match | Side::Exclude if any_kind => NamespaceSelection::WithoutKind,
                Side::Match | Side::Exclude => NamespaceSelection::Ordinary,
                Side::Exception => NamespaceSelection::Exception,
            };
            let test = Operation::MatchNamespaceSelector {
                selection,
                selector,
                target: otherwise,
            };
            self.test(test, position, "namespaceSelector");
        }
    }

    fn lower_user(&mut self, position: Position<'_>, otherwise: Label) {
        let filter = position.filter;
        let kind = position.side.site_kind();
        let roles = |roles| Operation::MatchRoles {
            roles,
            target: otherwise,
        };
        let cluster_roles = |roles| Operation::MatchClusterRoles {
            roles,
            target: otherwise,
        };
        let lists: [(&dyn Fn(TextListId) -> Operation, _, _); 2] = [
            (&roles, "roles", &filter.roles),
            (&cluster_roles, "clusterRoles", &filter.cluster_roles),
        ];
        for (test, field, list) in lists {
            if let Some(list) = list.as_ref().filter(|list| !list.is_empty()) {
                let texts = self.module.text_list(list);
                let site = self.site(position, kind, &[], field);
                self.block.push(test(texts).site(site));
            }
        }
        if let Some(subjects) = filter
            .subjects
            .as_ref()
            .filter(|subjects| !subjects.is_empty())
        {
            let subjects = self.module.subjects(subjects);
            let site = self.site(position, kind, &[], "subjects");
            let test = Operation::MatchSubjects {
                subjects,
                target: otherwise,
            };
            self.block.push(test.site(site));
        }
    }
}

/// The operations that texts name; other texts select nothing.
fn operation_set(operations: &[String]) -> Operations {
    let named = operations.iter().map(|name| Operations::named(name));
    named.fold(Operations::NONE, Operations::with)
}

impl Module {
    /// A list of kind selectors.
    fn kinds(&mut self, kinds: &[&str]) -> KindListId {
        let kinds = kinds.iter().map(|kind| KindSelector::parse(kind));
        self.kind_lists.push(kinds.collect())
    }

    /// A label selector; one that can never be converted is marked (docs/spec/policies.md
    /// §5.4).
    pub fn selector(&mut self, selector: &LabelSelector) -> SelectorId {
        let mut requirements = Vec::new();
        for requirement in &selector.match_expressions {
            requirements.push(Requirement {
                operator: requirement_operator(&requirement.operator)
                    .unwrap_or(RequirementOperator::In),
                key: requirement.key.clone(),
                values: self.text_list(&requirement.values),
            });
        }
        self.selectors.push(Selector {
            is_malformed: is_malformed(selector),
            labels: selector.match_labels.clone(),
            requirements,
        })
    }

    fn subjects(&mut self, subjects: &[model::Subject]) -> SubjectListId {
        let subjects = subjects.iter().map(|subject| {
            let (kind, name) = match subject.kind.as_str() {
                "ServiceAccount" => (
                    SubjectKind::User,
                    format!(
                        "system:serviceaccount:{}:{}",
                        subject.namespace, subject.name
                    ),
                ),
                "User" => (SubjectKind::User, subject.name.clone()),
                "Group" => (SubjectKind::Group, subject.name.clone()),
                _ => (SubjectKind::Unknown, String::new()),
            };
            ir::Subject { kind, name }
        });
        self.subject_lists.push(subjects.collect())
    }
}

fn requirement_operator(text: &str) -> Option<RequirementOperator> {
    match text {
        "In" => Some(RequirementOperator::In),
        "NotIn" => Some(RequirementOperator::NotIn),
        "Exists" => Some(RequirementOperator::Exists),
        "DoesNotExist" => Some(RequirementOperator::DoesNotExist),
        _ => None,
    }
}

/// What the converter refuses whatever the object's labels are. Pairs with wildcards are
/// replaced by other pairs first, so they are checked at run time.
fn is_malformed(selector: &LabelSelector) -> bool {
    let bad_pair = |(key, value): &(String, String)| {
        let expanded = contains_wildcard(key) || contains_wildcard(value);
        let valid = labels::is_valid_key(key) && labels::is_valid_value(value);
        !expanded && !valid
    };
    selector.match_labels.iter().any(bad_pair)
        || selector.match_expressions.iter().any(|requirement| {
            let values_fit = match requirement_operator(&requirement.operator) {
                None => false,
                Some(RequirementOperator::In | RequirementOperator::NotIn) => {
                    !requirement.values.is_empty()
                }
                Some(RequirementOperator::Exists | RequirementOperator::DoesNotExist) => {
                    requirement.values.is_empty()
                }
            };
            !values_fit
                || !labels::is_valid_key(&requirement.key)
                || !requirement
                    .values
                    .iter()
                    .all(|value| labels::is_valid_value(value))
        })
}
