//! The programs as a shell sees them: exit codes, streams, and kinds of input.

use std::process::{Command, Stdio};

use crate::common::{Done, Files};

pub(crate) const POLICY: &str = "\
apiVersion: kyverno.io/v1
kind: ClusterPolicy
metadata:
  name: need-team
  annotations:
    policies.kyverno.io/severity: high
spec:
  rules:
    - name: team
      match:
        any:
          - resources:
              kinds: [Pod]
      validate:
        message: Say the team.
        pattern:
          metadata:
            labels:
              team: '?*'
";

const GOOD: &str = "{apiVersion: v1, kind: Pod, metadata: {name: good, labels: {team: a}}}\n";
pub(crate) const BAD: &str = "{apiVersion: v1, kind: Pod, metadata: {name: bad, labels: {}}}\n";
const OTHER: &str = "{apiVersion: v1, kind: Service, metadata: {name: other}}\n";

/// The last line of the text report.
pub(crate) fn counts(done: &Done) -> &str {
    done.out.lines().last().unwrap_or("")
}

#[test]
fn exit_codes_of_apply() {
    let unscored = POLICY.replace("severity: high", "scored: 'false'");
    let enforced = POLICY.replace("  rules:", "  validationFailureAction: Enforce\n  rules:");
    let files = Files::new(
        "exit_codes",
        &[
            ("p.yaml", POLICY),
            ("unscored.yaml", &unscored),
            ("enforced.yaml", &enforced),
            ("good.yaml", GOOD),
            ("bad.yaml", BAD),
            ("other.yaml", OTHER),
            ("broken.yaml", "kind: [\n"),
        ],
    );
    // docs/spec/cli.md §9.7 and 9.9, and cases 53 to 56.
    for (arguments, code, expected) in [
        (
            "p.yaml -r good.yaml",
            0,
            "pass: 1, fail: 0, warn: 0, error: 0, skip: 0",
        ),
        (
            "p.yaml -r bad.yaml",
            1,
            "pass: 0, fail: 1, warn: 0, error: 0, skip: 0",
        ),
        (
            "p.yaml -r bad.yaml --audit-warn",
            0,
            "pass: 0, fail: 0, warn: 1, error: 0, skip: 0",
        ),
        (
            "enforced.yaml -r bad.yaml --audit-warn",
            1,
            "pass: 0, fail: 1, warn: 0, error: 0, skip: 0",
        ),
        (
            "unscored.yaml -r bad.yaml",
            0,
            "pass: 0, fail: 0, warn: 1, error: 0, skip: 0",
        ),
        (
            "unscored.yaml -r bad.yaml --warn-exit-code 3",
            3,
            "pass: 0, fail: 0, warn: 1, error: 0, skip: 0",
        ),
        (
            "p.yaml -r other.yaml",
            0,
            "pass: 0, fail: 0, warn: 0, error: 0, skip: 0",
        ),
        (
            "p.yaml -r other.yaml --fail-on-empty",
            1,
            "pass: 0, fail: 0, warn: 0, error: 0, skip: 0",
        ),
        (
            "p.yaml -r other.yaml --warn-no-pass",
            0,
            "pass: 0, fail: 0, warn: 0, error: 0, skip: 0",
        ),
        (
            "p.yaml -r other.yaml --warn-no-pass --warn-exit-code 5",
            5,
            "pass: 0, fail: 0, warn: 0, error: 0, skip: 0",
        ),
        (
            "p.yaml -r good.yaml,broken.yaml",
            2,
            "pass: 1, fail: 0, warn: 0, error: 0, skip: 0",
        ),
        (
            "p.yaml -r missing.yaml -r bad.yaml",
            2,
            "pass: 0, fail: 1, warn: 0, error: 0, skip: 0",
        ),
        ("broken.yaml -r good.yaml", 2, ""),
        ("missing.yaml -r good.yaml", 2, ""),
        ("good.yaml -r good.yaml", 2, ""),
        ("p.yaml", 2, ""),
        ("p.yaml -r good.yaml --operation CONNECT", 2, ""),
        ("- -r -", 2, ""),
        // A pattern is not evaluated on DELETE (docs/spec/policies.md, case 38).
        (
            "p.yaml -r bad.yaml --operation DELETE",
            0,
            "pass: 0, fail: 0, warn: 0, error: 0, skip: 0",
        ),
        (
            "p.yaml -r bad.yaml --operation update",
            1,
            "pass: 0, fail: 1, warn: 0, error: 0, skip: 0",
        ),
        // Old and new objects violate the rule, which is allowed (docs/spec/policies.md,
        // case 47).
        (
            "enforced.yaml -r bad.yaml --operation UPDATE",
            0,
            "pass: 0, fail: 0, warn: 0, error: 0, skip: 1",
        ),
    ] {
        let arguments: Vec<&str> = ["apply"].into_iter().chain(arguments.split(' ')).collect();
        let done = files.run("kpvm", &arguments);
        assert_eq!(
            (done.code, counts(&done)),
            (code, expected),
            "{arguments:?}\n{}",
            done.err
        );
    }
}

