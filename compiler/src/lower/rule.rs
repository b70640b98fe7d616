//! A rule in, its blocks out.

use kpvm_format::instruction::Op;
use kpvm_format::table::{BodyKind, MessageKind, NONE};
use kpvm_syntax::tree::{Member, Span, Tree, TreeValue};
use zerocopy::little_endian::U32;

use super::LowerError;
use crate::codegen::CodegenError;
use crate::diagnostic::Diagnostic;
use crate::frontend::condition::Messages;
use crate::frontend::emitter::Emitter;
use crate::frontend::foreach::Loaders;
use crate::frontend::pattern::Subject;
use crate::frontend::pod_security::PodSecurity;
use crate::frontend::pools::Pools;
use crate::frontend::scope::Scope;
use crate::frontend::template::floats_only;
use crate::frontend::template::is_changed_by_substitution;
use crate::frontend::template::{has_variable, unescape_keys};
use crate::frontend::{cel, context, matching, pattern, reference, variable};
use crate::ir::{Block, Instruction, Label};
use crate::policy::condition::Conditions;
use crate::policy::model::{Policy, PolicyKind, Rule, Spanned, Validate};
use crate::policy::read::text_of;
use crate::source::Location;

/// The blocks of a rule, with what else its record says of them.
pub(super) struct RuleBlocks {
    pub(super) matching: u32,
    pub(super) preconditions: u32,
    pub(super) body: u32,
    pub(super) kind: BodyKind,
    pub(super) message: u32,
    pub(super) message_kind: MessageKind,
    pub(super) message_text: String,
    pub(super) properties: u32,
}

pub(super) fn lower_blocks(
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
