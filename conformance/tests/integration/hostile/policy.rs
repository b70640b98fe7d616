//! Policies.

use kpvm_compiler::compile::{Options, compile};
use kpvm_compiler::source::Sources;

use super::oracle::{Expect, check_policy, policy_with, policy_with_pattern, run, thing};

struct Row {
    number: &'static str,
    policies: String,
    expect: Expect,
}

fn row(number: &'static str, policies: impl Into<String>, expect: Expect) -> Row {
    Row {
        number,
        policies: policies.into(),
        expect,
    }
}

fn check_all(rows: &[Row]) {
    let object = thing(r#"{"x": "ok", "list": [{"a": "1"}, {"a": "2"}]}"#);
    for row in rows {
        let name = format!("row {}", row.number);
        check_policy(&name, row.policies.len(), row.expect, || {
            run(&row.policies, object.as_bytes())
        });
    }
}

/// A policy with this text as its spec, indented by two spaces.
fn with_spec(spec: &str) -> String {
    format!("apiVersion: kyverno.io/v1\nkind: ClusterPolicy\nmetadata: {{name: p}}\nspec:\n{spec}")
}

const MATCH: &str = "match: {any: [{resources: {kinds: [Thing]}}]}";

#[test]
fn fields_and_keys() {
    let ok = "validate: {pattern: {spec: {x: ok}}}";
    check_all(&[
        row(
            "15, spec.rule",
            with_spec(&format!(
                "  rule: []\n  rules:\n  - name: r\n    {MATCH}\n    {ok}\n"
            )),
            Expect::Refused("policy.yaml:5:"),
        ),
        row(
            "15, valdate",
            with_spec(&format!(
                "  rules:\n  - name: r\n    {MATCH}\n    {ok}\n    valdate: {{}}\n"
            )),
            Expect::Refused("policy.yaml:9:"),
        ),
        row(
            "15, pattern at the wrong level",
            with_spec(&format!(
                "  rules:\n  - name: r\n    {MATCH}\n    pattern: {{}}\n    {ok}\n"
            )),
            Expect::Refused("policy.yaml:8:"),
        ),
        row(
            "16",
            with_spec(&format!(
                "  rules:\n  - name: r\n    {MATCH}\n    {ok}\n    {ok}\n"
            )),
            Expect::Refused("policy.yaml:9:"),
        ),
        row(
            "17, no kinds",
            with_spec(&format!(
                "  rules:\n  - name: r\n    match: {{any: [{{resources: {{kinds: []}}}}]}}\n    {ok}\n"
            )),
            Expect::Refused("policy.yaml:7:"),
        ),
        row(
            "24, variable in a kind",
            with_spec(&format!(
                "  rules:\n  - name: r\n    match: {{any: [{{resources: {{kinds: ['{{{{ a }}}}']}}}}]}}\n    {ok}\n"
            )),
            Expect::Refused("policy.yaml:"),
        ),
        row(
            "30, the same policy twice",
            format!("{0}---\n{0}", policy_with_pattern("{spec: {x: ok}}")),
            Expect::Refused("twice"),
        ),
        row(
            "30, two kinds of policy with one name",
            {
                let cluster = policy_with_pattern("{spec: {x: ok}}");
                let own = cluster
                    .replace("ClusterPolicy", "Policy")
                    .replace("{name: p}", "{name: p, namespace: default}");
                format!("{cluster}---\n{own}")
            },
            // The object has no namespace, so only the cluster policy applies.
            Expect::Results(&["r pass"]),
        ),
    ]);
}

/// The codes of the warnings about a policy.
fn warnings(policy: String) -> Vec<&'static str> {
    let mut sources = Sources::new();
    sources.add("policy.yaml", policy);
    let compilation = compile(&sources, &Options::default());
    let warnings = compilation.diagnostics.iter();
    warnings.map(|warning| warning.code).collect()
}

/// Rows 17 and 21: policies that Kyverno accepts although they check less than they state.
#[test]
fn what_checks_less_than_it_seems_gives_a_warning() {
    for spec in ["  rules: []\n", "  rules: null\n", "  background: true\n"] {
        assert_eq!(warnings(with_spec(spec)), ["no-rules"], "row 17: {spec}");
    }
    let rows: [(&str, &[&str]); 6] = [
        ("{spec: {list: [{a: '?'}, {a: bad}]}}", &["ignored-item"]),
        (
            "{spec: {list: [a, b, c]}}",
            &["ignored-item", "ignored-item"],
        ),
        ("{spec: {list: [{a: [b, c]}]}}", &["ignored-item"]),
        ("{spec: {list: [[a, [b]]]}}", &["ignored-item"]),
        ("{spec: {list: [[a], [b]]}}", &[]),
        ("{spec: {'^(list)': [{a: '?'}, {a: b}]}}", &[]),
    ];
    for (pattern, expected) in rows {
        assert_eq!(
            warnings(policy_with_pattern(pattern)),
            expected,
            "row 21: {pattern}"
        );
    }
}

