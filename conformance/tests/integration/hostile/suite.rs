//! Suites: values files, test files, and the files they name (rows 94, 97 and 98).

use std::fmt::Write;
use std::fs;
use std::path::Path;

use kpvm_cli::suite::report::Totals;
use kpvm_cli::suite::{Options, run_file};

use super::oracle::{Expect, Seen, check_policy, policy_with_pattern};

const TEST: &str = "apiVersion: cli.kyverno.io/v1alpha1\nkind: Test\nmetadata: {name: t}\n";
const VALUES: &str = "apiVersion: cli.kyverno.io/v1alpha1\nkind: Values\n";
const POD: &str = "{apiVersion: v1, kind: Pod, metadata: {name: a}}\n";

/// A suite of one policy and one Pod, with these values and this additional text.
fn suite(more: &str) -> String {
    format!(
        "{TEST}policies: [policy.yaml]\nresources: [pod.yaml]\nvariables: values.yaml\n{more}\n\
         results:\n- {{policy: p, rule: r, resources: [a], result: pass}}\n"
    )
}

/// Runs a suite in its own directory; returns the verdict of each row, or the first error.
fn run(row: &str, test: &str, values: &str) -> Seen {
    let name: String = row.chars().filter(char::is_ascii_alphanumeric).collect();
    let directory = Path::new(env!("CARGO_TARGET_TMPDIR")).join(name);
    fs::create_dir_all(&directory).unwrap();
    for (file, text) in [
        ("kyverno-test.yaml", test),
        ("policy.yaml", &policy_with_pattern("{kind: Pod}")),
        ("pod.yaml", POD),
        ("values.yaml", values),
    ] {
        fs::write(directory.join(file), text).unwrap();
    }
    let runs = run_file(&directory.join("kyverno-test.yaml"), &Options::default());
    let _ = fs::remove_dir_all(directory);
    let mut reports = runs.iter().flat_map(|run| &run.reports);
    if let Some(error) = reports.find(|report| report.is_error()) {
        return Seen::Refused(error.message.clone());
    }
    let rows = runs.iter().flat_map(|run| &run.rows);
    let shown = rows.map(|row| {
        let verdict = match row.verdict().as_str() {
            "agree" => "pass",
            other => other,
        };
        (row.rule.clone(), verdict.to_owned(), row.reason.text())
    });
    Seen::Evaluated(shown.collect())
}

/// Row 97.
#[test]
fn values_files() {
    let deep = |depth: usize| "{a: ".repeat(depth) + "1" + &"}".repeat(depth);
    let long_key = "a.".repeat(100_000) + "a";
    let mut many = String::new();
    for index in 0..20_000 {
        let _ = writeln!(many, "  k{index}.x: {index}");
    }
    let global = |values: &str| format!("{VALUES}globalValues: {values}\n");
    for (row, values, expect) in [
        ("97 empty", String::new(), Expect::Results(&["r pass"])),
        (
            "97 unknown key",
            format!("{VALUES}x: 1\n"),
            Expect::Refused("unknown field `x`"),
        ),
        (
            "97 list",
            global("[a]"),
            Expect::Refused("expected a map, found a list"),
        ),
        (
            "97 text",
            global("a"),
            Expect::Refused("expected a map, found text"),
        ),
        (
            "97 wrong policy",
            format!("{VALUES}policies: [{{name: other}}]\n"),
            Expect::Results(&["r pass"]),
        ),
        (
            "97 dots",
            global("{a..b: 1, .a: 1, a.: 1, ..: 1}"),
            Expect::Results(&["r pass"]),
        ),
        (
            "97 quotes",
            global("{'\"a': 1}"),
            Expect::Refused("a quote is not closed"),
        ),
        ("97 cycle", global("&x {a: *x}"), Expect::Refused("")),
        (
            "97 aliases",
            global("{a: &a [1, 1], b: &b [*a, *a], c: [*b, *b]}"),
            Expect::Results(&["r pass"]),
        ),
        ("97 deep", global(&deep(5_000)), Expect::Refused("")),
        ("97 as deep as may be", global(&deep(900)), Expect::Either),
        (
            "97 long key",
            global(&format!("\n  ? {long_key}\n  : 1")),
            Expect::Refused("document-depth"),
        ),
        (
            "97 many keys",
            format!("{VALUES}globalValues:\n{many}"),
            Expect::Results(&["r pass"]),
        ),
        (
            "97 object in place of the object",
            global("{request.object.kind: List, request.object.metadata: null}"),
            Expect::NeverPass,
        ),
        (
            "97 no object",
            global("{request.object: [1]}"),
            Expect::Refused("expected the values to have a map"),
        ),
        ("97 no request", global("{request: 5}"), Expect::Either),
    ] {
        check_policy(row, values.len(), expect, || run(row, &suite(""), &values));
    }
}

