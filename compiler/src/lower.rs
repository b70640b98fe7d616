//! Lowering: one checked policy in, its rules and their code in the bundle out.

mod admission_policy;
pub(crate) mod validating_policy;

use std::collections::HashMap;

use kpvm_semantics::limits::Limits;
use kpvm_syntax::tree::{Member, Span, Tree, TreeValue};
use kpvm_format::BundleBuilder;
use kpvm_format::instruction::Op;
use kpvm_format::symbol::SymbolId;
use kpvm_format::table::{
    self, BodyKind, KeyKind, MessageKind, NONE, PolicyFlags, Range, RuleFlags,
};
use zerocopy::little_endian::U32;

use crate::codegen::{self, CodegenError};
use crate::diagnostic::Diagnostic;
use crate::frontend::condition::Messages;
use crate::frontend::emitter::{Emitter, Scope};
use crate::frontend::foreach::Loaders;
use crate::frontend::index_key::{self, Key};
use crate::frontend::leaf::Leaves;
use crate::frontend::pattern::Subject;
use crate::frontend::pod_security::{self, PodSecurity};
use crate::frontend::template::{has_variable, unescape_keys};
use crate::frontend::{cel, context, matching, pattern, reference, variable};
use crate::ir::{Block, Instruction, Label};
use crate::optimise::optimise;
use crate::policy::autogen;
use crate::policy::condition::Conditions;
use crate::policy::kind_selector::KindSelector;
use crate::policy::model::{
    ApplyRules, FailureActionOverride, Filter, Policy, PolicyKind, Rule, Spanned, Validate,
};
use crate::policy::read::text_of;
use crate::source::{Location, SourceId, Sources};

/// The bundle under construction, with everything that gives equal entries equal numbers.
pub struct Pools<'b> {
    /// The bundle.
    pub bundle: &'b mut BundleBuilder,
    /// The limits of the compiler.
    pub limits: &'b Limits,
    /// Numbers of constants, for [`Pools::constant`].
    pub(crate) constants: &'b mut HashMap<String, u32>,
    sources: &'b Sources,
    leaves: &'b mut Leaves,
    paths: &'b mut HashMap<(u32, SymbolId), u32>,
    texts: &'b mut HashMap<String, u32>,
    /// What podSecurity rules share.
    pub(crate) pod_security: &'b mut pod_security::Shared,
}

impl Pools<'_> {
    /// The number of the path that leads from `parent` to the value under `key`.
    pub fn path(&mut self, parent: u32, key: SymbolId) -> u32 {
        *self.paths.entry((parent, key)).or_insert_with(|| {
            self.bundle.paths.push(table::Path {
                parent: U32::new(parent),
                symbol: U32::new(key.0),
            });
            self.bundle.paths.len() as u32 - 1
        })
    }

    /// The number of a text of the table of texts.
    pub fn text(&mut self, text: &str) -> u32 {
        if let Some(&number) = self.texts.get(text) {
            return number;
        }
        let entry = self.bundle.text(text);
        self.bundle.texts.push(entry);
        let number = self.bundle.texts.len() as u32 - 1;
        self.texts.insert(text.to_owned(), number);
        number
    }

    /// The number of the predicate for a scalar pattern; `None` for maps and lists.
    /// Escapes of variables in a text are undone.
    pub fn leaf(&mut self, pattern: &TreeValue) -> Option<u32> {
        match pattern {
            TreeValue::String(text) => {
                let text = TreeValue::String(variable::unescape_variables(text).into());
                self.leaves.intern(&text, self.bundle)
            }
            other => self.leaves.intern(other, self.bundle),
        }
    }

    /// A place as the bundle keeps it.
    pub fn place(&self, location: Location) -> table::Place {
        codegen::place(location, self.sources)
    }

    /// Optimises a block and writes it.
    ///
    /// # Errors
    /// When the block needs more than a frame has.
    pub fn generate(&mut self, mut block: Block) -> Result<u32, CodegenError> {
        optimise(&mut block);
        codegen::generate(&block, self.sources, self.bundle)
    }

    /// The block that computes a message with variables; `None` for one without.
    pub fn message_block(
        &mut self,
        message: &Spanned<String>,
        scope: &Scope,
        source: SourceId,
    ) -> Option<u32> {
        if !is_changed_by_substitution(&message.value) {
            return None;
        }
        let mut emitter = Emitter::new(source, scope.clone(), self);
        let failed = emitter.block.label();
        let document = Tree::new(
            TreeValue::String(message.value.as_str().into()),
            message.span,
        );
        let value = emitter.document(&document, failed);
        emitter
            .block
            .push(Instruction::new(Op::ReturnValue).a(value.0));
        emitter.flush_cold();
        emitter.block.place(failed);
        emitter.block.push(Instruction::new(Op::ReturnFailed));
        let block = emitter.block;
        self.generate(block).ok()
    }
}