#[test]
fn many_and_large() {
    let mut rules = String::from("  rules:\n");
    for number in 0..10_000 {
        rules += &format!(
            "  - name: r{number}\n    {MATCH}\n    validate: {{pattern: {{spec: {{x: ok}}}}}}\n"
        );
    }
    let large = format!("{{spec: {{z: '{}'}}}}", "v".repeat(5 << 20));
    let alternatives = "{spec: {x: bad}}, ".repeat(999);
    check_all(&[
        row("18, 10,000 rules", with_spec(&rules), Expect::Either),
        row(
            "18, a rule of 5 MB",
            policy_with_pattern(&large),
            Expect::Results(&["r fail"]),
        ),
        row(
            "18, 1,000 alternatives",
            policy_with(&format!(
                "{{anyPattern: [{alternatives}{{spec: {{x: ok}}}}]}}"
            )),
            Expect::Results(&["r pass"]),
        ),
    ]);
}

#[test]
fn deep_patterns() {
    let nested = |depth: usize| format!("{}{}{}", "{a: ".repeat(depth), "1", "}".repeat(depth));
    let lists = |depth: usize| format!("{{spec: {}1{}}}", "[".repeat(depth), "]".repeat(depth));
    check_all(&[
        row(
            "19, 200",
            policy_with_pattern(&nested(200)),
            Expect::Results(&["r fail"]),
        ),
        row(
            "19, 1,000",
            policy_with_pattern(&nested(1_000)),
            Expect::NeverPass,
        ),
        row(
            "19, 1,000 lists",
            policy_with_pattern(&lists(1_000)),
            Expect::NeverPass,
        ),
        row(
            "19, 100,000",
            policy_with_pattern(&nested(100_000)),
            Expect::Refused("policy.yaml:"),
        ),
        row(
            "19, 100,000 lists",
            policy_with_pattern(&lists(100_000)),
            Expect::Refused("policy.yaml:"),
        ),
    ]);
}

#[test]
fn anchors_in_nonsense() {
    let keys = [
        "((x))", "^(", "=()", "<(a)", "X(a)", "+(x)", "(x", "x)", "()", "X()", "<()", "^()", "=(",
        "X((x))", "=(=(x))", "(^(x))", " (x) ", "( x )", "Xx(a)", "!(x)", "=(x)(y)",
    ];
    let values = ["null", "ok", "'*'", "{}", "[]", "[{}]", "[null]", "{a: b}"];
    let mut rows = Vec::new();
    for key in keys {
        for value in values {
            for pattern in [
                format!("{{spec: {{'{key}': {value}}}}}"),
                format!("{{'{key}': {value}}}"),
                format!("{{spec: {{list: [{{'{key}': {value}}}]}}}}"),
            ] {
                rows.push(row("20", policy_with_pattern(&pattern), Expect::Either));
            }
        }
    }
    let all = "{spec: {x: ok, (x): ok, =(x): ok, <(x): ok, 'X(y)': null, '^(list)': [{a: '1'}]}}";
    rows.push(row(
        "20, all kinds on one key",
        policy_with_pattern(all),
        Expect::Results(&["r pass"]),
    ));
    rows.push(row(
        "20, root",
        policy_with_pattern("{(spec): {x: ok}}"),
        Expect::Results(&["r pass"]),
    ));
    // docs/spec/patterns.md, case 52: spaces outside an anchor do not count, inside they do.
    rows.push(row(
        "20, blanks",
        policy_with_pattern("{spec: {' (x) ': bad}}"),
        Expect::Results(&["r skip"]),
    ));
    // docs/spec/patterns.md §13: refused when the policy is loaded.
    rows.push(row(
        "20, add",
        policy_with_pattern("{spec: {'+(x)': 1}}"),
        Expect::Refused("+(x)"),
    ));
    rows.push(row(
        "20, existence",
        policy_with_pattern("{spec: {'^(x)': 1}}"),
        Expect::Refused("list"),
    ));
    rows.push(row(
        "20, existence",
        policy_with_pattern("{spec: {'^(x)': []}}"),
        Expect::Refused(""),
    ));
    check_all(&rows);
}

#[test]
fn lists_in_patterns() {
    check_all(&[
        // docs/spec/patterns.md §3.4: only the first item counts.
        row(
            "21",
            policy_with_pattern("{spec: {list: [{a: '?'}, {a: bad}]}}"),
            Expect::Results(&["r pass"]),
        ),
        row(
            "21",
            policy_with_pattern("{spec: {list: [{a: bad}, {a: '?'}]}}"),
            Expect::Results(&["r fail"]),
        ),
        row(
            "21, mixed",
            policy_with_pattern("{spec: {list: [a, {a: '?'}]}}"),
            Expect::NeverPass,
        ),
        row(
            "21, empty",
            policy_with_pattern("{spec: {list: []}}"),
            Expect::Results(&["r fail"]),
        ),
        row(
            "21, scalars",
            policy_with_pattern("{spec: {list: [1, 2]}}"),
            Expect::Results(&["r fail"]),
        ),
    ]);
}

