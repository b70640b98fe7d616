//! `kpvm test` as a shell sees it: every output format for a suite with every kind of row,
//! exit codes, and passes that compare nothing.

use crate::common::{Done, Files};

const POLICIES: &str = "\
apiVersion: kyverno.io/v1
kind: ClusterPolicy
metadata: {name: need-team}
spec:
  rules:
  - name: team
    match:
      any:
      - resources:
          kinds: [Pod]
    validate:
      message: Say the team | or leave.
      pattern:
        metadata:
          labels:
            team: ?*
  - name: signed
    match: {any: [{resources: {kinds: [Pod]}}]}
    validate: {manifests: {attestors: [{entries: [{keys: {publicKeys: x}}]}]}}
---
apiVersion: kyverno.io/v1
kind: ClusterPolicy
metadata: {name: never-loads}
spec:
  rules:
  - name: team
    match: {any: [{resources: {kinds: [Pod], selector: {matchExpressions: [{key: a, operator: Bad}]}}}]}
    validate: {message: x, pattern: {kind: Pod}}
";

const OBJECTS: &str = "\
apiVersion: v1
kind: Pod
metadata:
  name: good
  labels: {team: a}
---
apiVersion: v1
kind: Pod
metadata:
  name: bad
  labels:
    team: ''
---
apiVersion: v1
kind: Service
metadata: {name: web}
";

const SUITE: &str = "\
apiVersion: cli.kyverno.io/v1alpha1
kind: Test
metadata:
  name: every-kind-of-row
policies: [policies.yaml]
resources: [objects.yaml]
results:
- {policy: need-team, rule: team, resources: [good], result: pass}
- {policy: need-team, rule: team, resources: [bad], result: pass}
- {policy: need-team, rule: team, resources: [web], result: fail}
- {policy: need-team, rule: taem, resources: [good], result: fail}
- {policy: need-taem, rule: team, resources: [good], result: pass}
- {policy: need-team, rule: signed, resources: [default/good], result: pass}
- {policy: never-loads, rule: team, resources: [good], result: pass}
";

fn files(test: &str) -> Files {
    Files::new(
        test,
        &[
            ("suite/kyverno-test.yaml", SUITE),
            ("suite/policies.yaml", POLICIES),
            ("suite/objects.yaml", OBJECTS),
            ("empty/readme.txt", ""),
            ("fine/kyverno-test.yaml", &first_rows(1)),
            ("fine/policies.yaml", POLICIES),
            ("fine/objects.yaml", OBJECTS),
            (
                "excluded/kyverno-test.yaml",
                &first_rows(3).replace("[bad], result: pass", "[bad], result: fail"),
            ),
            ("excluded/policies.yaml", POLICIES),
            ("excluded/objects.yaml", OBJECTS),
            (
                "broken/kyverno-test.yaml",
                &SUITE.replace("objects.yaml", "missing.yaml"),
            ),
            ("broken/policies.yaml", POLICIES),
        ],
    )
}

/// The suite with only its first rows.
fn first_rows(rows: usize) -> String {
    let head = SUITE.lines().take(7 + rows);
    head.map(|line| format!("{line}\n")).collect()
}

fn test(name: &str, arguments: &[&str]) -> Done {
    let all: Vec<&str> = std::iter::once("test")
        .chain(arguments.iter().copied())
        .collect();
    files(&format!("test_{name}")).run("kpvm", &all)
}

#[test]
fn text() {
    let done = test("text", &["suite"]);
    assert_eq!(done.code, 1, "{}", done.err);
    insta::assert_snapshot!(done.out);
    insta::assert_snapshot!("text_warnings", done.err);
}

#[test]
fn text_in_detail() {
    insta::assert_snapshot!(test("detail", &["suite", "-v"]).out);
}

#[test]
fn table() {
    insta::assert_snapshot!(test("table", &["suite", "-o", "table"]).out);
}

#[test]
fn table_of_failures_with_messages() {
    let arguments = ["suite", "-o", "table", "--fail-only", "--detailed-results"];
    insta::assert_snapshot!(test("failures", &arguments).out);
}

#[test]
fn json() {
    insta::assert_snapshot!(test("json", &["suite", "-o", "json"]).out);
}

#[test]
fn yaml() {
    insta::assert_snapshot!(test("yaml", &["suite", "--output", "yaml", "--fail-only"]).out);
}

#[test]
fn markdown() {
    let arguments = ["suite", "--output-format", "markdown", "--detailed-results"];
    insta::assert_snapshot!(test("markdown", &arguments).out);
}

#[test]
fn exit_codes() {
    for (arguments, code) in [
        ("fine", 0),
        ("suite", 1),
        ("fine suite", 1),
        // Bad input takes precedence over failures, and the others still run.
        ("broken", 2),
        ("broken suite", 2),
        ("missing", 2),
        ("fine missing", 2),
        ("https://github.com/kyverno/policies", 2),
        // An empty run fails only on request.
        ("empty", 0),
        ("empty --require-tests", 1),
        ("empty --fail-on-empty", 1),
        ("fine --fail-on-empty", 0),
        ("excluded", 0),
        ("excluded --fail-on-empty", 1),
        ("suite -t rule=signed", 0),
        ("suite -t rule=signed --fail-on-unsupported", 1),
        ("suite -t policy=none", 0),
        ("suite -t policy=none --fail-on-empty", 1),
        ("fine -t polcy=x", 2),
        ("fine -f other.yaml --require-tests", 1),
        ("fine/kyverno-test.yaml", 0),
        ("fine -o xml", 2),
        ("", 2),
    ] {
        let words: Vec<&str> = arguments
            .split(' ')
            .filter(|word| !word.is_empty())
            .collect();
        let done = test("codes", &words);
        assert_eq!(done.code, code, "{arguments}: {}{}", done.out, done.err);
    }
}

