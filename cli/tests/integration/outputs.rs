//! Every output format with texts that are hostile to it (`cli/tests/outputs`), read back
//! by a reader of that format.

use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use crate::common::Files;
use kpvm_cli::place::Place;
use kpvm_cli::report::entry::{Entries, Entry, Level, Notice, RuleFacts, demand};
use kpvm_cli::report::section::Sections;
use kpvm_cli::report::{github, junit, markdown, sarif};
use kpvm_cli::scan::{Outcome, Summary};
use quick_junit::{Report, TestCaseStatus};
use serde_json::Value;

/// Every format by the name of its option.
const FORMATS: [&str; 10] = [
    "text",
    "table",
    "json",
    "yaml",
    "policyreport",
    "openreports",
    "sarif",
    "junit",
    "github",
    "markdown",
];

fn kpvm(arguments: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_kpvm"))
        .args(arguments)
        .current_dir(Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/outputs"))
        .env("SOURCE_DATE_EPOCH", "1700000000")
        .output()
        .unwrap()
}

/// The report on the hostile objects; something fails and one input is bad.
fn report(options: &[&str]) -> String {
    let output = kpvm(&[&["apply", "policies.yaml", "-r", "resources"], options].concat());
    assert_eq!(output.status.code(), Some(2));
    String::from_utf8(output.stdout).unwrap()
}

fn report_as(format: &str) -> String {
    report(&["--output-format", format])
}

fn json() -> Value {
    serde_json::from_str(&report_as("json")).unwrap()
}

fn yaml_documents(text: &str) -> Vec<kpvm_syntax::tree::Tree> {
    let options = kpvm_syntax::yaml::Options {
        duplicate_keys: kpvm_syntax::yaml::DuplicateKeys::Refuse,
        limits: &kpvm_semantics::limits::Limits::DEFAULT,
    };
    let documents = kpvm_syntax::yaml::read_all(text, options);
    documents.into_iter().map(Result::unwrap).collect()
}

/// Every text under a key, anywhere, in order.
fn texts_under(tree: &kpvm_syntax::tree::Tree, key: &str) -> Vec<String> {
    let own = tree.as_map().into_iter().flatten();
    let own = own.flat_map(|member| {
        let text = member.value.as_str().filter(|_| &*member.key == key);
        let below = texts_under(&member.value, key);
        text.map(str::to_owned).into_iter().chain(below)
    });
    let items = tree.as_list().into_iter().flatten();
    own.chain(items.flat_map(|item| texts_under(item, key)))
        .collect()
}

/// The messages of all results, in the order of the objects.
fn messages() -> Vec<String> {
    let json = json();
    let results = json["results"].as_array().unwrap().clone();
    let message = |result: Value| result["message"].as_str().unwrap().to_owned();
    results.into_iter().map(message).collect()
}

#[test]
fn text() {
    insta::assert_snapshot!(report_as("text"));
}

#[test]
fn text_with_what_was_skipped() {
    let output = kpvm(&["apply", "policies.yaml", "-r", "resources", "--verbose"]);
    let text = String::from_utf8(output.stdout).unwrap();
    let skipped = text.split("\n\n").find(|part| part.starts_with("skip: "));
    insta::assert_snapshot!(skipped.unwrap());
    assert!(text.contains("\npass: 3, fail: 8, warn: 1, error: 1, skip: 1\n"));
}

#[test]
fn what_people_are_told_beside_the_report() {
    let output = kpvm(&["apply", "policies.yaml", "-r", "resources"]);
    insta::assert_snapshot!(String::from_utf8(output.stderr).unwrap());
}

#[test]
fn table() {
    insta::assert_snapshot!(report_as("table"));
    assert_eq!(report(&["--table"]), report_as("table"));
}

/// docs/spec/cli.md §9.8.
#[test]
fn table_with_details() {
    insta::assert_snapshot!(report(&["--table", "--detailed-results"]));
}

#[test]
fn json_form() {
    insta::assert_snapshot!(report_as("json"));
}

#[test]
fn yaml_says_what_json_says() {
    let documents = [report_as("json"), report_as("yaml")].map(|text| yaml_documents(&text));
    assert_eq!(documents[0], documents[1]);
}

#[test]
fn policy_reports() {
    let text = report_as("policyreport");
    insta::assert_snapshot!(text);
    let documents = yaml_documents(&text);
    let kinds: Vec<_> = documents
        .iter()
        .map(|one| texts_under(one, "kind")[0].clone())
        .collect();
    assert_eq!(
        kinds,
        ["ClusterPolicyReport", "PolicyReport", "PolicyReport"]
    );
    let mut found: Vec<_> = documents
        .iter()
        .flat_map(|one| texts_under(one, "message"))
        .collect();
    let mut expected = messages();
    found.sort();
    expected.sort();
    assert_eq!(found, expected);
}

#[test]
fn openreports_differ_in_names_only() {
    let expected = report_as("policyreport")
        .replace("wgpolicyk8s.io/v1alpha2", "openreports.io/v1alpha1")
        .replace("\nkind: ClusterPolicyReport\n", "\nkind: ClusterReport\n")
        .replace("\nkind: PolicyReport\n", "\nkind: Report\n");
    assert_eq!(report_as("openreports"), expected);
}

/// docs/spec/cli.md §10.1: cluster policies in one report, each other policy in its own.
#[test]
fn kyverno_reports() {
    let yaml = report(&["--policy-report"]);
    insta::assert_snapshot!(yaml);
    let json = report(&["--policy-report", "--output-format", "json"]);
    let lines: Vec<&str> = json.lines().filter(|line| *line != "---").collect();
    assert_eq!(lines.len(), 2);
    let from_json = lines.iter().flat_map(|line| yaml_documents(line));
    assert_eq!(from_json.collect::<Vec<_>>(), yaml_documents(&yaml));
}

/// Violations of the published schema in a document.
fn sarif_errors(document: &Value) -> Vec<String> {
    let schema = include_str!("../schemas/sarif-schema-2.1.0.json");
    // A published pattern has an extra bracket, which is invalid in regular expressions.
    let schema = schema.replace("{2}]?$", "{2}$");
    let schema: Value = serde_json::from_str(&schema).unwrap();
    let validator = jsonschema::options()
        .should_validate_formats(true)
        .build(&schema)
        .unwrap();
    let errors = validator.iter_errors(document);
    errors
        .map(|error| format!("{error} at {}", error.instance_path()))
        .collect()
}

#[test]
fn sarif_form() {
    let text = report_as("sarif");
    insta::assert_snapshot!(text);
    let mut document: Value = serde_json::from_str(&text).unwrap();
    assert_eq!(sarif_errors(&document), [""; 0]);
    let run = &document["runs"][0];
    let results = run["results"].as_array().unwrap();
    // All results that are neither pass nor skip, each with a unique fingerprint.
    assert_eq!(results.len(), 10);
    let mut fingerprints: Vec<String> = results
        .iter()
        .map(|result| result["partialFingerprints"].to_string())
        .collect();
    fingerprints.sort();
    fingerprints.dedup();
    assert_eq!(fingerprints.len(), results.len());
    for result in results {
        let index = result["ruleIndex"].as_u64().unwrap() as usize;
        let rule = &run["tool"]["driver"]["rules"][index];
        assert_eq!(result["ruleId"], rule["id"]);
    }
    // The test can fail: the schema is strict.
    document["runs"][0]["results"][0]["level"] = "bad".into();
    assert_ne!(sarif_errors(&document), [""; 0]);
}

#[test]
fn sarif_knows_a_result_again_when_lines_move() {
    let directory = Path::new(env!("CARGO_TARGET_TMPDIR")).join("sarif-moves");
    let _ = std::fs::remove_dir_all(&directory);
    std::fs::create_dir_all(&directory).unwrap();
    let object = "apiVersion: v1\nkind: Namespace\nmetadata: {name: a}\n";
    let fingerprint = |name: &str, text: &str| {
        let file = directory.join(name);
        std::fs::write(&file, text).unwrap();
        let file = file.to_str().unwrap();
        let output = kpvm(&["apply", "policies.yaml", "-r", file, "-o", "sarif"]);
        let document: Value = serde_json::from_slice(&output.stdout).unwrap();
        let result = &document["runs"][0]["results"][0];
        let line = &result["locations"][0]["physicalLocation"]["region"]["startLine"];
        (
            result["partialFingerprints"].clone(),
            line.as_u64().unwrap(),
        )
    };
    let (first, first_line) = fingerprint("a.yaml", object);
    let (second, second_line) = fingerprint("b.yaml", &format!("# moved\n\n{object}"));
    assert_eq!((first_line, second_line), (3, 5));
    assert_eq!(first, second);
    let (other, _) = fingerprint("c.yaml", &object.replace("name: a", "name: b"));
    assert_ne!(first, other);
}

#[test]
fn junit_form() {
    let text = report_as("junit");
    insta::assert_snapshot!(text);
    let report = Report::deserialize_from_str(&text).unwrap();
    let summary = &json()["summary"];
    let number = |key: &str| summary[key].as_u64().unwrap() as usize;
    assert_eq!(report.failures, number("fail"));
    // A bad input is also an error, and a warning is skipped.
    assert_eq!(report.errors, number("error") + 1);
    assert_eq!(report.skipped, number("warn") + number("skip"));
    let cases: Vec<_> = report
        .test_suites
        .iter()
        .flat_map(|suite| &suite.test_cases)
        .collect();
    assert_eq!(report.tests, cases.len());
    let messages = cases.iter().filter_map(|case| match &case.status {
        TestCaseStatus::NonSuccess { description, .. } => description.as_deref(),
        TestCaseStatus::Success { .. } | TestCaseStatus::Skipped { .. } => None,
    });
    let messages: Vec<_> = messages.collect();
    for part in [
        "]]>",
        "</failure>",
        "<script>alert('x')</script> &",
        "::error file=x::",
    ] {
        let found = messages.iter().any(|message| message.contains(part));
        assert!(found, "{part} is not in {messages:?}");
    }
    assert_only_known_names(&text);
}

/// Elements and attributes of the schemas of Jenkins (xunit plugin, junit-10.xsd) and of
/// GitLab's parser (`file`); `line` is added by pytest and others.
fn assert_only_known_names(text: &str) {
    let allowed: [(&str, &[&str]); 6] = [
        (
            "testsuites",
            &["name", "tests", "skipped", "failures", "errors"],
        ),
        (
            "testsuite",
            &["name", "tests", "skipped", "failures", "errors"],
        ),
        ("testcase", &["name", "classname", "file", "line"]),
        ("failure", &["message", "type"]),
        ("error", &["message", "type"]),
        ("skipped", &["message", "type"]),
    ];
    let mut elements = 0;
    // Markup in texts is escaped, so every `<` begins an element.
    for element in text
        .split('<')
        .skip(1)
        .filter(|part| !part.starts_with(['/', '?']))
    {
        let (name, _) = element.split_once([' ', '>', '/']).unwrap();
        let (_, attributes) = allowed.iter().find(|(known, _)| *known == name).unwrap();
        let tag = element.split('>').next().unwrap();
        let tag = tag.strip_prefix(name).unwrap();
        for (key, _) in tag
            .split('"')
            .step_by(2)
            .filter_map(|part| part.split_once('='))
        {
            assert!(attributes.contains(&key.trim()), "{name} {key}");
        }
        elements += 1;
    }
    assert!(elements > 4);
}

#[test]
fn github_form() {
    let text = report_as("github");
    insta::assert_snapshot!(text);
    assert_eq!(text.lines().count(), 10 + 1);
    for line in text.lines() {
        let rest = line
            .strip_prefix("::error ")
            .or(line.strip_prefix("::warning "));
        let (properties, message) = rest.unwrap().split_once("::").unwrap();
        assert!(!message.is_empty());
        for property in properties.split(',') {
            let (name, value) = property.split_once('=').unwrap();
            let known = ["file", "line", "col", "endColumn", "title"];
            assert!(known.contains(&name) && !value.is_empty(), "{line}");
        }
        assert!(
            !line.contains(['\u{1b}', '\u{7}', '\u{202e}', '\u{2028}']),
            "{line}"
        );
    }
}

#[test]
fn markdown_form() {
    let text = report_as("markdown");
    insta::assert_snapshot!(text);
    let rows = text.lines().filter(|line| line.starts_with('|'));
    let columns = |row: &str| row.replace("\\|", "").matches('|').count() - 1;
    let widths: Vec<usize> = rows.map(columns).collect();
    assert_eq!(widths.len(), 3 + 2 + 10);
    assert!(
        widths.iter().all(|width| *width == 5 || *width == 6),
        "{text}"
    );
    assert!(
        !text.contains("<script") && !text.contains("[a]("),
        "{text}"
    );
}

#[test]
fn no_form_shows_what_a_secret_holds() {
    for format in FORMATS {
        let text = report_as(format);
        assert!(!text.contains("do-not-show-me"), "{format}: {text}");
    }
}

#[test]
fn what_people_read_has_nothing_invisible() {
    for format in [
        "text", "table", "json", "sarif", "junit", "github", "markdown",
    ] {
        let text = report_as(format);
        let invisible = |character: char| {
            character.is_control() && character != '\n'
                || ['\u{202e}', '\u{200b}', '\u{2028}', '\u{e0041}'].contains(&character)
        };
        assert!(!text.contains(invisible), "{format}: {text}");
    }
}

#[test]
fn the_same_run_gives_the_same_bytes() {
    for format in FORMATS {
        assert_eq!(report_as(format), report_as(format), "{format}");
    }
}

fn scratch(name: &str) -> PathBuf {
    let directory = Path::new(env!("CARGO_TARGET_TMPDIR")).join(name);
    let _ = std::fs::remove_dir_all(&directory);
    std::fs::create_dir_all(&directory).unwrap();
    directory
}

#[test]
fn one_run_writes_many_reports() {
    let directory = scratch("many-reports");
    let path = |format: &str| directory.join(format).to_str().unwrap().to_owned();
    let reports: Vec<String> = FORMATS
        .iter()
        .map(|format| format!("--report={format}={}", path(format)))
        .collect();
    let mut options: Vec<&str> = reports.iter().map(String::as_str).collect();
    let main = path("main");
    options.extend(["--output-format", "json", "--output-file", &main]);
    // The content of an earlier run is replaced.
    std::fs::write(&main, "x".repeat(1 << 20)).unwrap();
    std::fs::write(path("sarif"), "x".repeat(1 << 20)).unwrap();
    for _ in 0..2 {
        assert_eq!(report(&options), "", "all of it is in files");
    }
    for format in FORMATS {
        let written = std::fs::read_to_string(path(format)).unwrap();
        assert_eq!(written, report_as(format), "{format}");
    }
    assert_eq!(std::fs::read_to_string(&main).unwrap(), report_as("json"));
    let names = std::fs::read_dir(&directory).unwrap().count();
    assert_eq!(names, FORMATS.len() + 1, "nothing else is left behind");
}

#[test]
fn a_report_that_cannot_be_written_is_named() {
    for (options, expected) in [
        (
            ["--output-file", "/no/such/place"],
            "/no/such/place: no such file",
        ),
        (
            ["--report", "junit=/no/such/place"],
            "/no/such/place: no such file",
        ),
        (["--report", "junit"], "expected FORMAT=FILE"),
        (["--report", "junit="], "expected FORMAT=FILE"),
        (
            ["--report", "xml=a"],
            "`xml` is not one of text, table, json",
        ),
    ] {
        let arguments = [&["apply", "policies.yaml", "-r", "resources"], &options[..]].concat();
        let output = kpvm(&arguments);
        let told = String::from_utf8(output.stderr).unwrap();
        assert_eq!(output.status.code(), Some(2), "{told}");
        assert!(told.contains(expected), "{told}");
        assert_eq!(String::from_utf8(output.stdout).unwrap(), "", "{options:?}");
    }
}

/// One entry per outcome; two of the messages contain 1 MiB of characters special to some
/// format.
fn huge(place: &Place) -> Entries<'_> {
    let message = "]]> \u{1b}[2J \u{0} \u{fffe} | `x` \"q\" %0A\n::error::y é🎈 ";
    let huge = message.repeat((1 << 20) / message.len() + 1);
    let entry = |outcome| Entry {
        group: "group ]]> \u{ffff}".into(),
        rule: "policy/rule".into(),
        object: "Pod default/web".into(),
        object_id: "v1/Pod/default/web".into(),
        outcome,
        severity: Some("high"),
        message: match outcome {
            Outcome::Fail => huge.clone().into(),
            _ => message.into(),
        },
        path: "/spec/",
        found: "\"x\"",
        place: Some(place),
        related: vec![demand(place)],
    };
    let outcomes = [
        Outcome::Pass,
        Outcome::Fail,
        Outcome::Warn,
        Outcome::Error,
        Outcome::Skip,
    ];
    Entries {
        rules: vec![RuleFacts {
            id: "policy/rule".into(),
            title: Some("title"),
            ..RuleFacts::default()
        }],
        entries: outcomes.map(entry).into(),
        notices: vec![Notice {
            level: Level::Warning,
            file: "".into(),
            position: None,
            message: huge.clone().into(),
        }],
        summary: Summary::default(),
    }
}

