//! Expressions, regular expressions, quantities and times. Fuel or a limit stops runaway
//! work, with the status `error`.

use super::oracle::{Expect, check_policy, policy_with, run, thing};

const ERROR: Expect = Expect::Results(&["r error"]);

/// A rule that evaluates an (ASCII) expression and denies if the result is `x`.
fn policy(expression: &str) -> String {
    let key = format!("{:?}", format!("{{{{ {expression} }}}}"));
    policy_with(&format!(
        "{{deny: {{conditions: [{{key: {key}, operator: Equals, value: x}}]}}}}"
    ))
}

fn check_all(object: &str, rows: &[(&str, String, Expect)]) {
    for (row, expression, expect) in rows {
        let policy = policy(expression);
        let shown: String = expression.chars().take(60).collect();
        let row = format!("row {row}: {shown}");
        check_policy(&row, policy.len() + object.len(), *expect, || {
            run(&policy, object.as_bytes())
        });
    }
}

fn row<'r>(number: &'r str, expression: &str, expect: Expect) -> (&'r str, String, Expect) {
    (number, expression.to_owned(), expect)
}

#[test]
fn regular_expressions() {
    let object = thing(&format!(r#"{{"a": "{}"}}"#, "A".repeat(40_000)));
    let nested = format!(
        "regex_match('{}a{}', 'a')",
        "(".repeat(10_000),
        ")".repeat(10_000)
    );
    let huge = format!("regex_match('{}', 'a')", "a".repeat(2 << 20));
    let text = "request.object.spec.a";
    check_all(
        &object,
        &[
            row("77", &nested, Expect::NeverPass),
            row("77", &huge, Expect::NeverPass),
            row("78", "regex_match('(?:){4294967295}', 'a')", ERROR),
            row("78", "regex_match('a{1001}', 'a')", ERROR),
            row("78", "regex_match('(a{500}){500}', 'a')", ERROR),
            row("78", r"regex_match('(\pL{100}){10}', 'a')", Expect::Either),
            row(
                "79",
                &format!("regex_replace_all('A.*[^A]|A', {text}, 'b')"),
                Expect::Either,
            ),
            row("80", r"regex_match('\C', 'a')", ERROR),
            row("80", "regex_match('(?=a)', 'a')", ERROR),
            row("80", r"regex_match('(a)\1', 'aa')", ERROR),
            row("85", "random('[a-z]{4096}{4096}')", ERROR),
            row("85", "random('.*')", ERROR),
        ],
    );
}

#[test]
fn wildcards() {
    let object = thing(&format!(r#"{{"a": "{}"}}"#, "a".repeat(500_000)));
    let match_of = |pattern: String| format!("pattern_match('{pattern}', request.object.spec.a)");
    check_all(
        &object,
        &[
            row(
                "81",
                &match_of(format!("{}b", "*a".repeat(1_000))),
                Expect::Either,
            ),
            row("81", &match_of("?".repeat(90_000)), Expect::Either),
            row("81", &match_of("*".repeat(90_000)), Expect::Either),
        ],
    );
}

#[test]
fn projections_and_texts() {
    let inner = format!("[{}]", vec!["1"; 1_000].join(","));
    let object = thing(&format!(
        r#"{{"l": [{}], "s": "{}"}}"#,
        vec![inner.as_str(); 1_000].join(","),
        "s".repeat(10_000)
    ));
    let (list, text) = ("request.object.spec.l", "request.object.spec.s");
    check_all(
        &object,
        &[
            row(
                "82",
                &format!("{list}[][?@ != `2`] | [?@ != `3`] | [?@ != `4`]"),
                ERROR,
            ),
            row("82", &format!("{list}[*][?[@][?@ != `2`]][]"), ERROR),
            row(
                "82",
                &format!("length({list}[*].[@, @, @][].[@, @, @][][][])"),
                ERROR,
            ),
            row("83", &format!("replace_all({text}, '', {text})"), ERROR),
            row("83", &format!("join({text}, split({text}, ''))"), ERROR),
            row(
                "83",
                &format!("map(&join({text}, [@, @, @]), split({text}, ''))"),
                ERROR,
            ),
        ],
    );
}

#[test]
fn doubling_of_context_variables() {
    let entries: Vec<String> = (0..40)
        .map(|number| {
            let value = match number {
                0 => "aaaaaaaaaaaaaaaa".to_owned(),
                _ => format!("{{{{ v{0}q }}}}{{{{ v{0}q }}}}", number - 1),
            };
            format!("{{name: v{number}q, variable: {{value: '{value}'}}}}")
        })
        .collect();
    let policy = policy("v39q").replace(
        "    validate",
        &format!("    context: [{}]\n    validate", entries.join(", ")),
    );
    check_policy("CVE-2026-23881", policy.len(), ERROR, || {
        run(&policy, thing("{}").as_bytes())
    });
}

#[test]
fn quantities_times_and_versions() {
    let mut rows = Vec::new();
    for quantity in [
        "1e999999999",
        "1e-999999999",
        "2E6024865272343",
        "1e9223372036854775807",
        "1e2147483648",
        "9Ei",
        "0.1n",
        ".",
        "-",
        "1Kii",
    ] {
        rows.push(row(
            "86",
            &format!("add('{quantity}', '1')"),
            Expect::Either,
        ));
        rows.push(row(
            "87",
            &format!("multiply('{quantity}', `1e300`)"),
            Expect::Either,
        ));
        rows.push(row(
            "87",
            &format!("divide('{quantity}', '{quantity}')"),
            Expect::Either,
        ));
        rows.push(row(
            "87",
            &format!("modulo('{quantity}', '3')"),
            Expect::Either,
        ));
        rows.push(row("87", &format!("divide('{quantity}', `0`)"), ERROR));
    }
    let digits = "9".repeat(90_000);
    rows.extend([
        row("86", &format!("add('{digits}', '1')"), Expect::Either),
        row("87", "divide(`1`, `-0`)", ERROR),
        row("87", "modulo(`1`, `1e-324`)", ERROR),
        row("87", "round(`1`, `400`)", Expect::Either),
        row("88", "add('9223372036854775808ns', '1s')", ERROR),
        row("88", "add('1e400h', '1s')", Expect::Either),
        row("88", "time_add('9999-12-31T23:59:59Z', '1e400h')", ERROR),
        row(
            "88",
            "time_add('9999-12-31T23:59:59Z', '2562047h')",
            Expect::Either,
        ),
        row(
            "88",
            &format!("add('{}', '1s')", "1h".repeat(40_000)),
            Expect::Either,
        ),
        row(
            "90",
            &format!(
                "semver_compare('1.0.0', '<1.0.0{}')",
                " || <1.0.0".repeat(9_000)
            ),
            Expect::Either,
        ),
        row(
            "90",
            "semver_compare('1.0.0', '<1.0.0 || || <1.0.0')",
            ERROR,
        ),
        row(
            "90",
            "semver_compare('99999999999999999999.0.0', '<1.0.0')",
            Expect::Either,
        ),
        row("93", "request.object.sp\u{e9}c", Expect::NeverPass),
        row("93", "'a", Expect::NeverPass),
        row("93", "\"a", Expect::NeverPass),
        row("93", "`[", Expect::NeverPass),
    ]);
    check_all(&thing("{}"), &rows);
}

#[test]
fn nesting() {
    let deep =
        |open: &str, close: &str| format!("{}a{}", open.repeat(10_000), close.repeat(10_000));
    check_all(
        &thing("{}"),
        &[
            row("2.3, go-jmespath", &deep("(", ")"), Expect::NeverPass),
            row("2.3, go-jmespath", &deep("[", "]"), Expect::NeverPass),
            row("2.3, go-jmespath", &deep("!", ""), Expect::NeverPass),
            row("2.3, go-jmespath", &deep("&", ""), Expect::NeverPass),
            row("2.3, go-jmespath", &deep("", ".a"), Expect::NeverPass),
            row("2.3, go-jmespath", &deep("", " || a"), Expect::NeverPass),
        ],
    );
}
