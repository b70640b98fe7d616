//! `validate.cel` (docs/spec/cel.md §2): the core of the language, optionals, the macros with
//! one variable and the commonest functions of texts. Anything else is not done.
//!
//! Texts of CEL's own errors are not reproduced.

mod check;
mod evaluate;
mod functions;
mod parser;
mod value;

use serde_json::{Value, json};

use self::check::{Static, Types};
use self::evaluate::{Bindings, Variable};
use self::parser::Expr;
use crate::engine::{Evaluation, Response, Status};
use crate::failure::{Failure, UNFIXED};
use crate::request::metadata_text;

/// Why an expression has no value.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Fault {
    /// It does not compile.
    Compile,
    /// It ends in an error.
    Error,
    /// It needs something that is not done.
    NotDone(&'static str),
}

/// An expression with its static type.
struct Compiled {
    tree: Expr,
    kind: Static,
}

fn compile(source: &str, types: &Types) -> Result<Compiled, Fault> {
    let tree = parser::parse(source)?;
    let kind = check::check(&tree, types)?;
    Ok(Compiled { tree, kind })
}

/// Whether an expression holds; one that is not a bool does not compile (§3.2).
fn truth(source: &str, types: &Types, bindings: &Bindings) -> Result<bool, Fault> {
    let compiled = compile(source, types)?;
    if compiled.kind != Static::Bool {
        return Err(Fault::Compile);
    }
    match evaluate::evaluate(&compiled.tree, bindings)? {
        value::Cel::Bool(holds) => Ok(holds),
        _ => Err(Fault::Error),
    }
}

fn not_done(what: &'static str) -> Failure {
    Failure::NotDone(what)
}

/// The handler (§2.2), after exceptions.
pub(crate) fn evaluate(
    evaluation: &Evaluation<'_>,
    body: &Value,
) -> Result<Option<Response>, Failure> {
    let rule = &evaluation.rule.name.value;
    let status = evaluation.policy.tree.get("status");
    if status.is_some() {
        return Err(not_done("a policy with a status"));
    }
    if ["paramKind", "paramRef"]
        .iter()
        .any(|key| !body[key].is_null())
    {
        return Err(not_done("parameters of CEL"));
    }
    let mut types = Types::new();
    let mut bindings = inputs(evaluation);
    for variable in body["variables"].as_array().into_iter().flatten() {
        let text = |key: &str| variable[key].as_str().unwrap_or_default();
        match compile(text("expression"), &types) {
            Err(Fault::NotDone(what)) => return Err(not_done(what)),
            // It matters only where it is used.
            Err(_) => types.declare_broken(text("name")),
            Ok(compiled) => {
                types.declare(text("name"), compiled.kind.of_variable());
                bindings.variables.push(Variable {
                    name: text("name").to_owned(),
                    tree: compiled.tree,
                });
            }
        }
    }
    if let Some(response) = preconditions(evaluation, &types, &bindings)? {
        return Ok(Some(response));
    }
    let fallback = evaluation.rule.validate.as_ref();
    let fallback = fallback.and_then(|validate| validate.message.as_ref());
    let fallback = fallback.map_or("", |message| message.value.as_str());
    for expression in body["expressions"].as_array().into_iter().flatten() {
        let text = |key: &str| expression[key].as_str().unwrap_or_default();
        let source = text("expression");
        let message = match truth(source, &types, &bindings) {
            Ok(true) => continue,
            Ok(false) => {
                let own = match text("message") {
                    "" => fallback,
                    own => own,
                };
                denial(source, own, text("messageExpression"), &types, &bindings)?
            }
            Err(Fault::NotDone(what)) => return Err(not_done(what)),
            Err(_) => UNFIXED.to_owned(),
        };
        return Ok(Some(Response::new(Status::Fail, message)));
    }
    let text = format!("Validation rule '{rule}' passed.");
    Ok(Some(Response::new(Status::Pass, text)))
}

/// §2.7: one that is false decides, else any error does.
fn preconditions(
    evaluation: &Evaluation<'_>,
    types: &Types,
    bindings: &Bindings,
) -> Result<Option<Response>, Failure> {
    let Some(conditions) = &evaluation.rule.cel_preconditions else {
        return Ok(None);
    };
    let conditions = conditions.to_json();
    let mut has_error = false;
    for condition in conditions.as_array().into_iter().flatten() {
        let source = condition["expression"].as_str().unwrap_or_default();
        match truth(source, types, bindings) {
            Ok(true) => {}
            Ok(false) => {
                let text = "cel preconditions not met";
                return Ok(Some(Response::new(Status::Skip, text)));
            }
            Err(Fault::NotDone(what)) => return Err(not_done(what)),
            Err(_) => has_error = true,
        }
    }
    Ok(has_error.then(|| Response::new(Status::Fail, UNFIXED)))
}

/// The message of an expression that is false (§2.3).
fn denial(
    source: &str,
    message: &str,
    message_expression: &str,
    types: &Types,
    bindings: &Bindings,
) -> Result<String, Failure> {
    const LONGEST: usize = 5120;
    let made = match message_expression {
        "" => None,
        source => match compile(source, types) {
            Err(Fault::NotDone(what)) => return Err(not_done(what)),
            Ok(compiled) if compiled.kind == Static::Text => {
                match evaluate::evaluate(&compiled.tree, bindings) {
                    Ok(value::Cel::Text(text)) => Some(text),
                    Err(Fault::NotDone(what)) => return Err(not_done(what)),
                    _ => None,
                }
            }
            _ => None,
        },
    };
    let made = made.map(|text| text.trim().to_owned());
    let is_usable =
        |text: &String| !text.is_empty() && text.len() <= LONGEST && !text.contains('\n');
    Ok(match made.filter(is_usable) {
        Some(text) => text,
        None if !message.is_empty() => message.trim().to_owned(),
        None => format!("failed expression: {}", source.trim()),
    })
}

/// `object`, `oldObject` and `request` (§2.4).
fn inputs(evaluation: &Evaluation<'_>) -> Bindings {
    let request = evaluation.request;
    let [group, version, kind] = evaluation.gvk;
    let mut seen = json!({
        "kind": { "group": group, "version": version, "kind": kind },
        "resource": { "group": "", "version": "", "resource": "" },
        "operation": request.operation,
        "userInfo": {},
        "dryRun": false,
        "options": null,
    });
    let subject = request.subject().cloned().unwrap_or_default();
    let is_namespace = kind == "Namespace";
    for (key, text) in [
        ("name", metadata_text(&subject, "name")),
        ("namespace", metadata_text(&subject, "namespace")),
    ] {
        let is_shown = !(is_namespace && key == "namespace");
        if is_shown && !text.is_empty() {
            seen[key] = json!(text);
        }
    }
    if let Some(user) = &request.user {
        if !user.name.is_empty() {
            seen["userInfo"]["username"] = json!(user.name);
        }
        if !user.groups.is_empty() {
            seen["userInfo"]["groups"] = json!(user.groups);
        }
    }
    let [api_group, api_version, kind] = evaluation.gvk.clone();
    let with_kind = |object: &Option<Value>| match object {
        None => Value::Null,
        Some(object) => {
            let mut object = object.clone();
            object["apiVersion"] = match api_group.as_str() {
                "" => json!(api_version),
                group => json!(format!("{group}/{api_version}")),
            };
            object["kind"] = json!(kind);
            object
        }
    };
    Bindings::new(
        with_kind(&request.object),
        with_kind(&request.old_object),
        seen,
    )
}
