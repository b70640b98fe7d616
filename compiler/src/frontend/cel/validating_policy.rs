//! ValidatingPolicies (docs/spec/cel.md §6.2): match conditions and validations as one
//! body, variables as loaders, audit annotations and the conditions of exceptions as
//! separate blocks.
//!
//! An expression that does not compile keeps the whole policy from loading;
//! [`Programs::compile`] reports these errors, and only compiled programs can be lowered.

use crate::ir::Register;
use kpvm_format::cel::Root;
use kpvm_format::instruction::immediate::{
    ErrorList, ExpressionNumber, ForeachDepth, MessageForm, ReturnStatus,
};
use kpvm_format::table::SiteKind;
use kpvm_syntax::tree::{Tree, TreeValue};

use super::lower::{self, Bindings, Source};
use super::rule::{self, Scene, Text, VARIABLES, begin, text_at, wrap};
use super::{Environment, Program, Type, TypeError, TypeErrorKind};
use crate::frontend::emitter::Emitter;
use crate::frontend::foreach::Loaders;
use crate::frontend::scope::Scope;
use crate::ir::{AtSite, Block, Label, Module, Operation, Site};
use crate::policy::validating_policy::{Mode, ValidatingSpec};
use crate::source::{Location, SourceId};

/// The object with what exceptions allow.
const EXCEPTIONS: &str = "kyverno.Exceptions";

/// An expression that cannot be compiled.
#[derive(Debug, Clone)]
pub struct Failure<'t> {
    /// The expression.
    pub text: Text<'t>,
    /// The errors.
    pub errors: Vec<TypeError>,
}

/// A compiled expression and its place.
struct Compiled<'t> {
    program: Program,
    text: Text<'t>,
}

struct Validation<'t> {
    condition: Compiled<'t>,
    /// The message if the validation fails; computed if there is an expression.
    message: &'t str,
    message_expression: Option<Compiled<'t>>,
}

/// All expressions of a policy, compiled.
pub struct Programs<'t> {
    scene: Scene,
    conditions: Vec<Compiled<'t>>,
    variables: Vec<(&'t str, Compiled<'t>)>,
    validations: Vec<Validation<'t>>,
    annotations: Vec<(&'t str, Compiled<'t>)>,
    ignores_failure: bool,
}

/// What expressions of a policy may use.
fn scene(mode: Mode, namespace: Option<&str>) -> Scene {
    let mut scene = Scene {
        environment: Environment::kyverno(namespace.is_some()),
        bindings: Bindings {
            namespace: namespace.unwrap_or_default().to_owned(),
            ..Bindings::default()
        },
    };
    let root = |in_kubernetes: Root, in_json: Option<Root>| match mode {
        Mode::Kubernetes => Source::Root(in_kubernetes),
        Mode::Json => in_json.map_or(Source::Null, Source::Root),
    };
    let object = |name: &str| Type::Object(name.to_owned());
    let request = "kubernetes.AdmissionRequest";
    for field in ["object", "oldObject"] {
        scene.environment.declare_field(request, field, Type::Dyn);
    }
    for field in ["allowedImages", "allowedValues"] {
        let ty = Type::list(Type::String);
        scene.environment.declare_field(EXCEPTIONS, field, ty);
    }
    scene.environment.declare_object(VARIABLES);
    let namespace = object("kubernetes.Namespace");
    for (name, ty, source) in [
        (
            "object",
            Type::Dyn,
            root(Root::ObjectOrEmpty, Some(Root::Object)),
        ),
        ("oldObject", Type::Dyn, root(Root::OldObjectOrEmpty, None)),
        ("request", object(request), root(Root::FullRequest, None)),
        (
            "namespaceObject",
            namespace,
            root(Root::GivenNamespace, None),
        ),
        (
            "exceptions",
            object(EXCEPTIONS),
            Source::Root(Root::Exceptions),
        ),
        ("variables", object(VARIABLES), Source::Variables),
    ] {
        scene.declare(name, ty, source);
    }
    scene
}

/// Collects the programs and the failures.
struct Compiler<'t, 'f> {
    scene: Scene,
    failures: &'f mut Vec<Failure<'t>>,
}

