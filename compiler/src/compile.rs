//! The complete way from policy texts to a bundle.

use std::collections::HashMap;

use kpvm_format::meta::{Meta, OmittedRule};
use kpvm_format::table::BodyKind;
use kpvm_format::{Bundle, BundleBuilder};
use kpvm_semantics::limits::Limits;
use kpvm_syntax::manifest;
use kpvm_syntax::tree::{Span, Tree};
use kpvm_syntax::yaml;

use crate::analysis::add_analyses;
use crate::diagnostic::{Diagnostic, Severity};
use crate::emit::{self, TooBig};
use crate::frontend::cel;
use crate::ir::{Module, Owner};
use crate::link::{Exceptions, Targets};
use crate::lower::validating_policy;
use crate::lower::{self, LowerError};
use crate::passes;
use crate::phase::{self, Phase};
use crate::policy::admission_policy::{
    AdmissionBinding, read_admission_binding, read_admission_policy,
};
use crate::policy::any_policy::AnyPolicy;
use crate::policy::model::{Policy, Rule};
use crate::policy::read::{DocumentKind, document_kind};
use crate::policy::read_validating::{read_cel_exception, read_validating_policy};
use crate::policy::{constraints, read, validate};
use crate::source::{Location, SourceId, Sources};
use crate::{link, lint};

/// Options of compilation.
#[derive(Debug, Clone, Copy)]
pub struct Options {
    /// Leave out rules that use something unsupported and record them in the bundle,
    /// instead of refusing the policies.
    pub skip_unsupported: bool,
    /// Check policies as Kyverno does when it loads them.
    pub check: bool,
    /// Beside that, check documents against the published schema, as the loader of Kyverno's
    /// command line and an API server do before Kyverno sees them.
    pub check_schema: bool,
    /// Ignore `validate.assert`, as Kyverno does since 1.19, instead of evaluating it as
    /// before.
    pub ignore_assert: bool,
    /// The limits of the compiler.
    pub limits: Limits,
    /// Print the result of a phase instead of writing a bundle.
    pub emit: Option<Phase>,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            skip_unsupported: false,
            check: true,
            check_schema: true,
            ignore_assert: false,
            limits: Limits::DEFAULT,
            emit: None,
        }
    }
}

/// The result of a compilation.
#[derive(Debug, Clone, Default)]
pub struct Compilation {
    /// The bundle; `None` if there was an error.
    pub bundle: Option<Vec<u8>>,
    /// The output requested by [`Options::emit`]; `None` if there was an error.
    pub printed: Option<String>,
    /// All diagnostics, in the order of the sources.
    pub diagnostics: Vec<Diagnostic>,
    /// The rules left out.
    pub omitted: Vec<OmittedRule>,
    /// The number of policies read.
    pub policies: usize,
    /// The number of rules in the bundle, including generated ones.
    pub rules: usize,
    /// The number of exceptions read.
    pub exceptions: usize,
}

impl Compilation {
    /// Whether any diagnostic is an error.
    pub fn has_errors(&self) -> bool {
        self.diagnostics.iter().any(is_error)
    }
}

/// Compiles all policies of all sources.
///
/// Collects every error of every source before giving up.
pub fn compile(sources: &Sources, options: &Options) -> Compilation {
    let mut diagnostics = Vec::new();
    let mut documents = Vec::new();
    for (source, file) in sources.iter() {
        for document in manifest::read_all(&file.text, read_options(options)) {
            match document {
                Ok(tree) => documents.push((source, tree)),
                Err(error) => {
                    let location = Location {
                        source,
                        span: error.span,
                    };
                    diagnostics.push(Diagnostic::error("yaml", error.kind.to_string(), location));
                }
            }
        }
    }
    compile_documents(&documents, sources, options, diagnostics)
}

fn read_options(options: &Options) -> yaml::Options<'_> {
    yaml::Options {
        duplicate_keys: yaml::DuplicateKeys::Refuse,
        limits: &options.limits,
    }
}

