//! `validate.cel` of a rule (docs/spec/cel.md §2): its preconditions, variables,
//! expressions and messages as one body and a loader for each variable.
//!
//! An expression that does not compile is not an error of the policy: as in Kyverno it
//! fails when it is evaluated. [`check`] reports it before anything runs.

use kpvm_format::cel::Root;
use kpvm_format::instruction::LoopSlot;
use kpvm_format::instruction::immediate::{
    ErrorList, ExpressionNumber, ForeachDepth, MessageForm, ParametersFor, ReturnStatus,
};
use kpvm_format::table::SiteKind;
use kpvm_syntax::tree::{Member, Span, Tree, TreeValue};

use super::lower::{self, Bindings, Source};
use super::place::place_in_scalar;
use super::{Environment, Program, Type, TypeError, TypeErrorKind, compile, render_errors};
use crate::diagnostic::{Diagnostic, Severity};
use crate::frontend::emitter::Emitter;
use crate::frontend::foreach::Loaders;
use crate::frontend::scope::Scope;
use crate::ir::{AtSite, Block, Entry, EntryId, Label, Module, Operation, Register, Site};
use crate::policy::admission_policy::{AdmissionBinding, AdmissionPolicy};
use crate::policy::model::{Policy, Rule};
use crate::source::{Location, SourceId};

/// The object whose fields are the variables of a rule.
pub(super) const VARIABLES: &str = "kubernetes.variables";

/// A CEL text of a rule and its place.
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

/// What a rule's expressions may use, including its variables.
pub(super) struct Scene {
    pub(super) environment: Environment,
    pub(super) bindings: Bindings,
}

impl Scene {
    fn new(dialect: Dialect, has_params: bool) -> Self {
        let mut scene = Self {
            environment: Environment::kubernetes(),
            bindings: Bindings::default(),
        };
        let object = |name: &str| Type::Object(name.to_owned());
        scene.declare("object", Type::Dyn, Source::Root(Root::Object));
        scene.declare("oldObject", Type::Dyn, Source::Root(Root::OldObject));
        let request = object("kubernetes.AdmissionRequest");
        let (request_root, namespace_root) = match dialect {
            Dialect::Rule => (Root::Request, Root::Namespace),
            Dialect::AdmissionPolicy { .. } => (Root::ResourceRequest, Root::LabelledNamespace),
        };
        scene.declare("request", request, Source::Root(request_root));
        let namespace = object("kubernetes.Namespace");
        scene.declare("namespaceObject", namespace, Source::Root(namespace_root));
        if has_params {
            scene.declare("params", Type::Dyn, Source::Root(Root::Params));
        }
        if dialect == Dialect::Rule {
            scene.declare_authorizer();
        }
        scene.environment.declare_object(VARIABLES);
        scene.declare("variables", object(VARIABLES), Source::Variables);
        scene
    }

    fn declare_authorizer(&mut self) {
        for (name, ty, root) in [
            ("authorizer", "Authorizer", Root::Authorizer),
            (
                "authorizer.requestResource",
                "ResourceCheck",
                Root::AuthorizerRequestResource,
            ),
        ] {
            let ty = Type::Opaque(format!("kubernetes.authorization.{ty}"), Vec::new());
            self.declare(name, ty, Source::Root(root));
        }
    }

    pub(super) fn declare(&mut self, name: &str, ty: Type, source: Source) {
        self.environment.declare(name, ty);
        self.bindings.sources.insert(name.to_owned(), source);
    }

    /// Makes a variable known to the expressions after it.
    fn add_variable(&mut self, name: &str, program: Option<&Program>) {
        // docs/spec/cel.md §2.5: other types are not kept.
        let ty = match program.map(Program::result) {
            Some(Type::Optional(_) | Type::Object(_) | Type::Opaque(..) | Type::Type(_)) | None => {
                Type::Dyn
            }
            Some(other) => other.clone(),
        };
        self.environment.declare_field(VARIABLES, name, ty);
    }

