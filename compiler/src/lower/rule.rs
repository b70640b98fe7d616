//! Lowering of a rule: its blocks and its message.

use kpvm_format::instruction::immediate::ReturnStatus;
use kpvm_format::instruction::immediate::{AlternativeIndex, ForeachDepth};
use kpvm_format::table::{BodyKind, MessageKind};
use kpvm_syntax::tree::{Member, Span, Tree, TreeValue};

use super::{LowerError, add_loaders};
use crate::diagnostic::Diagnostic;
use crate::frontend::condition::Messages;
use crate::frontend::emitter::Emitter;
use crate::frontend::foreach::Loaders;
use crate::frontend::pattern::Subject;
use crate::frontend::pod_security::PodSecurity;
use crate::frontend::scope::Scope;
use crate::frontend::template::floats_only;
use crate::frontend::template::is_changed_by_substitution;
use crate::frontend::template::{has_variable, unescape_keys};
use crate::frontend::{cel, context, matching, pattern, reference, variable};
use crate::ir::{Block, BlockId, Label, Module, Operation, RuleBlocks};
use crate::policy::condition::Conditions;
use crate::policy::model::{Policy, PolicyKind, Rule, Spanned, Validate};
use crate::policy::read::text_of;
use crate::source::Location;

/// The lowered body, message and context of a rule.
pub(super) struct LoweredRule {
    pub(super) blocks: RuleBlocks,
    pub(super) body: BodyKind,
    pub(super) message_kind: MessageKind,
    pub(super) message: String,
}

pub(super) fn lower_blocks(
    policy: &Policy,
    rule: &Rule,
    validate: &Validate,
    module: &mut Module,
) -> Result<LoweredRule, LowerError> {
    let at = |span: Span| Location {
        source: policy.source,
        span,
    };
    let invalid = |message: String, span: Span| {
        LowerError::Invalid(Box::new(Diagnostic::error(
            "invalid-rule",
            message,
            at(span),
        )))
    };
    let matching = matching::lower_matching(rule, policy.source, module);
    let matching = module.add(matching);
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
            let slot = module.slot(name);
            scope.add_slot(name, slot);
        }
    }
    let entries = context::lower_entries(&rule.context, policy.source, false, &mut scope, module)
        .map_err(|error| invalid(error.message, error.span))?;
    let mut loaders = entries.loaders;
    let preconditions = match &rule.preconditions {
        None => None,
        Some(tree) => {
            let conditions =
                Conditions::read(tree).map_err(|error| invalid(error.to_string(), error.span))?;
            let block = lower_preconditions(&conditions, policy, &scope, module);
            Some(module.add(block))
        }
    };
    let (kind, body, scope) = lower_body(policy, rule, validate, scope, &mut loaders, module)?;
    let body = module.add(body);
    add_loaders(loaders, module);
    let (message_kind, message, message_block) = match (&validate.pod_security, kind) {
        // Kyverno ignores the message of such a rule (docs/spec/pod-security.md §8).
        (Some(tree), BodyKind::PodSecurity) => {
            let (level, version) = (text_of(tree, "level"), text_of(tree, "version"));
            (MessageKind::Text, format!("{level}:{version}"), None)
        }
        _ => lower_message(validate, policy, &scope, module),
    };
    let properties = lower_properties(rule, policy, &scope, module);
    let properties = properties.map(|block| module.add(block));
    Ok(LoweredRule {
        blocks: RuleBlocks {
            matching,
            preconditions,
            body,
            message: message_block,
            properties,
        },
        body: kind,
        message_kind,
        message,
    })
}

fn lower_preconditions(
    conditions: &Conditions,
    policy: &Policy,
    scope: &Scope,
    module: &mut Module,
) -> Block {
    let mut emitter = Emitter::new(policy.source, scope.clone(), module);
    let (on_false, failed) = (emitter.block.label(), emitter.block.label());
    let wrapped = emitter.wrapping("failed to evaluate preconditions: ", false, failed);
    emitter.in_part("preconditions", |emitter| {
        emitter.conditions(conditions, Messages::OfFalse, on_false, wrapped);
    });
    emitter.block.push(Operation::ReturnTrue);
    emitter.block.place(on_false);
    emitter.block.push(Operation::ReturnFalse);
    end_failing(&mut emitter, failed);
    emitter.block
}

/// Ends a block whose errors arrive at `failed`.
fn end_failing(emitter: &mut Emitter<'_>, failed: Label) {
    emitter.flush_cold();
    emitter.block.place(failed);
    emitter.block.push(Operation::ReturnFailed {
        depth: ForeachDepth(0),
    });
}