fn sarif(entries: &Entries<'_>) -> Value {
    let mut out = Vec::new();
    sarif::write(entries, &mut out).unwrap();
    serde_json::from_slice(&out).unwrap()
}

fn write_markdown(entries: &Entries<'_>, out: &mut Vec<u8>) {
    let mut rows = Sections::default();
    rows.add(markdown::section(&entries.entries), "").unwrap();
    markdown::write(entries, &mut rows, out).unwrap();
}

#[test]
fn messages_of_a_megabyte() {
    let place = Place {
        file: "a b,c:d.yaml".into(),
        line: 1,
        column: 2,
        end_column: Some(9),
    };
    let entries = huge(&place);
    let document = sarif(&entries);
    assert_eq!(sarif_errors(&document), [""; 0]);
    assert_eq!(document["runs"][0]["results"].as_array().unwrap().len(), 3);

    let mut out = Vec::new();
    junit::write(&entries, &mut out).unwrap();
    let text = String::from_utf8(out).unwrap();
    let report = Report::deserialize_from_str(&text).unwrap();
    assert_eq!(
        (report.tests, report.failures, report.errors, report.skipped),
        (6, 1, 1, 3)
    );
    let forbidden = |character: char| matches!(character, '\0'..='\u{8}' | '\u{b}' | '\u{c}' | '\u{e}'..='\u{1f}' | '\u{fffe}' | '\u{ffff}');
    assert!(!text.contains(forbidden));

    let mut out = Vec::new();
    github::write(&entries, &mut out).unwrap();
    assert_eq!(String::from_utf8(out).unwrap().lines().count(), 4);

    let mut out = Vec::new();
    write_markdown(&entries, &mut out);
    assert!(out.len() < 10_000, "a summary has room for 1 MiB only");
}

