//! `validate.cel` of a rule (sheet 07, section 2): its preconditions, variables,
//! expressions and messages as one body and one loader for each variable.
//!
//! What does not compile is no error of the policy: as in Kyverno it fails where it is
//! evaluated. [`check`] says so before anything runs.

use kpvm::tree::{Member, Span, Tree, TreeValue};
use kpvm_format::cel::Root;
use kpvm_format::instruction::Op;
use kpvm_format::table::{self, SiteKind};
use zerocopy::little_endian::U32;

use super::lower::{self, Bindings, Source};
use super::{Environment, Program, Type, TypeError, compile, render_errors};
use crate::diagnostic::{Diagnostic, Severity};
use crate::frontend::emitter::{Emitter, Scope};
use crate::frontend::foreach::Loaders;
use crate::ir::{Block, Instruction, Label, Register, Site};
use crate::lower::Pools;
use crate::policy::model::{Policy, Rule};
use crate::source::{Location, SourceId};

/// The object whose fields are the variables of a rule.
pub(super) const VARIABLES: &str = "kubernetes.variables";

/// A text of a rule that is CEL, and where it stands.
#[derive(Debug, Clone, Copy)]
pub struct Text<'t> {
    /// The text.
    pub text: &'t str,
    /// Its place.
    pub span: Span,
}

pub(super) fn text_at<'t>(tree: &'t Tree, key: &str) -> Option<Text<'t>> {
    let value = tree.get(key)?;
    let text = value.as_str().filter(|text| !text.is_empty())?;
    Some(Text {
        text,
        span: value.span,
    })
}

fn items<'t>(tree: Option<&'t Tree>, key: &str) -> &'t [Tree] {
    let list = tree.and_then(|tree| tree.get(key));
    list.and_then(Tree::as_list).unwrap_or_default()
}

/// What a rule's expressions may use, its variables included.
pub(super) struct Scene {
    pub(super) environment: Environment,
    pub(super) bindings: Bindings,
}

impl Scene {
    fn new(has_params: bool) -> Self {
        let mut scene = Self {
            environment: Environment::kubernetes(),
            bindings: Bindings::default(),
        };
        let object = |name: &str| Type::Object(name.to_owned());
        scene.declare("object", Type::Dyn, Source::Root(Root::Object));
        scene.declare("oldObject", Type::Dyn, Source::Root(Root::OldObject));
        let request = object("kubernetes.AdmissionRequest");
        scene.declare("request", request, Source::Root(Root::Request));
        let namespace = object("kubernetes.Namespace");
        scene.declare("namespaceObject", namespace, Source::Root(Root::Namespace));
        if has_params {
            scene.declare("params", Type::Dyn, Source::Root(Root::Params));
        }
        let authorization =
            |name: &str| Type::Opaque(format!("kubernetes.authorization.{name}"), Vec::new());
        scene.declare(
            "authorizer",
            authorization("Authorizer"),
            Source::Root(Root::Authorizer),
        );
        let resource = authorization("ResourceCheck");
        scene.declare(
            "authorizer.requestResource",
            resource,
            Source::Root(Root::RequestResource),
        );
        scene.environment.declare_object(VARIABLES);
        scene.declare("variables", object(VARIABLES), Source::Variables);
        scene
    }

    pub(super) fn declare(&mut self, name: &str, ty: Type, source: Source) {
        self.environment.declare(name, ty);
        self.bindings.sources.insert(name.to_owned(), source);
    }

    /// Makes a variable known to what comes behind it.
    fn add_variable(&mut self, name: &str, program: Option<&Program>) {
        // Sheet 07, section 2.5: other types are not kept.
        let ty = match program.map(Program::result) {
            Some(Type::Optional(_) | Type::Object(_) | Type::Opaque(..) | Type::Type(_)) | None => {
                Type::Dyn
            }
            Some(other) => other.clone(),
        };
        self.environment.declare_field(VARIABLES, name, ty);
    }

    /// An expression of a message: `authorizer` is not there (sheet 07, section 2.3).
    fn compile_message(&self, text: &str) -> Result<Program, Vec<TypeError>> {
        let mut scene = Scene {
            environment: self.environment.clone(),
            bindings: Bindings::default(),
        };
        scene.environment.forget("authorizer");
        scene.environment.forget("authorizer.requestResource");
        scene.compile(text, Some(&Type::String))
    }