/// In the order in which Kyverno checks the bodies: podSecurity, deny, pattern, anyPattern,
/// foreach. An assertion counts only if it is alone (docs/spec/assert.md §1).
fn lower_body(
    policy: &Policy,
    rule: &Rule,
    validate: &Validate,
    scope: Scope,
    loaders: &mut Loaders,
    module: &mut Module,
) -> Result<(BodyKind, Block, Scope), LowerError> {
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
    if let Some(block) = cel::rule::lower_rule(policy, rule, message, loaders, module) {
        return Ok((BodyKind::Cel, block, scope));
    }
    let mut emitter = Emitter::new(policy.source, scope, module);
    let pod_security = validate.pod_security.as_ref().and_then(PodSecurity::read);
    if let Some(pod_security) = pod_security {
        emitter.pod_security_rule(&pod_security);
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
                emitter.block.push(Operation::ReturnNothing);
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

fn lower_pattern(pattern: &Tree, emitter: &mut Emitter<'_>) -> Result<(), pattern::PatternError> {
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
    emitter.block.push(Operation::ReturnPass);
    emitter.block.place(mismatch);
    emitter.block.push(Operation::ReturnError {
        depth: ForeachDepth(0),
    });
    end_failing(emitter, failed);
    Ok(())
}

type Lowered = Result<(), pattern::PatternError>;

fn lower_any_pattern(patterns: &Tree, validate: &Validate, emitter: &mut Emitter<'_>) -> Lowered {
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
        TreeValue::List(items) if items.is_empty() => {
            fixed_text(ReturnStatus::Pass, message, emitter)
        }
        TreeValue::List(items) => return lower_alternatives(items, emitter),
        _ => emitter.in_part("anyPattern", |emitter| {
            pattern::lower_computed_alternatives(&resolved, message, emitter);
        }),
    }
    Ok(())
}

fn lower_alternatives(items: &[Tree], emitter: &mut Emitter<'_>) -> Lowered {
    let failed = emitter.block.label();
    let wrapped = emitter.wrapping("variable substitution failed: ", false, failed);
    let ends = |emitter: &mut Emitter<'_>, index| {
        emitter.block.push(Operation::ReturnAlternative {
            index: AlternativeIndex(index),
        });
    };
    emitter.in_part("anyPattern", |emitter| {
        pattern::lower_any_pattern(items, Subject::Resource, emitter, ends, wrapped)
    })?;
    emitter.block.push(Operation::ReturnAlternativesFailed {
        depth: ForeachDepth(0),
    });
    end_failing(emitter, failed);
    Ok(())
}

/// An error that comes before the check whether there is a resource.
fn substitution_error(error: &str, emitter: &mut Emitter<'_>) {
    fixed_text(
        ReturnStatus::ErrorWithoutResource,
        &format!("variable substitution failed: {error}"),
        emitter,
    );
}

fn fixed_text(status: ReturnStatus, text: &str, emitter: &mut Emitter<'_>) {
    let text = emitter.module.text(text);
    emitter.block.push(Operation::ReturnText { status, text });
}

/// Without conditions a deny rule always fails; `any: []` never does
/// (docs/spec/policies.md, case 33).
fn lower_deny(deny: &Tree, policy: &Policy, emitter: &mut Emitter<'_>) -> Result<(), LowerError> {
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
    emitter.block.push(Operation::ReturnDeny {
        depth: ForeachDepth(0),
    });
    emitter.block.place(passes);
    emitter.block.push(Operation::ReturnPass);
    end_failing(emitter, failed);
    Ok(())
}

/// The message as the outcome needs it (docs/spec/patterns.md §12; docs/spec/policies.md
/// §8.1): its kind, its text, and the block that computes it.
fn lower_message(
    validate: &Validate,
    policy: &Policy,
    scope: &Scope,
    module: &mut Module,
) -> (MessageKind, String, Option<BlockId>) {
    let Some(message) = validate
        .message
        .as_ref()
        .filter(|message| !message.value.is_empty())
    else {
        return (MessageKind::Absent, String::new(), None);
    };
    let document = Tree::new(
        TreeValue::String(message.value.as_str().into()),
        message.span,
    );
    let Ok(text) = reference::resolve_text(&message.value, &document) else {
        return (MessageKind::Unresolvable, String::new(), None);
    };
    if has_variable(&message.value)
        && let Some(block) = module.message_block(message, &scope.for_message(), policy.source)
    {
        return (MessageKind::Computed, String::new(), Some(block));
    }
    (
        MessageKind::Text,
        variable::unescape_variables(&text).into_owned(),
        None,
    )
}

fn lower_properties(
    rule: &Rule,
    policy: &Policy,
    scope: &Scope,
    module: &mut Module,
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
    let mut emitter = Emitter::new(policy.source, scope.clone(), module);
    let failed = emitter.block.label();
    let list = emitter.block.enter_list();
    emitter.block.push(Operation::ListBegin { list });
    for Member { key, value, .. } in resolved.as_map().unwrap_or_default() {
        let text = value.as_str().unwrap_or_default();
        let value = emitter.text_template(text, &format!("/{key}"), failed);
        emitter.block.push(Operation::ListPush { list, src: value });
    }
    let result = emitter.load(|dst| Operation::ListEnd { dst, list });
    emitter.block.push(Operation::ReturnValue { src: result });
    end_failing(&mut emitter, failed);
    Some(emitter.block)
}
