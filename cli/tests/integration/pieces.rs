//! Long inputs, evaluated chunk by chunk: every report is, byte for byte, that of all
//! objects at once.

use std::fmt::Write as _;
use std::io::Read;
use std::process::{Command, Stdio};

use crate::common::Files;

/// One rule that some objects violate, two that match nothing because of a filter or a
/// kind, and a CEL rule that some objects violate.
const POLICIES: &str = "\
apiVersion: kyverno.io/v1
kind: ClusterPolicy
metadata: {name: need-team, annotations: {pod-policies.kyverno.io/autogen-controllers: none}}
spec:
  rules:
    - name: team
      match: {any: [{resources: {kinds: [Pod, Node]}}]}
      validate:
        message: Say the team.
        pattern: {metadata: {labels: {team: '?*'}}}
    - name: elsewhere
      match: {any: [{resources: {kinds: [Pod]}}]}
      preconditions: {all: [{key: '{{ request.object.metadata.name }}', operator: Equals, value: p7}]}
      validate:
        message: 'Name {{ request.object.metadata.name }}.'
        deny: {}
---
apiVersion: kyverno.io/v1
kind: ClusterPolicy
metadata: {name: filtered, annotations: {pod-policies.kyverno.io/autogen-controllers: none}}
spec:
  rules:
    - name: nothing
      match: {any: [{resources: {kinds: [Pod], namespaces: [nowhere]}}]}
      validate: {message: x, pattern: {kind: Pod}}