    /// An expression that has to be of a type.
    pub(super) fn compile(
        &self,
        text: &str,
        wanted: Option<&Type>,
    ) -> Result<Program, Vec<TypeError>> {
        let program = compile(text, &self.environment)?;
        match wanted {
            Some(wanted) if program.result() != wanted => {
                let found = program.result();
                let hint = (found.is_dyn() && *wanted == Type::Bool)
                    .then(|| "write == true behind it, or compare it otherwise".to_owned());
                Err(vec![TypeError {
                    at: 0,
                    message: format!("must evaluate to {wanted} but got {found}"),
                    hint,
                }])
            }
            _ => Ok(program),
        }
    }
}

fn has_params(cel: &Tree) -> bool {
    let given = |key: &str| cel.get(key).is_some_and(|value| !value.is_null());
    given("paramKind") && given("paramRef")
}

/// What Kyverno says of an expression that does not compile (sheet 07, section 2.3).
fn compilation_error(text: &str, errors: &[TypeError]) -> String {
    match errors {
        [only] if only.message.starts_with("must evaluate to ") => {
            format!("compilation error: {}", only.message)
        }
        errors => format!(
            "compilation error: compilation failed: {}",
            render_errors(text, errors)
        ),
    }
}

/// Reports the expressions of a policy's written rules that do not compile, each with
/// its place in `source`, the text of the policy's file.
pub fn check(policy: &Policy, source: &str, severity: Severity, diagnostics: &mut Vec<Diagnostic>) {
    for rule in &policy.rules {
        let cel = rule
            .validate
            .as_ref()
            .and_then(|validate| validate.cel.as_ref());
        let Some(cel) = cel else { continue };
        let mut report = |text: Text<'_>, errors: Vec<TypeError>| {
            for error in errors {
                let location = Location {
                    source: policy.source,
                    span: place_in_scalar(source, text.span, text.text, error.at as usize),
                };
                let message = format!("CEL: {}", error.message);
                let mut diagnostic = match severity {
                    Severity::Error => Diagnostic::error("cel-expression", message, location),
                    _ => Diagnostic::warning("cel-expression", message, location),
                };
                if let Some(hint) = error.hint {
                    diagnostic = diagnostic.hint(hint);
                }
                let subject = format!("{}/{}", policy.name.value, rule.name.value);
                diagnostics.push(diagnostic.subject(subject));
            }
        };
        let mut scene = Scene::new(has_params(cel));
        for variable in items(Some(cel), "variables") {
            let name = variable
                .get("name")
                .and_then(Tree::as_str)
                .unwrap_or_default();
            let program = text_at(variable, "expression").and_then(|text| {
                let compiled = scene.compile(text.text, None);
                compiled.map_err(|errors| report(text, errors)).ok()
            });
            scene.add_variable(name, program.as_ref());
        }
        let conditions = rule.cel_preconditions.as_ref().and_then(Tree::as_list);
        let conditions = conditions.unwrap_or_default().iter();
        let wanted = conditions
            .chain(items(Some(cel), "expressions"))
            .filter_map(|tree| Some((text_at(tree, "expression")?, Some(Type::Bool))));
        let messages = items(Some(cel), "expressions")
            .iter()
            .filter_map(|tree| text_at(tree, "messageExpression"));
        for text in messages {
            if let Err(errors) = scene.compile_message(text.text) {
                report(text, errors);
            }
        }
        let annotations = items(Some(cel), "auditAnnotations")
            .iter()
            .filter_map(|tree| Some((text_at(tree, "valueExpression")?, None)));
        for (text, ty) in wanted.chain(annotations) {
            if let Err(errors) = scene.compile(text.text, ty.as_ref()) {
                report(text, errors);
            }
        }
    }
}

