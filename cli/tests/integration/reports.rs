//! Snapshots of every output format for the quick start of the corpus.

use std::path::Path;
use std::process::Command;

use crate::common::Files;

fn output(program: &str, arguments: &[&str]) -> String {
    let output = Command::new(program)
        .args(arguments)
        .current_dir(Path::new(env!("CARGO_MANIFEST_DIR")).join("../corpus/demo"))
        .env("SOURCE_DATE_EPOCH", "1700000000")
        .output()
        .unwrap();
    assert_eq!(String::from_utf8_lossy(&output.stderr), "");
    String::from_utf8(output.stdout).unwrap()
}

fn report(format: &str) -> String {
    output(
        env!("CARGO_BIN_EXE_kpvm"),
        &["apply", "policies", "-i", "-r", "resources", "-o", format],
    )
}

/// Report of `kpvm apply` for a suite of podSecurity.
fn pod_security(format: &str) -> String {
    let folder = "../policies/pod-security/restricted-with-exclusions";
    let (policy, resources) = (
        format!("{folder}/policy.yaml"),
        format!("{folder}/resources.yaml"),
    );
    let arguments = ["apply", &policy, "-i", "-r", &resources, "-o", format];
    output(env!("CARGO_BIN_EXE_kpvm"), &arguments)
}

#[test]
fn pod_security_as_text() {
    insta::assert_snapshot!(pod_security("text"));
}

/// The properties contain controls and images of failures.
#[test]
fn pod_security_as_policy_report() {
    insta::assert_snapshot!(pod_security("policyreport"));
}

/// docs/spec/cli.md §10.4.
#[test]
fn pod_security_as_exceptions() {
    insta::assert_snapshot!(pod_security("exceptions"));
}

#[test]
fn text() {
    insta::assert_snapshot!(report("text"));
}

#[test]
fn json() {
    insta::assert_snapshot!(report("json"));
}

#[test]
fn yaml() {
    insta::assert_snapshot!(report("yaml"));
}

#[test]
fn policy_report() {
    insta::assert_snapshot!(report("policyreport"));
}

/// Generated rules are explained under the name of the written rule.
#[test]
fn explain() {
    let rule = "pin-image-tags/image-has-a-fixed-tag";
    insta::assert_snapshot!(output(
        env!("CARGO_BIN_EXE_kpvm"),
        &["apply", "policies", "-r", "resources", "--explain", rule],
    ));
}

#[test]
fn yaml_and_json_say_the_same() {
    let options = kpvm_syntax::yaml::Options {
        duplicate_keys: kpvm_syntax::yaml::DuplicateKeys::Refuse,
        limits: &kpvm_semantics::limits::Limits::DEFAULT,
    };
    let [json, yaml] = ["json", "yaml"].map(|format| {
        let mut documents = kpvm_syntax::yaml::read_all(&report(format), options);
        documents.pop().unwrap().unwrap()
    });
    assert_eq!(json, yaml);
}

#[test]
fn limits() {
    insta::assert_snapshot!(output(env!("CARGO_BIN_EXE_kpvm"), &["limits"]));
}

#[test]
fn inspect() {
    let bundle = Path::new(env!("CARGO_TARGET_TMPDIR")).join("inspect.kpb");
    let bundle = bundle.to_str().unwrap();
    let compiled = Command::new(env!("CARGO_BIN_EXE_kpc"))
        .args(["compile", "policies/limit-memory.yaml", "-o", bundle])
        .current_dir(Path::new(env!("CARGO_MANIFEST_DIR")).join("../corpus/demo"))
        .status()
        .unwrap();
    assert!(compiled.success());
    let text = output(env!("CARGO_BIN_EXE_kpc"), &["inspect", bundle]);
    // Digest and sizes change with every instruction; the content must not.
    let stable = text.split("\nsections").next().unwrap();
    let stable: Vec<&str> = stable
        .lines()
        .filter(|line| !line.starts_with("digest") && !line.starts_with("size"))
        .collect();
    insta::assert_snapshot!(stable.join("\n"));
}