#[test]
fn a_bundle_gives_what_its_policies_give() {
    let files = Files::new(
        "bundle",
        &[
            ("p.yaml", POLICY),
            ("r/bad.yaml", BAD),
            ("r/good.yaml", GOOD),
        ],
    );
    let compiled = files.run("kpc", &["compile", "p.yaml", "-o", "p.kpb"]);
    assert_eq!(
        (compiled.code, compiled.out.as_str()),
        (0, ""),
        "{}",
        compiled.err
    );
    for format in ["json", "yaml", "policyreport", "sarif", "junit", "github"] {
        let evaluated = files.run("kpvm", &["eval", "p.kpb", "r", "-o", format]);
        let applied = files.run("kpvm", &["apply", "p.yaml", "-r", "r", "-o", format]);
        assert_eq!(
            (evaluated.code, &evaluated.out),
            (1, &applied.out),
            "{format}"
        );
    }
    // A bundle knows the location in the policy, but not the line's text.
    let text = |arguments: &[&str]| files.run("kpvm", arguments).out;
    let evaluated = text(&["eval", "p.kpb", "r"]);
    let applied = text(&["apply", "p.yaml", "-r", "r"]);
    for part in ["p.yaml:19:21", "found nothing at /metadata/labels/team"] {
        assert!(evaluated.contains(part) && applied.contains(part), "{part}");
    }
    assert!(!evaluated.contains("demanded here") && applied.contains("demanded here"));
    assert_eq!(evaluated.lines().last(), applied.lines().last());
    for (arguments, expected) in [
        (
            ["disasm", "p.kpb", "--rule=need-team/team"],
            "rule need-team/team for Pod",
        ),
        (
            ["inspect", "p.kpb", "--output=text"],
            "reads /metadata/labels/team",
        ),
        (
            ["compile", "p.yaml", "--emit=policy"],
            "ClusterPolicy need-team",
        ),
        (
            ["compile", "p.yaml", "--emit=optimised"],
            "policy need-team",
        ),
        (
            ["inspect", "p.kpb", "--output=json"],
            "\"/metadata/labels/team\"",
        ),
    ] {
        let done = files.run("kpc", &arguments);
        assert_eq!(done.code, 0, "{}", done.err);
        assert!(done.out.contains(expected), "{}", done.out);
    }
    for (program, arguments) in [
        (
            "kpc",
            ["disasm", "p.kpb", "--rule=need-team/none"].as_slice(),
        ),
        ("kpc", &["disasm", "p.yaml"]),
        ("kpc", &["inspect", "missing.kpb"]),
        ("kpvm", &["eval", "p.yaml", "r"]),
        ("kpc", &["compile", "p.yaml", "-o", "no/such/place.kpb"]),
        ("kpc", &["compile", "p.yaml", "-o", "-"]),
        ("kpc", &["compile", "p.yaml"]),
        ("kpc", &["compile", "p.yaml", "--emit=ir", "-o", "x.kpb"]),
    ] {
        let done = files.run(program, arguments);
        assert_eq!((done.code, done.out.as_str()), (2, ""), "{arguments:?}");
        assert!(done.err.starts_with("error: "), "{}", done.err);
    }
}

