//! The Pods of Kubernetes' own tests of the Pod Security Standards: every Pod gets the
//! verdict of its folder, for its level and version, except where Kyverno differs
//! (docs/spec/pod-security.md §12).

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use crate::common::{compile, policy, rule};
use kpvm::engine::{Engine, Input, Request, Session, Status};
use kpvm_semantics::limits::Limits;
use kpvm_syntax::yaml::{self, DuplicateKeys};

fn sorted(folder: &Path) -> Vec<PathBuf> {
    let mut paths: Vec<PathBuf> = std::fs::read_dir(folder)
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .collect();
    paths.sort();
    paths
}

fn name(path: &Path) -> &str {
    path.file_stem().unwrap().to_str().unwrap()
}

/// Reason why Kyverno fails a Pod of a passing folder.
fn difference(level: &str, minor: u32, file: &str) -> Option<&'static str> {
    let restricted = level == "restricted";
    match file {
        _ if restricted && minor <= 21 => Some("first revisions apply below their version"),
        "restrictedvolumes0" if restricted => Some("a volume without a source"),
        "procmount1" if !restricted && minor >= 35 => Some("user namespaces change nothing"),
        "sysctls1" if minor >= 37 => Some("the sysctls of 1.37 are not known"),
        _ => None,
    }
}

/// Reads the statuses of all Pods of a folder.
fn statuses(folder: &Path, session: &mut Session<'_>) -> Vec<(String, Status)> {
    let options = yaml::Options {
        duplicate_keys: DuplicateKeys::Refuse,
        limits: &Limits::DEFAULT,
    };
    let status = |path: &PathBuf| {
        let text = std::fs::read_to_string(path).unwrap();
        let pod = yaml::read_all(&text, options).remove(0).unwrap();
        let request = Request::create(Input::Tree(&pod));
        let evaluation = session.evaluate(&request).unwrap();
        let status = evaluation.responses().next().unwrap().status();
        (name(path).to_owned(), status)
    };
    sorted(folder).iter().map(status).collect()
}

#[test]
fn every_pod_gets_the_verdict_of_its_folder() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../shared/conformance/pod-security");
    if !root.exists() {
        println!("skipped: {} is not there", root.display());
        return;
    }
    let mut counts = BTreeMap::new();
    let mut wrong = Vec::new();
    for level in ["baseline", "restricted"] {
        for version in sorted(&root.join(level))
            .iter()
            .filter(|path| path.is_dir())
        {
            let version_name = version.file_name().unwrap().to_str().unwrap();
            let minor: u32 = version_name.strip_prefix("v1.").unwrap().parse().unwrap();
            let kinds = "match: {any: [{resources: {kinds: [Pod]}}]}";
            let block = format!("{{podSecurity: {{level: {level}, version: {version_name}}}}}");
            let bundle = compile(&policy(&[rule("r", kinds, &block)], "")).unwrap();
            let engine = Engine::load(bundle).unwrap();
            let mut session = Session::new(&engine);
            for (verdict, of_folder) in [("pass", Status::Pass), ("fail", Status::Fail)] {
                for (file, status) in statuses(&version.join(verdict), &mut session) {
                    let reason = difference(level, minor, &file).filter(|_| verdict == "pass");
                    let expected = reason.map_or(of_folder, |_| Status::Fail);
                    *counts.entry(reason.unwrap_or(verdict)).or_insert(0) += 1;
                    if status != expected {
                        wrong.push(format!("{level}/{version_name}/{verdict}/{file}: {status}"));
                    }
                }
            }
        }
    }
    println!("{counts:#?}");
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    assert!(counts["pass"] > 200 && counts["fail"] > 900, "{counts:?}");
}
