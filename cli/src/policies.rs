//! Compiles policy files and exception files.
//!
//! A file given by name must contain policies. A directory may also contain other documents
//! (tests, resources, kustomizations): those are counted and reported, but only a policy of
//! an unsupported kind is an error there. An exception among policies applies only on
//! request; otherwise it is reported.

use std::collections::{BTreeMap, HashSet};
use std::io::{self, Read};
use std::path::PathBuf;

use kpvm_compiler::compile::{Compilation, Options, compile_with_exceptions};
use kpvm_compiler::diagnostic::{Diagnostic, Severity};
use kpvm_compiler::policy::read::{DocumentKind, document_kind};
use kpvm_compiler::source::{Location, SourceId, Sources};
use kpvm_syntax::manifest;
use kpvm_syntax::tree::{Tree, TreeValue};
use kpvm_syntax::yaml::{self, DuplicateKeys};

use crate::diagnostics::{self, show_error, show_note, show_warning};
use crate::input::{InputFile, Unreadable, read_inputs};
use crate::list::{Item, expand};
use crate::omitted;
use crate::problem::show_unreadable;
use crate::resources::Resources;
use crate::stream::Streams;
use crate::text::{clean, count};

/// API groups whose objects may be policies.
const POLICY_GROUPS: [&str; 3] = [
    "kyverno.io",
    "policies.kyverno.io",
    "admissionregistration.k8s.io",
];

/// All policies of a run, compiled.
#[derive(Debug, Default)]
pub struct Policies {
    /// The texts.
    pub sources: Sources,
    /// Result of compiling.
    pub compilation: Compilation,
    /// Inputs that could not be read.
    pub unreadable: Vec<Unreadable>,
    /// Policies of unsupported kinds, omitted on request.
    pub omitted_policies: Vec<OmittedPolicy>,
    /// Documents in directories that are not policies, counted by kind.
    pub others: BTreeMap<String, usize>,
    /// Policies skipped because they are invalid.
    pub invalid: Vec<InvalidPolicy>,
    /// Exceptions among the policies that are not applied: name and location of each.
    pub unused_exceptions: Vec<(String, String)>,
}

/// Sources of policies and exceptions.
#[derive(Debug, Clone, Copy)]
pub struct PolicyPaths<'p> {
    /// Files and directories of policies.
    pub policies: &'p [PathBuf],
    /// Files and directories of exceptions.
    pub exceptions: &'p [PathBuf],
    /// Whether exceptions among the policies apply.
    pub exceptions_within_policies: bool,
    /// Resources whose exceptions apply.
    pub exceptions_among: Option<&'p Resources>,
}

/// A policy that fails the load checks.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct InvalidPolicy {
    /// Its name.
    pub name: String,
    /// `file:line:column`.
    pub place: String,
    /// Its errors; never empty.
    pub errors: Vec<Diagnostic>,
}

impl InvalidPolicy {
    /// Summary of the errors.
    pub fn describe(&self) -> String {
        let reason = self.errors.first().map_or("", |error| &error.message);
        format!("skipped the invalid policy {}: {reason}", self.name)
    }
}

/// A policy of an unsupported kind.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OmittedPolicy {
    /// `apiVersion kind`.
    pub kind: String,
    /// Its name.
    pub name: String,
    /// `file:line:column`.
    pub place: String,
}

impl OmittedPolicy {
    /// What was omitted, and why.
    pub fn describe(&self) -> String {
        format!(
            "left out the {} {}: not supported yet",
            self.kind, self.name
        )
    }
}

/// Reads and compiles all policies with all exceptions.
pub fn load(paths: &PolicyPaths<'_>, stdin: &mut dyn Read, options: &Options) -> Policies {
    let (mut policies, documents) = read(paths, stdin, options);
    policies.compilation = documents.compile(&policies.sources, options);
    policies
}

/// Like [`load`], but skips invalid policies, as `kyverno apply` does (docs/spec/cli.md
/// §9.4). Documents that are not policies, and unsupported policies, remain errors.
pub fn load_valid(paths: &PolicyPaths<'_>, stdin: &mut dyn Read, options: &Options) -> Policies {
    let (mut policies, mut documents) = read(paths, stdin, options);
    let first = documents.compile(&policies.sources, options);
    match documents.take_invalid(&first, &policies.sources) {
        Some(invalid) => {
            policies.invalid = invalid;
            policies.compilation = documents.compile(&policies.sources, options);
        }
        None => policies.compilation = first,
    }
    policies
}

