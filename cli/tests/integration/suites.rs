//! The worked cases of docs/spec/cli.md §14 about `kyverno test`: each is a suite, run by
//! the library, with its rows compared.
//!
//! Omitted because they need unsupported features: 18, 19 (for mutations), 22 to 26, 28.
//! Cases 31 and 42 are unit tests, and 43 to 46 and 49 are tested with the YAML reader
//! (`syntax/src/yaml/tests.rs`).

use crate::common::Files;
use kpvm_cli::suite::discovery::{SUITE_FILE, discover};
use kpvm_cli::suite::selector::Selector;
use kpvm_cli::suite::{Options, Row, SuiteRun, run_files};

/// A policy `p` whose rule `r` requires the label `a` to be `a` on Pods.
const POLICY: &str = "\
apiVersion: kyverno.io/v1
kind: ClusterPolicy
metadata: {name: p}
spec:
  rules:
  - name: r
    match: {any: [{resources: {kinds: [Pod]}}]}
    validate: {message: wrong, pattern: {metadata: {labels: {a: a}}}}
";

/// A good Pod `a`, a bad Pod `b`, a Service `s`.
const OBJECTS: &str = "\
{apiVersion: v1, kind: Pod, metadata: {name: a, labels: {a: a}}}
---
{apiVersion: v1, kind: Pod, metadata: {name: b, labels: {a: b}}}
---
{apiVersion: v1, kind: Service, metadata: {name: s}}
";

/// A suite of `policy.yaml` and `objects.yaml`, with `more` content.
fn suite(more: &str, results: &str) -> String {
    format!(
        "apiVersion: cli.kyverno.io/v1alpha1\nkind: Test\nmetadata: {{name: t}}\npolicies: [policy.yaml]\n\
         resources: [objects.yaml]\n{more}\nresults:\n{results}\n"
    )
}

fn run(name: &str, files: &[(&str, &str)], options: &Options) -> Vec<SuiteRun> {
    let files = Files::new(name, files);
    let found = discover(std::slice::from_ref(&files.0), SUITE_FILE);
    run_files(&found.files, options, &|| ())
}

/// `Pass Ok r on v1/Pod/default/a: pass`
fn shown(row: &Row) -> String {
    let actual = row
        .actual
        .map_or_else(String::new, |actual| format!(": {actual}"));
    let (result, reason) = (row.result(), row.reason.text());
    format!("{result} {reason} {} on {}{actual}", row.rule, row.resource)
}

/// Every row of every suite, and the code of every error and warning.
fn outcome(runs: &[SuiteRun]) -> Vec<String> {
    let rows = runs.iter().flat_map(|run| &run.rows).map(shown);
    let reports = runs.iter().flat_map(|run| &run.reports);
    rows.chain(reports.map(|report| report.code.to_owned()))
        .collect()
}

/// A case: number, further content of the suite, results, expected outcome.
type Case<'c> = (&'c str, &'c str, &'c str, &'c [&'c str]);