    /// An expression of a message: `authorizer` is not available (docs/spec/cel.md §2.3).
    fn compile_message(&self, text: &str) -> Result<Program, Vec<TypeError>> {
        let mut scene = Scene {
            environment: self.environment.clone(),
            bindings: Bindings::default(),
        };
        scene.environment.forget("authorizer");
        scene.environment.forget("authorizer.requestResource");
        scene.compile(text, Some(&Type::String))
    }

    /// An expression that must have a certain type.
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
                    kind: TypeErrorKind::Result,
                    at: 0,
                    message: format!("must evaluate to {wanted} but got {found}"),
                    hint,
                }])
            }
            _ => Ok(program),
        }
    }
}

/// Kyverno's error for an expression that does not compile (docs/spec/cel.md §2.3).
fn compilation_error(text: &str, errors: &[TypeError]) -> String {
    match errors {
        [only] if only.kind == TypeErrorKind::Result => {
            format!("compilation error: {}", only.message)
        }
        [only] if only.kind == TypeErrorKind::Plan => {
            format!(
                "compilation error: program instantiation failed: {}",
                only.message
            )
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
        if let Some(body) = of_rule(policy, rule, None) {
            let subject = format!("{}/{}", policy.name.value, rule.name.value);
            body.check(source, &subject, severity, diagnostics);
        }
    }
}

/// Like [`check`], for a ValidatingAdmissionPolicy.
pub fn check_admission_policy(
    policy: &AdmissionPolicy,
    source: &str,
    severity: Severity,
    diagnostics: &mut Vec<Diagnostic>,
) {
    let body = of_admission_policy(policy, None);
    body.check(source, &policy.name.value, severity, diagnostics);
}

/// Which kind of policy the expressions belong to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Dialect {
    /// `validate.cel` of a rule: any error is a failure (docs/spec/cel.md §2.2).
    Rule,
    /// A ValidatingAdmissionPolicy: errors are errors, except those of a match condition if
    /// they are ignored (docs/spec/cel.md §5).
    AdmissionPolicy {
        /// Whether errors of match conditions are ignored.
        ignores_failure: bool,
    },
}

/// All CEL parts of a policy.
struct Body<'t> {
    source: SourceId,
    dialect: Dialect,
    conditions: &'t [Tree],
    variables: &'t [Tree],
    validations: &'t [Tree],
    annotations: &'t [Tree],
    /// The path of the validations.
    part: &'static str,
    /// The default message of validations.
    message: Option<&'t str>,
    /// Whether `params` is declared.
    has_params: bool,
    /// The description of the parameters to fetch.
    params: Option<TreeValue>,
}

/// The parts of a rule; `None` if it has no `validate.cel`.
fn of_rule<'t>(policy: &Policy, rule: &'t Rule, message: Option<&'t str>) -> Option<Body<'t>> {
    let cel = rule.validate.as_ref()?.cel.as_ref()?;
    let given = |key: &str| cel.get(key).filter(|value| !value.is_null());
    let params = given("paramKind").zip(given("paramRef"));
    let conditions = rule.cel_preconditions.as_ref().and_then(Tree::as_list);
    Some(Body {
        source: policy.source,
        dialect: Dialect::Rule,
        conditions: conditions.unwrap_or_default(),
        variables: items(Some(cel), "variables"),
        validations: items(Some(cel), "expressions"),
        annotations: items(Some(cel), "auditAnnotations"),
        part: "validate.cel.expressions",
        message,
        has_params: params.is_some(),
        params: params.map(|(kind, reference)| wanted_params(kind, reference)),
    })
}

fn of_admission_policy<'t>(
    policy: &'t AdmissionPolicy,
    binding: Option<&AdmissionBinding>,
) -> Body<'t> {
    let reference = binding.and_then(|binding| binding.param_ref.as_ref());
    let params = policy.param_kind.as_ref().zip(reference);
    Body {
        source: policy.source,
        dialect: Dialect::AdmissionPolicy {
            ignores_failure: policy.ignores_failure,
        },
        conditions: &policy.conditions,
        variables: &policy.variables,
        validations: &policy.validations,
        annotations: &policy.audit_annotations,
        part: "validations",
        message: None,
        has_params: policy.param_kind.is_some(),
        params: params.map(|(kind, reference)| wanted_params(kind, reference)),
    }
}

