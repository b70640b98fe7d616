//! Conditions, substitution, context entries and images compared with outcomes of Kyverno's
//! own functions (docs/spec/conditions.md §2 to §9).

use crate::recorded::{read_recorded, run_document, run_documents, tree};
use kpvm::engine::{Engine, GroupVersionKind, Input, Request, Session};
use kpvm_compiler::compile::{Options, compile_documents};
use kpvm_compiler::source::Sources;
use serde_json::{Value, json};

/// Reason why substitution differs (hostile row 68).
const DATA: &str = "what a variable gives is data: it is never searched for variables";

/// Reason why `{{@}}` differs.
const TARGET: &str = "only rules that mutate existing resources have a target";

/// Whether a case uses nested contexts: those occur only in a foreach of a whole policy and
/// are not run here.
fn has_levels(case: &Value) -> bool {
    let steps = case["queries"].as_array().into_iter().flatten();
    steps
        .filter_map(Value::as_str)
        .any(|step| step.starts_with('$'))
}

/// Counts the cases of a file; those in `differences` must differ.
fn check(
    file: &str,
    name: impl Fn(&Value) -> String,
    differences: &[(&str, &str)],
    agrees: impl Fn(&Value) -> Result<(), String>,
) {
    let cases = read_recorded(&format!("operators/{file}.json"));
    let all = cases.as_array().unwrap();
    let cases: Vec<&Value> = all.iter().filter(|case| !has_levels(case)).collect();
    println!("{file}: {} not run", all.len() - cases.len());
    let (mut passed, mut wrong) = (0, 0);
    for &case in &cases {
        let outcome = agrees(case);
        passed += usize::from(outcome.is_ok());
        let name = name(case);
        let reason = differences.iter().find(|(differing, _)| *differing == name);
        match (outcome, reason) {
            (Ok(()), None) => {}
            (Err(_), Some((_, reason))) => println!("{name} differs: {reason}"),
            (Ok(()), Some(_)) => {
                wrong += 1;
                println!("{name}: said to differ, and does not");
            }
            (Err(got), None) => {
                wrong += 1;
                let mut case = case.clone();
                case.as_object_mut().unwrap().remove("context");
                println!("{name}\n  expected {case}\n  got      {got}");
            }
        }
    }
    println!(
        "{file}: {passed} of {}, {} explained",
        cases.len(),
        differences.len()
    );
    assert_eq!(wrong, 0, "outcomes differ from what is expected of them");
}

fn compare(case: &Value, outcome: &Result<Value, String>) -> Result<(), String> {
    let agrees = match outcome {
        Ok(value) => case.get("result") == Some(value),
        // Where Kyverno crashes, any error is accepted.
        Err(error) => case["error"] == *error || case.get("panic").is_some(),
    };
    if agrees {
        Ok(())
    } else {
        Err(format!("{outcome:?}"))
    }
}