/// Why a rule has no code.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum LowerError {
    /// The rule uses something that is not compiled yet.
    Unsupported(Unsupported),
    /// The rule can never be compiled.
    Invalid(Box<Diagnostic>),
}

/// Something that is not compiled yet.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Unsupported {
    /// What it is, e.g. `preconditions`.
    pub what: String,
    /// Where it stands.
    pub span: Span,
}

impl From<Unsupported> for LowerError {
    fn from(unsupported: Unsupported) -> Self {
        LowerError::Unsupported(unsupported)
    }
}

fn unsupported<T>(what: &str, span: Span) -> Result<T, LowerError> {
    Err(Unsupported {
        what: what.to_owned(),
        span,
    }
    .into())
}

/// Lowers policies one after another into one bundle.
#[derive(Default)]
pub struct Lowerer {
    bundle: BundleBuilder,
    leaves: Leaves,
    paths: HashMap<(u32, SymbolId), u32>,
    texts: HashMap<String, u32>,
    constants: HashMap<String, u32>,
    pod_security: pod_security::Shared,
}

/// A rule as it goes into the bundle: with the kinds under which the index lists it.
struct IndexedRule {
    rule: Rule,
    kinds: Vec<String>,
    dropped_kinds: Vec<String>,
    generated: bool,
}

impl Lowerer {
    /// Nothing lowered yet.
    pub fn new() -> Self {
        Self::default()
    }

    /// What goes on from a bundle.
    pub fn continuing(bundle: BundleBuilder) -> Self {
        Self {
            bundle,
            ..Self::default()
        }
    }

    /// The bundle so far.
    pub(crate) fn bundle(&mut self) -> &mut BundleBuilder {
        &mut self.bundle
    }

    /// The bundle so far, to add facts to it and to write it.
    pub fn finish(self) -> BundleBuilder {
        self.bundle
    }

    /// Lowers all rules of a policy, the generated ones included.
    ///
    /// Rules that cannot be lowered are left out and handed to `refused`.
    pub fn lower_policy(
        &mut self,
        policy: &Policy,
        sources: &Sources,
        limits: &Limits,
        refused: &mut dyn FnMut(&Rule, LowerError),
    ) {
        let number = self.bundle.policies.len() as u32;
        let first = self.bundle.rules.len();
        for indexed in computed_rules(policy) {
            if let Err(error) = self.lower_rule(policy, number, &indexed, sources, limits) {
                refused(&indexed.rule, error);
            }
        }
        let rules = Range::new(first, self.bundle.rules.len() - first);
        let overrides = self.action_overrides(&policy.failure_action_overrides, sources, limits);
        let entry = table::Policy {
            name: self.bundle.text(&policy.name.value),
            namespace: self.bundle.text(namespace_of(policy).unwrap_or("")),
            flags: policy_flags(policy),
            rules,
            overrides,
        };
        self.bundle.policies.push(entry);
    }

