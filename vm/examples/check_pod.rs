//! Compiles a policy and checks a Pod: `cargo run -p kpvm --example check_pod`.
//!
//! Most programs load a bundle that `kpc compile` wrote and need no compiler.

#![allow(clippy::print_stdout)]

use std::error::Error;

use kpvm::engine::{Engine, Input, Request, Session, Status};
use kpvm_compiler::compile::{Options, compile};
use kpvm_compiler::source::Sources;

const POLICY: &str = "
apiVersion: kyverno.io/v1
kind: ClusterPolicy
metadata: {name: pin-image-tags}
spec:
  rules:
  - name: image-has-a-fixed-tag
    match: {any: [{resources: {kinds: [Pod]}}]}
    validate:
      message: Give every image a tag other than latest.
      pattern: {spec: {containers: [{image: '*:* & !*:latest'}]}}
";

const POD: &[u8] = br#"{
    "apiVersion": "v1", "kind": "Pod", "metadata": {"name": "web", "namespace": "shop"},
    "spec": {"containers": [{"name": "web", "image": "registry.example.com/web:latest"}]}
}"#;

fn main() -> Result<(), Box<dyn Error>> {
    let mut sources = Sources::new();
    sources.add("pin-image-tags.yaml", POLICY);
    let compilation = compile(&sources, &Options::default());
    let bundle = compilation.bundle.ok_or("the policy has errors")?;

    let engine = Engine::load(bundle)?;
    let mut session = Session::new(&engine);
    let evaluation = session.evaluate(&Request::create(Input::Json(POD)))?;
    for response in evaluation.responses() {
        println!(
            "{} {}: {}",
            response.rule(),
            response.status(),
            response.message()
        );
        if let Some(failure) = response.failure() {
            println!("  at {} is {}", failure.path, failure.found);
            println!("  demanded in line {} of the policy", failure.line);
        }
        assert_eq!(response.status(), Status::Fail);
    }
    Ok(())
}
