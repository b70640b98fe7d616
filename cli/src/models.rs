//! Loads policies as typed models, with the resources of an API server, for commands that
//! inspect policies without running them.

use std::io;
use std::path::PathBuf;

use kpvm_compiler::compile::{Options, check_documents, check_exceptions};
use kpvm_compiler::diagnostic::Diagnostic;
use kpvm_compiler::policy::discovery::Discovery;
use kpvm_compiler::policy::model::{Policy, PolicyException};
use kpvm_compiler::policy::read::{DocumentKind, document_kind, read_exception, read_policy};
use kpvm_compiler::policy::read_validating::{read_cel_exception, read_validating_policy};
use kpvm_compiler::policy::validating_policy::{CelException, ValidatingPolicy};
use kpvm_compiler::source::Location;
use kpvm_semantics::limits::Limits;
use kpvm_syntax::manifest;
use kpvm_syntax::yaml::{self, DuplicateKeys};
use serde_json::{Value, json};

use crate::diagnostics::{show_error, show_note};
use crate::input::read_inputs;
use crate::list::{Item, expand};
use crate::policies::{self, Policies, PolicyPaths};
use crate::serialised::{write_json, write_yaml};
use crate::stream::{EXIT_BAD_INPUT, EXIT_FAILED, Streams};
use crate::text::count;

/// Arguments of such commands.
#[derive(Debug, clap::Args)]
pub struct ModelArguments {
    /// Policy files, directories (searched recursively), or - for standard input
    #[arg(required = true, value_name = "PATH")]
    pub paths: Vec<PathBuf>,
    /// CustomResourceDefinitions of kinds that are not built in: files or directories
    #[arg(long = "crd", value_name = "FILE")]
    pub definitions: Vec<PathBuf>,
    /// Omit policies of kinds that are not supported yet, and list them
    #[arg(long)]
    pub skip_unsupported: bool,
    /// Format of the output
    #[arg(short, long, value_enum, default_value_t)]
    pub output: Form,
}

/// Formats of documents for Kubernetes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, clap::ValueEnum)]
pub enum Form {
    /// YAML documents
    #[default]
    Yaml,
    /// One JSON object; several documents are a List
    Json,
}

/// Everything that was read.
#[derive(Debug)]
pub struct Models {
    /// The texts and their diagnostics.
    pub read: Policies,
    /// The policies that Kyverno would load.
    pub policies: Vec<Policy>,
    /// Those of policies.kyverno.io.
    pub validating: Vec<ValidatingPolicy>,
    /// Number of Kubernetes admission policies and bindings, which no command uses.
    pub admission: usize,
    /// The exceptions.
    pub exceptions: Vec<PolicyException>,
    /// Exceptions for policies of policies.kyverno.io.
    pub cel_exceptions: Vec<CelException>,
    /// Resources of an API server.
    pub discovery: Discovery,
}

/// Reads policies, exceptions and definitions, and reports errors; returns the exit code if
/// they are fatal.
///
/// # Errors
/// Fails if the writer fails.
pub fn load(
    arguments: &ModelArguments,
    exceptions: &[PathBuf],
    streams: &mut Streams<'_>,
) -> io::Result<Result<Models, u8>> {
    let options = Options {
        skip_unsupported: arguments.skip_unsupported,
        ..Options::default()
    };
    let paths = PolicyPaths {
        policies: &arguments.paths,
        exceptions,
        exceptions_within_policies: true,
        exceptions_among: None,
    };
    let mut models = read_models(&paths, &mut io::stdin(), &options);
    read_definitions(&arguments.definitions, &mut models);
    models.read.show(streams)?;
    if !models.read.unreadable.is_empty() {
        return Ok(Err(EXIT_BAD_INPUT));
    }
    if models.read.compilation.has_errors() {
        return Ok(Err(EXIT_FAILED));
    }
    if models.admission > 0 {
        let number = count(models.admission, "document");
        let message = format!(
            "passed over {number} of ValidatingAdmissionPolicies: the API server evaluates them itself"
        );
        show_note(&message, streams.err)?;
    }
    let has_policies = !models.policies.is_empty() || !models.validating.is_empty();
    if !has_policies && models.read.omitted_policies.is_empty() {
        show_error("there is no policy in the inputs", streams.err)?;
        return Ok(Err(EXIT_BAD_INPUT));
    }
    Ok(Ok(models))
}