---
apiVersion: kyverno.io/v1
kind: Policy
metadata: {name: own, namespace: shop, annotations: {pod-policies.kyverno.io/autogen-controllers: none}}
spec:
  rules:
    - name: cel
      match: {any: [{resources: {kinds: [Pod]}}]}
      validate:
        cel:
          expressions: [{expression: \"!has(object.metadata.labels) || object.metadata.labels.team != 'b'\", message: Not b.}]
";

const FORMS: [&str; 11] = [
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
    "exceptions",
];

const OBJECTS: usize = 160;

/// Members of various objects, in JSON.
fn objects() -> Vec<String> {
    let padding = "é".repeat(6000);
    let object = |number: usize| {
        let metadata = match number % 8 {
            1 => "\"namespace\": \"shop\"",
            2 => "\"labels\": {\"team\": \"a\"}",
            3 => "\"namespace\": \"shop\", \"labels\": null",
            4 => "\"namespace\": \"shop\", \"labels\": {\"team\": \"b\"}",
            _ => "\"namespace\": \"shop\", \"labels\": {\"team\": \"a\"}",
        };
        let (version, kind) = match number % 40 {
            20 => ("v1", "Node"),
            21 => ("v1", "Secret"),
            _ => ("v1", "Pod"),
        };
        format!(
            "\"apiVersion\": \"{version}\", \"kind\": \"{kind}\", \"metadata\": {{\"name\": \"p{number}\", {metadata}, \"annotations\": {{\"a\": \"{padding}\"}}}}"
        )
    };
    (0..OBJECTS).map(object).collect()
}

/// Output in every format, and messages for people, for resources evaluated in chunks, and
/// for the same resources at once (forced by exceptions among the resources).
fn both_ways(files: &Files, resources: &str, inputs: [&str; 2]) -> [Vec<(String, String)>; 2] {
    let [piecewise, whole] = inputs;
    let ways = [
        (piecewise, &[][..]),
        (whole, &["--exceptions-with-resources"]),
    ];
    ways.map(|(input, options)| {
        let reports = FORMS.map(|form| format!("{form}={form}.out"));
        let mut arguments = vec!["eval", "p.kpb", resources, "--verbose"];
        arguments.extend(options);
        arguments.extend(reports.iter().flat_map(|report| ["--report", report]));
        let done = files.run_with_input("kpvm", &arguments, input);
        assert_eq!(
            done.code,
            if done.err.contains("could not be used") {
                2
            } else {
                1
            }
        );
        let mut all = vec![("standard output".to_owned(), done.out)];
        let warning = "warning: there is no exception in the inputs\n";
        all.push(("standard error".to_owned(), done.err.replace(warning, "")));
        for form in FORMS {
            let text = std::fs::read_to_string(files.0.join(format!("{form}.out"))).unwrap();
            all.push((form.to_owned(), text));
        }
        all
    })
}

fn is_same_both_ways(test: &str, named: &[(&str, &str)], resources: &str, input: &str) {
    are_same(test, named, resources, [input, input]);
}

fn are_same(test: &str, named: &[(&str, &str)], resources: &str, inputs: [&str; 2]) {
    let mut all = vec![("policies.yaml", POLICIES)];
    all.extend(named);
    let files = Files::new(test, &all);
    let compiled = files.run("kpc", &["compile", "policies.yaml", "-o", "p.kpb"]);
    assert_eq!(compiled.code, 0, "{}", compiled.err);
    let [pieces, whole] = both_ways(&files, resources, inputs);
    for ((name, piecewise), (_, whole)) in pieces.iter().zip(&whole) {
        let differs = piecewise
            .lines()
            .zip(whole.lines())
            .find(|(left, right)| left != right);
        let shorten = |text: &str| text.chars().take(400).collect::<String>();
        let differs = differs.map(|(left, right)| (shorten(left), shorten(right)));
        assert_eq!(differs, None, "{test}: {name}");
        assert!(piecewise == whole, "{test}: {name}");
    }
    let text = &whole[0].1;
    assert!(text.contains("Say the team."), "{text}");
    assert!(text.contains("Not b."), "{text}");
}

/// Lines are compared with documents on the same lines: as a whole, NDJSON is not YAML and
/// has no locations.
#[test]
fn lines() {
    let objects: Vec<String> = objects()
        .iter()
        .enumerate()
        .map(|(number, object)| match number {
            50 => format!("{{\"kind\": \"List\", \"items\": [{{{object}}}]}}\n"),
            _ => format!("{{{object}}}\n"),
        })
        .collect();
    let [lines, documents] = ["\n", "---\n"].map(|separator| objects.join(separator));
    are_same("pieces-lines", &[], "-", [&lines, &documents]);
}

/// As written by kubectl: indented, with the kind after the items.
#[test]
fn a_list_of_kubectl() {
    let mut items = String::new();
    for object in objects() {
        let object = object.replace(", \"", ",\n            \"");
        let _ = write!(items, "        {{\n            {object}\n        }},\n");
    }
    let text = format!(
        "{{\n    \"apiVersion\": \"v1\",\n    \"items\": [\n{items}        null\n    ],\n    \"kind\": \"List\",\n    \"metadata\": {{\n        \"resourceVersion\": \"\"\n    }}\n}}\n"
    );
    assert!(text.len() > 1 << 20);
    is_same_both_ways("pieces-list", &[("list.json", &text)], "list.json", "");
    is_same_both_ways("pieces-list-in", &[], "-", &text);
}

/// As written by the API server: on one line, with items that lack the kind stated by the
/// list.
#[test]
fn a_list_of_pods_on_one_line() {
    let of_pods = objects();
    let of_pods = of_pods.iter().filter(|object| object.contains("\"Pod\""));
    let bare = "\"apiVersion\": \"v1\", \"kind\": \"Pod\", ";
    let items: Vec<String> = of_pods
        .map(|object| format!("{{{}}}", object.replacen(bare, "", 1)))
        .collect();
    let text = format!(
        "{{\"kind\":\"PodList\",\"apiVersion\":\"v1\",\"metadata\":{{\"resourceVersion\":\"7\"}},\"items\":[{}]}}",
        items.join(",")
    );
    is_same_both_ways("pieces-pods", &[("pods.json", &text)], "pods.json", "");
}

#[test]
fn documents() {
    let mut text = String::from("# documents\n---\n");
    for (number, object) in objects().iter().enumerate() {
        match number {
            90 => writeln!(text, "kind: [\n---").unwrap(),
            _ => {
                let object = object
                    .replace(", \"metadata\"", "\nmetadata")
                    .replace("\": ", ": ");
                let object = object
                    .replace(", \"kind:", "\nkind:")
                    .replace("\"apiVersion", "apiVersion");
                let object = object.replace("{\"name:", "{name:").replace(", \"", ", ");
                let object = object.replace("{\"", "{");
                writeln!(text, "{object}\n---").unwrap();
            }
        }
    }
    is_same_both_ways("pieces-documents", &[("all.yaml", &text)], "all.yaml", "");
    is_same_both_ways("pieces-documents-in", &[], "-", &text);
}

#[test]
fn a_directory() {
    let objects = objects();
    let named: Vec<(String, String)> = objects
        .iter()
        .enumerate()
        .map(|(number, object)| match number % 3 {
            0 => (
                format!("in/{}/{number:03}.json", number % 7),
                format!("{{\n{object}\n}}\n"),
            ),
            _ => (
                format!("in/{}/{number:03}.yaml", number % 7),
                format!("# {number}\n{{{object}}}\n"),
            ),
        })
        .collect();
    let mut files: Vec<(&str, &str)> = named
        .iter()
        .map(|(name, text)| (name.as_str(), text.as_str()))
        .collect();
    files.push(("in/3/broken.yaml", "kind: [\n"));
    is_same_both_ways("pieces-directory", &files, "in", "");
}

/// `kpvm eval … | head`
#[test]
#[cfg(unix)]
fn a_reader_that_goes_away_is_no_news() {
    let object = "{\"apiVersion\":\"v1\",\"kind\":\"Pod\",\"metadata\":{\"name\":\"a\",\"namespace\":\"b\"}}\n";
    let text = object.repeat(20_000);
    let files = Files::new(
        "pieces-head",
        &[("policies.yaml", POLICIES), ("a.ndjson", &text)],
    );
    files.run("kpc", &["compile", "policies.yaml", "-o", "p.kpb"]);
    let mut child = Command::new(env!("CARGO_BIN_EXE_kpvm"))
        .args(["eval", "p.kpb", "a.ndjson"])
        .current_dir(&files.0)
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut out = child.stdout.take().unwrap();
    out.read_exact(&mut [0; 10]).unwrap();
    drop(out);
    let output = child.wait_with_output().unwrap();
    assert_eq!(output.status.code(), Some(2));
    assert_eq!(String::from_utf8(output.stderr).unwrap(), "");
}
