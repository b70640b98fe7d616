//! `kpc webhooks` and `kpc vap`: output, messages for people, exit codes.

use crate::common::{Done, Files};

const POLICIES: &str = "\
apiVersion: kyverno.io/v1
kind: ClusterPolicy
metadata:
  name: short-names
spec:
  rules:
    - name: short
      match:
        any:
          - resources:
              kinds: [Deployment]
              operations: [CREATE, UPDATE]
      validate:
        failureAction: Enforce
        cel:
          generate: true
          expressions:
            - expression: size(object.metadata.name) <= 20
              message: too long
---
apiVersion: kyverno.io/v1
kind: ClusterPolicy
metadata:
  name: no-swans
spec:
  failurePolicy: Ignore
  rules:
    - name: none
      match:
        any:
          - resources:
              kinds: [Swan, Service]
              operations: [CREATE]
      validate:
        message: none
        deny: {}
";

const EXCEPTION: &str = "\
apiVersion: kyverno.io/v2
kind: PolicyException
metadata:
  name: legacy
  namespace: shop
spec:
  exceptions:
    - policyName: short-names
      ruleNames: [short]
  match:
    any:
      - resources:
          kinds: [Deployment]
          names: [legacy]
";

const DEFINITION: &str = "\
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata:
  name: swans.lake.io
spec:
  group: lake.io
  scope: Cluster
  names: {kind: Swan, plural: swans}
  versions: [{name: v1, served: true, storage: true}]
";

fn files(test: &str) -> Files {
    Files::new(
        test,
        &[
            ("policies.yaml", POLICIES),
            ("exception.yaml", EXCEPTION),
            ("crd.yaml", DEFINITION),
        ],
    )
}

fn shown(done: &Done) -> String {
    format!(
        "exit code {}\n----- standard output\n{}----- standard error\n{}",
        done.code, done.out, done.err
    )
}

#[test]
fn webhooks() {
    let files = files("webhooks");
    let done = files.run("kpc", &["webhooks", "policies.yaml"]);
    insta::assert_snapshot!(shown(&done));
    let arguments = [
        "webhooks",
        "policies.yaml",
        "--crd",
        "crd.yaml",
        "-o",
        "json",
    ];
    let done = files.run("kpc", &arguments);
    assert_eq!((done.code, done.err.as_str()), (0, ""));
    let found: serde_json::Value = serde_json::from_str(&done.out).unwrap();
    assert_eq!(found["kind"], "ValidatingWebhookConfiguration");
    let rules = found["webhooks"][0]["rules"].as_array().unwrap();
    assert_eq!(rules[1]["resources"], serde_json::json!(["swans"]));
}

#[test]
fn vap() {
    let files = files("vap");
    let done = files.run(
        "kpc",
        &["vap", "policies.yaml", "--exception", "exception.yaml"],
    );
    insta::assert_snapshot!(shown(&done));
    let json = files
        .run("kpc", &["vap", "policies.yaml", "-o", "json"])
        .out;
    let json: serde_json::Value = serde_json::from_str(&json).unwrap();
    assert_eq!(json["kind"], "List");
    assert_eq!(json["items"].as_array().unwrap().len(), 2);
}

#[test]
fn what_cannot_be_read_ends_the_command() {
    let broken = POLICIES.replace("message: none", "mesage: none");
    let files = Files::new("models", &[("broken.yaml", &broken), ("empty.yaml", "")]);
    for command in ["webhooks", "vap"] {
        for (file, code, part) in [
            ("broken.yaml", 1, "did you mean `message`?"),
            ("empty.yaml", 2, "there is no policy in the inputs"),
            ("nowhere.yaml", 2, "nowhere.yaml"),
        ] {
            let done = files.run("kpc", &[command, file]);
            assert_eq!(
                (done.code, done.out.as_str()),
                (code, ""),
                "{command} {file}"
            );
            assert!(done.err.contains(part), "{}", done.err);
        }
    }
}