    /// The pools of the bundle, for one block after another.
    pub(crate) fn pools<'b>(&'b mut self, sources: &'b Sources, limits: &'b Limits) -> Pools<'b> {
        Pools {
            bundle: &mut self.bundle,
            limits,
            constants: &mut self.constants,
            sources,
            leaves: &mut self.leaves,
            paths: &mut self.paths,
            texts: &mut self.texts,
            pod_security: &mut self.pod_security,
        }
    }

    fn lower_rule(
        &mut self,
        policy: &Policy,
        policy_number: u32,
        indexed: &IndexedRule,
        sources: &Sources,
        limits: &Limits,
    ) -> Result<(), LowerError> {
        let rule = &indexed.rule;
        let Some(validate) = &rule.validate else {
            return unsupported(rule_type(rule), rule.tree.span);
        };
        refuse_unsupported(rule, validate)?;
        let (first_slot, first_entry) = (self.bundle.slots.len(), self.bundle.entries.len());
        let mut pools = self.pools(sources, limits);
        let blocks = lower_blocks(policy, rule, validate, &mut pools)?;
        let (slots, entries) = (pools.bundle.slots.len(), pools.bundle.entries.len());
        let entry = table::Rule {
            policy: U32::new(policy_number),
            name: self.bundle.text(&rule.name.value),
            match_block: U32::new(blocks.matching),
            body_block: U32::new(blocks.body),
            precondition_block: U32::new(blocks.preconditions),
            message_block: U32::new(blocks.message),
            properties_block: U32::new(blocks.properties),
            slots: Range::new(first_slot, slots - first_slot),
            entries: Range::new(first_entry, entries - first_entry),
            body: blocks.kind as u8,
            flags: rule_flags(policy, validate, indexed.generated),
            message_kind: blocks.message_kind as u8,
            message: self.bundle.text(&blocks.message_text),
            kinds: self.index_kinds(&indexed.kinds),
            keys: self.index_keys(policy, rule),
            dropped_kinds: self.index_kinds(&indexed.dropped_kinds),
            overrides: self.action_overrides(&validate.failure_action_overrides, sources, limits),
            properties: self.properties(rule),
            exceptions: Range::EMPTY,
        };
        self.bundle.rules.push(entry);
        let location = Location {
            source: policy.source,
            span: rule.tree.span,
        };
        self.bundle
            .rule_places
            .push(codegen::place(location, sources));
        Ok(())
    }

    fn index_kinds(&mut self, kinds: &[String]) -> Range {
        let start = self.bundle.index_kinds.len();
        for kind in kinds {
            let text = self.bundle.text(kind);
            self.bundle.index_kinds.push(text);
        }
        Range::new(start, kinds.len())
    }

    /// A namespaced policy looks at its own namespace, whatever its rules match.
    fn index_keys(&mut self, policy: &Policy, rule: &Rule) -> Range {
        let keys = match namespace_of(policy) {
            Some(namespace) => vec![Key::whole(KeyKind::Namespace, namespace)],
            None => index_key::keys(&rule.match_block),
        };
        self.key_range(&keys)
    }

    fn key_range(&mut self, keys: &[Key]) -> Range {
        let start = self.bundle.index_keys.len();
        for key in keys {
            let entry = table::IndexKey {
                kind: key.kind as u8,
                whole: u8::from(key.whole),
                text: self.bundle.text(&key.text),
            };
            self.bundle.index_keys.push(entry);
        }
        Range::new(start, keys.len())
    }

    fn properties(&mut self, rule: &Rule) -> Range {
        let start = self.bundle.pairs.len();
        for (key, value) in &rule.report_properties {
            let pair = table::Pair {
                key: self.bundle.text(key),
                value: self.bundle.text(&value.value),
            };
            self.bundle.pairs.push(pair);
        }
        Range::new(start, rule.report_properties.len())
    }

    fn action_overrides(
        &mut self,
        overrides: &[FailureActionOverride],
        sources: &Sources,
        limits: &Limits,
    ) -> Range {
        // An action that is none of the four spellings is passed over at evaluation.
        let valid = |entry: &&FailureActionOverride| {
            matches!(
                entry.action.as_str(),
                "Enforce" | "enforce" | "Audit" | "audit"
            )
        };
        let entries: Vec<table::ActionOverride> = overrides
            .iter()
            .filter(valid)
            .map(|entry| {
                let mut pools = self.pools(sources, limits);
                table::ActionOverride {
                    enforce: u8::from(is_enforce(&entry.action)),
                    namespaces: U32::new(
                        entry
                            .namespaces
                            .as_ref()
                            .map_or(NONE, |list| pools.text_list(list)),
                    ),
                    selector: U32::new(pools.optional_selector(entry.namespace_selector.as_ref())),
                }
            })
            .collect();
        let start = self.bundle.action_overrides.len();
        self.bundle.action_overrides.extend(&entries);
        Range::new(start, entries.len())
    }
}

fn is_enforce(action: &str) -> bool {
    matches!(action, "Enforce" | "enforce")
}

fn policy_flags(policy: &Policy) -> u8 {
    let unscored = policy
        .annotations
        .iter()
        .any(|(key, value)| key == "policies.kyverno.io/scored" && value == "false");
    let flags = [
        (policy.kind == PolicyKind::Policy, PolicyFlags::NAMESPACED),
        (
            policy.apply_rules == ApplyRules::One,
            PolicyFlags::APPLY_ONE,
        ),
        (
            policy.failure_action.as_deref().is_some_and(is_enforce),
            PolicyFlags::ENFORCE,
        ),
        (unscored, PolicyFlags::UNSCORED),
    ];
    flags
        .iter()
        .filter(|(set, _)| *set)
        .fold(0, |flags, (_, flag)| flags | flag)
}