/// Runs cases with one policy file and one resource file.
fn check(name: &str, policy: &str, objects: &str, cases: &[Case<'_>]) {
    for (case, more, results, expected) in cases {
        let text = suite(more, results);
        let files = [
            (SUITE_FILE, text.as_str()),
            ("policy.yaml", policy),
            ("objects.yaml", objects),
        ];
        let name = format!("suites_{name}");
        let runs = run(&name, &files, &Options::default());
        assert_eq!(outcome(&runs), *expected, "case {case}\n{text}");
    }
}

#[test]
fn rows_and_results() {
    check(
        "results",
        POLICY,
        OBJECTS,
        &[
            (
                "1",
                "",
                "- {policy: p, rule: r, resources: [b], result: fail}",
                &["Pass Ok r on v1/Pod/default/b: fail"],
            ),
            (
                "2",
                "",
                "- {policy: p, rule: r, resources: [b], result: pass}",
                &["Fail Want pass, got fail r on v1/Pod/default/b: fail"],
            ),
            (
                "5",
                "",
                "- {policy: p, rule: r, resources: [s], result: fail}",
                &["Pass Excluded r on v1/Service/default/s"],
            ),
            (
                "6",
                "",
                "- {policy: p, rule: typo, resources: [b], result: fail}",
                &["Pass Excluded typo on v1/Pod/default/b", "unknown-rule"],
            ),
            (
                "7",
                "",
                "- {policy: typo, resources: [a, b], result: fail}",
                &[
                    "Fail Not found  on v1/Pod/default/a",
                    "Fail Not found  on v1/Pod/default/b",
                ],
            ),
            (
                "8",
                "",
                "- {policy: p, rule: r, resources: [nope], result: fail}",
                &[
                    "Fail Want fail, got pass r on v1/Pod/default/a: pass",
                    "Pass Ok r on v1/Pod/default/b: fail",
                    "Pass Excluded r on v1/Service/default/s",
                    "unknown-resource",
                ],
            ),
            (
                "9",
                "",
                "- {policy: p, resources: [], result: fail}",
                &[
                    "Fail Want fail, got pass r on v1/Pod/default/a: pass",
                    "Pass Ok r on v1/Pod/default/b: fail",
                    "Pass Excluded  on v1/Service/default/s",
                ],
            ),
            (
                "9, resourceSpecs alone",
                "",
                "- {policy: p, resourceSpecs: [{version: v1, namespace: default, name: b}], result: fail}",
                &[
                    "Fail Want fail, got pass r on v1/Pod/default/a: pass",
                    "Pass Ok r on v1/Pod/default/b: fail",
                    "Pass Excluded  on v1/Service/default/s",
                    "unused-spec",
                ],
            ),
            (
                "4.2, resourceSpecs",
                "",
                "- {policy: p, resources: [], resourceSpecs: [{version: v1, namespace: default, name: b}], result: fail}",
                &["Pass Ok r on v1/Pod/default/b: fail"],
            ),
            (
                "4.2, selected twice",
                "",
                "- {policy: p, resources: [b, default/b, x/default/b], result: fail}",
                &[
                    "Pass Ok r on v1/Pod/default/b: fail",
                    "Pass Ok r on v1/Pod/default/b: fail",
                    "unknown-resource",
                ],
            ),
            (
                "14",
                "",
                "- {policy: p, resources: [default/a], result: pass}",
                &["Pass Ok r on v1/Pod/default/a: pass"],
            ),
            (
                "29",
                "",
                "- {policy: p, resources: [a], result: Pass}",
                &[
                    "Fail Want Pass, got pass r on v1/Pod/default/a: pass",
                    "unknown-result",
                ],
            ),
            (
                "hostile 98, no result",
                "",
                "- {policy: p, resources: [a]}",
                &[
                    "Fail Want , got pass r on v1/Pod/default/a: pass",
                    "unknown-result",
                ],
            ),
            (
                "hostile 98, skip",
                "",
                "- {policy: p, resources: [a], result: skip}",
                &["Fail Want skip, got pass r on v1/Pod/default/a: pass"],
            ),
            (
                "30, a pattern says nothing of a deletion",
                "",
                "- {policy: p, rule: r, resources: [a], operation: DELETE, result: pass}",
                &["Pass Excluded r on v1/Pod/default/a"],
            ),
        ],
    );
}

#[test]
fn policies_that_are_not_scored() {
    let annotated = |value: &str| {
        let annotations =
            format!("{{name: p, annotations: {{policies.kyverno.io/scored: '{value}'}}}}");
        POLICY.replace("{name: p}", &annotations)
    };
    let rows =
        "- {policy: p, resources: [b], result: fail}\n- {policy: p, resources: [b], result: warn}";
    check(
        "scored",
        &annotated("false"),
        OBJECTS,
        &[(
            "3",
            "",
            rows,
            &[
                "Fail Want fail, got warn r on v1/Pod/default/b: warn",
                "Pass Ok r on v1/Pod/default/b: warn",
            ],
        )],
    );
    check(
        "unscored",
        &annotated("False"),
        OBJECTS,
        &[(
            "4",
            "",
            rows,
            &[
                "Pass Ok r on v1/Pod/default/b: fail",
                "Fail Want warn, got fail r on v1/Pod/default/b: fail",
            ],
        )],
    );
}

#[test]
fn resources_and_their_keys() {
    let objects = "\
{apiVersion: v1, kind: Pod, metadata: {name: a, namespace: x, labels: {a: a}}}
---
{apiVersion: v1, kind: Pod, metadata: {name: a, namespace: w, labels: {a: b}}}
---
{apiVersion: v1, kind: Namespace, metadata: {name: foo}}
---
{apiVersion: example.com/v1, kind: Thing, metadata: {name: t}}
---
apiVersion: apps/v1
kind: Deployment
metadata: {name: d}
spec: {template: {metadata: {labels: {a: a}}}}
---
apiVersion: batch/v1
kind: CronJob
metadata: {name: c}
spec: {jobTemplate: {spec: {template: {metadata: {labels: {a: b}}}}}}
";
    check(
        "keys",
        POLICY,
        objects,
        &[
            (
                "10",
                "",
                "- {policy: p, resources: [a], result: pass}\n- {policy: p, resources: [x/a], result: pass}",
                &[
                    "Pass Ok r on v1/Pod/x/a: pass",
                    "Fail Want pass, got fail r on v1/Pod/w/a: fail",
                    "Pass Ok r on v1/Pod/x/a: pass",
                ],
            ),
            (
                "11 and 12",
                "",
                "- {policy: p, rule: r, kind: Pod, resources: [d], result: pass}\n\
             - {policy: p, rule: r, resources: [c], result: fail}\n- {policy: p, rule: autogen-r, resources: [d], result: pass}",
                &[
                    "Pass Ok autogen-r on apps/v1/Deployment/default/d: pass",
                    "Pass Ok autogen-cronjob-r on batch/v1/CronJob/default/c: fail",
                    "Pass Ok autogen-r on apps/v1/Deployment/default/d: pass",
                    "unknown-kind",
                ],
            ),
            (
                "13",
                "",
                "- {policy: p, resources: [foo, /foo], result: pass}",
                &[
                    "Pass Excluded  on v1/Namespace//foo",
                    "Pass Excluded  on v1/Namespace//foo",
                ],
            ),
            (
                "15",
                "",
                "- {policy: p, resources: [default/t], result: pass}",
                &["Pass Excluded  on example.com/v1/Thing/default/t"],
            ),
        ],
    );
    let twice = "\
{apiVersion: apps/v1, kind: Deployment, metadata: {name: a}, spec: {template: {metadata: {labels: {a: a}}}}}
---
{apiVersion: apps/v1beta1, kind: Deployment, metadata: {name: a, namespace: default}, spec: {template: {}}}
";
    check(
        "twice",
        POLICY,
        twice,
        &[(
            "16",
            "",
            "- {policy: p, resources: [a], result: pass}",
            &[
                "Pass Ok autogen-r on apps/v1/Deployment/default/a: pass",
                "repeated-resource",
            ],
        )],
    );
    let list =
        "{apiVersion: v1, kind: List, items: [{apiVersion: v1, kind: Pod, metadata: {name: a}}]}\n";
    check(
        "list",
        POLICY,
        list,
        &[(
            "51",
            "",
            "- {policy: p, result: pass}",
            &["Pass Excluded  on v1/List/default/"],
        )],
    );
    let repeated = "{apiVersion: v1, kind: Pod, metadata: {name: a, labels: {a: b, a: a}}}\n";
    check(
        "keys_twice",
        POLICY,
        repeated,
        &[(
            "47, the last wins",
            "",
            "- {policy: p, result: pass}",
            &["Pass Ok r on v1/Pod/default/a: pass"],
        )],
    );
    let commented = "# c\n---\n{apiVersion: v1, kind: Pod, metadata: {name: a, labels: {a: a}}}\n";
    check(
        "comment",
        POLICY,
        commented,
        &[(
            "48",
            "",
            "- {policy: p, result: pass}",
            &["Pass Ok r on v1/Pod/default/a: pass"],
        )],
    );
}

#[test]
fn policies_of_one_name() {
    let of = |namespace: &str| {
        POLICY
            .replace("ClusterPolicy", "Policy")
            .replace("{name: p}", &format!("{{name: q, namespace: {namespace}}}"))
    };
    let policies = format!("{}---\n{}", of("n1"), of("n2"));
    let objects =
        "{apiVersion: v1, kind: Pod, metadata: {name: a, namespace: n2, labels: {a: a}}}\n";
    // The policy of n1 responds without a rule, first; that of n2 with its rule.
    check(
        "namesakes",
        &policies,
        objects,
        &[(
            "17",
            "",
            "- {policy: n1/q, result: pass}",
            &[
                "Pass Excluded  on v1/Pod/n2/a",
                "Pass Ok r on v1/Pod/n2/a: pass",
            ],
        )],
    );
}

#[test]
fn policies_that_kyverno_leaves_out() {
    let invalid = POLICY.replace(
        "kinds: [Pod]",
        "kinds: [Pod], selector: {matchExpressions: [{key: a, operator: Bad}]}",
    );
    check(
        "invalid",
        &invalid,
        OBJECTS,
        &[(
            "27",
            "",
            "- {policy: p, resources: [b], result: fail}",
            &["Skip Invalid Policy  on v1/Pod/default/b", "bad-selector"],
        )],
    );
    let repeated = POLICY.replace(
        "metadata: {name: p}",
        "metadata: {name: p}\nmetadata: {name: p}",
    );
    check(
        "dropped",
        &repeated,
        OBJECTS,
        &[(
            "47",
            "",
            "- {policy: p, resources: [b], result: fail}",
            &["Fail Not found  on v1/Pod/default/b", "yaml"],
        )],
    );
    let unknown = POLICY.replace("spec:\n", "spec:\n  rulez: []\n");
    check(
        "fatal",
        &unknown,
        OBJECTS,
        &[(
            "section 3, step 2",
            "",
            "- {policy: p, resources: [b], result: fail}",
            &["unknown-field"],
        )],
    );
}

/// docs/spec/cli.md §4.4, 4.5 and 5.
#[test]
fn expected_objects() {
    let objects =
        "{apiVersion: v1, kind: Pod, metadata: {name: a, labels: {a: a}}, spec: {volumes: []}}\n";
    let row = |more: &str| format!("- {{policy: p, result: pass, {more}}}");
    let same =
        "{apiVersion: v1, kind: Pod, metadata: {name: a, namespace: default, labels: {a: a}}}\n";
    let other = same.replace("a: a", "a: b");
    let files = |text: &str| {
        [
            (SUITE_FILE, text.to_owned()),
            ("policy.yaml", POLICY.to_owned()),
            ("objects.yaml", objects.to_owned()),
            ("same.yaml", same.to_owned()),
            ("other.yaml", other.clone()),
            ("none.yaml", OBJECTS.replace("name: a,", "name: z,")),
        ]
    };
    let ok = "Pass Ok r on v1/Pod/default/a: pass";
    let different = "Fail Resource diff r on v1/Pod/default/a: pass";
    let error = "Fail Resource error r on v1/Pod/default/a: pass";
    for (case, more, expected) in [
        ("20", "patchedResources: same.yaml", vec![ok]),
        ("4.4", "patchedResources: other.yaml", vec![different]),
        ("4.4", "patchedResources: missing.yaml", vec![error]),
        ("19", "patchedResources: none.yaml", vec![]),
        (
            "19",
            "patchedResources: none.yaml, failOnMissingResources: true",
            vec![error],
        ),
        ("4.4", "generatedResource: other.yaml", vec![different]),
        (
            "4.4",
            "generatedResources: [other.yaml, same.yaml], generatedResource: other.yaml",
            vec![ok],
        ),
        (
            "4.4",
            "generatedResources: [other.yaml, missing.yaml]",
            vec![different],
        ),
        ("4.4", "generatedResources: [missing.yaml]", vec![error]),
    ] {
        let text = suite("", &row(more));
        let files = files(&text);
        let files: Vec<(&str, &str)> = files
            .iter()
            .map(|(name, text)| (*name, text.as_str()))
            .collect();
        let runs = run("suites_expected", &files, &Options::default());
        assert_eq!(outcome(&runs), expected, "case {case}: {more}");
        let is_empty = usize::from(expected.is_empty());
        assert_eq!(runs[0].empty_results, is_empty, "case {case}: {more}");
    }
}

#[test]
fn values() {
    let policy = "\
apiVersion: kyverno.io/v1
kind: ClusterPolicy
metadata: {name: p}
spec:
  rules:
  - name: op
    match: {any: [{resources: {kinds: [Pod]}}]}
    validate:
      message: \"{{ request.operation }}\"
      deny: {conditions: {all: [{key: \"{{ request.operation }}\", operator: NotEquals, value: CREATE}]}}
  - name: object
    match: {any: [{resources: {kinds: [Pod]}}]}
    validate:
      message: x
      deny: {conditions: {all: [{key: \"{{ request.oldObject.metadata.name || '' }}\", operator: Equals, value: a}]}}
  - name: label
    match: {any: [{resources: {kinds: [Pod]}}]}
    validate: {message: x, pattern: {metadata: {labels: {a: b}}}}
  - name: map
    match: {any: [{resources: {kinds: [Pod]}}]}
    context: [{name: dict, configMap: {name: m, namespace: default}}]
    validate:
      message: x
      deny: {conditions: {all: [{key: \"{{ dict.data.k }}\", operator: Equals, value: v}]}}
  - name: in-team
    match: {any: [{resources: {kinds: [Pod], namespaceSelector: {matchLabels: {x: w}}}}]}
    validate: {message: x, deny: {}}
";
    let objects = "{apiVersion: v1, kind: Pod, metadata: {name: a, labels: {a: a}}}\n";
    let row = |rule: &str, result: &str| format!("- {{policy: p, rule: {rule}, result: {result}}}");
    let of_resource = |values: &str| {
        format!(
            "values: {{policies: [{{name: p, resources: [{{name: a, values: {{{values}}}}}]}}]}}"
        )
    };
    let of_rule = "values: {policies: [{name: p, rules: [{name: map, values: {dict.data.k: v}}]}]}";
    let namespaces = "values: {namespaces: [{metadata: {name: default, labels: {x: w}}}], \
                      namespaceSelector: [{name: default, labels: {x: z}}]}";
    let update = "values: {globalValues: {request.operation: UPDATE}}";
    let pass = |rule: &str, status: &str| format!("Pass Ok {rule} on v1/Pod/default/a: {status}");
    let cases = [
        (
            "35",
            update.to_owned(),
            row("op", "fail"),
            pass("op", "fail"),
        ),
        (
            "35",
            update.to_owned(),
            row("object", "fail"),
            pass("object", "fail"),
        ),
        (
            "36",
            of_resource("request.operation: DELETE"),
            row("op", "fail"),
            pass("op", "fail"),
        ),
        (
            "37",
            of_resource("request.operation: update"),
            row("op", "fail"),
            pass("op", "fail"),
        ),
        (
            "37",
            of_resource("request.operation: update"),
            row("object", "pass"),
            pass("object", "pass"),
        ),
        (
            "38",
            of_resource("request.object.metadata.labels.a: b"),
            row("label", "pass"),
            pass("label", "pass"),
        ),
        (
            "39",
            of_rule.to_owned(),
            row("map", "fail"),
            pass("map", "fail"),
        ),
        (
            "40",
            format!("variables: not-there.yaml\n{of_rule}"),
            row("map", "fail"),
            pass("map", "fail"),
        ),
        (
            "41",
            namespaces.to_owned(),
            row("in-team", "fail"),
            pass("in-team", "fail"),
        ),
        (
            "section 3.2, the row goes first",
            update.to_owned(),
            "- {policy: p, rule: op, operation: CREATE, result: pass}".to_owned(),
            pass("op", "pass"),
        ),
        (
            "30",
            String::new(),
            "- {policy: p, rule: object, operation: DELETE, result: fail}".to_owned(),
            pass("object", "fail"),
        ),
    ];
    for (case, more, results, expected) in &cases {
        check(
            "values",
            policy,
            objects,
            &[(case, more, results, &[expected])],
        );
    }
    check(
        "values",
        policy,
        objects,
        &[
            (
                "37, global",
                "values: {globalValues: {request.operation: update}}",
                &row("op", "pass"),
                &["values"],
            ),
            (
                "7.1, no such file",
                "variables: not-there.yaml",
                &row("op", "pass"),
                &["missing-file"],
            ),
            (
                "7.2, not an object",
                "values: {globalValues: {request.object: 5}}",
                &row("op", "pass"),
                &["resource"],
            ),
        ],
    );
}

/// docs/spec/cli.md §4.7, and case 32.
#[test]
fn selected_rows() {
    let results = "- {policy: p, rule: r, resources: [a], result: pass}\n- {policy: q, resources: [a], result: pass}";
    let text = suite("", results);
    let files = [
        (SUITE_FILE, text.as_str()),
        ("policy.yaml", POLICY),
        ("objects.yaml", OBJECTS),
    ];
    for (selector, expected) in [
        ("policy=p", vec!["Pass Ok r on v1/Pod/default/a: pass"]),
        ("policy=none", vec![]),
        // The pattern replaces the names and matches none, so all are tested.
        (
            "policy=p,resource=a*",
            vec![
                "Pass Ok r on v1/Pod/default/a: pass",
                "Fail Want pass, got fail r on v1/Pod/default/b: fail",
                "Pass Excluded r on v1/Service/default/s",
                "unknown-resource",
            ],
        ),
    ] {
        let options = Options {
            selector: Selector::parse(selector).0,
            ..Options::default()
        };
        let runs = run("suites_selected", &files, &options);
        assert_eq!(outcome(&runs), expected, "{selector}");
    }
}

/// Bad input is reported with its location and stops no other suite.
#[test]
fn suites_that_cannot_be_used() {
    let good = suite("", "- {policy: p, resources: [a], result: pass}");
    let bad = |from: &str, to: &str| good.replace(from, to);
    let more = |more: &str| suite(more, "- {policy: p, resources: [a], result: pass}");
    for (what, text, code, line) in [
        (
            "a policy file",
            bad("[policy.yaml]", "[none.yaml]"),
            "missing-file",
            4,
        ),
        (
            "a policy from the network",
            bad("[policy.yaml]", "['https://h/p.yaml']"),
            "missing-file",
            4,
        ),
        (
            "a resource file",
            bad("[objects.yaml]", "[none.yaml]"),
            "missing-file",
            5,
        ),
        (
            "a later resource file",
            bad("[objects.yaml]", "[objects.yaml, none.yaml]"),
            "missing-file",
            5,
        ),
        (
            "a resource without a kind",
            bad("[objects.yaml]", "[kindless.yaml]"),
            "no-kind",
            3,
        ),
        (
            "a values file",
            more("variables: none.yaml"),
            "missing-file",
            6,
        ),
        (
            "its unknown keys",
            more("variables: values.yaml"),
            "values",
            3,
        ),
        (
            "its wrong types",
            more("values: {policies: x}"),
            "values",
            6,
        ),
        (
            "a user file",
            more("userinfo: none.yaml"),
            "missing-file",
            6,
        ),
        (
            "the user's form",
            more("userinfo: user.yaml"),
            "user-info",
            1,
        ),
        (
            "a user without a kind",
            more("userinfo: kindless-user.yaml"),
            "user-info",
            6,
        ),
        ("mocks", more("apiCallResponses: [{url: x}]"), "mock", 6),
        (
            "cluster resources",
            more("clusterResources: [none.yaml]"),
            "mock",
            6,
        ),
        (
            "case 52",
            more("apiCallResponses: [{x: 1, <<: {x: 2}}]"),
            "test-document",
            6,
        ),
        ("an unknown field", more("reslts: []"), "test-document", 6),
        ("no YAML", "a: [\n".to_owned(), "test-document", 1),
    ] {
        let suites = [
            ("a/".to_owned() + SUITE_FILE, text),
            ("b/".to_owned() + SUITE_FILE, good.clone()),
        ];
        let beside = [
            ("policy.yaml", POLICY),
            ("objects.yaml", OBJECTS),
            ("kindless.yaml", "kind: Pod\n---\nmetadata: {}\n"),
            (
                "values.yaml",
                "apiVersion: a/b\nkind: Values\nglobalValue: {}\n",
            ),
            ("user.yaml", "subject: {}\n"),
            ("kindless-user.yaml", "roles: [x]\n"),
        ];
        let places = ["a/", "b/"].into_iter();
        let files: Vec<(String, &str)> = suites
            .iter()
            .map(|(name, text)| (name.clone(), text.as_str()))
            .chain(
                places
                    .flat_map(|place| beside.map(|(name, text)| (format!("{place}{name}"), text))),
            )
            .collect();
        let files: Vec<(&str, &str)> = files
            .iter()
            .map(|(name, text)| (name.as_str(), *text))
            .collect();
        let runs = run("suites_bad", &files, &Options::default());
        assert_eq!(runs.len(), 2, "{what}");
        assert!(runs[0].is_broken() && runs[0].rows.is_empty(), "{what}");
        let first = &runs[0].reports[0];
        let found = (first.code, first.place.map(|(line, _)| line));
        assert_eq!(found, (code, Some(line)), "{what}: {}", first.shown);
        assert_eq!(
            outcome(&runs[1..]),
            ["Pass Ok r on v1/Pod/default/a: pass"],
            "{what}"
        );
    }
}

/// An unsupported feature makes only the rows that need it unsupported; one that may change
/// the resources affects all rows (docs/spec/cli.md §3.1).
#[test]
fn rows_that_cannot_be_judged() {
    let rule = "  - name: signed
    match: {any: [{resources: {kinds: [Pod]}}]}
    validate: {manifests: {attestors: [{entries: [{keys: {publicKeys: x}}]}]}}\n";
    let policy = format!("{POLICY}{rule}");
    let of_kind = |kind: &str| {
        format!(
            "{POLICY}---\napiVersion: policies.kyverno.io/v1\nkind: {kind}\nmetadata: {{name: q}}\n"
        )
    };
    let rows = "- {policy: p, rule: r, resources: [a], result: pass}\n- {policy: p, rule: signed, resources: [a, b], result: fail}\n\
                - {policy: p, resources: [b], result: fail}";
    let signed = "Unsupported validate.manifests is not supported yet";
    check(
        "unsupported_rule",
        &policy,
        OBJECTS,
        &[(
            "a rule",
            "",
            rows,
            &[
                "Pass Ok r on v1/Pod/default/a: pass",
                &format!("{signed} signed on v1/Pod/default/a"),
                &format!("{signed} signed on v1/Pod/default/b"),
                &format!("{signed}  on v1/Pod/default/b"),
                "Pass Ok r on v1/Pod/default/b: fail",
            ],
        )],
    );
    let rows = "- {policy: p, rule: r, resources: [a], result: pass}\n- {policy: q, resources: [a], result: fail}";
    check(
        "unsupported_kind",
        &of_kind("CleanupPolicy"),
        OBJECTS,
        &[(
            "a kind",
            "",
            rows,
            &[
                "Pass Ok r on v1/Pod/default/a: pass",
                "Unsupported CleanupPolicy is not supported yet  on v1/Pod/default/a",
            ],
        )],
    );
    check(
        "unsupported_field",
        POLICY,
        OBJECTS,
        &[(
            "a field",
            "httpPayloads: [x.json]",
            rows,
            &[
                "Unsupported `httpPayloads` of a test is not supported yet r on a",
                "Unsupported `httpPayloads` of a test is not supported yet  on a",
            ],
        )],
    );
    let runs = run(
        "suites_mutation",
        &[
            (
                SUITE_FILE,
                suite("", "- {policy: p, rule: r, resources: [a], result: pass}").as_str(),
            ),
            ("policy.yaml", &of_kind("NamespacedMutatingPolicy")),
            ("objects.yaml", OBJECTS),
        ],
        &Options::default(),
    );
    assert_eq!(runs[0].rows[0].result(), "Unsupported");
}