#[test]
fn without_results_every_form_is_still_whole() {
    let empty = Entries::default();
    let document = sarif(&empty);
    assert_eq!(sarif_errors(&document), [""; 0]);
    let mut out = Vec::new();
    junit::write(&empty, &mut out).unwrap();
    let text = String::from_utf8(out).unwrap();
    assert_eq!(Report::deserialize_from_str(&text).unwrap().tests, 0);
    let mut out = Vec::new();
    write_markdown(&empty, &mut out);
    let text = String::from_utf8(out).unwrap();
    assert!(text.starts_with("## kpvm: no rule applied\n"), "{text}");
}

/// A suite with a row that agrees, one that disagrees, and one for an unknown policy;
/// whether the latter breaks the suite is up to `kpvm test`.
fn suite(format: &str) -> (Option<i32>, String) {
    let output = kpvm(&["test", "suite", "--output-format", format]);
    (
        output.status.code(),
        String::from_utf8(output.stdout).unwrap(),
    )
}

#[test]
fn suites_as_junit() {
    let (code, text) = suite("junit");
    insta::assert_snapshot!(text);
    let report = Report::deserialize_from_str(&text).unwrap();
    assert_eq!((code, report.tests, report.failures), (Some(1), 3, 2));
    assert_only_known_names(&text);
}

