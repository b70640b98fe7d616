//! The passes over the IR: a pass that runs a second time finds nothing to do.

use std::fs;
use std::path::{Path, PathBuf};

use kpvm_compiler::compile::{Options, lower_documents};
use kpvm_compiler::ir::{Item, Module};
use kpvm_compiler::passes::PASSES;
use kpvm_compiler::source::{SourceId, Sources};
use kpvm_semantics::limits::Limits;
use kpvm_syntax::tree::Tree;
use kpvm_syntax::yaml::{self, DuplicateKeys};

const POLICY_KINDS: [&str; 6] = [
    "ClusterPolicy",
    "Policy",
    "ValidatingPolicy",
    "NamespacedValidatingPolicy",
    "ValidatingAdmissionPolicy",
    "ValidatingAdmissionPolicyBinding",
];

fn yaml_files(directory: &Path, files: &mut Vec<PathBuf>) {
    let mut entries: Vec<PathBuf> = fs::read_dir(directory)
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .collect();
    entries.sort();
    for path in entries {
        if path.is_dir() {
            yaml_files(&path, files);
        } else if path
            .extension()
            .is_some_and(|extension| extension == "yaml")
        {
            files.push(path);
        }
    }
}

/// All policies of the corpus, lowered.
fn corpus() -> Module {
    let options = yaml::Options {
        duplicate_keys: DuplicateKeys::Refuse,
        limits: &Limits::DEFAULT,
    };
    let mut files = Vec::new();
    let corpus = Path::new(env!("CARGO_MANIFEST_DIR")).join("../corpus");
    yaml_files(&corpus, &mut files);
    let mut sources = Sources::new();
    let mut documents: Vec<(SourceId, Tree)> = Vec::new();
    for path in files {
        let text = fs::read_to_string(&path).unwrap();
        let source = sources.add(path.display().to_string(), text.as_str());
        let trees = yaml::read_all(&text, options).into_iter().flatten();
        let policies = trees.filter(|tree| {
            let kind = tree.get("kind").and_then(Tree::as_str);
            kind.is_some_and(|kind| POLICY_KINDS.contains(&kind))
        });
        documents.extend(policies.map(|tree| (source, tree)));
    }
    lower_documents(&documents, &sources, &Options::default(), &mut Vec::new())
}

fn code(module: &Module) -> Vec<Vec<Item>> {
    let blocks = module.blocks.entries().iter();
    blocks.map(|block| block.items.clone()).collect()
}

#[test]
fn a_second_run_of_a_pass_changes_nothing() {
    let mut module = corpus();
    assert!(module.rules.entries().len() > 100, "the corpus was found");
    for pass in PASSES {
        pass.run(&mut module);
        let once = code(&module);
        pass.run(&mut module);
        for (number, (once, twice)) in once.iter().zip(code(&module)).enumerate() {
            assert_eq!(*once, twice, "{} over block {number}", pass.name);
        }
    }
}

#[test]
fn all_passes_together_are_idempotent() {
    let mut module = corpus();
    kpvm_compiler::passes::optimise(&mut module);
    let once = code(&module);
    kpvm_compiler::passes::optimise(&mut module);
    for (number, (once, twice)) in once.iter().zip(code(&module)).enumerate() {
        assert_eq!(*once, twice, "block {number}");
    }
}