fn rule_flags(policy: &Policy, validate: &Validate, generated: bool) -> u8 {
    let action = validate
        .failure_action
        .as_deref()
        .filter(|action| !action.is_empty());
    let enforce = action
        .or(policy.failure_action.as_deref())
        .is_some_and(is_enforce);
    let flags = [
        (enforce, RuleFlags::ENFORCE),
        (action.is_some(), RuleFlags::OWN_ACTION),
        (
            validate.allow_existing_violations,
            RuleFlags::ALLOW_EXISTING,
        ),
        (generated, RuleFlags::GENERATED),
    ];
    flags
        .iter()
        .filter(|(set, _)| *set)
        .fold(0, |flags, (_, flag)| flags | flag)
}

/// The namespace of a namespaced policy.
fn namespace_of(policy: &Policy) -> Option<&str> {
    let namespace = policy.namespace.as_deref();
    (policy.kind == PolicyKind::Policy).then(|| {
        namespace
            .filter(|name| !name.is_empty())
            .unwrap_or("default")
    })
}

/// The rules of a policy with the kinds for which each is tried: Kyverno computes the
/// rules anew for each resource's kind (docs/spec/policies.md §12.2); here every rule that
/// any kind can see is compiled once and the index says who sees it.
fn computed_rules(policy: &Policy) -> Vec<IndexedRule> {
    let mut generated: Vec<IndexedRule> = Vec::new();
    let mut replaced: Vec<String> = Vec::new();
    for kind in autogen::autogen_controllers(policy) {
        let rules = autogen::compute_rules(policy, Some(&kind));
        let names = |rules: &[Rule]| {
            rules
                .iter()
                .map(|rule| rule.name.value.clone())
                .collect::<Vec<_>>()
        };
        // Nothing generated: the written rules unchanged. Else those that are not
        // called `autogen-…` come first.
        let kept = if names(&rules) == names(&policy.rules) {
            rules.len()
        } else {
            policy
                .rules
                .iter()
                .filter(|rule| !rule.name.value.starts_with("autogen-"))
                .count()
        };
        let new: Vec<Rule> = rules.into_iter().skip(kept).collect();
        if new.is_empty() || replaced.contains(&kind) {
            continue;
        }
        replaced.push(kind.clone());
        for rule in new {
            match generated
                .iter_mut()
                .find(|known| same_but_for_kinds(&known.rule, &rule))
            {
                Some(known) => {
                    add_kinds(&mut known.rule, &rule);
                    known.kinds.push(kind.clone());
                }
                None => generated.push(IndexedRule {
                    rule,
                    kinds: vec![kind.clone()],
                    dropped_kinds: Vec::new(),
                    generated: true,
                }),
            }
        }
    }
    let written = policy.rules.iter().map(|rule| {
        let dropped = if rule.name.value.starts_with("autogen-") {
            replaced.clone()
        } else {
            Vec::new()
        };
        let kinds = match_kinds(rule);
        IndexedRule {
            rule: rule.clone(),
            kinds: kinds
                .into_iter()
                .filter(|kind| !dropped.contains(kind))
                .collect(),
            dropped_kinds: dropped,
            generated: false,
        }
    });
    let mut rules: Vec<IndexedRule> = written.collect();
    // For one kind the generated rules come in the order of the rules they were made of.
    let order = |rule: &Rule| {
        policy
            .rules
            .iter()
            .position(|written| written.tree.span == rule.tree.span)
    };
    generated.sort_by_key(|indexed| order(&indexed.rule));
    rules.extend(generated);
    rules
}

/// The kinds that the match block of a rule names, each once; `*` stands for a filter
/// that names none.
fn match_kinds(rule: &Rule) -> Vec<String> {
    let block = &rule.match_block;
    let used = |list: &'_ Option<Vec<Filter>>| list.as_ref().is_some_and(|list| !list.is_empty());
    let filters: Vec<&Filter> = if used(&block.any) {
        block.any.iter().flatten().collect()
    } else if used(&block.all) {
        block.all.iter().flatten().collect()
    } else {
        vec![&block.direct]
    };
    let mut kinds = Vec::new();
    let mut add = |kind: String| {
        if !kinds.contains(&kind) {
            kinds.push(kind);
        }
    };
    for filter in filters {
        if filter.resources.kinds.is_empty() {
            add("*".into());
        }
        filter
            .resources
            .kinds
            .iter()
            .for_each(|kind| add(KindSelector::parse(&kind.value).kind));
    }
    kinds
}