/// Where byte `at` of a text stands in the file in which it is written as the YAML
/// scalar at `span`: behind quotes, escapes, indentation and folds.
pub fn place_in_scalar(source: &str, span: Span, text: &str, at: usize) -> Span {
    let Some(raw) = source.get(span.start as usize..span.end as usize) else {
        return span;
    };
    let mut rest = raw;
    if rest.starts_with(['|', '>']) {
        rest = rest.split_once('\n').map_or("", |(_, rest)| rest);
    } else if rest.starts_with(['"', '\'']) {
        rest = rest.get(1..).unwrap_or("");
    }
    let is_double = raw.starts_with('"');
    let is_single = raw.starts_with('\'');
    let before = text.get(..at).unwrap_or(text);
    let next_is_blank = text
        .get(at..)
        .and_then(|rest| rest.chars().next())
        .is_none_or(char::is_whitespace);
    for character in before.chars() {
        if character.is_whitespace() {
            rest = match rest.strip_prefix("\\n").filter(|_| is_double) {
                Some(after) => after,
                None => rest.trim_start(),
            };
            continue;
        }
        rest = rest.trim_start();
        if is_double && rest.starts_with('\\') || is_single && rest.starts_with("''") {
            rest = rest.get(1..).unwrap_or("");
        }
        match rest.strip_prefix(character) {
            Some(after) => rest = after,
            // Written with an escape of another kind.
            None => return span,
        }
    }
    if !next_is_blank {
        rest = rest.trim_start();
    }
    let start = span.start + (raw.len() - rest.len()) as u32;
    let length = rest.chars().next().map_or(0, char::len_utf8) as u32;
    Span {
        start,
        end: start + length,
    }
}

/// Lowers the body of a rule with `validate.cel`.
pub fn lower_rule(
    policy: &Policy,
    rule: &Rule,
    cel: &Tree,
    message: Option<&str>,
    loaders: &mut Loaders,
    pools: &mut Pools<'_>,
) -> Block {
    let mut scene = Scene::new(has_params(cel));
    for variable in items(Some(cel), "variables") {
        lower_variable(variable, policy.source, &mut scene, loaders, pools);
    }
    let mut emitter = Emitter::new(policy.source, Scope::default(), pools);
    let params = has_params(cel).then(|| begin_params(cel, &mut emitter));
    let mut cold: Vec<Cold> = Vec::new();
    if let Some(conditions) = &rule.cel_preconditions {
        lower_preconditions(conditions, &scene, &mut emitter);
    }
    for (number, expression) in items(Some(cel), "expressions").iter().enumerate() {
        let Some(text) = text_at(expression, "expression") else {
            continue;
        };
        let location = Location {
            source: policy.source,
            span: text.span,
        };
        let part = format!("validate.cel.expressions[{number}]");
        let site = Site::new(SiteKind::Structure, &part, location);
        let (on_false, on_error) = (emitter.block.label(), emitter.block.label());
        begin(text.text, &mut emitter);
        match scene.compile(text.text, Some(&Type::Bool)) {
            Ok(program) => {
                lower::lower_condition(&program, &scene.bindings, &mut emitter, on_false, on_error)
            }
            Err(errors) => {
                return_text(&compilation_error(text.text, &errors), &site, &mut emitter);
                let behind = emitter.block.label();
                emitter.block.place(behind);
            }
        }
        let own = text_at(expression, "message").map(|message| message.text);
        let fallback = own.or(message).map(str::trim);
        let fallback = match fallback.filter(|message| !message.is_empty()) {
            Some(message) => message.to_owned(),
            None => format!("failed expression: {}", text.text.trim()),
        };
        cold.push(Cold {
            on_false,
            on_error,
            expression: text.text.to_owned(),
            message: text_at(expression, "messageExpression")
                .and_then(|text| scene.compile_message(text.text).ok()),
            fallback,
            site,
        });
    }
    if let Some(params) = &params {
        params.next(&mut emitter);
    }
    emitter.block.push(Instruction::new(Op::ReturnPass));
    for cold in cold {
        cold.lower(&scene, &mut emitter);
    }
    if let Some(params) = params {
        params.fail(&mut emitter);
    }
    emitter.block
}

/// The loop over the parameters of a rule: each is evaluated by itself, and the first
/// that does not hold decides (sheet 07, section 2.2, steps 7 to 10).
struct Params {
    slot: u32,
    start: Label,
    item: Register,
    end: Label,
    failed: Label,
}