/// Row 98, and names in a suite.
#[test]
fn test_files() {
    let results = |results: &str| {
        format!("{TEST}policies: [policy.yaml]\nresources: [pod.yaml]\nresults: {results}\n")
    };
    let mut names = String::from("[{policy: p, result: pass, resources: [");
    for _ in 0..60_000 {
        names.push_str("a,");
    }
    names.push_str("]}]");
    let all = "{policy: p, result: pass},".repeat(10_000);
    for (row, test, expect) in [
        (
            "98 no such policy",
            results("[{policy: q, result: pass}]"),
            Expect::Results(&[" disagree"]),
        ),
        (
            "98 both spellings",
            results("[{policy: p, result: pass, Result: fail}]"),
            Expect::Results(&["r disagree"]),
        ),
        (
            "98 wrong spelling",
            results("[{policy: p, result: Pass}]"),
            Expect::Results(&["r disagree"]),
        ),
        (
            "98 absent result",
            results("[{policy: p}]"),
            Expect::Results(&["r disagree"]),
        ),
        (
            "98 skip",
            results("[{policy: p, result: skip}]"),
            Expect::Results(&["r disagree"]),
        ),
        ("98 no results", results("[]"), Expect::Results(&[])),
        (
            "98 no list",
            results("{policy: p}"),
            Expect::Refused("expected a list, found a map"),
        ),
        (
            "98 null row",
            results("[null]"),
            Expect::Refused("expected a result, found null"),
        ),
        (
            "98 key twice",
            results("[{policy: p, policy: p}]"),
            Expect::Refused("policy"),
        ),
        (
            "98 many names",
            results(&names),
            Expect::Refused("the suite is too large: more than 50000 rows"),
        ),
        ("98 many rows", results(&format!("[{all}]")), Expect::Either),
        (
            "98 a device",
            suite("").replace("pod.yaml", "/dev/zero"),
            Expect::Refused("found a device or a pipe"),
        ),
        (
            "98 a device of policies",
            suite("").replace("policy.yaml", "/dev/zero"),
            Expect::Refused("found a device or a pipe"),
        ),
        (
            "98 a device of values",
            suite("").replace("values.yaml", "/dev/zero"),
            Expect::Refused("found a device or a pipe"),
        ),
        (
            "98 a directory",
            suite("").replace("values.yaml", "."),
            Expect::Refused("found a directory"),
        ),
        (
            "98 a file elsewhere",
            suite("globalContextEntries: [{name: e, resourceFiles: [/etc/hostname]}]"),
            Expect::Refused("is outside of the suite"),
        ),
        (
            "98 an endless expression",
            suite(
                "globalContextEntries: [{name: e, data: {a: [1, 2]}, fieldPath: 'a[*][*][*][*][*].b[].c[]'}]",
            ),
            Expect::Results(&["r pass"]),
        ),
    ] {
        check_policy(row, test.len(), expect, || run(row, &test, VALUES));
    }
}

/// Row 98: rows that agree without a comparison are counted and can fail a run.
#[test]
fn what_is_missing_is_no_success() {
    let directory = Path::new(env!("CARGO_TARGET_TMPDIR")).join("missing-is-no-success");
    fs::create_dir_all(&directory).unwrap();
    fs::write(
        directory.join("policy.yaml"),
        policy_with_pattern("{kind: Pod}"),
    )
    .unwrap();
    fs::write(directory.join("pod.yaml"), POD).unwrap();
    fs::write(directory.join("none.yaml"), "# nothing\n").unwrap();
    let file = directory.join("kyverno-test.yaml");
    for (row, resources, is_empty) in [
        (
            "{policy: p, rule: r, resources: [a], result: pass}",
            "pod.yaml",
            false,
        ),
        (
            "{policy: p, rule: typo, resources: [a], result: fail}",
            "pod.yaml",
            true,
        ),
        (
            "{policy: p, rule: r, resources: [a], result: fail}",
            "none.yaml",
            true,
        ),
    ] {
        let test =
            format!("{TEST}policies: [policy.yaml]\nresources: [{resources}]\nresults: [{row}]\n");
        fs::write(&file, test).unwrap();
        let runs = run_file(&file, &Options::default());
        let totals = Totals::of(&runs);
        assert_eq!(totals.has_empty_passes(), is_empty, "{row}");
        assert_eq!(totals.warnings > 0, is_empty, "{row}");
    }
    let _ = fs::remove_dir_all(directory);
}
