//! Bundles are small: what rules have in common is stored once.

use std::path::Path;

use kpvm_compiler::compile::{Options, add_exceptions, compile};
use kpvm_compiler::source::Sources;
use kpvm_format::Bundle;

/// Most bytes of a bundle for each byte of YAML.
const MOST: usize = 3;

/// The policies of `corpus/pod-security`: a name for the file, which does not depend on
/// where the repository is, and the text.
fn pod_security_policies() -> Vec<(String, String)> {
    let corpus = Path::new(env!("CARGO_MANIFEST_DIR")).join("../corpus/pod-security");
    let mut policies: Vec<(String, String)> = std::fs::read_dir(corpus)
        .unwrap()
        .map(|entry| {
            let entry = entry.unwrap();
            let text = std::fs::read_to_string(entry.path().join("policy.yaml")).unwrap();
            let name = entry.file_name().display().to_string();
            (format!("{name}.yaml"), text)
        })
        .collect();
    policies.sort();
    policies
}

fn bundle_of(policies: &[(String, String)]) -> Vec<u8> {
    let mut sources = Sources::new();
    for (name, text) in policies {
        sources.add(name.as_str(), text.as_str());
    }
    let compilation = compile(&sources, &Options::default());
    let diagnostics = compilation.diagnostics;
    let bytes = compilation.bundle;
    bytes.unwrap_or_else(|| panic!("the policies do not compile: {diagnostics:?}"))
}

fn size_of(bundle: &Bundle<'_>, section: &str) -> usize {
    let sizes = bundle.section_sizes();
    let found = sizes.into_iter().find(|&(name, _)| name == section);
    found.map(|(_, size)| size).unwrap()
}

#[test]
fn a_bundle_is_at_most_three_times_its_yaml() {
    let policies = pod_security_policies();
    assert_eq!(policies.len(), 17);
    let yaml: usize = policies.iter().map(|(_, text)| text.len()).sum();
    let bundle = bundle_of(&policies).len();
    println!("{bundle} bytes of bundle for {yaml} bytes of YAML");
    assert!(bundle <= MOST * yaml, "{bundle} bytes for {yaml} of YAML");
}

#[test]
fn copies_of_a_policy_share_code_and_sites() {
    let policies = pod_security_policies();
    // Other names, in other files, at other lines.
    let copies = policies.iter().map(|(file, text)| {
        let text = text.replacen("\n  name: ", "\n  name: copy-of-", 1);
        (format!("{file}.copy"), format!("# A copy.\n\n{text}"))
    });
    let both: Vec<(String, String)> = policies.iter().cloned().chain(copies).collect();
    let (once, twice) = (bundle_of(&policies), bundle_of(&both));
    let once = Bundle::load(once.as_slice()).unwrap();
    let twice = Bundle::load(twice.as_slice()).unwrap();
    assert_eq!(twice.tables().rules.len(), 2 * once.tables().rules.len());
    for section in [
        "code",
        "blocks",
        "leaves",
        "sites",
        "site_runs",
        "site_paths",
        "tag_places",
    ] {
        assert_eq!(
            size_of(&once, section),
            size_of(&twice, section),
            "{section}"
        );
    }
    let places = |bundle: &Bundle<'_>, rule: u32| -> Vec<(u32, u32)> {
        let tables = bundle.tables();
        let body = tables.rules[rule as usize].body_block.get();
        let places = tables
            .sites_of(body)
            .map(|site| tables.place_of(rule, &site.place));
        places
            .map(|place| (place.line.get(), place.column.get()))
            .collect()
    };
    let rules = once.tables().rules.len() as u32;
    for rule in 0..rules {
        let moved: Vec<(u32, u32)> = places(&once, rule)
            .into_iter()
            .map(|(line, column)| (line + 2, column))
            .collect();
        assert_eq!(places(&twice, rule), places(&once, rule));
        assert_eq!(places(&twice, rules + rule), moved);
    }
}

#[test]
fn sharing_again_changes_nothing() {
    let bytes = bundle_of(&pod_security_policies());
    let bundle = Bundle::load(bytes.as_slice()).unwrap();
    let again = add_exceptions(
        &bundle,
        &[],
        &Sources::new(),
        &Options::default(),
        Vec::new(),
    );
    assert!(again.bundle == Some(bytes), "other bytes");
}
