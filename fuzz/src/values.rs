//! Values files and user info: a text and the same data as JSON mean the same.

use std::str::from_utf8;

use kpvm_cli::problem::Problem;
use kpvm_cli::user_info::User;
use kpvm_cli::values::Values;
use kpvm_compiler::source::Sources;
use kpvm_semantics::limits::Limits;
use kpvm_syntax::tree::DuplicateKeys;
use kpvm_syntax::yaml::{Options, read_all};

use crate::seeds;
use crate::target::Target;

/// The target.
pub const TARGET: Target = Target {
    name: "values",
    run,
    seeds,
    words: &[
        "apiVersion: cli.kyverno.io/v1alpha1",
        "kind: Values",
        "kind: UserInfo",
        "globalValues:",
        "policies:",
        "- name:",
        "rules:",
        "values:",
        "resources:",
        "foreachValues:",
        "namespaceSelector:",
        "labels:",
        "subresources:",
        "parentResource:",
        "subresource:",
        "request.operation: CREATE",
        "request.object.spec:",
        "clusterRoles:",
        "roles:",
        "userInfo:",
        "username:",
        "groups:",
        "a.b.c:",
        "\"{{x}}\"",
        "null",
        "1.5",
        "true",
    ],
    max_bytes: 2 << 10,
};

/// Runs the harness.
pub fn run(input: &[u8]) {
    let Ok(text) = from_utf8(input) else { return };
    let (values, user) = read(text);
    if let Ok(values) = &values {
        for (policy, resource) in [("p", "r"), ("policy", "pod"), ("", "")] {
            let variables = values.variables(policy, resource);
            let general = values.general_variables();
            if !values.has_resource(policy, resource) {
                assert_eq!(format!("{variables:?}"), format!("{general:?}"));
            }
        }
    }
    let options = Options {
        duplicate_keys: DuplicateKeys::Refuse,
        limits: &Limits::DEFAULT,
    };
    let [Ok(tree)] = &read_all(text, options)[..] else {
        return;
    };
    let json = tree.to_json().to_string();
    let (json_values, json_user) = read(&json);
    assert_eq!(
        values.is_ok(),
        json_values.is_ok(),
        "{values:?} and {json_values:?}"
    );
    if let (Ok(values), Ok(json)) = (&values, &json_values) {
        // Locations differ, and members of JSON are in another order.
        let seen =
            |values: &Values| format!("{:?} {:?}", values.namespaces(), values.namespace_objects());
        assert_eq!(seen(values), seen(json));
    }
    assert_eq!(user.is_ok(), json_user.is_ok());
    if let (Ok(user), Ok(json)) = (&user, &json_user) {
        assert_eq!(
            format!("{:?}", user.borrow().info()),
            format!("{:?}", json.borrow().info())
        );
    }
}

type Read = (Result<Values, Vec<Problem>>, Result<User, Vec<Problem>>);

/// Reads the text as both kinds; problems can be shown and are inside the text.
fn read(text: &str) -> Read {
    let mut sources = Sources::new();
    let values = Values::read("values.yaml", text, &mut sources);
    let user = User::read("user.yaml", text, &mut sources);
    let problems = values.as_ref().err().into_iter().chain(user.as_ref().err());
    for problem in problems.flatten() {
        if let Problem::InText(diagnostic) = problem {
            let span = diagnostic.location.span;
            assert!(
                text.get(span.start as usize..span.end as usize).is_some(),
                "{diagnostic:?}"
            );
        }
        assert!(!problem.report(&sources).message.is_empty());
    }
    (values, user)
}

fn seeds() -> Vec<Vec<u8>> {
    let files = seeds::corpus_files(|name| name.ends_with(".yaml"));
    let wanted = files
        .into_iter()
        .filter(|text| text.contains("kind: Values") || text.contains("kind: UserInfo"));
    let mut seeds: Vec<Vec<u8>> = wanted
        .map(String::into_bytes)
        .filter(|text| text.len() <= 2 << 10)
        .collect();
    for text in [
        "apiVersion: cli.kyverno.io/v1alpha1\nkind: Values\nmetadata:\n  name: v\nglobalValues:\n  request.operation: UPDATE\npolicies:\n- name: p\n  rules:\n  - name: r\n    values:\n      a.b: 1\n    foreachValues:\n      x: [a, b]\n  resources:\n  - name: r\n    values:\n      request.object.spec.n: 2\n      c: \"{}\"\nnamespaceSelector:\n- name: n\n  labels: {a: b}\nsubresources:\n- subresource: {name: pods/eviction, kind: Eviction, version: v1, group: policy}\n  parentResource: {name: pods, kind: Pod, version: v1}\n",
        "apiVersion: cli.kyverno.io/v1alpha1\nkind: UserInfo\nmetadata:\n  name: u\nclusterRoles: [admin]\nroles: [n:r]\nuserInfo:\n  username: u\n  groups: [a, b]\n",
        "{\"apiVersion\": \"cli.kyverno.io/v1alpha1\", \"kind\": \"Values\", \"policies\": [{\"name\": \"p\", \"resources\": [{\"name\": \"r\", \"values\": {\"a\": {\"b\": 1}}}]}]}",
    ] {
        seeds.push(text.as_bytes().to_vec());
    }
    seeds
}
