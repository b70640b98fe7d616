//! Lowering: one checked policy in, its rules and their code in the bundle out.

use std::collections::HashMap;

use kpvm::limits::Limits;
use kpvm::tree::{Member, Span, Tree, TreeValue};
use kpvm_format::BundleBuilder;
use kpvm_format::instruction::Op;
use kpvm_format::symbol::SymbolId;
use kpvm_format::table::{self, BodyKind, MessageKind, NONE, PolicyFlags, Range, RuleFlags};
use zerocopy::little_endian::U32;

use crate::codegen;
use crate::diagnostic::Diagnostic;
use crate::frontend::leaf::Leaves;
use crate::frontend::{matching, pattern, reference, variable};
use crate::ir::{Block, Instruction};
use crate::optimise::optimise;
use crate::policy::autogen;
use crate::policy::condition::Conditions;
use crate::policy::kind_selector::KindSelector;
use crate::policy::model::{
    ApplyRules, FailureActionOverride, Filter, Policy, PolicyKind, Rule, Validate,
};
use crate::source::{Location, Sources};

/// The bundle under construction, with everything that gives equal entries equal numbers.
pub struct Pools<'b> {
    /// The bundle.
    pub bundle: &'b mut BundleBuilder,
    /// The leaf predicates.
    pub leaves: &'b mut Leaves,
    /// The limits of the compiler.
    pub limits: &'b Limits,
    paths: &'b mut HashMap<(u32, SymbolId), u32>,
    texts: &'b mut HashMap<String, u32>,
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
}

