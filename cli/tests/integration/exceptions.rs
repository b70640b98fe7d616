//! Policy exceptions on the command line.

use crate::common::Files;
use crate::programs::{BAD, POLICY, counts};

const EXCEPTION: &str = "\
apiVersion: kyverno.io/v2
kind: PolicyException
metadata:
  name: one-pod
  namespace: ops
spec:
  match:
    any:
      - resources:
          kinds: [Pod]
          names: [bad]
  exceptions:
    - policyName: need-team
      ruleNames: [team]
";

/// docs/spec/policies.md §9; docs/spec/cli.md §9.1.
#[test]
fn exceptions_are_applied_when_they_are_named_and_only_then() {
    let misspelled = EXCEPTION.replace("[team]", "[taem]");
    let broken = EXCEPTION.replace("ruleNames", "rules");
    let files = Files::new(
        "exceptions",
        &[
            ("p.yaml", POLICY),
            ("e.yaml", EXCEPTION),
            ("misspelled.yaml", &misspelled),
            ("broken.yaml", &broken),
            ("both/p.yaml", POLICY),
            ("both/e.yaml", EXCEPTION),
            ("bad.yaml", BAD),
        ],
    );
    let (fails, skips) = (
        "pass: 0, fail: 1, warn: 0, error: 0, skip: 0",
        "pass: 0, fail: 0, warn: 0, error: 0, skip: 1",
    );
    let plain = files.run("kpc", &["compile", "p.yaml", "-o", "plain.kpb"]);
    let with = files.run(
        "kpc",
        &[
            "compile",
            "p.yaml",
            "--exception",
            "e.yaml",
            "-o",
            "with.kpb",
        ],
    );
    assert_eq!((plain.code, with.code), (0, 0), "{}", with.err);
    assert!(
        with.err
            .contains("1 policy with 3 rules and 1 exception into with.kpb"),
        "{}",
        with.err
    );
    for (arguments, counted) in [
        ("apply p.yaml -r bad.yaml", fails),
        ("apply p.yaml -r bad.yaml --exception e.yaml", skips),
        ("apply both -r bad.yaml", fails),
        ("eval plain.kpb bad.yaml", fails),
        ("eval plain.kpb bad.yaml -e e.yaml", skips),
        ("eval with.kpb bad.yaml", skips),
        ("eval with.kpb bad.yaml --exceptions misspelled.yaml", skips),
    ] {
        let arguments: Vec<&str> = arguments.split(' ').collect();
        let done = files.run("kpvm", &arguments);
        assert_eq!(counts(&done), counted, "{arguments:?}: {}", done.err);
        assert_eq!(done.code, i32::from(counted == fails), "{arguments:?}");
    }
    let inspected = files.run("kpc", &["inspect", "with.kpb"]);
    assert!(
        inspected.out.contains("excepted by ops/one-pod"),
        "{}",
        inspected.out
    );
    let shown = files.run("kpc", &["disasm", "with.kpb"]);
    assert!(
        shown.out.contains("  exception ops/one-pod: "),
        "{}",
        shown.out
    );
    // Command, exit code, part of the message.
    for (program, arguments, code, expected) in [
        (
            "kpvm",
            "apply both -r bad.yaml",
            1,
            "warning: the PolicyException ops/one-pod is not applied: give its file with --exception (both/e.yaml:1:1)",
        ),
        (
            "kpvm",
            "eval plain.kpb bad.yaml -e misspelled.yaml",
            1,
            "did you mean `team`?",
        ),
        (
            "kpvm",
            "eval plain.kpb bad.yaml -e broken.yaml",
            2,
            "unknown field `rules` in `spec.exceptions[0]`",
        ),
        (
            "kpvm",
            "eval plain.kpb bad.yaml -e p.yaml",
            2,
            "expected a PolicyException of kyverno.io/v2, found a ClusterPolicy",
        ),
        (
            "kpvm",
            "eval plain.kpb bad.yaml -e nothing.yaml",
            2,
            "cannot read nothing.yaml",
        ),
        (
            "kpvm",
            "apply p.yaml -r bad.yaml -e broken.yaml",
            2,
            "unknown field `rules`",
        ),
        (
            "kpc",
            "compile p.yaml -e misspelled.yaml -o x.kpb",
            0,
            "misspelled.yaml:14:19",
        ),
        (
            "kpc",
            "compile p.yaml -e broken.yaml -o x.kpb",
            1,
            "broken.yaml:14:7",
        ),
        (
            "kpc",
            "check both",
            0,
            "1 policy with 3 rules, 1 exception: no errors",
        ),
        (
            "kpc",
            "check e.yaml",
            0,
            "0 policies with 0 rules, 1 exception: no errors",
        ),
        (
            "kpc",
            "check p.yaml misspelled.yaml",
            0,
            "the policy `need-team` has no rule `taem`",
        ),
        ("kpc", "check broken.yaml", 1, "unknown field `rules`"),
    ] {
        let arguments: Vec<&str> = arguments.split(' ').collect();
        let done = files.run(program, &arguments);
        assert!(done.err.contains(expected), "{arguments:?}: {}", done.err);
        assert_eq!(done.code, code, "{arguments:?}: {}", done.err);
    }
}
