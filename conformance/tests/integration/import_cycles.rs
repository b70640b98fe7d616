//! No import cycle is larger than a module with its children: between the top-level modules of a
//! crate, imports go one way.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

/// The crates, with the modules that may still be in one cycle.
const CRATES: [(&str, &[&str]); 9] = [
    ("cli", &[]),
    ("compiler", &["frontend", "ir", "policy"]),
    ("conformance", &[]),
    (
        "format",
        &[
            "builder",
            "bundle",
            "code",
            "index",
            "instruction",
            "meta",
            "outside",
            "plan",
            "sections",
            "site",
            "table",
            "verify",
        ],
    ),
    ("fuzz", &[]),
    ("semantics", &[]),
    ("syntax", &[]),
    ("benches", &[]),
    (
        "vm",
        &["cel", "engine", "function", "jmespath", "machine", "plan"],
    ),
];

type Imports = BTreeMap<String, BTreeSet<String>>;

#[test]
fn imports_between_modules_go_one_way() {
    for (name, allowed) in CRATES {
        let sources = Path::new(env!("CARGO_MANIFEST_DIR"))
            .join("..")
            .join(name)
            .join("src");
        let imports = imports(&sources);
        assert!(!imports.is_empty(), "{name} has modules");
        for (module, imported) in &imports {
            let cycle: Vec<&String> = imported
                .iter()
                .filter(|other| reached(other, &imports).contains(module))
                .collect();
            assert!(
                cycle.is_empty() || allowed.contains(&module.as_str()),
                "{name}: `{module}` imports {cycle:?}, from which it is reached again"
            );
        }
    }
}

/// The modules that a module imports, directly or not.
fn reached(module: &str, imports: &Imports) -> BTreeSet<String> {
    let mut reached = BTreeSet::new();
    let mut waiting = vec![module];
    while let Some(module) = waiting.pop() {
        for other in imports.get(module).into_iter().flatten() {
            if reached.insert(other.clone()) {
                waiting.push(other);
            }
        }
    }
    reached
}

/// The top-level modules of a crate, each with those that it names after `crate::`.
fn imports(sources: &Path) -> Imports {
    let mut imports = Imports::new();
    for file in files(sources) {
        let path = file.strip_prefix(sources).unwrap();
        let first = path.iter().next().unwrap().to_string_lossy();
        let module = first.strip_suffix(".rs").unwrap_or(&first).to_owned();
        let text = fs::read_to_string(&file).unwrap();
        let named = imports.entry(module).or_default();
        // Tests may look at anything.
        let code = text.split("#[cfg(test)]\nmod ").next().unwrap_or_default();
        for rest in code.split("crate::").skip(1) {
            let names = match rest.strip_prefix('{') {
                Some(list) => list.split('}').next().unwrap_or_default(),
                None => rest,
            };
            let is_list = rest.starts_with('{');
            let items = names.split(',').take(if is_list { usize::MAX } else { 1 });
            named.extend(items.map(|item| first_word(item.trim_start()).to_owned()));
        }
    }
    for module in ["lib", "main", "bin"] {
        imports.remove(module);
    }
    let modules: BTreeSet<String> = imports.keys().cloned().collect();
    for (module, named) in &mut imports {
        named.retain(|name| name != module && modules.contains(name));
    }
    imports
}

fn first_word(text: &str) -> &str {
    let is_end = |character: char| !character.is_alphanumeric() && character != '_';
    text.split(is_end).next().unwrap_or_default()
}

/// All files of Rust below a directory, without those that hold nothing but tests.
fn files(directory: &Path) -> Vec<PathBuf> {
    let mut files = Vec::new();
    for entry in fs::read_dir(directory).unwrap() {
        let path = entry.unwrap().path();
        let name = path.file_name().unwrap().to_string_lossy().into_owned();
        if path.is_dir() {
            files.extend(self::files(&path));
        } else if name.ends_with(".rs") && name != "tests.rs" {
            files.push(path);
        }
    }
    files
}
