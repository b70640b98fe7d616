//! Values as text: as Go's `%v` in error messages, and as Go's `encoding/json` for
//! `to_string`.
//!
//! Both traverse the value with an explicit stack and charge for every visited value,
//! because a value may share members and be far larger than its nodes.

use super::values::{Values, spend};
use crate::document::{Kind, NodeId, View};
use kpvm_semantics::FunctionError;
use kpvm_semantics::number::{format_json_float, format_v_float};
use kpvm_semantics::quote::{append_json, go_quote};

/// Work still to do, last first.
enum Rest {
    Text(&'static str),
    Key(NodeId),
    Value(NodeId),
}

/// Syntax of a text form.
struct Spelling {
    list: [&'static str; 3],
    map: [&'static str; 3],
    after_key: &'static str,
    key: fn(&str, &mut String),
    scalar: fn(&View<'_>, NodeId, &mut String) -> Result<(), FunctionError>,
}

const GO: Spelling = Spelling {
    list: ["[", " ", "]"],
    map: ["map[", " ", "]"],
    after_key: ":",
    key: |key, out| out.push_str(key),
    scalar: go_scalar,
};

const JSON: Spelling = Spelling {
    list: ["[", ",", "]"],
    map: ["{", ",", "}"],
    after_key: ":",
    key: append_json,
    scalar: json_scalar,
};

/// Syntax of `%#v`.
const GO_SYNTAX: Spelling = Spelling {
    list: ["[]interface {}{", ", ", "}"],
    map: ["map[string]interface {}{", ", ", "}"],
    after_key: ":",
    key: |key, out| out.push_str(&go_quote(key)),
    scalar: go_syntax_scalar,
};

/// A value in Go's syntax, as printed by `%#v` (docs/spec/assert.md §7). Stops once it
/// exceeds the length of a message.
pub(crate) fn go_syntax(values: &mut Values<'_>, id: NodeId) -> Result<String, FunctionError> {
    let limit = values.limits.message_bytes;
    write(values, id, &GO_SYNTAX, limit)
}

/// A value as printed by `%v` (docs/spec/jmespath.md §5, step 4).
pub(super) fn go_text(values: &mut Values<'_>, id: NodeId) -> Result<String, FunctionError> {
    write(values, id, &GO, usize::MAX)
}

/// A value as JSON (docs/spec/jmespath.md §6, "`to_string` text").
pub(crate) fn json_text(values: &mut Values<'_>, id: NodeId) -> Result<String, FunctionError> {
    write(values, id, &JSON, usize::MAX)
}

/// Writes a value completely, or until the text exceeds `enough`.
fn write(
    values: &mut Values<'_>,
    id: NodeId,
    spelling: &Spelling,
    enough: usize,
) -> Result<String, FunctionError> {
    let mut out = String::new();
    let mut rest = vec![Rest::Value(id)];
    while let Some(next) = rest.pop() {
        let before = out.len();
        let view = values.buffer.view(values.texts, values.symbols);
        let id = match next {
            Rest::Text(text) => {
                out.push_str(text);
                continue;
            }
            Rest::Key(member) => {
                (spelling.key)(view.key_str(member), &mut out);
                out.push_str(spelling.after_key);
                continue;
            }
            Rest::Value(id) => id,
        };
        match view.kind(id) {
            Some(Kind::List) => {
                let items: Vec<_> = view.children(id).collect();
                container(&mut rest, spelling.list, &items, false);
            }
            Some(Kind::Map) => {
                let members = values.sorted_members(id)?;
                container(&mut rest, spelling.map, &members, true);
            }
            _ => (spelling.scalar)(&view, id, &mut out)?,
        }
        let written = (out.len() - before) as u64;
        spend(values.fuel, 1 + written / Values::BYTES_PER_STEP)?;
        if out.len() > enough {
            break;
        }
        values.check_text(out.len())?;
    }
    Ok(out)
}

fn container(rest: &mut Vec<Rest>, marks: [&'static str; 3], members: &[NodeId], keys: bool) {
    let [open, between, close] = marks;
    rest.push(Rest::Text(close));
    for (index, member) in members.iter().enumerate().rev() {
        rest.push(Rest::Value(*member));
        if keys {
            rest.push(Rest::Key(*member));
        }
        if index > 0 {
            rest.push(Rest::Text(between));
        }
    }
    rest.push(Rest::Text(open));
}

fn go_scalar(view: &View<'_>, id: NodeId, out: &mut String) -> Result<(), FunctionError> {
    match view.kind(id) {
        Some(Kind::Float) => format_v_float(view.float(id).unwrap_or(f64::NAN), out),
        Some(Kind::String) => out.push_str(view.str(id)),
        Some(Kind::Null) | None => out.push_str("<nil>"),
        _ => plain_scalar(view, id, out),
    }
    Ok(())
}

fn go_syntax_scalar(view: &View<'_>, id: NodeId, out: &mut String) -> Result<(), FunctionError> {
    match view.kind(id) {
        Some(Kind::String) => out.push_str(&go_quote(view.str(id))),
        Some(Kind::Null) | None => out.push_str("interface {}(nil)"),
        _ => go_scalar(view, id, out)?,
    }
    Ok(())
}

fn json_scalar(view: &View<'_>, id: NodeId, out: &mut String) -> Result<(), FunctionError> {
    match view.kind(id) {
        Some(Kind::Float) => {
            let number = view.float(id).unwrap_or(f64::NAN);
            if !number.is_finite() {
                let mut name = String::new();
                format_v_float(number, &mut name);
                return Err(FunctionError::failed(format!(
                    "json: unsupported value: {name}"
                )));
            }
            format_json_float(number, out);
        }
        Some(Kind::String) => append_json(view.str(id), out),
        Some(Kind::Null) | None => out.push_str("null"),
        _ => plain_scalar(view, id, out),
    }
    Ok(())
}

/// Kinds that both forms spell alike.
fn plain_scalar(view: &View<'_>, id: NodeId, out: &mut String) {
    match (view.bool(id), view.int(id)) {
        (Some(value), _) => out.push_str(if value { "true" } else { "false" }),
        (None, Some(number)) => out.push_str(&number.to_string()),
        (None, None) => {}
    }
}