/// Compiles policies that have been read already.
pub fn compile_documents(
    documents: &[(SourceId, Tree)],
    sources: &Sources,
    options: &Options,
    diagnostics: Vec<Diagnostic>,
) -> Compilation {
    compile_with_exceptions(documents, &[], sources, options, diagnostics)
}

/// Compiles policies together with the `PolicyException`s that apply to them; messages list
/// the exceptions in the given order.
pub fn compile_with_exceptions(
    documents: &[(SourceId, Tree)],
    exceptions: &[(SourceId, Tree)],
    sources: &Sources,
    options: &Options,
    mut diagnostics: Vec<Diagnostic>,
) -> Compilation {
    let exceptions = read_exceptions(exceptions, options, &mut diagnostics);
    let policies = read_policies(documents, Some(sources), options, &mut diagnostics);
    let mut compilation = Compilation {
        policies: policies.len(),
        exceptions: exceptions.len(),
        ..Compilation::default()
    };
    match options.emit {
        Some(Phase::Policy) => compilation.printed = Some(phase::policies_text(&policies)),
        Some(Phase::Rules) => compilation.printed = Some(phase::rules_text(&policies)),
        Some(Phase::Ir | Phase::Optimised | Phase::Bytecode) | None => {}
    }
    let mut module = lower_policies(
        &policies,
        sources,
        options,
        &mut diagnostics,
        &mut compilation.omitted,
    );
    // If policies have errors, it is not known what names exceptions could refer to.
    if exceptions.len() > 0 && !diagnostics.iter().any(is_error) {
        let targets = Targets::of_module(&module);
        link::add_exceptions(
            &mut module,
            &targets,
            &exceptions,
            &compilation.omitted,
            sources,
            &mut diagnostics,
        );
    }
    compilation.rules = module.rules.entries().len();
    compilation.diagnostics = diagnostics;
    if !compilation.has_errors() {
        let mut bundle = BundleBuilder::new();
        bundle.meta = meta(&policies, sources, &compilation.omitted);
        compilation.write(module, sources, bundle, options.emit);
    }
    if compilation.has_errors() {
        compilation.printed = None;
    }
    compilation
}

/// Lowers policies to a module.
fn lower_policies(
    policies: &[AnyPolicy],
    sources: &Sources,
    options: &Options,
    diagnostics: &mut Vec<Diagnostic>,
    omitted: &mut Vec<OmittedRule>,
) -> Module {
    let mut module = Module::new(options.limits);
    for policy in policies {
        match policy {
            AnyPolicy::Classic(policy) => {
                lower::lower_policy(policy, &mut module, &mut |rule, error| {
                    refuse(policy, rule, error, sources, options, diagnostics, omitted);
                });
            }
            AnyPolicy::Validating(policy) => {
                diagnostics.extend(lower::lower_validating_policy(policy, &mut module));
            }
            AnyPolicy::Admission(policy) => {
                diagnostics.extend(lower::lower_admission_policy(policy, &mut module));
            }
        }
    }
    module
}

/// Reads policies and lowers them to a module; rules that cannot be lowered are left out.
pub fn lower_documents(
    documents: &[(SourceId, Tree)],
    sources: &Sources,
    options: &Options,
    diagnostics: &mut Vec<Diagnostic>,
) -> Module {
    let policies = read_policies(documents, Some(sources), options, diagnostics);
    lower_policies(&policies, sources, options, diagnostics, &mut Vec::new())
}

impl Compilation {
    /// Optimises a module, writes it into a bundle and analyses that, unless a block is too big.
    fn write(
        &mut self,
        mut module: Module,
        sources: &Sources,
        mut bundle: BundleBuilder,
        wanted: Option<Phase>,
    ) {
        if wanted == Some(Phase::Ir) {
            self.printed = Some(phase::module_text(&module, sources));
        }
        passes::optimise(&mut module);
        if wanted == Some(Phase::Optimised) {
            self.printed = Some(phase::module_text(&module, sources));
        }
        match emit::emit(&module, sources, &mut bundle) {
            Ok(()) => {
                bundle.share();
                add_analyses(&mut bundle);
                let bytes = bundle.finish();
                if wanted == Some(Phase::Bytecode) {
                    self.printed = phase::bytecode_text(&bytes);
                }
                self.bundle = Some(bytes);
            }
            Err(blocks) => {
                let found = blocks.iter().map(|block| too_big(&module, block));
                self.diagnostics.extend(found);
            }
        }
    }
}