#[test]
fn suites_as_sarif() {
    let (_, text) = suite("sarif");
    insta::assert_snapshot!(text);
    let document: Value = serde_json::from_str(&text).unwrap();
    assert_eq!(sarif_errors(&document), [""; 0]);
    assert_eq!(document["runs"][0]["results"].as_array().unwrap().len(), 2);
}

#[test]
fn suites_as_annotations() {
    let (_, text) = suite("github");
    insta::assert_snapshot!(text);
    assert_eq!(text.lines().count(), 2);
    assert!(
        text.lines()
            .all(|line| line.starts_with("::error file=suite/kyverno-test.yaml,line="))
    );
}

#[test]
fn suites_as_tables() {
    insta::assert_snapshot!(suite("table").1);
}

#[test]
fn reports_of_suites_replace_files() {
    let file = scratch("suite-file").join("report");
    std::fs::write(&file, "x".repeat(1 << 20)).unwrap();
    let path = file.to_str().unwrap();
    let output = kpvm(&["test", "suite", "-o", "junit", "--output-file", path]);
    assert_eq!(String::from_utf8(output.stdout).unwrap(), "");
    assert_eq!(std::fs::read_to_string(&file).unwrap(), suite("junit").1);
    assert_eq!(
        std::fs::read_dir(file.parent().unwrap()).unwrap().count(),
        1
    );
}