pub(crate) fn read(
    paths: &PolicyPaths<'_>,
    stdin: &mut dyn Read,
    options: &Options,
) -> (Policies, Documents) {
    let mut policies = Policies::default();
    let mut reader = Reader::new(&mut policies, options);
    reader.apply_exceptions = paths.exceptions_within_policies;
    reader.read(paths.policies, stdin);
    reader.only_exceptions = true;
    reader.read(paths.exceptions, stdin);
    if let Some(resources) = paths.exceptions_among {
        reader.add_exceptions_among(resources);
    }
    let documents = Documents {
        policies: reader.documents,
        exceptions: reader.exceptions,
        diagnostics: reader.diagnostics,
    };
    (policies, documents)
}

/// Documents to compile.
pub(crate) struct Documents {
    pub(crate) policies: Vec<(SourceId, Tree)>,
    pub(crate) exceptions: Vec<(SourceId, Tree)>,
    /// Diagnostics of other documents.
    pub(crate) diagnostics: Vec<Diagnostic>,
}

impl Documents {
    fn compile(&self, sources: &Sources, options: &Options) -> Compilation {
        let mut compilation = compile_with_exceptions(
            &self.policies,
            &self.exceptions,
            sources,
            options,
            self.diagnostics.clone(),
        );
        // In the order of the texts, whichever phase found them.
        compilation
            .diagnostics
            .sort_by_key(|one| (one.location.source, one.location.span.start));
        // A problem of a rule is also a problem of the rules generated from it, at the same
        // location.
        let mut seen = HashSet::new();
        compilation
            .diagnostics
            .retain(|one| seen.insert((one.code, one.location, one.message.clone())));
        compilation
    }

    /// Removes the policies that a compilation found invalid; `None` if there are none, or
    /// if there are other errors.
    fn take_invalid(
        &mut self,
        compilation: &Compilation,
        sources: &Sources,
    ) -> Option<Vec<InvalidPolicy>> {
        let mut errors: BTreeMap<usize, Vec<Diagnostic>> = BTreeMap::new();
        let all = compilation.diagnostics.iter();
        for error in all.filter(|one| one.severity == Severity::Error) {
            let is_about = |(source, tree): &(SourceId, Tree)| {
                let place = error.location.span.start;
                *source == error.location.source
                    && (tree.span.start..=tree.span.end).contains(&place)
            };
            let number = self.policies.iter().position(is_about)?;
            let (_, tree) = self.policies.get(number)?;
            let is_policy = matches!(document_kind(tree), DocumentKind::Policy(_));
            if !is_policy || error.code == "unsupported" {
                return None;
            }
            errors.entry(number).or_default().push(error.clone());
        }
        if errors.is_empty() {
            return None;
        }
        let mut invalid = Vec::new();
        let mut number = 0;
        self.policies.retain(|(source, tree)| {
            let errors = errors.remove(&number);
            number += 1;
            let Some(errors) = errors else { return true };
            invalid.push(InvalidPolicy {
                name: metadata(tree, "name").to_owned(),
                place: shown_place(tree, *source, sources),
                errors,
            });
            false
        });
        Some(invalid)
    }
}

/// Standalone exceptions, for compiled policies.
#[derive(Debug, Default)]
pub struct Exceptions {
    /// Result of reading them; `compilation` contains only diagnostics.
    pub read: Policies,
    /// The documents.
    pub documents: Vec<(SourceId, Tree)>,
}

/// Reads the exceptions of all paths, which contain no policies.
pub fn load_exceptions(
    paths: &PolicyPaths<'_>,
    stdin: &mut dyn Read,
    options: &Options,
) -> Exceptions {
    let (mut policies, documents) = read(paths, stdin, options);
    policies.compilation.diagnostics = documents.diagnostics;
    Exceptions {
        read: policies,
        documents: documents.exceptions,
    }
}

struct Reader<'p> {
    policies: &'p mut Policies,
    options: &'p Options,
    /// Whether the current files contain only exceptions.
    only_exceptions: bool,
    /// Whether exceptions among policies apply.
    apply_exceptions: bool,
    documents: Vec<(SourceId, Tree)>,
    exceptions: Vec<(SourceId, Tree)>,
    diagnostics: Vec<Diagnostic>,
}

impl<'p> Reader<'p> {
    fn new(policies: &'p mut Policies, options: &'p Options) -> Self {
        Self {
            policies,
            options,
            only_exceptions: false,
            apply_exceptions: false,
            documents: Vec::new(),
            exceptions: Vec::new(),
            diagnostics: Vec::new(),
        }
    }

    fn read(&mut self, paths: &[PathBuf], stdin: &mut dyn Read) {
        let inputs = read_inputs(paths, stdin);
        self.policies.unreadable.extend(inputs.unreadable);
        for file in inputs.files {
            self.add_file(file);
        }
    }