/// A namespaced policy whose document has no namespace: it applies to objects of `default`
/// only (one of CEL to all), and is reported as a cluster policy is
/// (`cmd/cli/kubectl-kyverno/report/report.go` of Kyverno).
#[test]
fn namespaced_policies_without_a_namespace() {
    let policies = "apiVersion: kyverno.io/v1
kind: Policy
metadata: {name: p}
spec:
  rules:
    - name: r
      match: {any: [{resources: {kinds: [Pod]}}]}
      validate: {message: m, pattern: {spec: {x: y}}}
---
apiVersion: policies.kyverno.io/v1
kind: NamespacedValidatingPolicy
metadata: {name: nv}
spec:
  matchConstraints: {resourceRules: [{apiGroups: [''], apiVersions: [v1], operations: [CREATE], resources: [pods]}]}
  validations: [{expression: 'false', message: m}]
";
    let resources = "apiVersion: v1
kind: Pod
metadata: {name: a}
spec: {x: z}
---
apiVersion: v1
kind: Pod
metadata: {name: b, namespace: other}
spec: {x: z}
";
    let exception = "apiVersion: kyverno.io/v2
kind: PolicyException
metadata: {name: e, namespace: other}
spec:
  match: {any: [{resources: {kinds: [Pod]}}]}
  exceptions: [{policyName: p, ruleNames: [r]}]
";
    let files = Files::new(
        "no_namespace",
        &[
            ("p.yaml", policies),
            ("r.yaml", resources),
            ("e.yaml", exception),
        ],
    );
    let done = files.run(
        "kpvm",
        &["apply", "p.yaml", "-r", "r.yaml", "--policy-report"],
    );
    let lines = |start: &str| -> Vec<&str> {
        let lines = done.out.lines().map(str::trim);
        lines.filter(|line| line.starts_with(start)).collect()
    };
    assert_eq!(lines("kind: ClusterReport"), ["kind: ClusterReport"]);
    assert_eq!(lines("kind: PolicyReport"), [""; 0]);
    assert_eq!(
        lines("policy: "),
        ["policy: p", "policy: nv", "policy: nv"],
        "{}",
        done.out
    );
    // An exception names it without a namespace, too.
    let with_exception = ["apply", "p.yaml", "-r", "r.yaml", "-e", "e.yaml"];
    let done = files.run("kpvm", &with_exception);
    assert!(
        done.out.contains("fail: 2") && done.out.contains("skip: 1"),
        "{done:?}"
    );
}

/// Only the rules of Kyverno's own policies are named in the table of `apply`
/// (`cmd/cli/kubectl-kyverno/commands/apply/table.go`); in that of `test` every one is
/// (`commands/test/output.go`).
#[test]
fn rules_of_admission_policies_in_tables() {
    let policies = "apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingAdmissionPolicy
metadata: {name: v}
spec:
  matchConstraints: {resourceRules: [{apiGroups: [''], apiVersions: [v1], operations: [CREATE], resources: [pods]}]}
  validations: [{expression: 'false', message: m}]
---
apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingAdmissionPolicyBinding
metadata: {name: b}
spec: {policyName: v, validationActions: [Deny]}
";
    let suite = "apiVersion: cli.kyverno.io/v1alpha1
kind: Test
metadata: {name: t}
policies: [p.yaml]
resources: [r.yaml]
results: [{policy: v, isValidatingAdmissionPolicy: true, kind: Pod, resources: [a], result: fail}]
";
    let pod = "apiVersion: v1\nkind: Pod\nmetadata: {name: a}\n";
    let files = Files::new(
        "admission_table",
        &[
            ("p.yaml", policies),
            ("r.yaml", pod),
            ("kyverno-test.yaml", suite),
        ],
    );
    let row = |arguments: &[&str]| {
        let done = files.run("kpvm", arguments);
        let cells = |line: &str| -> Vec<String> {
            line.split('│').map(|cell| cell.trim().to_owned()).collect()
        };
        let mut rows = done.out.lines().map(cells);
        let row = rows.find(|cells| cells.get(1).is_some_and(|number| number == "1"));
        row.unwrap_or_else(|| panic!("{done:?}"))
    };
    let applied = row(&["apply", "p.yaml", "-r", "r.yaml", "-t"]);
    assert_eq!(applied[2..6], ["v", "", "default/Pod/a", "Fail"]);
    let tested = row(&["test", ".", "-o", "table"]);
    assert_eq!(tested[2..6], ["v", "v", "v1/Pod/default/a", "Pass"]);
}