fn filters_mut(rule: &mut Rule) -> impl Iterator<Item = &mut Filter> {
    let blocks = std::iter::once(&mut rule.match_block).chain(rule.exclude_block.as_mut());
    blocks.flat_map(|block| {
        let any = block.any.iter_mut().flatten();
        let all = block.all.iter_mut().flatten();
        any.chain(all).chain(std::iter::once(&mut block.direct))
    })
}

/// Whether two generated rules differ in nothing but the kinds they match.
fn same_but_for_kinds(left: &Rule, right: &Rule) -> bool {
    let without_kinds = |rule: &Rule| {
        let mut rule = rule.clone();
        filters_mut(&mut rule).for_each(|filter| filter.resources.kinds.clear());
        rule.tree = Tree::new(TreeValue::Null, rule.tree.span);
        rule
    };
    left.name == right.name && without_kinds(left) == without_kinds(right)
}

fn add_kinds(into: &mut Rule, from: &Rule) {
    let mut from = from.clone();
    for (into, from) in filters_mut(into).zip(filters_mut(&mut from)) {
        for kind in from.resources.kinds.drain(..) {
            if !into
                .resources
                .kinds
                .iter()
                .any(|known| known.value == kind.value)
            {
                into.resources.kinds.push(kind);
            }
        }
    }
}

fn rule_type(rule: &Rule) -> &'static str {
    if rule.mutate.is_some() {
        "a mutate rule"
    } else if rule.generate.is_some() {
        "a generate rule"
    } else {
        "a verifyImages rule"
    }
}

/// Refuses what has no front end yet.
fn refuse_unsupported(rule: &Rule, validate: &Validate) -> Result<(), LowerError> {
    if rule.verify_images.is_some() {
        return unsupported("verifyImages", rule.tree.span);
    }
    let parts = [("validate.manifests", &validate.manifests)];
    for (what, part) in parts {
        if let Some(part) = part {
            return unsupported(what, part.span);
        }
    }
    Ok(())
}

/// The blocks of a rule, with what else its record says of them.
struct RuleBlocks {
    matching: u32,
    preconditions: u32,
    body: u32,
    kind: BodyKind,
    message: u32,
    message_kind: MessageKind,
    message_text: String,
    properties: u32,
}

fn lower_blocks(
    policy: &Policy,
    rule: &Rule,
    validate: &Validate,
    pools: &mut Pools<'_>,
) -> Result<RuleBlocks, LowerError> {
    let at = |span: Span| Location {
        source: policy.source,
        span,
    };
    let too_big = |error: CodegenError| {
        let diagnostic = Diagnostic::error("rule-too-big", error.to_string(), at(rule.tree.span));
        LowerError::Invalid(Box::new(diagnostic.hint("split the rule into several")))
    };
    let invalid = |message: String, span: Span| {
        LowerError::Invalid(Box::new(Diagnostic::error(
            "invalid-rule",
            message,
            at(span),
        )))
    };
    let matching = matching::lower_matching(rule, policy.source, pools);
    let matching = pools.generate(matching).map_err(too_big)?;
    let mut scope = Scope::default();
    scope.rewrites_delete = true;
    scope.is_confined = policy.kind == PolicyKind::Policy
        && policy
            .namespace
            .as_ref()
            .is_some_and(|name| !name.is_empty());
    if validate.foreach.is_some() {
        // Entries of the rule may mention the element that is bound when they run.
        for name in ["element", "elementIndex"] {
            let slot = pools.slot(name);
            scope.add_slot(name, slot);
        }
    }
    let entries = context::lower_entries(&rule.context, policy.source, false, &mut scope, pools)
        .map_err(|error| invalid(error.message, error.span))?;
    let mut loaders = entries.loaders;
    let preconditions = match &rule.preconditions {
        None => NONE,
        Some(tree) => {
            let conditions =
                Conditions::read(tree).map_err(|error| invalid(error.to_string(), error.span))?;
            let block = lower_preconditions(&conditions, policy, &scope, pools);
            pools.generate(block).map_err(too_big)?
        }
    };
    let (kind, body, scope) = lower_body(policy, rule, validate, scope, &mut loaders, pools)?;
    let body = pools.generate(body).map_err(too_big)?;
    for (entry, loader) in loaders {
        let block = pools.generate(loader).map_err(too_big)?;
        if let Some(record) = pools.bundle.entries.get_mut(entry as usize) {
            record.block = U32::new(block);
        }
    }
    let (message_kind, message_text, message) = match (&validate.pod_security, kind) {
        // Kyverno does not look at the message of such a rule (docs/spec/pod-security.md §8).
        (Some(tree), BodyKind::PodSecurity) => {
            let (level, version) = (text_of(tree, "level"), text_of(tree, "version"));
            (MessageKind::Text, format!("{level}:{version}"), NONE)
        }
        _ => lower_message(validate, policy, &scope, pools),
    };
    let properties = lower_properties(rule, policy, &scope, pools);
    let properties = properties
        .map_or(Ok(NONE), |block| pools.generate(block))
        .map_err(too_big)?;
    Ok(RuleBlocks {
        matching,
        preconditions,
        body,
        kind,
        message,
        message_kind,
        message_text,
        properties,
    })
}