/// Requires a label on Pods.
const POLICY: &str = "\
apiVersion: kyverno.io/v1
kind: ClusterPolicy
metadata:
  name: need-team
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

#[test]
fn a_policy_that_matches_nothing_is_told_with_what_does_not_fit() {
    let with = |name: &str, filters: &str| {
        let kinds = "              kinds: [Pod]\n";
        POLICY
            .replace("name: need-team", &format!("name: {name}"))
            .replace(kinds, filters)
    };
    let misspelled = with("misspelled", "              kinds: [Pood]\n");
    let elsewhere = with(
        "elsewhere",
        "              kinds: [Pod]\n              namespaces: [prod]\n              names: ['a*']\n",
    );
    let version = with("version", "              kinds: [example.com/v1/Pod]\n");
    let other = with("other-kind", "              kinds: [Ingress, Job]\n");
    let namespaced = with("namespaced", "              kinds: [Pod]\n")
        .replace("kind: ClusterPolicy", "kind: Policy")
        .replace(
            "metadata:\n  name: namespaced",
            "metadata:\n  namespace: prod\n  name: namespaced",
        );
    let files = Files::new(
        "unmatched",
        &[
            ("p/elsewhere.yaml", &elsewhere),
            ("p/misspelled.yaml", &misspelled),
            ("p/namespaced.yaml", &namespaced),
            ("p/other.yaml", &other),
            ("p/version.yaml", &version),
            ("matching.yaml", POLICY),
            (
                "r.yaml",
                "{apiVersion: v1, kind: Pod, metadata: {name: good, labels: {team: a}}}\n",
            ),
        ],
    );
    let nothing = files.run("kpvm", &["apply", "p", "-r", "r.yaml"]);
    let some = files.run("kpvm", &["apply", "p", "matching.yaml", "-r", "r.yaml"]);
    let verbose = ["apply", "p", "matching.yaml", "-r", "r.yaml", "--verbose"];
    let verbose = files.run("kpvm", &verbose);
    insta::assert_snapshot!(format!(
        "nothing applied\n{}\nsome applied\n{}\nwith --verbose\n{}",
        nothing.err, some.err, verbose.err
    ));
    assert_eq!((nothing.code, some.code, verbose.code), (0, 0, 0));
    let strict = files.run("kpvm", &["apply", "p", "-r", "r.yaml", "--fail-on-empty"]);
    assert_eq!(strict.code, 1);
}