/// Reads all policies and exceptions and checks them as Kyverno does when they are
/// loaded, but compiles nothing: rules that are not supported yet are there as well.
fn read_models(paths: &PolicyPaths<'_>, stdin: &mut dyn io::Read, options: &Options) -> Models {
    let (mut read, documents) = policies::read(paths, stdin, options);
    let diagnostics = &mut read.compilation.diagnostics;
    diagnostics.extend(documents.diagnostics);
    diagnostics.extend(check_documents(&documents.policies, options));
    diagnostics.extend(check_exceptions(&documents.exceptions, options));
    // What is wrong has been said.
    let mut said = Vec::new();
    let mut models = Models {
        policies: Vec::new(),
        validating: Vec::new(),
        admission: 0,
        exceptions: Vec::new(),
        cel_exceptions: Vec::new(),
        discovery: Discovery::default(),
        read,
    };
    for (source, tree) in &documents.policies {
        match document_kind(tree) {
            DocumentKind::ValidatingPolicy => {
                let policy = read_validating_policy(tree, *source, &mut said);
                models.validating.extend(policy);
            }
            DocumentKind::AdmissionPolicy | DocumentKind::AdmissionBinding => {
                models.admission += 1;
            }
            _ => models
                .policies
                .extend(read_policy(tree, *source, &mut said)),
        }
    }
    for (source, tree) in &documents.exceptions {
        match document_kind(tree) {
            DocumentKind::CelException => {
                let exception = read_cel_exception(tree, *source, &mut said);
                models.cel_exceptions.extend(exception);
            }
            _ => models
                .exceptions
                .extend(read_exception(tree, *source, &mut said)),
        }
    }
    models
}

/// Ignores documents other than definitions.
fn read_definitions(paths: &[PathBuf], models: &mut Models) {
    let inputs = read_inputs(paths, &mut io::empty());
    models.read.unreadable.extend(inputs.unreadable);
    for file in inputs.files {
        let options = yaml::Options {
            duplicate_keys: DuplicateKeys::Refuse,
            limits: &Limits::DEFAULT,
        };
        let documents = manifest::read_all(&file.text, options);
        let source = models.read.sources.add(file.name, file.text);
        for document in documents {
            let document = match document {
                Ok(tree) if tree.is_null() => continue,
                Ok(tree) => tree,
                Err(error) => {
                    let location = Location {
                        source,
                        span: error.span,
                    };
                    let error = Diagnostic::error("yaml", error.kind.to_string(), location);
                    models.read.compilation.diagnostics.push(error);
                    continue;
                }
            };
            for item in expand(document) {
                if let Item::Object(tree) = item
                    && tree.get("kind").and_then(kpvm_syntax::tree::Tree::as_str)
                        == Some("CustomResourceDefinition")
                {
                    models.discovery.define(&tree);
                }
            }
        }
    }
}

/// Writes documents for Kubernetes.
///
/// # Errors
/// Fails if the writer fails.
pub fn write(documents: &[Value], form: Form, out: &mut dyn io::Write) -> io::Result<()> {
    match (form, documents) {
        (Form::Json, [only]) => write_json(only, out),
        (Form::Json, all) => write_json(
            &json!({"apiVersion": "v1", "kind": "List", "items": all}),
            out,
        ),
        (Form::Yaml, all) => {
            for (index, document) in all.iter().enumerate() {
                if index > 0 {
                    writeln!(out, "---")?;
                }
                write_yaml(document, out)?;
            }
            Ok(())
        }
    }
}