#[test]
fn variables_and_references() {
    let texts = [
        "{{",
        "{{{{",
        "\\\\{{",
        "}}",
        "{{}}",
        "{{ }}",
        "{{ {{ a }} }}",
        "$(",
        "$()",
        "$(a",
        "\\\\$(a)",
        "$(./../../../../../../..)",
        "$(./x)",
        "$(x)",
        "$(/)",
        "$(<=)",
        "$()$()",
        "$(a)$(b)",
    ];
    let mut rows = Vec::new();
    for text in texts {
        for pattern in [
            format!("{{spec: {{x: \"{text}\"}}}}"),
            format!("{{spec: {{\"{text}\": ok}}}}"),
            format!("{{spec: {{x: \"a {text} b\"}}}}"),
        ] {
            rows.push(row("23, 27", policy_with_pattern(&pattern), Expect::Either));
        }
        let message = format!("{{message: \"{text}\", pattern: {{spec: {{x: bad}}}}}}");
        rows.push(row("23, message", policy_with(&message), Expect::NeverPass));
    }
    let deep = format!("{}a{}", "{{ ".repeat(200), " }}".repeat(200));
    let many = "{{a}}".repeat(100_000);
    let chain: String = (0..1_000)
        .map(|n| format!("k{n}: '$(./../k{})', ", n + 1))
        .collect();
    rows.extend([
        row(
            "23, 200 deep",
            policy_with_pattern(&format!("{{spec: {{x: '{deep}'}}}}")),
            Expect::NeverPass,
        ),
        row(
            "23, 100,000",
            policy_with_pattern(&format!("{{spec: {{x: '{many}'}}}}")),
            Expect::NeverPass,
        ),
        row(
            "27, above the root",
            policy_with_pattern("{spec: {x: '$(./../../../../..)'}}"),
            Expect::NeverPass,
        ),
        row(
            "27, itself",
            policy_with_pattern("{spec: {x: '$(./../x)'}}"),
            Expect::NeverPass,
        ),
        row(
            "27, chain",
            policy_with_pattern(&format!("{{spec: {{{chain}k1000: v}}}}")),
            Expect::NeverPass,
        ),
        // docs/spec/patterns.md, case 60: shell text is a reference unless it is escaped.
        row(
            "27, shell",
            policy_with_pattern("{spec: {x: '$(HOME)'}}"),
            Expect::Refused("$(HOME)"),
        ),
    ]);
    check_all(&rows);
}

#[test]
fn kinds() {
    let with_kind = |kind: &str| {
        policy_with_pattern("{metadata: {name: t}}")
            .replace("spec:\n", "spec:\n  background: false\n")
            .replace("Pod, Thing", kind)
    };
    let rows = [
        row("29", with_kind("'*'"), Expect::Results(&["r pass"])),
        row("29", with_kind("'*/*'"), Expect::Results(&["r pass"])),
        // Case 3 of docs/spec/policies.md: five parts select nothing.
        row("29", with_kind("'*/*/*/*/*'"), Expect::NeverPass),
        row("29", with_kind("'?hing'"), Expect::Results(&["r pass"])),
        row("29", with_kind("'*/*/*/*'"), Expect::Either),
        row("29", with_kind("things"), Expect::Results(&[])),
        // Starts with a Cyrillic letter.
        row("29", with_kind("'\u{422}hing'"), Expect::Results(&[])),
        row("29", with_kind("''"), Expect::NeverPass),
        row("29", with_kind("'////'"), Expect::NeverPass),
    ];
    check_all(&rows);
}

#[test]
fn foreach_and_context() {
    let mut rows = Vec::new();
    // Row 25: results of a list expression that are not lists.
    for list in [
        "request.object",
        "request.object.spec.x",
        "null",
        "`5`",
        "`null`",
        "nope",
        "",
        "[",
    ] {
        let validate = format!("{{foreach: [{{list: '{list}', pattern: {{x: ok}}}}]}}");
        rows.push(row("25", policy_with(&validate), Expect::Either));
    }
    for depth in [2, 20, 200] {
        let open = "{list: request.object.spec.list, foreach: [".repeat(depth);
        let inner = "{list: request.object.spec.list, deny: {conditions: {any: [{key: a, operator: Equals, value: b}]}}}";
        let close = "]}".repeat(depth);
        let validate = format!("{{foreach: [{open}{inner}{close}]}}");
        rows.push(row("25", policy_with(&validate), Expect::Either));
    }
    // Row 26: entries that depend on each other, and one that depends on itself.
    for context in [
        "[{name: a, variable: {value: '{{ b }}'}}, {name: b, variable: {value: '{{ a }}'}}]",
        "[{name: a, variable: {jmesPath: b}}, {name: b, variable: {jmesPath: a}}]",
        "[{name: a, variable: {value: '{{ a }}'}}]",
    ] {
        let policy = policy_with_pattern("{spec: {x: '{{ a }}'}}").replace(
            "    validate",
            &format!("    context: {context}\n    validate"),
        );
        rows.push(row("26", policy, Expect::NeverPass));
    }
    check_all(&rows);
}
