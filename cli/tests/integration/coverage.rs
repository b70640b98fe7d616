//! Coverage: what counts as exercised, and snapshots of each output format.

use crate::common::Files;
use kpvm::engine::{Engine, Input, Request, Session};
use kpvm::host::NoHost;
use kpvm_cli::coverage::{Coverage, Tally};
use kpvm_compiler::compile::{Options, compile};
use kpvm_compiler::source::Sources;

/// The coverage of a rule `r` (match and body in YAML's flow style) by some objects.
fn cover(rule: &str, objects: &[&str]) -> Coverage {
    let mut sources = Sources::new();
    let policy = format!(
        "{{apiVersion: kyverno.io/v1, kind: ClusterPolicy, metadata: {{name: p}}, spec: {{background: false, rules: [{{name: r, {rule}}}]}}}}"
    );
    sources.add("p.yaml", policy);
    let compilation = compile(&sources, &Options::default());
    let Some(bytes) = compilation.bundle else {
        panic!("{:?}", compilation.diagnostics)
    };
    let engine = Engine::load(bytes).unwrap();
    let mut tally = Tally::new(engine.bundle());
    let mut session = Session::new(&engine);
    for object in objects {
        let request = Request::create(Input::Json(object.as_bytes()));
        session
            .evaluate_observed(&request, &mut NoHost, &mut tally)
            .unwrap();
    }
    let mut coverage = Coverage::new();
    coverage.add(engine.bundle(), &tally);
    coverage
}

/// The rule's outcomes and points, as text.
fn lines(coverage: &Coverage) -> Vec<String> {
    let (_, rules) = coverage.files().next().unwrap();
    let rule = rules[0];
    let outcomes = rule.outcomes;
    let mut lines = vec![format!(
        "applied {}, not {}",
        outcomes.applied(),
        outcomes.not_applied
    )];
    lines.extend(rule.points().map(|point| {
        let counts = point.counts;
        format!(
            "{} {}: {}, {}",
            point.kind.as_str(),
            point.text,
            counts.held,
            counts.not_held
        )
    }));
    lines
}

const SMALL: &str = r#"{"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a", "namespace": "x", "labels": {"size": "small"}}, "data": {"k": "1"}}"#;
const LARGE: &str = r#"{"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "b", "namespace": "y", "labels": {"size": "large"}}, "data": {"k": "2", "l": "3"}}"#;
const OTHER: &str = r#"{"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "c"}}"#;

#[test]
fn what_is_counted() {
    const CONFIG: &str = "match: {any: [{resources: {kinds: [ConfigMap]}}]}";
    let size = "{{ request.object.metadata.labels.size }}";
    // The construct, the rule, the counts: held, not held.
    let rows: &[(&str, String, &[&str])] = &[
        (
            "filters: the second is not looked at where the first does not hold",
            "match: {all: [{resources: {kinds: [ConfigMap]}}, {resources: {kinds: [ConfigMap], namespaces: [x]}}]}, exclude: {any: [{resources: {names: [b]}}]}, validate: {message: m, deny: {}}".into(),
            &[
                "applied 1, not 2",
                "filter match.all[0].kinds: ConfigMap: 2, 1",
                "filter match.all[1].kinds: ConfigMap: 2, 0",
                "filter match.all[1].namespaces: x: 1, 1",
                "filter exclude.any[0].names: b: 0, 1",
            ],
        ),
        (
            "preconditions and deny conditions",
            format!(
                "{CONFIG}, preconditions: {{all: [{{key: '{size}', operator: AnyIn, value: [large, huge]}}]}}, validate: {{message: m, deny: {{conditions: {{any: [{{key: '{size}', operator: Equals, value: huge}}]}}}}}}"
            ),
            &[
                "applied 2, not 1",
                "filter match.any[0].kinds: ConfigMap: 2, 1",
                "condition preconditions.all[0]: {{ request.object.metadata.labels.size }} AnyIn: 1, 1",
                "condition deny.conditions.any[0]: {{ request.object.metadata.labels.size }} Equals: 0, 1",
            ],
        ),
        (
            "leaves: behind one that fails nothing is tested; anchors are no leaves",
            format!(
                "{CONFIG}, validate: {{message: m, pattern: {{metadata: {{labels: {{size: large, zone: '?*'}}}}, data: {{=(k): '2', X(l): 'null'}}}}}}"
            ),
            &[
                "applied 2, not 1",
                "filter match.any[0].kinds: ConfigMap: 2, 1",
                "leaf /metadata/labels/size: \"large\": 0, 0",
                "leaf /metadata/labels/zone: \"?*\": 0, 0",
                "leaf /data/k: \"2\": 1, 1",
                "leaf /data/l: X(l): 0, 1",
            ],
        ),
        (
            "each entry of a label pattern with wildcards",
            format!("{CONFIG}, validate: {{message: m, pattern: {{metadata: {{labels: {{'si*': '*e', zone: '?*'}}}}}}}}"),
            &[
                "applied 2, not 1",
                "filter match.any[0].kinds: ConfigMap: 2, 1",
                "leaf /metadata/labels/si*: \"*e\": 1, 1",
                "leaf /metadata/labels/zone: \"?*\": 0, 1",
            ],
        ),
        (
            "alternatives",
            format!("{CONFIG}, validate: {{message: m, anyPattern: [{{data: {{k: '1'}}}}, {{data: {{k: '2'}}}}, {{data: {{k: '3'}}}}]}}"),
            &[
                "applied 2, not 1",
                "filter match.any[0].kinds: ConfigMap: 2, 1",
                "leaf /data/k: \"1\": 1, 1",
                "leaf /data/k: \"2\": 1, 0",
                "leaf /data/k: \"3\": 0, 0",
            ],
        ),
        (
            "every element of a foreach",
            format!("{CONFIG}, validate: {{message: m, foreach: [{{list: 'values(request.object.data)', deny: {{conditions: {{all: [{{key: '{{{{ element }}}}', operator: Equals, value: '3'}}]}}}}}}]}}"),
            &[
                "applied 2, not 1",
                "filter match.any[0].kinds: ConfigMap: 2, 1",
                "condition foreach[0].deny.conditions.all[0]: {{ element }} Equals: 1, 2",
            ],
        ),
    ];
    for (construct, rule, expected) in rows {
        let coverage = cover(rule, &[SMALL, LARGE, OTHER]);
        assert_eq!(lines(&coverage), *expected, "{construct}: {rule}");
    }
}