fn wanted_params(kind: &Tree, reference: &Tree) -> TreeValue {
    let member = |key: &str, value: &Tree| Member {
        key: key.into(),
        key_span: value.span,
        value: value.clone(),
    };
    TreeValue::Map([member("paramKind", kind), member("paramRef", reference)].into())
}

impl Body<'_> {
    fn check(
        &self,
        source: &str,
        subject: &str,
        severity: Severity,
        diagnostics: &mut Vec<Diagnostic>,
    ) {
        let mut report = |text: Text<'_>, errors: Vec<TypeError>| {
            for error in errors {
                let location = Location {
                    source: self.source,
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
                diagnostics.push(diagnostic.subject(subject));
            }
        };
        let mut scene = Scene::new(self.dialect, self.has_params);
        for variable in self.variables {
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
        let conditions = self.conditions.iter();
        let wanted = conditions
            .chain(self.validations)
            .filter_map(|tree| Some((text_at(tree, "expression")?, Some(Type::Bool))));
        let messages = self
            .validations
            .iter()
            .filter_map(|tree| text_at(tree, "messageExpression"));
        for text in messages {
            if let Err(errors) = scene.compile_message(text.text) {
                report(text, errors);
            }
        }
        let annotations = self
            .annotations
            .iter()
            .filter_map(|tree| Some((text_at(tree, "valueExpression")?, None)));
        for (text, ty) in wanted.chain(annotations) {
            if let Err(errors) = scene.compile(text.text, ty.as_ref()) {
                report(text, errors);
            }
        }
    }
}

/// Lowers the body of a rule with `validate.cel`; does nothing without.
pub fn lower_rule(
    policy: &Policy,
    rule: &Rule,
    message: Option<&str>,
    loaders: &mut Loaders,
    module: &mut Module,
) -> Option<Block> {
    Some(of_rule(policy, rule, message)?.lower(loaders, module))
}

/// Lowers the body of a ValidatingAdmissionPolicy, with the parameters of a binding.
pub fn lower_admission_policy(
    policy: &AdmissionPolicy,
    binding: Option<&AdmissionBinding>,
    loaders: &mut Loaders,
    module: &mut Module,
) -> Block {
    of_admission_policy(policy, binding).lower(loaders, module)
}