    /// Adds the text of an exception among the resources to the policies' texts, so that
    /// its errors have a location.
    fn add_exceptions_among(&mut self, resources: &Resources) {
        let mut known = BTreeMap::new();
        for resource in &resources.list {
            if classify(&resource.tree) == Class::Exception {
                let sources = &mut self.policies.sources;
                let source = *known.entry(resource.source).or_insert_with(|| {
                    let file = resources.sources.file(resource.source);
                    sources.add(file.name.clone(), file.text.clone())
                });
                self.exceptions.push((source, resource.tree.clone()));
            }
        }
    }

    fn add_file(&mut self, file: InputFile) {
        let options = yaml::Options {
            duplicate_keys: DuplicateKeys::Refuse,
            limits: &self.options.limits,
        };
        let documents = manifest::read_all(&file.text, options);
        let source = self.policies.sources.add(file.name, file.text);
        for document in documents {
            match document {
                Ok(tree) if tree.is_null() => {}
                Ok(tree) => self.add_document(tree, source, file.from_directory),
                Err(error) => self.refuse("yaml", error.kind.to_string(), source, error.span),
            }
        }
    }

    fn add_document(&mut self, document: Tree, source: SourceId, from_directory: bool) {
        for item in expand(document) {
            match item {
                Item::Object(tree) => self.add_object(tree, source, from_directory),
                Item::Empty(_) => {}
                Item::Bad(_, _) if from_directory => self.set_aside("no object"),
                Item::Bad(span, message) => self.refuse("not-a-policy", message, source, span),
            }
        }
    }

    fn add_object(&mut self, tree: Tree, source: SourceId, from_directory: bool) {
        let class = classify(&tree);
        if self.only_exceptions {
            return match class {
                Class::Policy | Class::UnsupportedPolicy { .. } | Class::Other(_)
                    if from_directory =>
                {
                    self.set_aside(text(&tree, "kind"));
                }
                // The compiler reports documents that are not exceptions.
                _ => self.exceptions.push((source, tree)),
            };
        }
        match class {
            // The compiler reports documents that are not policies.
            Class::Policy => self.documents.push((source, tree)),
            Class::Exception if self.apply_exceptions => self.exceptions.push((source, tree)),
            Class::Exception => self.keep_unused(&tree, source),
            Class::UnsupportedPolicy { kind, .. } if self.options.skip_unsupported => {
                let kind = format!("{} {kind}", text(&tree, "apiVersion"));
                self.omit(&tree, source, kind);
            }
            Class::UnsupportedPolicy { kind, .. } => {
                let kind = format!("{} {kind}", text(&tree, "apiVersion"));
                let message = format!("policies of the kind {kind} are not supported yet");
                let span = tree.get("kind").map_or(tree.span, |kind| kind.span);
                self.refuse("unsupported", message, source, span);
                if let Some(diagnostic) = self.diagnostics.last_mut() {
                    diagnostic.hint =
                        Some("leave such policies out with --skip-unsupported".into());
                }
            }
            Class::Other(what) if from_directory => self.set_aside(&what),
            Class::Other(_) => self.documents.push((source, tree)),
        }
    }

    fn omit(&mut self, tree: &Tree, source: SourceId, kind: String) {
        let place = shown_place(tree, source, &self.policies.sources);
        let name = metadata(tree, "name").to_owned();
        self.policies
            .omitted_policies
            .push(OmittedPolicy { kind, name, place });
    }

    fn keep_unused(&mut self, exception: &Tree, source: SourceId) {
        let place = shown_place(exception, source, &self.policies.sources);
        let name = match metadata(exception, "namespace") {
            "" => metadata(exception, "name").to_owned(),
            namespace => format!("{namespace}/{}", metadata(exception, "name")),
        };
        self.policies.unused_exceptions.push((name, place));
    }

    fn set_aside(&mut self, what: &str) {
        *self
            .policies
            .others
            .entry(what.trim().to_owned())
            .or_default() += 1;
    }

    fn refuse(
        &mut self,
        code: &'static str,
        message: String,
        source: SourceId,
        span: kpvm_syntax::tree::Span,
    ) {
        self.diagnostics
            .push(Diagnostic::error(code, message, Location { source, span }));
    }
}

/// Class of a document among policies.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Class {
    /// A policy that the compiler reads, or a document that cannot be told from one.
    Policy,
    /// A policy of an unsupported kind.
    UnsupportedPolicy {
        /// Its kind.
        kind: String,
        /// Its name.
        name: String,
    },
    /// A PolicyException.
    Exception,
    /// Anything else, as text.
    Other(String),
}