impl<'t> Compiler<'t, '_> {
    /// The expression under a key; `None` if there is none or it does not compile.
    fn compile(
        &mut self,
        tree: &'t Tree,
        key: &str,
        wanted: Option<&Type>,
    ) -> Option<Compiled<'t>> {
        let text = text_at(tree, key)?;
        match self.scene.compile(text.text, wanted) {
            Ok(program) => Some(Compiled { program, text }),
            Err(errors) => {
                self.failures.push(Failure { text, errors });
                None
            }
        }
    }

    /// Like [`Compiler::compile`], for a required expression.
    fn required(
        &mut self,
        tree: &'t Tree,
        key: &str,
        wanted: Option<&Type>,
    ) -> Option<Compiled<'t>> {
        if text_at(tree, key).is_none() {
            let text = Text {
                text: "",
                span: tree.get(key).map_or(tree.span, |value| value.span),
            };
            let errors = vec![TypeError {
                kind: TypeErrorKind::Expression,
                at: 0,
                message: format!("expected an expression under `{key}`, found none"),
                hint: None,
            }];
            self.failures.push(Failure { text, errors });
        }
        self.compile(tree, key, wanted)
    }

    fn conditions(&mut self, conditions: &'t [Tree]) -> Vec<Compiled<'t>> {
        let compiled = conditions
            .iter()
            .filter_map(|condition| self.required(condition, "expression", Some(&Type::Bool)));
        compiled.collect()
    }
}

fn name_of<'t>(tree: &'t Tree, key: &str) -> &'t str {
    tree.get(key).and_then(Tree::as_str).unwrap_or_default()
}