fn lower_preconditions(
    conditions: &Conditions,
    policy: &Policy,
    scope: &Scope,
    pools: &mut Pools<'_>,
) -> Block {
    let mut emitter = Emitter::new(policy.source, scope.clone(), pools);
    let (on_false, failed) = (emitter.block.label(), emitter.block.label());
    let wrapped = emitter.wrapping("failed to evaluate preconditions: ", false, failed);
    emitter.in_part("preconditions", |emitter| {
        emitter.conditions(conditions, Messages::OfFalse, on_false, wrapped);
    });
    emitter.block.push(Instruction::new(Op::ReturnTrue));
    emitter.block.place(on_false);
    emitter.block.push(Instruction::new(Op::ReturnFalse));
    end_failing(&mut emitter, failed);
    emitter.block
}

/// Ends a block whose errors arrive at `failed`.
fn end_failing(emitter: &mut Emitter<'_, '_>, failed: Label) {
    emitter.flush_cold();
    emitter.block.place(failed);
    emitter.block.push(Instruction::new(Op::ReturnFailed));
}

/// By the order in which Kyverno looks at the bodies: podSecurity, deny, pattern,
/// anyPattern, foreach. An assertion counts only where it is alone (docs/spec/assert.md §1).
fn lower_body(
    policy: &Policy,
    rule: &Rule,
    validate: &Validate,
    scope: Scope,
    loaders: &mut Loaders,
    pools: &mut Pools<'_>,
) -> Result<(BodyKind, Block, Scope), LowerError> {
    let too_big = |error: CodegenError| {
        let location = Location {
            source: policy.source,
            span: rule.tree.span,
        };
        let diagnostic = Diagnostic::error("rule-too-big", error.to_string(), location);
        LowerError::Invalid(Box::new(diagnostic))
    };
    let too_deep = |error: pattern::PatternError| {
        let location = Location {
            source: policy.source,
            span: error.span,
        };
        LowerError::Invalid(Box::new(Diagnostic::error(
            "pattern-too-deep",
            error.message,
            location,
        )))
    };
    let message = validate.message.as_ref().map(|message| &*message.value);
    if let Some(block) = cel::rule::lower_rule(policy, rule, message, loaders, pools) {
        return Ok((BodyKind::Cel, block, scope));
    }
    let mut emitter = Emitter::new(policy.source, scope, pools);
    let pod_security = validate.pod_security.as_ref().and_then(PodSecurity::read);
    if let Some(pod_security) = pod_security {
        emitter.pod_security_rule(&pod_security).map_err(too_big)?;
        return Ok((BodyKind::PodSecurity, emitter.block, emitter.scope));
    }
    if let Some(deny) = &validate.deny {
        lower_deny(deny, policy, &mut emitter)?;
        return Ok((BodyKind::Deny, emitter.block, emitter.scope));
    }
    let kind = match (&validate.pattern, &validate.any_pattern, &validate.foreach) {
        (Some(pattern), _, _) => {
            lower_pattern(pattern, &mut emitter).map_err(too_deep)?;
            BodyKind::Pattern
        }
        (None, Some(patterns), _) => {
            lower_any_pattern(patterns, validate, &mut emitter).map_err(too_deep)?;
            BodyKind::AnyPattern
        }
        (None, None, Some(foreach)) => {
            emitter.foreach_rule(foreach, loaders).map_err(|error| {
                let location = Location {
                    source: policy.source,
                    span: error.span,
                };
                LowerError::Invalid(Box::new(Diagnostic::error(
                    "invalid-foreach",
                    error.message,
                    location,
                )))
            })?;
            BodyKind::Foreach
        }
        (None, None, None) => {
            let Some(assert) = &validate.assert else {
                emitter.block.push(Instruction::new(Op::ReturnNothing));
                return Ok((BodyKind::Deny, emitter.block, emitter.scope));
            };
            emitter.assertion_rule(assert).map_err(|error| {
                let location = Location {
                    source: policy.source,
                    span: error.span,
                };
                let diagnostic = Diagnostic::error("invalid-assertion", error.message, location);
                LowerError::Invalid(Box::new(diagnostic.hint(error.hint)))
            })?;
            BodyKind::Assert
        }
    };
    Ok((kind, emitter.block, emitter.scope))
}