#[test]
fn inputs_of_every_kind() {
    let list = "{apiVersion: v1, kind: List, items: [{apiVersion: v1, kind: Pod, metadata: {name: a}}, \
                {kind: List, items: [{apiVersion: v1, kind: Pod, metadata: {name: b}}]}]}";
    let json =
        "{\n\t\"apiVersion\": \"v1\", \"kind\": \"Pod\",\n\t\"metadata\": {\"name\": \"c\"}}";
    let files = Files::new(
        "inputs",
        &[
            ("p.yaml", POLICY),
            ("d/one.yml", &format!("{GOOD}---\n{BAD}")),
            ("d/deep/two.json", json),
            ("d/.hidden/no.yaml", BAD),
            ("d/.no.yaml", BAD),
            ("d/notes.txt", "not read"),
            ("list.yaml", list),
            (
                "odd.yaml",
                "{kind: List, items: [null, {metadata: {name: x}}, {apiVersion: v1, kind: Pod}]}",
            ),
            ("null.yaml", "{kind: PodList, apiVersion: v1, items: null}"),
            ("empty.yaml", "# nothing\n"),
            ("none/readme.md", ""),
        ],
    );
    for (arguments, input, code, expected) in [
        (
            &["d"][..],
            "",
            1,
            "pass: 1, fail: 2, warn: 0, error: 0, skip: 0",
        ),
        (
            &["-"],
            BAD,
            1,
            "pass: 0, fail: 1, warn: 0, error: 0, skip: 0",
        ),
        (
            &["-", "d/one.yml"],
            json,
            1,
            "pass: 1, fail: 2, warn: 0, error: 0, skip: 0",
        ),
        (
            &["list.yaml"],
            "",
            1,
            "pass: 0, fail: 2, warn: 0, error: 0, skip: 0",
        ),
        (
            &["odd.yaml"],
            "",
            2,
            "pass: 0, fail: 1, warn: 0, error: 0, skip: 0",
        ),
        (
            &["null.yaml"],
            "",
            0,
            "pass: 0, fail: 0, warn: 0, error: 0, skip: 0",
        ),
        (
            &["empty.yaml"],
            "",
            0,
            "pass: 0, fail: 0, warn: 0, error: 0, skip: 0",
        ),
        (
            &["none"],
            "",
            2,
            "pass: 0, fail: 0, warn: 0, error: 0, skip: 0",
        ),
        (
            &["-", "-"],
            GOOD,
            2,
            "pass: 1, fail: 0, warn: 0, error: 0, skip: 0",
        ),
    ] {
        let resources = arguments.iter().flat_map(|path| ["-r", path]);
        let arguments: Vec<&str> = ["apply", "p.yaml"].into_iter().chain(resources).collect();
        let done = files.run_with_input("kpvm", &arguments, input);
        assert_eq!(
            (done.code, counts(&done)),
            (code, expected),
            "{arguments:?}\n{}",
            done.err
        );
    }
    let odd = files.run("kpvm", &["apply", "p.yaml", "-r", "odd.yaml"]);
    assert!(
        odd.err.contains("odd.yaml:1:22") && odd.err.contains("odd.yaml:1:28"),
        "{}",
        odd.err
    );
    let null = files.run("kpvm", &["apply", "p.yaml", "-r", "null.yaml"]);
    assert!(null.err.contains("1 list held no items"), "{}", null.err);
    let unmatched = files.run_with_input("kpvm", &["apply", "p.yaml", "-r", "-"], OTHER);
    assert!(
        unmatched
            .err
            .contains("no rule applied to any resource (3 rules, 1 resource)"),
        "{}",
        unmatched.err
    );
    let stdin = files.run_with_input("kpvm", &["apply", "-", "-r", "d"], POLICY);
    assert_eq!(
        counts(&stdin),
        "pass: 1, fail: 2, warn: 0, error: 0, skip: 0",
        "{}",
        stdin.err
    );
}