fn begin_params(cel: &Tree, emitter: &mut Emitter<'_, '_>) -> Params {
    let member = |key: &str| {
        let value = cel.get(key).unwrap_or(cel);
        Member {
            key: key.into(),
            key_span: value.span,
            value: value.clone(),
        }
    };
    let wanted = TreeValue::Map([member("paramKind"), member("paramRef")].into());
    let wanted = emitter.constant(&wanted);
    let block = &mut emitter.block;
    let params = Params {
        failed: block.label(),
        start: block.label(),
        end: block.label(),
        item: Register(0),
        slot: 0,
    };
    let all = block.register();
    let collect = Instruction::new(Op::CelParams).a(all.0).b(wanted.0);
    block.push(collect.target(params.failed));
    let params = Params {
        slot: block.enter_loop(),
        item: block.register(),
        ..params
    };
    let begin = Instruction::new(Op::LoopBegin).a(params.slot).b(all.0);
    block.push(begin.e(params.item.0).target(params.end));
    block.place(params.start);
    block.push(Instruction::new(Op::CelBindParams).a(params.item.0));
    params
}

impl Params {
    fn next(&self, emitter: &mut Emitter<'_, '_>) {
        let next = Instruction::new(Op::LoopNext).a(self.slot).e(self.item.0);
        emitter.block.push(next.target(self.start));
        emitter.block.place(self.end);
        emitter.block.leave_loop();
    }

    fn fail(&self, emitter: &mut Emitter<'_, '_>) {
        emitter.block.place(self.failed);
        wrap("error in parameterized resource: ", emitter);
        emitter.block.push(Instruction::new(Op::ReturnErrorText));
    }
}

/// What becomes of an expression that does not hold or fails.
struct Cold {
    on_false: Label,
    on_error: Label,
    expression: String,
    message: Option<Program>,
    fallback: String,
    site: Site,
}

impl Cold {
    fn lower(self, scene: &Scene, emitter: &mut Emitter<'_, '_>) {
        emitter.block.place(self.on_false);
        if let Some(message) = &self.message {
            let unusable = emitter.block.label();
            let value = lower::lower(message, &scene.bindings, emitter, unusable);
            emitter.block.push(
                Instruction::new(Op::ReturnFailValue)
                    .a(value.0)
                    .site(self.site.clone()),
            );
            emitter.block.place(unusable);
        }
        return_text(&self.fallback, &self.site, emitter);
        emitter.block.place(self.on_error);
        wrap(&failed_prefix(&self.expression), emitter);
        emitter
            .block
            .push(Instruction::new(Op::ReturnFailError).site(self.site));
    }
}

fn failed_prefix(expression: &str) -> String {
    format!("expression '{expression}' resulted in error: ")
}

/// Puts a text in front of the error's and goes on behind.
pub(super) fn wrap(prefix: &str, emitter: &mut Emitter<'_, '_>) {
    let behind = emitter.block.label();
    let text = emitter.pools.text(prefix);
    emitter
        .block
        .push(Instruction::new(Op::WrapError).c(text).target(behind));
    emitter.block.place(behind);
}

pub(super) fn begin(text: &str, emitter: &mut Emitter<'_, '_>) {
    let text = emitter.pools.text(text);
    emitter.block.push(Instruction::new(Op::CelBegin).c(text));
}

fn return_text(text: &str, site: &Site, emitter: &mut Emitter<'_, '_>) {
    let text = emitter.pools.text(text);
    emitter.block.push(
        Instruction::new(Op::ReturnFailText)
            .c(text)
            .site(site.clone()),
    );
}

/// A variable and its loader (sheet 07, section 2.5).
fn lower_variable(
    variable: &Tree,
    source: SourceId,
    scene: &mut Scene,
    loaders: &mut Loaders,
    pools: &mut Pools<'_>,
) {
    let name = variable
        .get("name")
        .and_then(Tree::as_str)
        .unwrap_or_default();
    let text = text_at(variable, "expression").map_or("", |text| text.text);
    let program = scene.compile(text, None);
    let mut emitter = Emitter::new(source, Scope::default(), pools);
    let failed = emitter.block.label();
    match &program {
        Ok(program) => {
            let value = lower::lower(program, &scene.bindings, &mut emitter, failed);
            emitter
                .block
                .push(Instruction::new(Op::ReturnValue).a(value.0));
            emitter.block.place(failed);
            let prefix = format!("composited variable \"{name}\" fails to evaluate: ");
            wrap(&prefix, &mut emitter);
        }
        Err(errors) => {
            let text = format!(
                "composited variable \"{name}\" fails to compile: compilation failed: {}",
                render_errors(text, errors)
            );
            emitter.fail(&text, failed);
            emitter.block.place(failed);
        }
    }
    emitter.block.push(Instruction::new(Op::ReturnFailed));
    let block = emitter.block;
    let place = pools.place(Location {
        source,
        span: variable.span,
    });
    let entry = add_entry(place, pools);
    loaders.push((entry, block));
    scene.add_variable(name, program.as_ref().ok());
    scene.bindings.variables.insert(name.to_owned(), entry);
}