fn lower_pattern(
    pattern: &Tree,
    emitter: &mut Emitter<'_, '_>,
) -> Result<(), pattern::PatternError> {
    let resolved = match reference::resolve(pattern) {
        Ok(resolved) => unescape_keys(&resolved),
        Err(error) => {
            substitution_error(&error, emitter);
            return Ok(());
        }
    };
    let (mismatch, failed) = (emitter.block.label(), emitter.block.label());
    let wrapped = emitter.wrapping("variable substitution failed: ", false, failed);
    emitter.in_part("pattern", |emitter| {
        pattern::lower_pattern(&resolved, Subject::Resource, emitter, mismatch, wrapped)
    })?;
    emitter.block.push(Instruction::new(Op::ReturnPass));
    emitter.block.place(mismatch);
    emitter.block.push(Instruction::new(Op::ReturnError));
    end_failing(emitter, failed);
    Ok(())
}

type Lowered = Result<(), pattern::PatternError>;

fn lower_any_pattern(
    patterns: &Tree,
    validate: &Validate,
    emitter: &mut Emitter<'_, '_>,
) -> Lowered {
    let resolved = match reference::resolve(patterns) {
        Ok(resolved) => floats_only(&unescape_keys(&resolved)),
        Err(error) => {
            substitution_error(&error, emitter);
            return Ok(());
        }
    };
    let message = validate
        .message
        .as_ref()
        .map_or("", |message| &message.value);
    match &resolved.value {
        // Kyverno passes an empty list with the raw message of the rule.
        TreeValue::List(items) if items.is_empty() => fixed_text(0, message, emitter),
        TreeValue::List(items) => return lower_alternatives(items, emitter),
        _ => emitter.in_part("anyPattern", |emitter| {
            pattern::lower_computed_alternatives(&resolved, message, emitter);
        }),
    }
    Ok(())
}

fn lower_alternatives(items: &[Tree], emitter: &mut Emitter<'_, '_>) -> Lowered {
    let failed = emitter.block.label();
    let wrapped = emitter.wrapping("variable substitution failed: ", false, failed);
    let ends = |emitter: &mut Emitter<'_, '_>, index| {
        emitter
            .block
            .push(Instruction::new(Op::ReturnAlternative).c(index));
    };
    emitter.in_part("anyPattern", |emitter| {
        pattern::lower_any_pattern(items, Subject::Resource, emitter, ends, wrapped)
    })?;
    emitter
        .block
        .push(Instruction::new(Op::ReturnAlternativesFailed));
    end_failing(emitter, failed);
    Ok(())
}

/// An error that comes before the question whether there is a resource to look at.
fn substitution_error(error: &str, emitter: &mut Emitter<'_, '_>) {
    fixed_text(
        2,
        &format!("variable substitution failed: {error}"),
        emitter,
    );
}

fn fixed_text(status: u32, text: &str, emitter: &mut Emitter<'_, '_>) {
    let text = emitter.pools.text(text);
    emitter
        .block
        .push(Instruction::new(Op::ReturnText).b(status).c(text));
}