impl Body<'_> {
    fn lower(&self, loaders: &mut Loaders, module: &mut Module) -> Block {
        let mut scene = Scene::new(self.dialect, self.has_params);
        for variable in self.variables {
            lower_variable(variable, self.source, &mut scene, loaders, module);
        }
        let mut emitter = Emitter::new(self.source, Scope::default(), module);
        let params = self.params.as_ref();
        let params = params.map(|wanted| begin_params(self.dialect, wanted, &mut emitter));
        let mut cold: Vec<Cold> = Vec::new();
        if !self.conditions.is_empty() {
            lower_preconditions(self.dialect, self.conditions, &scene, &mut emitter);
        }
        for (number, expression) in self.validations.iter().enumerate() {
            let Some(text) = text_at(expression, "expression") else {
                continue;
            };
            let location = Location {
                source: self.source,
                span: text.span,
            };
            let part = format!("{}[{number}]", self.part);
            let site = Site::new(SiteKind::Structure, &part, location);
            let (on_false, on_error) = (emitter.block.label(), emitter.block.label());
            begin(text.text, &mut emitter);
            match scene.compile(text.text, Some(&Type::Bool)) {
                Ok(program) => lower::lower_condition(
                    &program,
                    &scene.bindings,
                    &mut emitter,
                    on_false,
                    on_error,
                ),
                Err(errors) => {
                    let error = compilation_error(text.text, &errors);
                    match self.dialect {
                        Dialect::Rule => return_text(&error, &site, &mut emitter),
                        Dialect::AdmissionPolicy { .. } => {
                            return_error(&error, &site, &mut emitter)
                        }
                    }
                    let behind = emitter.block.label();
                    emitter.block.place(behind);
                }
            }
            let own = text_at(expression, "message").map(|message| message.text);
            let fallback = own.or(self.message).map(str::trim);
            let fallback = match fallback.filter(|message| !message.is_empty()) {
                Some(message) => message.to_owned(),
                None => format!("failed expression: {}", text.text.trim()),
            };
            cold.push(Cold {
                on_false,
                on_error,
                error: self.dialect.error(),
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
        emitter.block.push(Operation::ReturnPass);
        for cold in cold {
            cold.lower(&scene, &mut emitter);
        }
        if let Some(params) = params {
            params.fail(&mut emitter);
        }
        emitter.block
    }
}

impl Dialect {
    /// How a block ends on an expression's error.
    fn error(self) -> Operation {
        match self {
            Dialect::Rule => Operation::ReturnFailError {
                number: ExpressionNumber(0),
            },
            Dialect::AdmissionPolicy { .. } => Operation::ReturnErrorText,
        }
    }
}

/// The loop over the parameters of a rule: each is evaluated separately, and the first that
/// fails decides (docs/spec/cel.md §2.2, steps 7 to 10).
struct Params {
    slot: LoopSlot,
    start: Label,
    item: Register,
    end: Label,
    failed: Label,
}

fn begin_params(dialect: Dialect, wanted: &TreeValue, emitter: &mut Emitter<'_>) -> Params {
    let wanted = emitter.constant(wanted);
    let block = &mut emitter.block;
    let params = Params {
        failed: block.label(),
        start: block.label(),
        end: block.label(),
        item: Register(0),
        slot: LoopSlot(0),
    };
    let all = block.register();
    let collect = Operation::CelParams {
        dst: all,
        src: wanted,
        whose: match dialect {
            Dialect::Rule => ParametersFor::Rule,
            Dialect::AdmissionPolicy { .. } => ParametersFor::Binding,
        },
        target: params.failed,
    };
    block.push(collect);
    let params = Params {
        slot: block.enter_loop(),
        item: block.register(),
        ..params
    };
    block.push(Operation::LoopBegin {
        loop_slot: params.slot,
        list: all,
        item: params.item,
        target: params.end,
    });
    block.place(params.start);
    block.push(Operation::CelBindParams { src: params.item });
    params
}

impl Params {
    fn next(&self, emitter: &mut Emitter<'_>) {
        let next = Operation::LoopNext {
            loop_slot: self.slot,
            item: self.item,
            target: self.start,
        };
        emitter.block.push(next);
        emitter.block.place(self.end);
        emitter.block.leave_loop();
    }

    fn fail(&self, emitter: &mut Emitter<'_>) {
        emitter.block.place(self.failed);
        wrap("error in parameterized resource: ", emitter);
        emitter.block.push(Operation::ReturnErrorText);
    }
}

/// Code for an expression that is false or fails.
struct Cold {
    on_false: Label,
    on_error: Label,
    /// How an error ends.
    error: Operation,
    expression: String,
    message: Option<Program>,
    fallback: String,
    site: Site,
}

impl Cold {
    fn lower(self, scene: &Scene, emitter: &mut Emitter<'_>) {
        emitter.block.place(self.on_false);
        if let Some(message) = &self.message {
            let unusable = emitter.block.label();
            let value = lower::lower(message, &scene.bindings, emitter, unusable);
            emitter.block.push(
                Operation::ReturnFailValue {
                    src: value,
                    form: MessageForm::Kubernetes,
                    number: ExpressionNumber(0),
                }
                .site(self.site.clone()),
            );
            emitter.block.place(unusable);
        }
        return_text(&self.fallback, &self.site, emitter);
        emitter.block.place(self.on_error);
        wrap(&failed_prefix(&self.expression), emitter);
        emitter.block.push(self.error.site(self.site));
    }
}

fn failed_prefix(expression: &str) -> String {
    format!("expression '{expression}' resulted in error: ")
}

/// Prefixes the error's text and continues after that.
pub(super) fn wrap(prefix: &str, emitter: &mut Emitter<'_>) {
    let behind = emitter.block.label();
    let text = emitter.module.text(prefix);
    emitter.block.push(Operation::WrapError {
        query: false,
        text,
        target: behind,
    });
    emitter.block.place(behind);
}

pub(super) fn begin(text: &str, emitter: &mut Emitter<'_>) {
    let text = emitter.module.text(text);
    emitter.block.push(Operation::CelBegin { text });
}

fn return_text(text: &str, site: &Site, emitter: &mut Emitter<'_>) {
    let text = emitter.module.text(text);
    emitter.block.push(
        Operation::ReturnFailText {
            text,
            number: ExpressionNumber(0),
        }
        .site(site.clone()),
    );
}

fn return_error(text: &str, site: &Site, emitter: &mut Emitter<'_>) {
    let failed = emitter.block.label();
    emitter.fail(text, failed);
    emitter.block.place(failed);
    emitter
        .block
        .push(Operation::ReturnErrorText.site(site.clone()));
}

/// A variable and its loader (docs/spec/cel.md §2.5).
fn lower_variable(
    variable: &Tree,
    source: SourceId,
    scene: &mut Scene,
    loaders: &mut Loaders,
    module: &mut Module,
) {
    let name = variable
        .get("name")
        .and_then(Tree::as_str)
        .unwrap_or_default();
    let text = text_at(variable, "expression").map_or("", |text| text.text);
    let program = scene.compile(text, None);
    let mut emitter = Emitter::new(source, Scope::default(), module);
    let failed = emitter.block.label();
    match &program {
        Ok(program) => {
            let value = lower::lower(program, &scene.bindings, &mut emitter, failed);
            emitter.block.push(Operation::ReturnValue { src: value });
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
    emitter.block.push(Operation::ReturnFailed {
        depth: ForeachDepth(0),
    });
    let block = emitter.block;
    let location = Location {
        source,
        span: variable.span,
    };
    let entry = add_entry(location, module);
    loaders.push((entry, block));
    scene.add_variable(name, program.as_ref().ok());
    let program = program.as_ref().ok();
    scene.bindings.add_variable(name, entry, program);
}

/// The entry of a variable; its loader is set when it is lowered.
pub(super) fn add_entry(location: Location, module: &mut Module) -> EntryId {
    let slot = module.slot("");
    module.entries.push(Entry {
        slot,
        loader: None,
        is_nested: false,
        location,
    })
}

/// All are evaluated: one that is false decides, even if others failed (docs/spec/cel.md
/// §2.7). They do not know the namespace.
fn lower_preconditions(
    dialect: Dialect,
    conditions: &[Tree],
    scene: &Scene,
    emitter: &mut Emitter<'_>,
) {
    let on_false = emitter.block.label();
    let errors = emitter.block.enter_list();
    emitter.block.push(Operation::ListBegin { list: errors });
    let mut bindings = scene.bindings.clone();
    bindings
        .sources
        .insert("namespaceObject".into(), Source::Null);
    for condition in conditions {
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
                let prefix = emitter.module.text(&failed_prefix(text.text));
                emitter.block.push(Operation::WrapError {
                    query: false,
                    text: prefix,
                    target: caught,
                });
            }
            Err(problems) => {
                emitter.fail(&compilation_error(text.text, &problems), caught);
            }
        }
        emitter.block.place(caught);
        let error = emitter.constant(&TreeValue::Null);
        let copy = emitter.block.register();
        emitter.assign(copy, error);
        emitter.block.push(Operation::CelCatch { dst: copy });
        emitter.block.push(Operation::ListPush {
            list: errors,
            src: copy,
        });
        emitter.block.place(next);
    }
    let (failed, held) = (emitter.block.label(), emitter.block.label());
    emitter.block.push(Operation::CelRaiseAll {
        list: errors,
        form: ErrorList::Distinct,
        target: failed,
    });
    emitter.block.jump(held);
    emitter.block.place(failed);
    match dialect {
        Dialect::AdmissionPolicy {
            ignores_failure: true,
        } => emitter.block.jump(on_false),
        dialect => emitter.block.push(dialect.error()),
    }
    emitter.block.place(on_false);
    let text = emitter.module.text(match dialect {
        Dialect::Rule => "cel preconditions not met",
        Dialect::AdmissionPolicy { .. } => "match conditions aren't met",
    });
    emitter.block.push(Operation::ReturnText {
        status: ReturnStatus::Skip,
        text,
    });
    emitter.block.place(held);
    emitter.block.leave_list();
}
