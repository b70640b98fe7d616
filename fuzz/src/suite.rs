//! Suites (`kyverno-test.yaml`): decode, run beside files of their own, and write the reports.

use std::fs;
use std::path::PathBuf;
use std::str::from_utf8;
use std::sync::OnceLock;

use kpvm_cli::strict::Decoder;
use kpvm_cli::suite::document::{Document, read_documents};
use kpvm_cli::suite::report::{Detail, Format, write};
use kpvm_cli::suite::run::{Options, run_file};
use kpvm_compiler::source::Sources;
use quick_junit::Report;
use serde_json::Value;

use crate::seeds;
use crate::target::Target;

/// The target.
pub const TARGET: Target = Target {
    name: "suite",
    run,
    seeds,
    words: &[
        "apiVersion: cli.kyverno.io/v1alpha1",
        "kind: Test",
        "metadata:",
        "name:",
        "policies:",
        "- policy.yaml",
        "resources:",
        "- resources.yaml",
        "variables: values.yaml",
        "userinfo: user.yaml",
        "exceptions:",
        "results:",
        "- policy: ",
        "rule:",
        "result: pass",
        "result: fail",
        "result: skip",
        "kind: Pod",
        "resourceSpecs:",
        "operation: CREATE",
        "values:",
        "globalValues:",
        "isValidatingPolicy: true",
        "patchedResources:",
        "targetResources:",
        "context:",
        "jsonPayload:",
        "need-team",
        "team",
        "good",
        "bad",
        "*",
        "apps/",
        "checks:",
        "globalContextEntries:",
        "apiCallResponses:",
    ],
    max_bytes: 2 << 10,
};

/// Files that a suite can name.
const FILES: [(&str, &str); 4] = [
    (
        "policy.yaml",
        "apiVersion: kyverno.io/v1\nkind: ClusterPolicy\nmetadata: {name: need-team}\nspec:\n  rules:\n  - name: team\n    match: {any: [{resources: {kinds: [Pod]}}]}\n    validate: {message: m, pattern: {metadata: {labels: {team: '?*'}}}}\n",
    ),
    (
        "resources.yaml",
        "apiVersion: v1\nkind: Pod\nmetadata: {name: good, labels: {team: a}}\n---\napiVersion: v1\nkind: Pod\nmetadata: {name: bad, namespace: n}\n",
    ),
    (
        "values.yaml",
        "apiVersion: cli.kyverno.io/v1alpha1\nkind: Values\nglobalValues: {request.operation: UPDATE}\n",
    ),
    (
        "user.yaml",
        "apiVersion: cli.kyverno.io/v1alpha1\nkind: UserInfo\nuserInfo: {username: u}\n",
    ),
];

/// Runs the harness.
pub fn run(input: &[u8]) {
    let Ok(text) = from_utf8(input) else { return };
    let mut sources = Sources::new();
    let source = sources.add("kyverno-test.yaml", text);
    let mut decoder = Decoder::new("test-document", source);
    let documents = read_documents(text, source, &mut decoder);
    for diagnostic in &decoder.diagnostics {
        let span = diagnostic.location.span;
        assert!(
            text.get(span.start as usize..span.end as usize).is_some(),
            "{diagnostic:?}"
        );
    }
    if documents.iter().all(names_own_files_only) {
        run_suite(text);
    }
}

/// Whether every file that the suite names is one of its own folder: it must not reach others.
fn names_own_files_only(document: &Document) -> bool {
    let lists = [
        &document.policies,
        &document.resources,
        &document.target_resources,
        &document.param_resources,
        &document.exceptions,
        &document.cluster_resources,
        &document.json_payloads,
        &document.http_payloads,
        &document.envoy_payloads,
    ];
    let single = [&document.variables, &document.user_info, &document.context];
    let results = document.results.iter().flat_map(|row| {
        let single = [&row.patched_resources, &row.clone_source_resource];
        single.into_iter().flatten().chain(&row.generated_resources)
    });
    let mut named = lists
        .into_iter()
        .flatten()
        .chain(single.into_iter().flatten())
        .chain(results);
    named.all(|file| {
        file.text
            .bytes()
            .all(|byte| byte.is_ascii_alphanumeric() || byte == b'.')
            && !file.text.starts_with('.')
    })
}

/// The folder of the suite, with its files.
fn folder() -> &'static PathBuf {
    static FOLDER: OnceLock<PathBuf> = OnceLock::new();
    FOLDER.get_or_init(|| {
        let folder = std::env::temp_dir().join(format!("kpvm-fuzz-suite-{}", std::process::id()));
        fs::create_dir_all(&folder).expect("a temporary folder");
        for (name, text) in FILES {
            fs::write(folder.join(name), text).expect("a temporary file");
        }
        folder
    })
}

fn run_suite(text: &str) {
    let file = folder().join(format!("suite-{:?}.yaml", std::thread::current().id()));
    fs::write(&file, text).expect("a temporary file");
    let runs = run_file(&file, &Options::default());
    let _ = fs::remove_file(&file);
    let written = |format| {
        let mut out = Vec::new();
        write(format, &runs, Detail::default(), &mut out).expect("written to memory");
        String::from_utf8(out).expect("UTF-8")
    };
    let json: Value = serde_json::from_str(&written(Format::Json)).expect("JSON");
    assert!(json.is_object(), "{json}");
    let sarif: Value = serde_json::from_str(&written(Format::Sarif)).expect("JSON");
    assert!(sarif["runs"].is_array());
    let junit = written(Format::Junit);
    let report =
        Report::deserialize_from_str(&junit).unwrap_or_else(|error| panic!("{error}: {junit}"));
    let rows: usize = runs.iter().map(|run| run.rows.len()).sum();
    assert!(report.tests >= rows, "{junit}");
}

fn seeds() -> Vec<Vec<u8>> {
    let files = seeds::corpus_files(|name| name == "kyverno-test.yaml");
    let mut seeds: Vec<Vec<u8>> = files
        .into_iter()
        .filter(|text| text.len() <= 2 << 10)
        .step_by(3)
        .map(String::into_bytes)
        .collect();
    for text in [
        "apiVersion: cli.kyverno.io/v1alpha1\nkind: Test\nmetadata: {name: t}\npolicies: [policy.yaml]\nresources: [resources.yaml]\nvariables: values.yaml\nuserinfo: user.yaml\nresults:\n- policy: need-team\n  rule: team\n  resources: [good]\n  kind: Pod\n  result: pass\n- policy: need-team\n  rule: team\n  resources: [n/bad]\n  result: fail\n",
        "apiVersion: cli.kyverno.io/v1alpha1\nkind: Test\nmetadata: {name: t}\npolicies: [policy.yaml]\nresources: [resources.yaml]\nvalues: {globalValues: {a: b}}\nresults:\n- policy: need-team\n  result: fail\n  resourceSpecs: [{apiVersion: v1, namespace: n, name: bad}]\n  resources: []\n  operation: DELETE\n",
    ] {
        seeds.push(text.as_bytes().to_vec());
    }
    seeds
}