/// The entry of a variable; its block is filled in when the loader is generated.
pub(super) fn add_entry(place: table::Place, pools: &mut Pools<'_>) -> u32 {
    let slot = pools.slot("");
    let entry = pools.bundle.entries.len() as u32;
    pools.bundle.entries.push(table::Entry {
        slot: U32::new(slot),
        block: U32::ZERO,
        nested: 0,
    });
    pools.bundle.entry_places.push(place);
    entry
}

/// All are evaluated: one that is false decides, whatever errors others had (sheet 07,
/// section 2.7). No namespace is known to them.
fn lower_preconditions(conditions: &Tree, scene: &Scene, emitter: &mut Emitter<'_, '_>) {
    let on_false = emitter.block.label();
    let errors = emitter.block.enter_list();
    emitter
        .block
        .push(Instruction::new(Op::ListBegin).a(errors));
    let mut bindings = scene.bindings.clone();
    bindings
        .sources
        .insert("namespaceObject".into(), Source::Null);
    for condition in conditions.as_list().unwrap_or_default() {
        let Some(text) = text_at(condition, "expression") else {
            continue;
        };
        let (failed, next) = (emitter.block.label(), emitter.block.label());
        let caught = emitter.block.label();
        begin(text.text, emitter);
        match scene.compile(text.text, Some(&Type::Bool)) {
            Ok(program) => {
                lower::lower_condition(&program, &bindings, emitter, on_false, failed);
                emitter.block.jump(next);
                emitter.block.place(failed);
                let prefix = emitter.pools.text(&failed_prefix(text.text));
                emitter
                    .block
                    .push(Instruction::new(Op::WrapError).c(prefix).target(caught));
            }
            Err(problems) => {
                emitter.fail(&compilation_error(text.text, &problems), caught);
            }
        }
        emitter.block.place(caught);
        let error = emitter.constant(&TreeValue::Null);
        let copy = emitter.block.register();
        emitter.assign(copy, error);
        emitter.block.push(Instruction::new(Op::CelCatch).a(copy.0));
        emitter
            .block
            .push(Instruction::new(Op::ListPush).a(errors).b(copy.0));
        emitter.block.place(next);
    }
    let (failed, held) = (emitter.block.label(), emitter.block.label());
    emitter
        .block
        .push(Instruction::new(Op::CelRaiseAll).a(errors).target(failed));
    emitter.block.jump(held);
    emitter.block.place(failed);
    emitter.block.push(Instruction::new(Op::ReturnFailError));
    emitter.block.place(on_false);
    let text = emitter.pools.text("cel preconditions not met");
    emitter
        .block
        .push(Instruction::new(Op::ReturnText).b(3).c(text));
    emitter.block.place(held);
    emitter.block.leave_list();
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The column inside YAML strings of every style.
    #[test]
    fn places_inside_scalars() {
        let cases = [
            ("plain", "a: size(x) == nope", 3, "size(x) == nope", "nope"),
            (
                "double quoted",
                "a: \"'x' == \\\"y\\\" + nope\"",
                3,
                "'x' == \"y\" + nope",
                "nope",
            ),
            (
                "single quoted",
                "a: '''x'' == nope'",
                3,
                "'x' == nope",
                "nope",
            ),
            (
                "literal",
                "a: |\n  one &&\n  nope\n",
                3,
                "one &&\nnope\n",
                "nope",
            ),
            (
                "folded",
                "a: >-\n    one &&\n    nope",
                3,
                "one && nope",
                "nope",
            ),
            (
                "plain over lines",
                "a: one &&\n   nope",
                3,
                "one && nope",
                "nope",
            ),
        ];
        for (style, source, start, text, part) in cases {
            let span = Span {
                start,
                end: source.len() as u32,
            };
            let at = text.find(part).unwrap();
            let found = place_in_scalar(source, span, text, at);
            let shown = &source[found.start as usize..];
            assert!(shown.starts_with(part), "{style}: {shown:?}");
        }
    }
}