impl<'t> Programs<'t> {
    /// Compiles everything, in the order in which things become known: conditions do not
    /// know variables. `namespace` is that of a namespaced policy.
    ///
    /// # Errors
    /// Every expression that does not compile.
    pub fn compile(
        spec: &'t ValidatingSpec,
        mode: Mode,
        namespace: Option<&str>,
    ) -> Result<Self, Vec<Failure<'t>>> {
        let mut failures = Vec::new();
        let mut compiler = Compiler {
            scene: scene(mode, namespace),
            failures: &mut failures,
        };
        let conditions = compiler.conditions(&spec.conditions);
        let mut variables = Vec::new();
        for variable in &spec.variables {
            let name = name_of(variable, "name");
            let compiled = compiler.required(variable, "expression", None);
            let ty = compiled
                .as_ref()
                .map_or(&Type::Dyn, |one| one.program.result());
            let ty = ty.clone();
            compiler
                .scene
                .environment
                .declare_field(VARIABLES, name, ty);
            variables.extend(compiled.map(|compiled| (name, compiled)));
        }
        let mut validations = Vec::new();
        for validation in &spec.validations {
            let condition = compiler.required(validation, "expression", Some(&Type::Bool));
            let message = compiler.compile(validation, "messageExpression", Some(&Type::String));
            validations.extend(condition.map(|condition| Validation {
                condition,
                message: name_of(validation, "message"),
                message_expression: message,
            }));
        }
        // Those of JSON policies are not even compiled.
        let annotations = spec.annotations.iter().filter(|_| mode == Mode::Kubernetes);
        let annotations = annotations.filter_map(|annotation| {
            let compiled = compiler.required(annotation, "valueExpression", None)?;
            let ty = compiled.program.result();
            if !matches!(ty, Type::String | Type::Null) {
                let message = format!("must evaluate to string or null but got {ty}");
                let errors = vec![TypeError {
                    kind: TypeErrorKind::Result,
                    at: 0,
                    message,
                    hint: None,
                }];
                let text = compiled.text;
                compiler.failures.push(Failure { text, errors });
            }
            Some((name_of(annotation, "key"), compiled))
        });
        let annotations = annotations.collect();
        let scene = compiler.scene;
        if !failures.is_empty() {
            return Err(failures);
        }
        Ok(Self {
            scene,
            conditions,
            variables,
            validations,
            annotations,
            ignores_failure: spec.ignores_failure,
        })
    }

    /// The keys of the audit annotations.
    pub fn annotation_keys(&self) -> impl Iterator<Item = &'t str> + '_ {
        self.annotations.iter().map(|(key, _)| *key)
    }

    /// Lowers the body: conditions and validations.
    pub fn lower(&mut self, source: SourceId, loaders: &mut Loaders, module: &mut Module) -> Block {
        for (name, compiled) in &self.variables {
            let bindings = &mut self.scene.bindings;
            let block = value_block(compiled, bindings, source, module);
            let location = Location {
                source,
                span: compiled.text.span,
            };
            let entry = rule::add_entry(location, module);
            loaders.push((entry, block));
            bindings.add_variable(name, entry, Some(&compiled.program));
        }
        let mut emitter = Emitter::new(source, Scope::default(), module);
        let skipped = emitter.block.label();
        let conditions = &self.conditions;
        if !conditions.is_empty() {
            let bindings = &self.scene.bindings;
            let failed = emitter.block.label();
            lower_conditions(conditions, bindings, &mut emitter, skipped, failed);
            let held = emitter.block.label();
            emitter.block.jump(held);
            emitter.block.place(failed);
            if self.ignores_failure {
                emitter.block.jump(skipped);
            } else {
                wrap("failed to load context: ", &mut emitter);
                emitter.block.push(Operation::ReturnFailed {
                    depth: ForeachDepth(0),
                });
            }
            emitter.block.place(held);
        }
        let labels: Vec<[Label; 2]> = self
            .validations
            .iter()
            .enumerate()
            .map(|(index, validation)| {
                let part = format!("validations[{index}]");
                let labels = [emitter.block.label(), emitter.block.label()];
                let condition = &validation.condition;
                lower_test(condition, &part, &self.scene.bindings, &mut emitter, labels);
                labels
            })
            .collect();
        emitter.block.push(Operation::ReturnPass);
        for (index, (validation, labels)) in self.validations.iter().zip(labels).enumerate() {
            self.lower_failure(index, validation, labels, &mut emitter);
        }
        emitter.block.place(skipped);
        let text = emitter.module.text("skip");
        emitter.block.push(Operation::ReturnText {
            status: ReturnStatus::Skip,
            text,
        });
        emitter.block
    }

    /// Code for a validation that is false or fails.
    fn lower_failure(
        &self,
        index: usize,
        validation: &Validation<'_>,
        [on_false, on_error]: [Label; 2],
        emitter: &mut Emitter<'_>,
    ) {
        let number = index as u32;
        let site = condition_site(
            SiteKind::Structure,
            &validation.condition,
            &format!("validations[{index}]"),
            emitter.source,
        );
        let fallback = format!("CEL expression validation failed at index {index}");
        emitter.block.place(on_false);
        let mut message = validation.message;
        if let Some(computed) = &validation.message_expression {
            // An empty text is not a message, and falls through.
            let give = |value: Register, emitter: &mut Emitter<'_>| {
                let give = Operation::ReturnFailValue {
                    src: value,
                    form: MessageForm::NotEmpty,
                    number: ExpressionNumber(number),
                };
                emitter.block.push(give.site(site.clone()));
            };
            let failed = emitter.block.label();
            begin(computed.text.text, emitter);
            let bindings = &self.scene.bindings;
            let value = lower::lower(&computed.program, bindings, emitter, failed);
            give(value, emitter);
            let end = emitter.block.label();
            emitter.block.jump(end);
            emitter.block.place(failed);
            wrap("failed to evaluate message expression: ", emitter);
            let error = caught(emitter);
            give(error, emitter);
            emitter.block.place(end);
            message = "";
        }
        let message = match message {
            "" => &fallback,
            message => message,
        };
        let text = emitter.module.text(message);
        let fail = Operation::ReturnFailText {
            text,
            number: ExpressionNumber(number),
        };
        emitter.block.push(fail.site(site.clone()));
        emitter.block.place(on_error);
        wrap("error: ", emitter);
        let fail = Operation::ReturnFailError {
            number: ExpressionNumber(number),
        };
        emitter.block.push(fail.site(site));
    }

    /// Lowers the audit annotations to a block that returns the list of their values.
    pub fn lower_annotations(&self, source: SourceId, module: &mut Module) -> Option<Block> {
        if self.annotations.is_empty() {
            return None;
        }
        let mut emitter = Emitter::new(source, Scope::default(), module);
        let list = emitter.block.enter_list();
        emitter.block.push(Operation::ListBegin { list });
        let wrapped = emitter.block.label();
        for (key, compiled) in &self.annotations {
            let (failed, next) = (emitter.block.label(), emitter.block.label());
            begin(compiled.text.text, &mut emitter);
            let bindings = &self.scene.bindings;
            let value = lower::lower(&compiled.program, bindings, &mut emitter, failed);
            let push = Operation::ListPush { list, src: value };
            emitter.block.push(push);
            emitter.block.jump(next);
            emitter.block.place(failed);
            let prefix = format!("failed to evaluate auditAnnotation '{key}': ");
            let prefix = emitter.module.text(&prefix);
            let wrap = Operation::WrapError {
                query: false,
                text: prefix,
                target: wrapped,
            };
            emitter.block.push(wrap);
            emitter.block.place(next);
        }
        let result = emitter.load(|dst| Operation::ListEnd { dst, list });
        let end = Operation::ReturnValue { src: result };
        emitter.block.push(end);
        emitter.block.place(wrapped);
        emitter.block.push(Operation::ReturnFailed {
            depth: ForeachDepth(0),
        });
        Some(emitter.block)
    }
}

/// The conditions of an exception for one policy.
pub struct ExceptionPrograms<'t> {
    conditions: Vec<Compiled<'t>>,
    bindings: Bindings,
    ignores_failure: bool,
}