/// Rows that are compared with nothing, omitted or not found are reported.
#[test]
fn nothing_passes_unseen() {
    for (arguments, expected) in [
        (
            "empty",
            "there is no file named kyverno-test.yaml below the paths",
        ),
        (
            "suite -t policy=none",
            "there is no row to look at in 1 suite file",
        ),
        ("broken fine", "missing.yaml: no such file or directory"),
        ("broken fine", "kyverno-test.yaml:6:13"),
        (
            "broken fine",
            "1 suite could not be used; the others were run",
        ),
        ("https://h/o/r", "git repositories are not fetched"),
        ("suite", "no rule named `taem`; did you mean `team`?"),
        ("suite", "1 row could not be judged"),
        ("fine --registry -b main", "--registry has no effect"),
        ("fine --registry -b main", "--git-branch has no effect"),
        ("fine -t x", "Invalid test-case-selector argument (x)"),
    ] {
        let words: Vec<&str> = arguments.split(' ').collect();
        let done = test("unseen", &words);
        let err = anstream::adapter::strip_str(&done.err).to_string();
        assert!(err.contains(expected), "{arguments}: {err}");
    }
    let out = test("unseen", &["suite"]).out;
    for expected in [
        "the suite has no policy named `need-taem`; did you mean `need-team`?",
        "2 rows agreed without anything being compared: no rule gave a result",
        "1 row agreed without anything being compared: the policy is invalid",
        "unsupported: 1 row: validate.manifests is not supported yet",
    ] {
        assert!(out.contains(expected), "{out}");
    }
}

/// The whole payload goes to the file, without colours, and nowhere else.
#[test]
fn output_file() {
    let files = files("test_file");
    let to_stream = files.run("kpvm", &["test", "suite", "-o", "json"]);
    let to_file = files.run(
        "kpvm",
        &["test", "suite", "-o", "json", "--output-file", "out.json"],
    );
    assert_eq!((to_file.code, to_file.out.as_str()), (1, ""));
    let written = std::fs::read_to_string(files.0.join("out.json")).unwrap();
    assert_eq!(written, to_stream.out);
    for bad in ["none/out.json", "/dev/full"] {
        let cannot = files.run("kpvm", &["test", "fine", "--output-file", bad]);
        assert_eq!(cannot.code, 2, "{bad}");
        let expected = format!("cannot write {bad}");
        assert!(cannot.err.contains(&expected), "{}", cannot.err);
    }
}

/// Unreadable inputs are also in the payload.
#[test]
fn problems_are_part_of_the_payload() {
    let out = test("problems", &["missing", "broken", "-o", "json"]).out;
    let report: serde_json::Value = serde_json::from_str(&out).unwrap();
    let files: Vec<&str> = report["problems"]
        .as_array()
        .unwrap()
        .iter()
        .filter(|problem| problem["severity"] == "error")
        .map(|problem| problem["file"].as_str().unwrap())
        .collect();
    assert_eq!(files, ["missing", "broken/kyverno-test.yaml"]);
    assert_eq!(report["totals"]["brokenSuites"], 2);
}

/// Hostile inputs, row 109: a report that cannot be written completely is a failure.
#[test]
#[cfg(target_os = "linux")]
fn output_that_cannot_be_written_is_a_failure() {
    let files = files("test_pipes");
    let full = std::fs::OpenOptions::new()
        .write(true)
        .open("/dev/full")
        .unwrap();
    let run = |stdout: std::process::Stdio| {
        std::process::Command::new(env!("CARGO_BIN_EXE_kpvm"))
            .args(["test", "fine", "-o", "json"])
            .current_dir(&files.0)
            .stdout(stdout)
            .stderr(std::process::Stdio::piped())
            .spawn()
            .unwrap()
    };
    let done = run(full.into()).wait_with_output().unwrap();
    assert_eq!(done.status.code(), Some(2));
    let err = String::from_utf8_lossy(&done.stderr).into_owned();
    assert!(err.contains("the output cannot be written"), "{err}");
    let mut child = run(std::process::Stdio::piped());
    drop(child.stdout.take());
    assert_eq!(child.wait_with_output().unwrap().status.code(), Some(2));
}

/// Suites run in parallel; the output does not depend on which finishes first.
#[test]
fn the_same_input_gives_the_same_output() {
    let files = files("test_order");
    let run = || {
        files
            .run("kpvm", &["test", "suite", "fine", "excluded", "-o", "json"])
            .out
    };
    let first = run();
    for _ in 0..5 {
        assert_eq!(run(), first);
    }
}
