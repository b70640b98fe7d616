//! Fuel: what a rule, and all rules of a request together, may cost.

use kpvm::engine::{Config, Engine, Input, Request, Session};
use kpvm_semantics::limits::Limits;

use super::oracle::{compile_policies, thing};

/// Two rules of the same cost.
fn policy() -> String {
    let rule = |name: &str| {
        format!(
            "  - name: {name}\n    match: {{any: [{{resources: {{kinds: [Thing]}}}}]}}\n    \
             validate: {{message: m, deny: {{conditions: {{any: [{{key: \
             '{{{{ length(request.object.spec.l[?x == `1`]) }}}}', operator: Equals, value: 1}}]}}}}}}\n"
        )
    };
    format!(
        "apiVersion: kyverno.io/v1\nkind: ClusterPolicy\nmetadata: {{name: p}}\nspec:\n  rules:\n{}{}",
        rule("a"),
        rule("b")
    )
}

/// `rule status` of each response under a limit on requests.
fn statuses(request_fuel: u64) -> Vec<String> {
    let bytes = compile_policies(&policy()).expect("the policy compiles");
    let bundle = kpvm::engine::Bundle::load(bytes).expect("a fresh bundle loads");
    let limits = Limits {
        request_fuel,
        ..Limits::DEFAULT
    };
    let engine = Engine::with_config(bundle, Config::new().with_limits(limits));
    let mut session = Session::new(&engine);
    let object = thing(&format!(
        r#"{{"l": [{}]}}"#,
        vec!["{\"x\": 2}"; 100].join(",")
    ));
    let evaluation = session
        .evaluate(&Request::create(Input::Json(object.as_bytes())))
        .expect("the object is read");
    let responses = evaluation.responses();
    responses
        .map(|response| format!("{} {}", response.rule(), response.status()))
        .collect()
}

/// Rules share the fuel of their request: some amount is enough for the first alone. Whatever the
/// amount, a rule that matches has a response, also where the fuel ends while it is matched.
#[test]
fn rules_of_a_request_share_its_fuel() {
    assert_eq!(statuses(1_000_000), ["a pass", "b pass"]);
    let mut is_shared = false;
    for fuel in (0..40).chain((40..4_000).step_by(20)) {
        let found = statuses(fuel);
        assert_eq!(found.len(), 2, "{fuel}: {found:?}");
        is_shared |= found == ["a pass", "b error"];
        assert_ne!(found, ["a error", "b pass"], "{fuel}");
    }
    assert!(is_shared);
    assert_eq!(statuses(0), ["a error", "b error"]);
}
