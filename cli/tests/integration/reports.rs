//! Snapshots of every output format for the quick start of the corpus.

use std::path::Path;
use std::process::Command;

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