/// The diagnostic for a block that is too big.
fn too_big(module: &Module, too_big: &TooBig) -> Diagnostic {
    let TooBig { block, error } = too_big;
    let (code, message, location, hint, subject) = match module.owner(*block) {
        Some(Owner::Exception(exception)) => (
            "exception-too-big",
            format!("the conditions of the exception are too big: {error}"),
            exception.location,
            "split the exception into several",
            match exception.namespace.as_str() {
                "" => exception.name.clone(),
                namespace => format!("{namespace}/{}", exception.name),
            },
        ),
        Some(Owner::Rule(rule)) => {
            let policy = module.policies.get(rule.policy);
            let policy = policy.map_or("", |policy| &policy.name);
            let is_classic =
                !matches!(rule.body, BodyKind::Validations | BodyKind::AdmissionPolicy);
            let (hint, subject) = match is_classic {
                true => (
                    "split the rule into several",
                    format!("{policy}/{}", rule.name),
                ),
                false => ("split the policy into several", policy.to_owned()),
            };
            (
                "rule-too-big",
                error.to_string(),
                rule.location,
                hint,
                subject,
            )
        }
        None => {
            let nowhere = Location {
                source: SourceId(0),
                span: Span::default(),
            };
            (
                "rule-too-big",
                error.to_string(),
                nowhere,
                "split the rule into several",
                String::new(),
            )
        }
    };
    Diagnostic::error(code, message, location)
        .hint(hint)
        .subject(subject)
}

/// Adds `PolicyException`s to policies that were compiled before: the resulting bundle is
/// the old one with the exceptions appended to those it has. Positions in the diagnostics
/// refer to `sources`, which hold only the exceptions.
pub fn add_exceptions(
    bundle: &Bundle<'_>,
    exceptions: &[(SourceId, Tree)],
    sources: &Sources,
    options: &Options,
    mut diagnostics: Vec<Diagnostic>,
) -> Compilation {
    let exceptions = read_exceptions(exceptions, options, &mut diagnostics);
    let builder = BundleBuilder::from_bundle(bundle);
    let tables = bundle.tables();
    let omitted = builder.meta.omitted.clone();
    let mut module = Module::extending(&tables, options.limits);
    link::add_exceptions(
        &mut module,
        &Targets::of_bundle(&tables),
        &exceptions,
        &omitted,
        sources,
        &mut diagnostics,
    );
    let mut compilation = Compilation {
        bundle: None,
        printed: None,
        diagnostics,
        omitted,
        policies: tables.policies.len(),
        rules: tables.rules.len(),
        exceptions: exceptions.len(),
    };
    if !compilation.has_errors() {
        compilation.write(module, sources, builder, None);
    }
    compilation
}

/// Reads and checks exceptions as Kyverno does when it loads them.
pub fn check_exceptions(documents: &[(SourceId, Tree)], options: &Options) -> Vec<Diagnostic> {
    let mut diagnostics = Vec::new();
    read_exceptions(documents, options, &mut diagnostics);
    diagnostics
}

fn read_exceptions(
    documents: &[(SourceId, Tree)],
    options: &Options,
    diagnostics: &mut Vec<Diagnostic>,
) -> Exceptions {
    let mut all = Exceptions::default();
    let exceptions = &mut all.classic;
    for (source, tree) in documents {
        for item in expand_list(tree) {
            let before = diagnostics.len();
            if document_kind(item) == DocumentKind::CelException {
                let exception = read_cel_exception(item, *source, diagnostics);
                if exception.is_some() {
                    check_constraints(item, tree, *source, options, diagnostics);
                }
                let failed = diagnostics.iter().skip(before).any(is_error);
                all.cel.extend(exception.filter(|_| !failed));
                continue;
            }
            let Some(exception) = read::read_exception(item, *source, diagnostics) else {
                continue;
            };
            check_constraints(item, tree, *source, options, diagnostics);
            if options.check {
                validate::validate_exception(&exception, diagnostics);
            }
            if !diagnostics.iter().skip(before).any(is_error) {
                exceptions.push(exception);
            }
        }
    }
    all
}

