//! Answers an AdmissionReview, as a webhook does for every request:
//! `cargo run -p kpvm --example admission_review`.
//!
//! `serve` is the body of a handler. A server keeps one [`Worker`] for each thread.

#![allow(clippy::print_stdout)]

use std::error::Error;

use kpvm::document::DocumentBuffer;
use kpvm::engine::{Engine, FailurePolicy, Review, ReviewResponse, Session};
use kpvm_compiler::compile::{Options, compile};
use kpvm_compiler::source::Sources;

const POLICY: &str = "
apiVersion: kyverno.io/v1
kind: ClusterPolicy
metadata: {name: require-team}
spec:
  rules:
  - name: label-team
    match: {any: [{resources: {kinds: [Pod]}}]}
    validate:
      failureAction: Enforce
      message: 'The label `team` is required: it says whom to call.'
      pattern: {metadata: {labels: {team: '?*'}}}
";

const BODY: &[u8] = br#"{
    "apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview",
    "request": {
        "uid": "705ab4f5-6393-11e8-b7cc-42010a800002", "operation": "CREATE",
        "kind": {"group": "", "version": "v1", "kind": "Pod"},
        "resource": {"group": "", "version": "v1", "resource": "pods"},
        "name": "web", "namespace": "shop", "userInfo": {"username": "ann"},
        "object": {"apiVersion": "v1", "kind": "Pod",
                   "metadata": {"name": "web", "namespace": "shop"}}
    }
}"#;

/// What a thread keeps between requests.
struct Worker<'e> {
    session: Session<'e>,
    buffer: DocumentBuffer,
}

impl Worker<'_> {
    /// The body of the HTTP response. An error is answered with HTTP status 400.
    fn serve(&mut self, body: &[u8]) -> Result<String, Box<dyn Error>> {
        let limits = self.session.engine().config().limits();
        let review = Review::read(body, &mut self.buffer, limits)?;
        // `decide` is faster, but names only the first rule that refuses.
        let request = review.request();
        let evaluation = self.session.evaluate(&request)?;
        let responses = evaluation.responses();
        let response = ReviewResponse::from_responses(&review, responses, FailurePolicy::Fail);
        Ok(response.to_json())
    }
}

fn main() -> Result<(), Box<dyn Error>> {
    let mut sources = Sources::new();
    sources.add("require-team.yaml", POLICY);
    let compilation = compile(&sources, &Options::default());
    let engine = Engine::load(compilation.bundle.ok_or("the policy has errors")?)?;
    let mut worker = Worker {
        session: Session::new(&engine),
        buffer: DocumentBuffer::new(),
    };
    let answer = worker.serve(BODY)?;
    println!("{answer}");
    assert!(answer.contains(r#""allowed":false"#));
    Ok(())
}