/// docs/spec/cli.md §10.2.
#[test]
fn policy_reports_name_process_exceptions_and_controls() {
    let policy = |name: &str, spec: &str, validate: &str| {
        format!(
            "apiVersion: kyverno.io/v1\nkind: ClusterPolicy\nmetadata: {{name: {name}}}\nspec:\n  {spec}\n  rules:\n    \
             - name: check\n      match: {{any: [{{resources: {{kinds: [Pod]}}}}]}}\n      reportProperties: {{version: own, owner: me}}\n      \
             validate: {validate}\n"
        )
    };
    let level = "{podSecurity: {level: baseline, version: latest}}";
    let exception = "apiVersion: kyverno.io/v2\nkind: PolicyException\nmetadata: {name: for-web, namespace: default}\nspec:\n  \
                     match: {any: [{resources: {kinds: [Pod], names: [web]}}]}\n  exceptions: [{policyName: excepted, ruleNames: [check]}]\n";
    let files = Files::new(
        "report-properties",
        &[
            (
                "p/levels.yaml",
                &policy("levels", "background: true", level),
            ),
            (
                "p/excepted.yaml",
                &policy("excepted", "background: false", level),
            ),
            ("exception.yaml", exception),
            (
                "r.yaml",
                "{apiVersion: v1, kind: Pod, metadata: {name: web}, spec: {hostNetwork: true, containers: [{name: a, image: b}]}}\n",
            ),
        ],
    );
    let done = files.run(
        "kpvm",
        &[
            "apply",
            "p",
            "-r",
            "r.yaml",
            "-e",
            "exception.yaml",
            "-p",
            "-o",
            "json",
        ],
    );
    assert_eq!(done.code, 1, "{}", done.err);
    let report: Value = serde_json::from_str(&done.out).unwrap();
    let properties = report["results"].as_array().unwrap().iter();
    let found: Vec<(&str, &Value)> = properties
        .map(|result| (result["policy"].as_str().unwrap(), &result["properties"]))
        .collect();
    let controls = r#"[{"ID":"hostNamespaces","Name":"Host Namespaces","Images":null}]"#;
    assert_eq!(
        found,
        [
            (
                "excepted",
                &serde_json::json!({
                    "exceptions": "for-web", "owner": "me", "process": "admission review", "version": "own",
                })
            ),
            (
                "levels",
                &serde_json::json!({
                    "controls": "hostNamespaces", "controlsJSON": controls, "owner": "me",
                    "process": "background scan", "standard": "baseline", "version": "latest",
                })
            ),
        ]
    );
}