/// Generated rules count for their source rule, and only the rule for the kind of a
/// resource counts.
#[test]
fn generated_rules_count_for_the_written_one() {
    let rule = "match: {any: [{resources: {kinds: [Pod], namespaces: [x]}}]}, validate: {message: m, pattern: {spec: {hostNetwork: false}}}";
    let object = |kind: &str, namespace: &str, spec: &str| {
        let version = if kind == "Pod" || kind == "Service" {
            "v1"
        } else {
            "apps/v1"
        };
        format!(
            r#"{{"apiVersion": "{version}", "kind": "{kind}", "metadata": {{"name": "a", "namespace": "{namespace}"}}, "spec": {spec}}}"#
        )
    };
    let objects = [
        object("Pod", "x", r#"{"hostNetwork": true}"#),
        object(
            "Deployment",
            "x",
            r#"{"template": {"spec": {"hostNetwork": false}}}"#,
        ),
        object("Deployment", "y", "{}"),
        object("Service", "x", "{}"),
    ];
    let objects: Vec<&str> = objects.iter().map(String::as_str).collect();
    assert_eq!(
        lines(&cover(rule, &objects)),
        [
            "applied 2, not 2",
            "filter match.any[0].kinds: Pod: 3, 1",
            "filter match.any[0].namespaces: x: 2, 1",
            "leaf /spec/hostNetwork: false: 1, 1",
        ]
    );
}

/// Coverage of parts adds up to the coverage of the whole.
#[test]
fn coverage_adds_up() {
    let rule = "match: {any: [{resources: {kinds: [ConfigMap]}}]}, validate: {message: m, pattern: {data: {k: '1'}}}";
    let shown = |coverage: &Coverage| {
        let document = kpvm_cli::coverage::structured::document(coverage);
        serde_json::to_string(&document).unwrap()
    };
    let whole = cover(rule, &[SMALL, LARGE, OTHER]);
    let mut sum = Coverage::new();
    for object in [SMALL, LARGE, OTHER] {
        sum.merge(cover(rule, &[object]));
    }
    assert_eq!(shown(&sum), shown(&whole));
    assert_eq!(whole.summary().percent(), Some(100.0));
    assert_eq!(cover(rule, &[]).summary().percent(), Some(0.0));
    assert_eq!(Coverage::new().summary().percent(), None);
}

const POLICY: &str = "apiVersion: kyverno.io/v1
kind: ClusterPolicy
metadata:
  name: release
spec:
  background: false
  rules:
    - name: stage
      match:
        any:
          - resources:
              kinds: [ConfigMap]
      context:
        - name: stages
          variable:
            value: [beta, live]
      preconditions:
        all:
          - key: \"{{ request.object.metadata.labels.stage || 'none' }}\"
            operator: NotEquals
            value: none
      validate:
        message: Stages are {{ stages }}.
        deny:
          conditions:
            all:
              - key: \"{{ request.object.metadata.labels.stage }}\"
                operator: AnyNotIn
                value: \"{{ stages }}\"
    - name: data
      match:
        any:
          - resources:
              kinds: [ConfigMap]
      validate:
        message: m
        pattern:
          data:
            =(k): '1 | 2'
            l: '?*'
    - name: never
      match:
        any:
          - resources:
              kinds: [Secret]
              names: [x]
      validate:
        message: m
        pattern:
          type: Opaque
";

fn suite(policy: &str, resource: &str, stage: &str) -> String {
    format!(
        "apiVersion: cli.kyverno.io/v1alpha1
kind: Test
metadata: {{name: t}}
policies: [{policy}]
resources: [resources.yaml]
results:
- {{policy: release, rule: stage, kind: ConfigMap, resources: [{resource}], result: {stage}}}
"
    )
}

/// Two suites that name the same policy by different paths.
fn suites(test: &str) -> Files {
    let first = "{apiVersion: v1, kind: ConfigMap, metadata: {name: a, labels: {stage: live}}, data: {k: '1', l: x}}\n";
    let second = "{apiVersion: v1, kind: ConfigMap, metadata: {name: b}, data: {l: ''}}\n";
    Files::new(
        test,
        &[
            ("policy.yaml", POLICY),
            (
                "one/kyverno-test.yaml",
                &suite("../policy.yaml", "a", "pass"),
            ),
            ("one/resources.yaml", first),
            (
                "two/deep/kyverno-test.yaml",
                &suite("../../one/../policy.yaml", "b", "skip"),
            ),
            ("two/deep/resources.yaml", second),
        ],
    )
}

#[test]
fn text() {
    let done = suites("coverage-text").run("kpvm", &["test", ".", "--coverage"]);
    assert_eq!((done.code, &*done.err), (0, ""));
    insta::assert_snapshot!(done.out);
}

fn in_file(test: &str, format: &str) -> String {
    let files = suites(test);
    let format = format!("--coverage={format}");
    let arguments = ["test", ".", &format, "--coverage-file", "coverage"];
    let done = files.run("kpvm", &arguments);
    assert_eq!((done.code, &*done.err), (0, ""));
    std::fs::read_to_string(files.0.join("coverage")).unwrap()
}

#[test]
fn json() {
    insta::assert_snapshot!(in_file("coverage-json", "json"));
}

#[test]
fn lcov() {
    let tracefile = in_file("coverage-lcov", "lcov");
    insta::assert_snapshot!(tracefile);
    let records: Result<Vec<lcov::Record>, _> = lcov::Reader::new(tracefile.as_bytes()).collect();
    let records = records.unwrap();
    // A reader of the file finds the sums that were written.
    let report = lcov::Report::from_reader(lcov::Reader::new(tracefile.as_bytes())).unwrap();
    assert_eq!(report.into_records().collect::<Vec<_>>(), records);
}

#[test]
fn less_than_asked_for() {
    let files = suites("coverage-less");
    // Arguments, exit code, message.
    let rows: [(&[&str], i32, &str); 6] = [
        (&["--coverage", "--coverage-fail-under", "50"], 0, ""),
        (
            &["--coverage", "--coverage-fail-under", "90.5"],
            1,
            "error: coverage is 52.3 %, less than 90.5 %\n",
        ),
        (
            &["--coverage=json"],
            2,
            "error: report and coverage cannot share standard output",
        ),
        (
            &["--coverage", "-o", "json"],
            2,
            "error: report and coverage cannot share standard output",
        ),
        (
            &["--coverage", "--coverage-file", "no/such/directory"],
            2,
            "error: cannot write no/such/directory",
        ),
        (&["--coverage-fail-under", "5"], 2, "--coverage"),
    ];
    for (arguments, code, message) in rows {
        let arguments: Vec<&str> = ["test", "."].iter().chain(arguments).copied().collect();
        let done = files.run("kpvm", &arguments);
        assert_eq!(done.code, code, "{arguments:?}: {done:?}");
        assert!(done.err.contains(message), "{arguments:?}: {}", done.err);
    }
    let empty = Files::new("coverage-empty", &[("x", "")]);
    let done = empty.run(
        "kpvm",
        &["test", ".", "--coverage", "--coverage-fail-under", "0"],
    );
    assert_eq!(done.code, 1, "{done:?}");
    assert!(
        done.err.contains("there is no rule to cover"),
        "{}",
        done.err
    );
}

/// `kpvm test --explain`: traces of each suite that has the rule.
#[test]
fn explain_in_suites() {
    let files = suites("coverage-explain");
    let done = files.run("kpvm", &["test", ".", "--explain", "release/data"]);
    assert_eq!((done.code, &*done.err), (0, ""));
    insta::assert_snapshot!(done.out);
    let arguments = ["test", ".", "--explain", "release/stages"];
    let unknown = files.run("kpvm", &arguments);
    assert_eq!(unknown.code, 2);
    assert_eq!(
        unknown.err,
        "error: there is no rule release/stages to explain: expected POLICY/RULE; did you mean `release/stage`?\n"
    );
    let other = [
        "test",
        ".",
        "--explain",
        "release/data",
        "--explain-resource",
        "z",
    ];
    let other = files.run("kpvm", &other);
    assert_eq!(
        (other.code, &*other.err),
        (2, "error: no suite with the rule has a resource z\n")
    );
}
