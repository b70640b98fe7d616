//! Sizes of bundles compared with the YAML that they are compiled from, by section.
//!
//! `cargo run --release -p kpvm-bench --bin sizes` compiles the 17 policies of
//! `corpus/pod-security` and 9,996 policies that are renamed copies of them. `-- 17` or
//! `-- 9996` measures one of both.

#![allow(clippy::print_stdout, clippy::expect_used)]

use kpvm_bench::workload::{bundle, pod_security_policies, repeated_policies};
use kpvm_compiler::source::Sources;
use kpvm_format::Bundle;

fn main() {
    let wanted: Vec<String> = std::env::args().skip(1).collect();
    let is_wanted = |count: &str| wanted.is_empty() || wanted.iter().any(|one| one == count);
    if is_wanted("17") {
        print(&pod_security_policies());
    }
    if is_wanted("9996") {
        print(&repeated_policies(9_996));
    }
}

fn print(sources: &Sources) {
    let yaml: usize = sources.iter().map(|(_, file)| file.text.len()).sum();
    let bytes = bundle(sources);
    let bundle = Bundle::load(bytes.as_slice()).expect("a fresh bundle loads");
    let tables = bundle.tables();
    println!(
        "{} policies, {} rules: {yaml} bytes of YAML, {} bytes of bundle, {:.2} times as many",
        tables.policies.len(),
        tables.rules.len(),
        bytes.len(),
        bytes.len() as f64 / yaml as f64,
    );
    for (name, size) in bundle.section_sizes() {
        if size > 0 {
            println!("  {name:<16} {size:>10}  {:.3}", size as f64 / yaml as f64);
        }
    }
}