#[test]
fn substitution() {
    check(
        "substitution",
        |case| {
            let target = case["context"]
                .get("target")
                .map_or("", |_| " with a target");
            format!("{}{target}", case["document"])
        },
        &[
            (r#""p {{ y }}""#, DATA),
            (r#""{{x}} {{- y}} {{y}}""#, DATA),
            (r#""{{ymap}}""#, DATA),
            (r#""{{bs}}{{x}}""#, DATA),
            (r#""{{@}}" with a target"#, TARGET),
            (r#"{"a":"{{@}}"} with a target"#, TARGET),
            (r#"{"a":{"b":"{{@}}"}} with a target"#, TARGET),
            (r#"{"p":{"q":{"a":{"b":"{{@}}"}}}} with a target"#, TARGET),
            (r#"{"p":{"q":{"c":"{{@}}"}}} with a target"#, TARGET),
            (
                r#"{"foreach":{"p":{"a":{"b":"{{@}}"}}}} with a target"#,
                TARGET,
            ),
            (r#"{"p":{"q":{"a":"{{@}}x"}}} with a target"#, TARGET),
            (
                r#""a{{- x }}""#,
                "Kyverno crashes; a minus means nothing where no value is searched again",
            ),
        ],
        |case| compare(case, &run_document(&case["document"], &case["context"])),
    );
}

#[test]
fn context_variables() {
    let name = |case: &Value| case["name"].as_str().unwrap().to_owned();
    check("context-variables", name, &[], |case| {
        let steps = case["queries"].as_array().unwrap();
        let marked = |step: &Value| step.as_str().is_some_and(|step| step.starts_with('$'));
        let entries = case["entries"].as_array().unwrap();
        let entries: Vec<Value> = entries
            .iter()
            .filter(|entry| !marked(&entry["name"]))
            .cloned()
            .collect();
        let documents: Vec<Value> = steps
            .iter()
            .map(|query| json!(format!("{{{{ {} }}}}", query.as_str().unwrap())))
            .collect();
        let outcomes = run_documents(&json!(entries), &documents, &case["context"]);
        for ((query, outcome), wanted) in steps
            .iter()
            .zip(outcomes)
            .zip(case["result"].as_array().unwrap())
        {
            let prefix = format!("failed to resolve {} at path : ", query.as_str().unwrap());
            let outcome = outcome.map_err(|error| {
                error
                    .strip_prefix(&prefix)
                    .map(str::to_owned)
                    .unwrap_or(error)
            });
            compare(wanted, &outcome).map_err(|got| format!("{query}: {got}"))?;
        }
        Ok(())
    });
}

#[test]
fn images() {
    let name = |case: &Value| format!("{} of {}", case["query"], case["resource"]);
    check("images", name, &[], |case| {
        let query = case["query"].as_str().unwrap();
        let context = json!({"request": {"object": case["resource"], "operation": "CREATE"}});
        let outcome = run_document(&json!(format!("{{{{ {query} }}}}")), &context);
        let prefix = format!("failed to resolve {query} at path : ");
        let outcome = outcome.map_err(|error| {
            error
                .strip_prefix(&prefix)
                .map(str::to_owned)
                .unwrap_or(error)
        });
        compare(case, &outcome)
    });
}

/// Status and message of a rule with this validate block and these preconditions.
fn judge(rule: &Value, context: &Value) -> Result<(String, String), String> {
    let policy = json!({
        "apiVersion": "kyverno.io/v1", "kind": "ClusterPolicy", "metadata": {"name": "p"},
        "spec": {"rules": [rule]},
    });
    let mut sources = Sources::new();
    // No text: a float such as 1.0 would be parsed as an integer.
    let source = sources.add("policy.yaml", "");
    let options = Options {
        check: false,
        ..Options::default()
    };
    let documents = [(source, tree(&policy))];
    let compilation = compile_documents(&documents, &sources, &options, Vec::new());
    let Some(bytes) = compilation.bundle else {
        return Err(format!("DECODE {}", compilation.diagnostics[0].message));
    };
    let engine = Engine::load(bytes).unwrap();
    let mut session = Session::new(&engine);
    // The object belongs to the request: as a variable it would be merged into it, as JSON.
    let mut variables = context.clone();
    if let Some(request) = variables["request"].as_object_mut() {
        request.remove("object");
    }
    let request = Request {
        object: Some(Input::Value(&context["request"]["object"])),
        kind: Some(GroupVersionKind {
            group: "",
            version: "v1",
            kind: "Pod",
        }),
        variables: Some(&variables),
        ..Request::default()
    };
    let evaluation = session.evaluate(&request).unwrap();
    let response = evaluation.responses().next().unwrap();
    Ok((
        response.status().to_string(),
        response.message().into_owned(),
    ))
}

/// Truth and messages of conditions: false ones as in preconditions, true ones as in a
/// deny.
fn conditions_outcome(conditions: &Value, context: &Value) -> Result<Value, String> {
    let matching = json!({"any": [{"resources": {"kinds": ["Pod"]}}]});
    let rule = json!({
        "name": "r", "match": matching, "preconditions": conditions,
        "validate": {"deny": {}},
    });
    let (status, message) = judge(&rule, context)?;
    match status.as_str() {
        "error" => {
            let prefix = "failed to evaluate preconditions: ";
            return Err(message.strip_prefix(prefix).unwrap_or(&message).to_owned());
        }
        "skip" => {
            let message = message.strip_prefix("preconditions not met").unwrap();
            let message = message.strip_prefix("; ").unwrap_or(message);
            return Ok(json!({"result": false, "message": message}));
        }
        _ => {}
    }
    let rule = json!({
        "name": "r", "match": matching, "validate": {"deny": {"conditions": conditions}},
    });
    let (status, message) = judge(&rule, context)?;
    assert_eq!(
        status, "fail",
        "deny and preconditions disagree on {conditions}"
    );
    let message = if message == "validation error: rule r failed" {
        ""
    } else {
        &message
    };
    Ok(json!({"result": true, "message": message}))
}

#[test]
fn conditions() {
    let name = |case: &Value| case["conditions"].to_string();
    check("conditions", name, &[], |case| {
        let outcome = conditions_outcome(&case["conditions"], &case["context"]);
        let agrees = match &outcome {
            Ok(value) => {
                case.get("result") == value.get("result")
                    && case["message"].as_str().unwrap_or_default() == value["message"]
            }
            // Rejected when the policy is loaded, with more text than Kyverno's.
            Err(error) if error.starts_with("DECODE") => {
                case["error"] == "DECODE failed to unmarshal Conditions"
            }
            Err(error) => case["error"] == *error,
        };
        if agrees {
            Ok(())
        } else {
            Err(format!("{outcome:?}"))
        }
    });
}