/// anyPattern goes through JSON once more, which makes every number a float64
/// (docs/spec/patterns.md §1).
pub(crate) fn floats_only(tree: &Tree) -> Tree {
    let value = match &tree.value {
        TreeValue::Int(number) => TreeValue::Float(*number as f64),
        TreeValue::List(items) => TreeValue::List(items.iter().map(floats_only).collect()),
        TreeValue::Map(members) => {
            let mut members = members.clone();
            members
                .iter_mut()
                .for_each(|member| member.value = floats_only(&member.value));
            TreeValue::Map(members)
        }
        other => other.clone(),
    };
    Tree::new(value, tree.span)
}

/// Without conditions a deny rule always fails; `any: []` never does (docs/spec/policies.md, case 33).
fn lower_deny(
    deny: &Tree,
    policy: &Policy,
    emitter: &mut Emitter<'_, '_>,
) -> Result<(), LowerError> {
    let conditions = match deny
        .get("conditions")
        .filter(|conditions| !conditions.is_null())
    {
        None => Conditions::List(Vec::new()),
        Some(tree) => Conditions::read(tree).map_err(|error| {
            let location = Location {
                source: policy.source,
                span: error.span,
            };
            LowerError::Invalid(Box::new(Diagnostic::error(
                "invalid-conditions",
                error.to_string(),
                location,
            )))
        })?,
    };
    let (passes, failed) = (emitter.block.label(), emitter.block.label());
    let wrapped = emitter.wrapping("failed to check deny conditions: ", false, failed);
    emitter.in_part("deny.conditions", |emitter| {
        emitter.conditions(&conditions, Messages::OfTrue, passes, wrapped);
    });
    emitter.block.push(Instruction::new(Op::ReturnDeny));
    emitter.block.place(passes);
    emitter.block.push(Instruction::new(Op::ReturnPass));
    end_failing(emitter, failed);
    Ok(())
}

/// The message as the outcome needs it (docs/spec/patterns.md §12; docs/spec/policies.md §8.1):
/// what it is, its text, and the block that computes it.
fn lower_message(
    validate: &Validate,
    policy: &Policy,
    scope: &Scope,
    pools: &mut Pools<'_>,
) -> (MessageKind, String, u32) {
    let Some(message) = validate
        .message
        .as_ref()
        .filter(|message| !message.value.is_empty())
    else {
        return (MessageKind::Absent, String::new(), NONE);
    };
    let document = Tree::new(
        TreeValue::String(message.value.as_str().into()),
        message.span,
    );
    let Ok(text) = reference::resolve_text(&message.value, &document) else {
        return (MessageKind::Unresolvable, String::new(), NONE);
    };
    if has_variable(&message.value)
        && let Some(block) = pools.message_block(message, &scope.for_message(), policy.source)
    {
        return (MessageKind::Computed, String::new(), block);
    }
    (
        MessageKind::Text,
        variable::unescape_variables(&text).into_owned(),
        NONE,
    )
}

/// Whether a text has variables, references or escapes of them in it.
fn is_changed_by_substitution(text: &str) -> bool {
    has_variable(text) || text.contains("\\{{") || text.contains("$(")
}

fn lower_properties(
    rule: &Rule,
    policy: &Policy,
    scope: &Scope,
    pools: &mut Pools<'_>,
) -> Option<Block> {
    if !rule
        .report_properties
        .iter()
        .any(|(_, value)| is_changed_by_substitution(&value.value))
    {
        return None;
    }
    let member = |(key, value): &(String, Spanned<String>)| Member {
        key: key.as_str().into(),
        key_span: value.span,
        value: Tree::new(TreeValue::String(value.value.as_str().into()), value.span),
    };
    let document = TreeValue::Map(rule.report_properties.iter().map(member).collect());
    let resolved = reference::resolve(&Tree::new(document, rule.tree.span)).ok()?;
    let mut emitter = Emitter::new(policy.source, scope.clone(), pools);
    let failed = emitter.block.label();
    let list = emitter.block.enter_list();
    emitter.block.push(Instruction::new(Op::ListBegin).a(list));
    for Member { key, value, .. } in resolved.as_map().unwrap_or_default() {
        let text = value.as_str().unwrap_or_default();
        let value = emitter.text_template(text, &format!("/{key}"), failed);
        emitter
            .block
            .push(Instruction::new(Op::ListPush).a(list).b(value.0));
    }
    let result = emitter.load(Instruction::new(Op::ListEnd).b(list));
    emitter
        .block
        .push(Instruction::new(Op::ReturnValue).a(result.0));
    end_failing(&mut emitter, failed);
    Some(emitter.block)
}