/// Classifies a document by `apiVersion` and `kind`.
pub fn classify(tree: &Tree) -> Class {
    let (api_version, kind) = match document_kind(tree) {
        DocumentKind::Policy(_)
        | DocumentKind::AdmissionPolicy
        | DocumentKind::AdmissionBinding
        | DocumentKind::NotAnObject => return Class::Policy,
        DocumentKind::ValidatingPolicy => {
            let mode = tree.get("spec").and_then(|spec| spec.get("evaluation"));
            let mode = mode.map_or("", |evaluation| text(evaluation, "mode"));
            if !matches!(mode, "HTTP" | "Envoy") {
                return Class::Policy;
            }
            let kind = format!("{} in the mode {mode}", text(tree, "kind"));
            let name = metadata(tree, "name").to_owned();
            return Class::UnsupportedPolicy { kind, name };
        }
        DocumentKind::PolicyException | DocumentKind::CelException => return Class::Exception,
        DocumentKind::Other { api_version, kind } => (api_version, kind),
    };
    let group = api_version.split('/').next().unwrap_or("");
    if POLICY_GROUPS.contains(&group) && kind == "PolicyException" {
        Class::Exception
    } else if POLICY_GROUPS.contains(&group) && kind.contains("Policy") {
        let metadata = tree.get("metadata");
        let name = metadata.map_or("", |metadata| text(metadata, "name"));
        Class::UnsupportedPolicy {
            kind,
            name: name.to_owned(),
        }
    } else if kind.is_empty() {
        Class::Other("no kind".to_owned())
    } else {
        Class::Other(format!("{api_version} {kind}").trim().to_owned())
    }
}

fn text<'t>(tree: &'t Tree, key: &str) -> &'t str {
    match tree.get(key).map(|value| &value.value) {
        Some(TreeValue::String(text)) => text,
        _ => "",
    }
}

/// `file:line:column`
fn shown_place(tree: &Tree, source: SourceId, sources: &Sources) -> String {
    let location = Location {
        source,
        span: tree.span,
    };
    let place = sources.line_column(location);
    let file = &sources.file(source).name;
    format!("{file}:{}:{}", place.line, place.column)
}

fn metadata<'t>(tree: &'t Tree, key: &str) -> &'t str {
    tree.get("metadata")
        .map_or("", |metadata| text(metadata, key))
}

impl Policies {
    /// Whether something could not be read or has errors.
    pub fn has_errors(&self) -> bool {
        self.compilation.has_errors() || !self.unreadable.is_empty()
    }

    /// Whether there was no policy, valid or not.
    pub fn is_empty(&self) -> bool {
        self.compilation.policies == 0 && self.invalid.is_empty() && !self.has_errors()
    }

    /// Names of policies that were read but are not evaluated.
    pub fn not_evaluated(&self) -> impl Iterator<Item = &str> {
        let omitted = self
            .omitted_policies
            .iter()
            .map(|policy| policy.name.as_str());
        let invalid = self.invalid.iter().map(|policy| policy.name.as_str());
        omitted.chain(invalid)
    }

    /// Reports everything notable about the policies.
    ///
    /// # Errors
    /// Fails if the writer fails.
    pub fn show(&self, streams: &mut Streams<'_>) -> io::Result<()> {
        for unreadable in &self.unreadable {
            show_unreadable(unreadable, streams)?;
        }
        let of_invalid = self.invalid.iter().flat_map(|policy| &policy.errors);
        for diagnostic in of_invalid.chain(&self.compilation.diagnostics) {
            diagnostics::show(diagnostic, &self.sources, streams.err)?;
        }
        for omitted in &self.omitted_policies {
            let message = format!("{} ({})", omitted.describe(), omitted.place);
            show_warning(&clean(&message), streams.err)?;
        }
        for (name, place) in &self.unused_exceptions {
            let message = format!(
                "the PolicyException {} is not applied: give its file with --exception ({})",
                clean(name),
                clean(place)
            );
            show_warning(&message, streams.err)?;
        }
        omitted::show(&self.compilation.omitted, streams)?;
        if !self.others.is_empty() {
            let number = self.others.values().sum();
            let kinds: Vec<String> = self
                .others
                .iter()
                .map(|(what, number)| format!("{}: {number}", clean(what)))
                .collect();
            let subject = count(number, "document");
            let message = format!(
                "passed over {subject} of the directories, no policies ({})",
                kinds.join(", ")
            );
            show_note(&message, streams.err)?;
        }
        match diagnostics::summary(&self.compilation.diagnostics) {
            Some(summary) if self.compilation.has_errors() => show_error(&summary, streams.err),
            Some(summary) => show_warning(&summary, streams.err),
            None => Ok(()),
        }
    }
}