/// Kyverno does not check the items of a `List` (docs/spec/cli.md §9.3).
fn check_constraints(
    item: &Tree,
    document: &Tree,
    source: SourceId,
    options: &Options,
    diagnostics: &mut Vec<Diagnostic>,
) {
    if options.check && options.check_schema && std::ptr::eq(item, document) {
        constraints::check(item, source, diagnostics);
    }
}

fn is_error(diagnostic: &Diagnostic) -> bool {
    diagnostic.severity == Severity::Error
}

/// Reads and checks policies without compiling them, as Kyverno does when it loads them: a
/// call that can only fail gives just a warning.
pub fn check_documents(documents: &[(SourceId, Tree)], options: &Options) -> Vec<Diagnostic> {
    let mut diagnostics = Vec::new();
    read_policies(documents, None, options, &mut diagnostics);
    diagnostics
}

fn read_policies(
    documents: &[(SourceId, Tree)],
    to_compile: Option<&Sources>,
    options: &Options,
    diagnostics: &mut Vec<Diagnostic>,
) -> Vec<AnyPolicy> {
    // Kyverno loads a policy with a call that can only fail, or with a control that does
    // not exist; compiled, it would be an error at every evaluation or have no effect.
    let unworkable = match to_compile {
        Some(_) => Severity::Error,
        None => Severity::Warning,
    };
    let mut policies: Vec<AnyPolicy> = Vec::new();
    let mut bindings: Vec<AdmissionBinding> = Vec::new();
    let mut known = HashMap::new();
    for (source, tree) in documents {
        let file = to_compile.and_then(|sources| sources.iter().nth(source.0 as usize));
        let text = file.map_or("", |(_, file)| file.text.as_str());
        for item in expand_list(tree) {
            let before = diagnostics.len();
            let policy = match document_kind(item) {
                DocumentKind::ValidatingPolicy => {
                    let policy = read_validating_policy(item, *source, diagnostics);
                    let Some(policy) = policy else { continue };
                    check_constraints(item, tree, *source, options, diagnostics);
                    // Kyverno loads no policy with an expression that does not compile.
                    diagnostics.extend(validating_policy::check(&policy, text));
                    AnyPolicy::Validating(policy)
                }
                DocumentKind::AdmissionPolicy => {
                    let policy = read_admission_policy(item, *source, diagnostics);
                    let Some(policy) = policy else { continue };
                    check_constraints(item, tree, *source, options, diagnostics);
                    if options.check {
                        let rule = &policy;
                        cel::rule::check_admission_policy(rule, text, unworkable, diagnostics);
                    }
                    AnyPolicy::Admission(policy)
                }
                DocumentKind::AdmissionBinding => {
                    let binding = read_admission_binding(item, *source, diagnostics);
                    if binding.is_some() {
                        check_constraints(item, tree, *source, options, diagnostics);
                    }
                    let failed = diagnostics.iter().skip(before).any(is_error);
                    bindings.extend(binding.filter(|_| !failed));
                    continue;
                }
                _ => {
                    let policy = read::read_policy(item, *source, diagnostics);
                    let Some(mut policy) = policy else { continue };
                    check_constraints(item, tree, *source, options, diagnostics);
                    if options.ignore_assert {
                        policy.ignore_assert();
                    }
                    if options.check {
                        validate::validate_policy(&policy, text, unworkable, diagnostics);
                        cel::rule::check(&policy, text, unworkable, diagnostics);
                        lint::check(&policy, diagnostics);
                    }
                    AnyPolicy::Classic(policy)
                }
            };
            let failed = diagnostics.iter().skip(before).any(is_error);
            let identity = policy.identity();
            if let Some(&source) = known.get(&identity) {
                diagnostics.push(duplicate_policy(&policy, source));
            } else if !failed {
                known.insert(identity, policy.source());
                policies.push(policy);
            }
        }
    }
    add_bindings(bindings, &mut policies, diagnostics);
    policies
}