/// Why a rule has no code.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum LowerError {
    /// The rule uses something that is not compiled yet.
    Unsupported(Unsupported),
    /// The rule can never be compiled.
    Invalid(Diagnostic),
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
        let overrides = self.action_overrides(&policy.failure_action_overrides, limits);
        let namespace = match policy.kind {
            PolicyKind::ClusterPolicy => "",
            PolicyKind::Policy => policy
                .namespace
                .as_deref()
                .filter(|name| !name.is_empty())
                .unwrap_or("default"),
        };
        let entry = table::Policy {
            name: self.bundle.text(&policy.name.value),
            namespace: self.bundle.text(namespace),
            flags: policy_flags(policy),
            rules,
            overrides,
        };
        self.bundle.policies.push(entry);
    }

    fn pools<'b>(&'b mut self, limits: &'b Limits) -> Pools<'b> {
        Pools {
            bundle: &mut self.bundle,
            leaves: &mut self.leaves,
            limits,
            paths: &mut self.paths,
            texts: &mut self.texts,
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
        let (kind, mut body) = lower_body(policy, validate, &mut self.pools(limits))?;
        let mut matching = matching::lower_matching(rule, &mut self.pools(limits));
        optimise(&mut body);
        optimise(&mut matching);
        let too_big = |error: codegen::CodegenError| {
            let location = Location {
                source: policy.source,
                span: rule.tree.span,
            };
            LowerError::Invalid(
                Diagnostic::error("rule-too-big", error.to_string(), location)
                    .hint("split the rule into several"),
            )
        };
        let match_block =
            codegen::generate(&matching, sources, &mut self.bundle).map_err(too_big)?;
        let body_block = codegen::generate(&body, sources, &mut self.bundle).map_err(too_big)?;
        let (message_kind, message) = lower_message(kind, validate);
        let entry = table::Rule {
            policy: U32::new(policy_number),
            name: self.bundle.text(&rule.name.value),
            match_block: U32::new(match_block),
            body_block: U32::new(body_block),
            body: kind as u8,
            flags: rule_flags(policy, validate, indexed.generated),
            message_kind: message_kind as u8,
            message: self.bundle.text(&message),
            kinds: self.index_kinds(&indexed.kinds),
            dropped_kinds: self.index_kinds(&indexed.dropped_kinds),
            overrides: self.action_overrides(&validate.failure_action_overrides, limits),
            properties: self.properties(rule),
        };
        self.bundle.rules.push(entry);
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

    fn action_overrides(&mut self, overrides: &[FailureActionOverride], limits: &Limits) -> Range {
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
                let mut pools = self.pools(limits);
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

/// The rules of a policy with the kinds for which each is tried: Kyverno computes the
/// rules anew for each resource's kind (sheet 01, section 12.2); here every rule that
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
    if let Some(entry) = rule.context.first() {
        return unsupported("a context entry", entry.span);
    }
    let parts = [
        ("preconditions", &rule.preconditions),
        ("celPreconditions", &rule.cel_preconditions),
        ("validate.podSecurity", &validate.pod_security),
        ("validate.cel", &validate.cel),
        ("validate.manifests", &validate.manifests),
        ("validate.foreach", &validate.foreach),
        ("validate.assert", &validate.assert),
    ];
    for (what, part) in parts {
        if let Some(part) = part {
            return unsupported(what, part.span);
        }
    }
    let texts = validate
        .message
        .iter()
        .chain(rule.report_properties.iter().map(|(_, value)| value));
    for text in texts {
        if contains_variable(&text.value) {
            return unsupported("a variable {{ }}", text.span);
        }
    }
    Ok(())
}

/// By the order in which Kyverno looks at the bodies: deny, pattern, anyPattern.
fn lower_body(
    policy: &Policy,
    validate: &Validate,
    pools: &mut Pools<'_>,
) -> Result<(BodyKind, Block), LowerError> {
    if let Some(deny) = &validate.deny {
        return Ok((BodyKind::Deny, lower_deny(deny)?));
    }
    let (kind, body) = match (&validate.pattern, &validate.any_pattern) {
        (Some(pattern), _) => (BodyKind::Pattern, pattern),
        (None, Some(patterns)) => (BodyKind::AnyPattern, patterns),
        (None, None) => {
            return unsupported(
                "a validate rule without pattern, anyPattern or deny",
                validate.span,
            );
        }
    };
    if let Some(span) = find_variable(body) {
        return unsupported("a variable {{ }}", span);
    }
    let resolved = match reference::resolve(body) {
        Ok(resolved) => unescape(&resolved),
        Err(error) => {
            return Ok((kind, substitution_error(&error, pools)));
        }
    };
    let lowered = match kind {
        BodyKind::AnyPattern => lower_any_pattern(policy, validate, &resolved, pools),
        BodyKind::Pattern | BodyKind::Deny => {
            pattern::lower_pattern(&resolved, policy.source, pools)
        }
    };
    let block = lowered.map_err(|error| {
        let location = Location {
            source: policy.source,
            span: error.span,
        };
        LowerError::Invalid(Diagnostic::error(
            "pattern-too-deep",
            error.message,
            location,
        ))
    })?;
    Ok((kind, block))
}

fn lower_any_pattern(
    policy: &Policy,
    validate: &Validate,
    patterns: &Tree,
    pools: &mut Pools<'_>,
) -> Result<Block, pattern::PatternError> {
    let floats = floats_only(patterns);
    let go_kind = match &floats.value {
        TreeValue::List(items) if items.is_empty() => {
            // Kyverno passes an empty list with the raw message of the rule.
            let message = validate
                .message
                .as_ref()
                .map_or("", |message| &message.value);
            return Ok(fixed_text(0, message, pools));
        }
        TreeValue::List(items) => return pattern::lower_any_pattern(items, policy.source, pools),
        TreeValue::Map(_) => "object",
        TreeValue::String(_) => "string",
        TreeValue::Bool(_) => "bool",
        TreeValue::Null | TreeValue::Int(_) | TreeValue::Float(_) => "number",
    };
    let error = format!(
        "failed to deserialize anyPattern, expected type array: json: cannot unmarshal {go_kind} into Go value of type []interface {{}}"
    );
    Ok(fixed_error(&error, pools))
}

/// An error that comes before the question whether there is a resource to look at.
fn substitution_error(error: &str, pools: &mut Pools<'_>) -> Block {
    fixed_text(2, &format!("variable substitution failed: {error}"), pools)
}

fn fixed_error(text: &str, pools: &mut Pools<'_>) -> Block {
    fixed_text(1, text, pools)
}

fn fixed_text(status: u32, text: &str, pools: &mut Pools<'_>) -> Block {
    let mut block = Block::new();
    let text = pools.text(text);
    block.push(Instruction::new(Op::ReturnText).b(status).c(text));
    block
}

/// anyPattern goes through JSON once more, which makes every number a float64
/// (sheet 02, section 1).
fn floats_only(tree: &Tree) -> Tree {
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

fn contains_variable(text: &str) -> bool {
    !variable::scan(text).is_empty()
}

/// Every `\{{` made `{{`, as the substitution of variables leaves it.
fn unescape(tree: &Tree) -> Tree {
    let text = |text: &str| {
        variable::unescape_variables(text)
            .into_owned()
            .into_boxed_str()
    };
    let value = match &tree.value {
        TreeValue::String(value) => TreeValue::String(text(value)),
        TreeValue::List(items) => TreeValue::List(items.iter().map(unescape).collect()),
        TreeValue::Map(members) => TreeValue::Map(
            members
                .iter()
                .map(|member| Member {
                    key: text(&member.key),
                    key_span: member.key_span,
                    value: unescape(&member.value),
                })
                .collect(),
        ),
        other => other.clone(),
    };
    Tree::new(value, tree.span)
}

fn find_variable(tree: &Tree) -> Option<Span> {
    match &tree.value {
        TreeValue::String(text) => contains_variable(text).then_some(tree.span),
        TreeValue::List(items) => items.iter().find_map(find_variable),
        TreeValue::Map(members) => members.iter().find_map(|member| {
            contains_variable(&member.key)
                .then_some(member.key_span)
                .or_else(|| find_variable(&member.value))
        }),
        TreeValue::Null | TreeValue::Bool(_) | TreeValue::Int(_) | TreeValue::Float(_) => None,
    }
}

/// Without conditions a deny rule always fails; `any: []` never does (sheet 01, case 33).
fn lower_deny(deny: &Tree) -> Result<Block, LowerError> {
    let conditions = deny
        .get("conditions")
        .filter(|conditions| !conditions.is_null());
    let holds = match conditions {
        None => true,
        Some(tree) => match Conditions::read(tree) {
            Ok(Conditions::List(list)) if list.is_empty() => true,
            Ok(Conditions::AnyAll(block)) if block.all.as_ref().is_none_or(Vec::is_empty) => {
                match &block.any {
                    None => true,
                    Some(any) if any.is_empty() => false,
                    Some(_) => return unsupported("validate.deny.conditions", tree.span),
                }
            }
            _ => return unsupported("validate.deny.conditions", tree.span),
        },
    };
    let mut block = Block::new();
    block.push(Instruction::new(if holds {
        Op::ReturnDeny
    } else {
        Op::ReturnPass
    }));
    Ok(block)
}

/// The message as the outcome needs it (sheet 02, section 12; sheet 01, section 8.1).
fn lower_message(kind: BodyKind, validate: &Validate) -> (MessageKind, String) {
    let Some(message) = validate
        .message
        .as_ref()
        .filter(|message| !message.value.is_empty())
    else {
        return (MessageKind::Absent, String::new());
    };
    let document = Tree::new(
        TreeValue::String(message.value.as_str().into()),
        message.span,
    );
    let Ok(text) = reference::resolve_text(&message.value, &document) else {
        return (MessageKind::Unresolvable, String::new());
    };
    let mut text = variable::unescape_variables(&text).into_owned();
    if kind != BodyKind::Deny && !text.ends_with('.') {
        text.push('.');
    }
    (MessageKind::Text, text)
}