/// docs/spec/cli.md §10.1 and 10.2.
#[test]
fn policy_reports_of_namespaced_and_unscored_policies() {
    let namespaced = POLICY
        .replace("kind: ClusterPolicy", "kind: Policy")
        .replace("name: need-team", "name: local\n  namespace: shop");
    let unscored = POLICY.replace("severity: high", "scored: 'false'").replace(
        "    - name: team\n",
        "    - name: team\n      reportProperties: {owner: 'yes', failMessage: Ask the owner.}\n",
    );
    let resource = BAD.replace("name: bad", "name: bad, namespace: shop");
    let files = Files::new(
        "reports",
        &[
            ("p/local.yaml", &namespaced),
            ("p/unscored.yaml", &unscored),
            ("r.yaml", &resource),
        ],
    );
    let done = files.run(
        "kpvm",
        &["apply", "p", "-r", "r.yaml", "-o", "policyreport"],
    );
    assert_eq!(done.code, 1, "{}", done.err);
    insta::assert_snapshot!(done.out);
}

#[test]
fn every_error_of_every_policy_file_is_told() {
    let files = Files::new(
        "errors",
        &[
            ("a.yaml", &POLICY.replace("pattern:", "patern:")),
            ("b.yaml", &POLICY.replace("kinds: [Pod]", "kinds: Pod")),
            ("c.yaml", "kind: [\n"),
            ("kustomization.yaml", "resources: [a.yaml]\n"),
            (
                "test.yaml",
                "apiVersion: cli.kyverno.io/v1alpha1\nkind: Test\n",
            ),
        ],
    );
    let done = files.run("kpc", &["check", "."]);
    assert_eq!((done.code, done.out.as_str()), (1, ""));
    insta::assert_snapshot!(done.err);
    let named = files.run("kpc", &["check", "test.yaml"]);
    assert_eq!(named.code, 1);
    assert!(
        named.err.contains("found cli.kyverno.io/v1alpha1 Test"),
        "{}",
        named.err
    );
    assert_eq!(files.run("kpc", &["compile", ".", "-o", "x.kpb"]).code, 1);
    assert!(!files.0.join("x.kpb").exists());
    assert_eq!(
        files
            .run("kpc", &["check", "kustomization.yaml", "missing.yaml"])
            .code,
        2
    );
}

#[test]
fn what_is_not_supported_is_an_error_or_left_out_and_told() {
    let mutate = POLICY.split("      validate:").next().unwrap().to_owned()
        + "      mutate: {patchStrategicMerge: {metadata: {labels: {team: none}}}}\n";
    let other = "apiVersion: policies.kyverno.io/v1\nkind: MutatingPolicy\nmetadata: {name: new}\n";
    let files = Files::new(
        "unsupported",
        &[
            ("p/mutate.yaml", &mutate),
            ("p/mpol.yaml", other),
            ("p/plain.yaml", &POLICY.replace("need-team", "plain")),
            ("r.yaml", BAD),
        ],
    );
    let refused = files.run("kpvm", &["apply", "p", "-r", "r.yaml"]);
    assert_eq!((refused.code, refused.out.as_str()), (2, ""));
    assert_eq!(
        refused.err.matches("error[unsupported]").count(),
        2,
        "{}",
        refused.err
    );
    let skipped = files.run(
        "kpvm",
        &["apply", "p", "-r", "r.yaml", "--skip-unsupported"],
    );
    assert_eq!(
        (skipped.code, counts(&skipped)),
        (1, "pass: 0, fail: 1, warn: 0, error: 0, skip: 0")
    );
    for part in [
        "need-team/team",
        "policies.kyverno.io/v1 MutatingPolicy new",
        "not supported yet: 1 rule, 2 generated rules, 1 whole policy",
    ] {
        assert!(skipped.err.contains(part), "{part}: {}", skipped.err);
    }
}

