//! Expressions on the command line: problems with their places, what rules ask the host for,
//! and what the host answers.

use crate::common::Files;
use crate::programs::{BAD, POLICY, counts};

/// A policy with variables, context entries and foreach; one `%` is replaced by an
/// expression.
const EXPRESSIONS: &str = "\
apiVersion: kyverno.io/v1
kind: ClusterPolicy
metadata: {name: p}
spec:
  background: false
  rules:
    - name: r
      match:
        any:
          - resources:
              kinds: [Pod]
      context:
        - name: team
          variable:
            jmesPath: CONTEXT
      validate:
        message: |
          One line.
          Team {{ MESSAGE }}!
        foreach:
          - list: LIST
            deny:
              conditions:
                any:
                  - key: \"{{ KEY }}\"
                    operator: Equals
                    value: x
";

/// The policy with one of its expressions replaced.
fn with_expression(place: &str, expression: &str) -> String {
    let mut policy = EXPRESSIONS.replace(place, expression);
    for (place, good) in [
        ("CONTEXT", "request.object.a"),
        ("MESSAGE", "team"),
        ("LIST", "request.object.spec.containers"),
        ("KEY", "element.name"),
    ] {
        policy = policy.replace(place, good);
    }
    policy
}

#[test]
fn problems_of_expressions_are_errors_with_their_place() {
    let cases = [
        ("CONTEXT", "a.b..c", "bad-jmespath", "15:27"),
        ("MESSAGE", "lenght(team)", "unknown-function", "19:19"),
        ("LIST", "join(request.object)", "wrong-arity", "21:19"),
        ("KEY", "to_upper(element.a, 'b')", "wrong-arity", "25:30"),
        ("KEY", "to_upper(`1`)", "wrong-argument-type", "25:39"),
        ("KEY", "element.a ||", "bad-variable", "25:42"),
    ];
    for (place, expression, code, position) in cases {
        let files = Files::new(
            "expressions",
            &[("p.yaml", &with_expression(place, expression))],
        );
        let done = files.run("kpc", &["check", "p.yaml"]);
        let wanted = (format!("error[{code}]"), format!("--> p.yaml:{position}\n"));
        assert_eq!(done.code, 1, "{expression}: {}", done.err);
        let found = done.err.contains(&wanted.0) && done.err.contains(&wanted.1);
        assert!(found, "{expression}: expected {wanted:?}\n{}", done.err);
    }
}

#[test]
fn inspect_says_what_rules_ask_for() {
    let policy = with_expression("CONTEXT", "time_now_utc()").replace(
        "      validate:",
        "        - name: settings
          configMap: {name: settings, namespace: \"{{ request.namespace }}\"}
        - name: pods
          apiCall: {urlPath: \"/api/v1/namespaces/{{ request.namespace }}/pods\"}
        - name: unused
          globalReference: {name: unused}
      validate:",
    );
    let policy = policy
        .replace("{{ element.name }}", "{{ settings.data.{{ pods.x }} }}")
        .replace("value: x", "value: \"{{ random('[a-z]{4}') }}\"");
    let files = Files::new("inspect_demands", &[("p.yaml", &policy)]);
    let done = files.run("kpc", &["compile", "p.yaml", "-o", "p.kpb"]);
    assert_eq!(done.code, 0, "{}", done.err);
    let text = files.run("kpc", &["inspect", "p.kpb"]).out;
    let start = text.find("    r: ").unwrap();
    let rule: Vec<&str> = text[start..]
        .lines()
        .take_while(|line| !line.is_empty())
        .collect();
    let asks = |wanted: &str| rule.iter().any(|line| line.trim() == wanted);
    for wanted in [
        "asks for configMap name=settings, namespace=<computed>",
        "asks for apiCall urlPath=/api/v1/namespaces/<computed>/pods",
        "asks for the time",
        "asks for random numbers",
        "reads expressions at run time",
    ] {
        assert!(asks(wanted), "{wanted} in {text}");
    }
    assert!(text.contains("\nexternal data\n"), "{text}");
    let json = files.run("kpc", &["inspect", "p.kpb", "-o", "json"]).out;
    let json: serde_json::Value = serde_json::from_str(&json).unwrap();
    let rule = &json["policies"][0]["rules"][0];
    assert_eq!(rule["time"], true);
    assert_eq!(rule["hostAddresses"], false);
    let requests = rule["externalData"].as_array().unwrap();
    let settings = requests.iter().find(|one| one["kind"] == "configMap");
    assert_eq!(
        settings.unwrap()["fields"][1],
        serde_json::json!({"name": "namespace", "value": "<computed>", "computed": true})
    );
}

#[test]
fn rules_get_the_time_and_chance_but_no_data_from_outside() {
    let denied_if = |key: &str, value: &str| {
        let body = format!(
            "deny: {{conditions: {{any: [{{key: \"{{{{ {key} }}}}\", operator: Equals, value: {value}}}]}}}}\n"
        );
        POLICY.split("pattern:").next().unwrap().to_owned() + &body
    };
    let config_map = denied_if("c.data.a", "x").replace(
        "      validate:",
        "      context: [{name: c, configMap: {name: c, namespace: ns}}]\n      validate:",
    );
    let files = Files::new(
        "host",
        &[
            (
                "time.yaml",
                &denied_if("time_after(time_now_utc(), '2026-01-01T00:00:00Z')", "true"),
            ),
            // SOURCE_DATE_EPOCH, which is set here, is the time of reports alone.
            (
                "report_time.yaml",
                &denied_if("time_now_utc()", "'2023-11-14T22:13:20Z'"),
            ),
            ("random.yaml", &denied_if("length(random('[a-z]{4}'))", "4")),
            ("config.yaml", &config_map),
            ("r.yaml", BAD),
        ],
    );
    for (policy, code, expected) in [
        (
            "time.yaml",
            1,
            "pass: 0, fail: 1, warn: 0, error: 0, skip: 0",
        ),
        (
            "report_time.yaml",
            0,
            "pass: 1, fail: 0, warn: 0, error: 0, skip: 0",
        ),
        (
            "random.yaml",
            1,
            "pass: 0, fail: 1, warn: 0, error: 0, skip: 0",
        ),
        (
            "config.yaml",
            1,
            "pass: 0, fail: 0, warn: 0, error: 1, skip: 0",
        ),
    ] {
        let done = files.run("kpvm", &["apply", policy, "-r", "r.yaml"]);
        assert_eq!((done.code, counts(&done)), (code, expected), "{done:?}");
    }
}
