//! Compiles a policy and evaluates one request, for tables of worked cases.

use kpvm::engine::{Engine, Input, Request, Session};
use kpvm_compiler::compile::{Compilation, Options, compile_with_exceptions};
use kpvm_compiler::policy::read::{DocumentKind, document_kind};
use kpvm_compiler::source::{SourceId, Sources};
use kpvm_semantics::limits::Limits;
use kpvm_syntax::yaml::{self, DuplicateKeys};

/// One response.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Response {
    pub(crate) rule: String,
    pub(crate) status: String,
    pub(crate) message: String,
    pub(crate) enforced: bool,
}

/// Compiles policies in YAML, with the exceptions among them, without the load check; or
/// returns the error.
pub(crate) fn compile(policies: &str) -> Result<Vec<u8>, String> {
    let options = Options {
        check: false,
        ..Options::default()
    };
    let compilation = compile_with(policies, &options);
    compilation
        .bundle
        .ok_or_else(|| format!("{:?}", compilation.diagnostics))
}

/// Result of compiling policies and exceptions in YAML.
pub(crate) fn compile_with(policies: &str, compiling: &Options) -> Compilation {
    let options = yaml::Options {
        duplicate_keys: DuplicateKeys::Refuse,
        limits: &Limits::DEFAULT,
    };
    let mut sources = Sources::new();
    sources.add("policy.yaml", policies);
    let documents: Vec<_> = yaml::read_all(policies, options)
        .into_iter()
        .map(|tree| {
            (
                SourceId(0),
                tree.unwrap_or_else(|error| panic!("{error}: {policies}")),
            )
        })
        .collect();
    let (exceptions, policies): (Vec<_>, Vec<_>) = documents.into_iter().partition(|(_, tree)| {
        let kind = document_kind(tree);
        matches!(
            kind,
            DocumentKind::PolicyException | DocumentKind::CelException
        )
    });
    compile_with_exceptions(&policies, &exceptions, &sources, compiling, Vec::new())
}

/// The responses to a request.
pub(crate) fn evaluate(policies: &str, request: &Request<'_>) -> Vec<Response> {
    let bytes = compile(policies).unwrap_or_else(|error| panic!("{error}\n{policies}"));
    let engine = Engine::load(bytes).unwrap();
    let mut session = Session::new(&engine);
    let evaluation = session.evaluate(request).unwrap();
    evaluation
        .responses()
        .map(|response| Response {
            rule: response.rule().to_owned(),
            status: response.status().to_string(),
            message: response.message().into_owned(),
            enforced: response.is_enforced(),
        })
        .collect()
}

/// The responses to the creation of an object (JSON).
pub(crate) fn create(policies: &str, object: &str) -> Vec<Response> {
    evaluate(policies, &Request::create(Input::Json(object.as_bytes())))
}

/// A rule in YAML flow style: name, match and validate.
pub(crate) fn rule(name: &str, matched: &str, validate: &str) -> String {
    format!("{{name: '{name}', {matched}, validate: {validate}}}")
}

/// A cluster policy `p` with these rules and further fields of the spec.
pub(crate) fn policy(rules: &[String], spec: &str) -> String {
    format!(
        "{{apiVersion: kyverno.io/v1, kind: ClusterPolicy, metadata: {{name: p}}, spec: {{{spec} rules: [{}]}}}}",
        rules.join(", ")
    )
}

/// Compares the responses with `rule STATUS` texts, where STATUS is one letter: P, F, S, E.
pub(crate) fn letters(responses: &[Response]) -> Vec<String> {
    let letter = |status: &str| status[..1].to_uppercase();
    responses
        .iter()
        .map(|response| format!("{} {}", response.rule, letter(&response.status)))
        .collect()
}