#[test]
fn users_and_namespaces_decide_what_matches() {
    let with_user = POLICY.replace(
        "kinds: [Pod]",
        "kinds: [Pod]\n            subjects: [{kind: User, name: ann}]",
    );
    let with_user = with_user.replace("spec:\n", "spec:\n  background: false\n");
    let selected = POLICY.replace(
        "kinds: [Pod]",
        "kinds: [Pod]\n              namespaceSelector: {matchLabels: {env: live}}",
    );
    let files = Files::new(
        "users",
        &[
            ("user-policy.yaml", &with_user),
            ("selected.yaml", &selected),
            ("r.yaml", BAD),
            (
                "ann.yaml",
                "apiVersion: cli.kyverno.io/v1alpha1\nkind: UserInfo\nuserInfo: {username: ann}\n",
            ),
            ("bob.yaml", "userInfo: {username: bob}\n"),
            ("bad.yaml", "subject: {}\n"),
        ],
    );
    for (arguments, code) in [
        (
            &["user-policy.yaml", "-r", "r.yaml", "-u", "ann.yaml"][..],
            1,
        ),
        (
            &[
                "user-policy.yaml",
                "-r",
                "r.yaml",
                "-u",
                "bob.yaml",
                "--fail-on-empty",
            ],
            1,
        ),
        (&["user-policy.yaml", "-r", "r.yaml", "-u", "bad.yaml"], 2),
        (
            &["user-policy.yaml", "-r", "r.yaml", "-u", "missing.yaml"],
            2,
        ),
        (&["selected.yaml", "-r", "r.yaml"], 0),
        (
            &[
                "selected.yaml",
                "-r",
                "r.yaml",
                "--namespace-labels",
                "default=env=live",
            ],
            1,
        ),
        (
            &[
                "selected.yaml",
                "-r",
                "r.yaml",
                "--namespace-labels",
                "other=env=live",
            ],
            0,
        ),
        (
            &[
                "selected.yaml",
                "-r",
                "r.yaml",
                "--namespace-labels",
                "default",
            ],
            2,
        ),
    ] {
        let arguments: Vec<&str> = ["apply"].iter().chain(arguments).copied().collect();
        let done = files.run("kpvm", &arguments);
        assert_eq!(done.code, code, "{arguments:?}\n{}{}", done.out, done.err);
    }
}

#[test]
fn a_resource_cannot_steer_the_terminal() {
    let evil = "{\"apiVersion\": \"v1\", \"kind\": \"Pod\", \"metadata\": {\"name\": \"a\\u001b[2Jb\\npass: 9\", \
                \"labels\": {\"team\": \"\"}, \"namespace\": \"\\u202en\"}}";
    let files = Files::new("evil", &[("p.yaml", POLICY), ("r.json", evil)]);
    let done = files.run("kpvm", &["apply", "p.yaml", "-r", "r.json"]);
    assert_eq!(done.code, 1);
    assert!(!done.out.contains(['\u{1b}', '\u{202e}']), "{}", done.out);
    assert!(
        done.out.contains("\\u{202e}n/a\\u{1b}[2Jb\\npass: 9"),
        "{}",
        done.out
    );
}

#[test]
fn colour_is_for_terminals_only_and_the_payload_is_alone_on_its_stream() {
    let files = Files::new(
        "streams",
        &[
            ("p.yaml", POLICY),
            ("r.yaml", BAD),
            ("broken.yaml", "a: [\n"),
        ],
    );
    let done = files.run(
        "kpvm",
        &["apply", "p.yaml", "-r", "r.yaml,broken.yaml", "-o", "json"],
    );
    assert!(!done.out.contains('\u{1b}') && !done.err.contains('\u{1b}'));
    let forced = Command::new(env!("CARGO_BIN_EXE_kpvm"))
        .args(["apply", "p.yaml", "-r", "r.yaml"])
        .current_dir(&files.0)
        .env("CLICOLOR_FORCE", "1")
        .output()
        .unwrap();
    assert!(forced.stdout.contains(&0x1b));
    let report: serde_json::Value = serde_json::from_str(&done.out).unwrap();
    assert_eq!(report["summary"]["fail"], 1);
    assert_eq!(report["problems"][0]["file"], "broken.yaml");
}