/// Adds every binding to the policy that it names.
fn add_bindings(
    bindings: Vec<AdmissionBinding>,
    policies: &mut [AnyPolicy],
    diagnostics: &mut Vec<Diagnostic>,
) {
    for binding in bindings {
        let named = policies.iter_mut().find_map(|policy| match policy {
            AnyPolicy::Admission(policy) if policy.name.value == binding.policy.value => {
                Some(policy)
            }
            _ => None,
        });
        match named {
            Some(policy) => policy.bindings.push(binding),
            None => {
                let message = format!(
                    "the binding {} names the policy `{}`, which is not there",
                    binding.name.value, binding.policy.value
                );
                let location = Location {
                    source: binding.source,
                    span: binding.policy.span,
                };
                let warning = Diagnostic::warning("binding-of-nothing", message, location);
                diagnostics.push(
                    warning
                        .subject(&binding.name.value)
                        .hint("give the file of the ValidatingAdmissionPolicy too"),
                );
            }
        }
    }
}

/// The items of a `List`, or the document itself.
fn expand_list(tree: &Tree) -> Vec<&Tree> {
    let is_list = tree.get("kind").and_then(Tree::as_str) == Some("List");
    match tree
        .get("items")
        .and_then(Tree::as_list)
        .filter(|_| is_list)
    {
        Some(items) => items.iter().collect(),
        None => vec![tree],
    }
}

fn duplicate_policy(policy: &AnyPolicy, twin: SourceId) -> Diagnostic {
    let (name, source) = (policy.name(), policy.source());
    let location = Location {
        source,
        span: name.span,
    };
    let same_file = if source == twin {
        "above in this file"
    } else {
        "in another file"
    };
    Diagnostic::error(
        "duplicate-policy",
        format!(
            "the policy '{}' is defined twice: it stands {same_file} already",
            name.value
        ),
        location,
    )
    .hint("remove or rename one of them")
    .subject(&name.value)
}

fn refuse(
    policy: &Policy,
    rule: &Rule,
    error: LowerError,
    sources: &Sources,
    options: &Options,
    diagnostics: &mut Vec<Diagnostic>,
    omitted: &mut Vec<OmittedRule>,
) {
    let subject = format!("{}/{}", policy.name.value, rule.name.value);
    match error {
        LowerError::Invalid(diagnostic) => diagnostics.push(diagnostic.subject(subject)),
        LowerError::Unsupported(unsupported) => {
            let span = if unsupported.span == Span::default() {
                rule.name.span
            } else {
                unsupported.span
            };
            let location = Location {
                source: policy.source,
                span,
            };
            if options.skip_unsupported {
                let place = sources.line_column(location);
                let file = &sources.file(policy.source).name;
                omitted.push(OmittedRule {
                    policy: policy.name.value.clone(),
                    rule: rule.name.value.clone(),
                    reason: format!("{} is not supported yet", unsupported.what),
                    place: format!("{file}:{}:{}", place.line, place.column),
                });
            } else {
                diagnostics.push(
                    Diagnostic::error("unsupported", format!("{} is not supported yet", unsupported.what), location)
                        .label("cannot be compiled")
                        .hint("leave such rules out with --skip-unsupported; they are then recorded in the bundle")
                        .subject(subject),
                );
            }
        }
    }
}

fn meta(policies: &[AnyPolicy], sources: &Sources, omitted: &[OmittedRule]) -> Meta {
    Meta {
        compiler: env!("CARGO_PKG_VERSION").into(),
        sources: sources.iter().map(|(_, file)| file.name.clone()).collect(),
        policies: policies.iter().map(AnyPolicy::meta).collect(),
        omitted: omitted.to_vec(),
    }
}