impl<'t> ExceptionPrograms<'t> {
    /// Compiles them. They are evaluated before variables exist, and before it is known
    /// what exceptions allow.
    ///
    /// # Errors
    /// Every expression that does not compile.
    pub fn compile(
        conditions: &'t [Tree],
        mode: Mode,
        namespace: Option<&str>,
        ignores_failure: bool,
    ) -> Result<Self, Vec<Failure<'t>>> {
        let mut failures = Vec::new();
        let mut scene = scene(mode, namespace);
        for name in ["variables", "exceptions"] {
            scene.declare(name, Type::Dyn, Source::Unbound);
        }
        let mut compiler = Compiler {
            scene,
            failures: &mut failures,
        };
        let conditions = compiler.conditions(conditions);
        let bindings = compiler.scene.bindings;
        match failures.is_empty() {
            true => Ok(Self {
                conditions,
                bindings,
                ignores_failure,
            }),
            false => Err(failures),
        }
    }

    /// The block that ends matched, unmatched, or with the error of a condition.
    pub fn lower(&self, source: SourceId, module: &mut Module) -> Block {
        let mut emitter = Emitter::new(source, Scope::default(), module);
        let (otherwise, failed) = (emitter.block.label(), emitter.block.label());
        let (conditions, bindings) = (&self.conditions, &self.bindings);
        lower_conditions(conditions, bindings, &mut emitter, otherwise, failed);
        emitter.block.push(Operation::ReturnMatched);
        emitter.block.place(failed);
        if self.ignores_failure {
            emitter.block.jump(otherwise);
        } else {
            wrap("failed to load context: ", &mut emitter);
            emitter.block.push(Operation::ReturnFailed {
                depth: ForeachDepth(0),
            });
        }
        emitter.block.place(otherwise);
        emitter.block.push(Operation::ReturnUnmatched);
        emitter.block
    }
}

/// Falls through when all hold. The first that is false decides; errors are collected,
/// and go to `failed` when none was false (docs/spec/cel.md §6.2, step 3).
fn lower_conditions(
    conditions: &[Compiled<'_>],
    bindings: &Bindings,
    emitter: &mut Emitter<'_>,
    on_false: Label,
    failed: Label,
) {
    let errors = emitter.block.enter_list();
    emitter.block.push(Operation::ListBegin { list: errors });
    for (index, condition) in conditions.iter().enumerate() {
        let (on_error, next) = (emitter.block.label(), emitter.block.label());
        let part = format!("matchConditions[{index}]");
        lower_test(condition, &part, bindings, emitter, [on_false, on_error]);
        emitter.block.jump(next);
        emitter.block.place(on_error);
        let error = caught(emitter);
        let push = Operation::ListPush {
            list: errors,
            src: error,
        };
        emitter.block.push(push);
        emitter.block.place(next);
    }
    let raise = Operation::CelRaiseAll {
        list: errors,
        form: ErrorList::Joined,
        target: failed,
    };
    emitter.block.push(raise);
    emitter.block.leave_list();
}

/// Turns the current error into a value and returns its register.
fn caught(emitter: &mut Emitter<'_>) -> Register {
    let nothing = emitter.constant(&TreeValue::Null);
    let error = emitter.block.register();
    emitter.assign(error, nothing);
    emitter.block.push(Operation::CelCatch { dst: error });
    error
}

fn condition_site(kind: SiteKind, condition: &Compiled<'_>, part: &str, source: SourceId) -> Site {
    let location = Location {
        source,
        span: condition.text.span,
    };
    Site::new(kind, part, location).written(condition.text.text.trim())
}

/// Falls through when the expression holds.
fn lower_test(
    condition: &Compiled<'_>,
    part: &str,
    bindings: &Bindings,
    emitter: &mut Emitter<'_>,
    [on_false, on_error]: [Label; 2],
) {
    begin(condition.text.text, emitter);
    let held = lower::lower_truth(&condition.program, bindings, emitter, on_error);
    let site = condition_site(SiteKind::Condition, condition, part, emitter.source);
    let test = Operation::CelTest {
        src: held,
        target: on_false,
    };
    emitter.block.push(test.site(site));
}

/// The block of a variable; its error becomes that of the expression that uses it.
fn value_block(
    compiled: &Compiled<'_>,
    bindings: &Bindings,
    source: SourceId,
    module: &mut Module,
) -> Block {
    let mut emitter = Emitter::new(source, Scope::default(), module);
    let failed = emitter.block.label();
    let value = lower::lower(&compiled.program, bindings, &mut emitter, failed);
    let end = Operation::ReturnValue { src: value };
    emitter.block.push(end);
    emitter.block.place(failed);
    emitter.block.push(Operation::ReturnFailed {
        depth: ForeachDepth(0),
    });
    emitter.block
}