#[test]
#[cfg(unix)]
fn links_in_directories() {
    use std::os::unix::fs::symlink;
    let files = Files::new(
        "links",
        &[
            ("p.yaml", POLICY),
            ("d/r.yaml", BAD),
            ("other/r.yaml", GOOD),
        ],
    );
    symlink("../other/r.yaml", files.0.join("d/linked.yaml")).unwrap();
    symlink("../d", files.0.join("d/loop")).unwrap();
    symlink("../other", files.0.join("d/directory.yaml")).unwrap();
    let done = files.run("kpvm", &["apply", "p.yaml", "-r", "d"]);
    let expected = "pass: 1, fail: 1, warn: 0, error: 0, skip: 0";
    assert_eq!((done.code, counts(&done)), (1, expected), "{}", done.err);
    symlink("nowhere", files.0.join("d/broken.yaml")).unwrap();
    let done = files.run("kpvm", &["apply", "p.yaml", "-r", "d"]);
    assert_eq!((done.code, counts(&done)), (2, expected), "{}", done.err);
    assert!(
        done.err.contains("cannot read d/broken.yaml"),
        "{}",
        done.err
    );
}

#[test]
#[cfg(target_os = "linux")]
fn output_that_cannot_be_written_is_a_failure_without_a_panic() {
    let files = Files::new("pipes", &[("p.yaml", POLICY), ("r.yaml", BAD)]);
    let full = std::fs::OpenOptions::new()
        .write(true)
        .open("/dev/full")
        .unwrap();
    let run = |stdout: Stdio| {
        Command::new(env!("CARGO_BIN_EXE_kpvm"))
            .args(["apply", "p.yaml", "-i", "-r", "r.yaml"])
            .current_dir(&files.0)
            .stdout(stdout)
            .stderr(Stdio::piped())
            .spawn()
            .unwrap()
    };
    let done = run(full.into()).wait_with_output().unwrap();
    assert_eq!(done.status.code(), Some(2));
    assert!(String::from_utf8_lossy(&done.stderr).contains("the output cannot be written"));
    let mut child = run(Stdio::piped());
    drop(child.stdout.take());
    let done = child.wait_with_output().unwrap();
    assert_eq!(done.status.code(), Some(2));
    assert_eq!(String::from_utf8_lossy(&done.stderr), "");
}

/// Row 109 of the hostile inputs: an interrupted run reports nothing.
#[test]
#[cfg(target_os = "linux")]
fn an_interrupted_run_leaves_no_half_report() {
    use std::os::unix::process::ExitStatusExt;

    let files = Files::new("interrupted", &[("p.yaml", POLICY), ("old", "as it was")]);
    let mut child = Command::new(env!("CARGO_BIN_EXE_kpvm"))
        .args(["apply", "p.yaml", "-r", "-", "--output-file", "old"])
        .args(["--report", "json=new"])
        .current_dir(&files.0)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    // Its input is not at its end, so it waits.
    let mut input = child.stdin.take().unwrap();
    std::io::Write::write_all(&mut input, GOOD.as_bytes()).unwrap();
    let id = child.id().to_string();
    // A shell that runs the tests in the background ignores SIGINT for them.
    let kill = Command::new("kill").args(["-TERM", &id]).status().unwrap();
    assert!(kill.success());
    let done = child.wait_with_output().unwrap();
    assert_eq!(done.status.signal(), Some(15));
    assert_eq!(String::from_utf8_lossy(&done.stdout), "");
    let mut left: Vec<_> = std::fs::read_dir(&files.0)
        .unwrap()
        .map(|entry| entry.unwrap().file_name())
        .collect();
    left.sort();
    assert_eq!(left, ["old", "p.yaml"]);
    assert_eq!(
        std::fs::read_to_string(files.0.join("old")).unwrap(),
        "as it was"
    );
}
