//! Tests of the complete grid of recorded outcomes, and of what the grid cannot cover:
//! fuel, depth, allocations.

use super::*;
use crate::document::{DocumentBuffer, Label, Numbers, Texts};
use ConditionOperator as Op;
use kpvm_format::symbol::SymbolTable;
use serde_json::{Value, json};

fn operator_file(name: &str) -> Value {
    let text = kpvm_golden::read(&format!("operators/{name}")).unwrap();
    serde_json::from_str(&text).unwrap()
}

fn push(buffer: &mut DocumentBuffer, value: &Value) -> NodeId {
    buffer
        .push_value(value, &SymbolTable::EMPTY, Numbers::Exact)
        .unwrap()
}

/// An outcome in the notation of the grid.
fn outcome(result: Result<bool, ConditionError>) -> char {
    match result {
        Ok(true) => 'T',
        Ok(false) => 'f',
        Err(ConditionError::NotAString(_)) => 'p',
        Err(ConditionError::OutOfFuel) => '!',
    }
}

#[test]
fn every_outcome_of_the_grid() {
    let grid = operator_file("grid.json");
    let items = grid["items"].as_array().unwrap();
    let mut buffer = DocumentBuffer::new();
    let nodes: Vec<NodeId> = items.iter().map(|item| push(&mut buffer, item)).collect();
    let view = buffer.view(Texts::NONE, SymbolTable::EMPTY);
    let (mut count, mut wrong) = (0, Vec::new());
    for (name, rows) in grid["results"].as_object().unwrap() {
        let operator = Op::parse(name).unwrap();
        for ((row, key), key_item) in rows.as_array().unwrap().iter().zip(&nodes).zip(items) {
            let row = row.as_str().unwrap();
            for ((expected, value), value_item) in row.chars().zip(&nodes).zip(items) {
                count += 1;
                let found = outcome(holds(operator, *key, *value, &view, &mut 100_000));
                if found != expected {
                    wrong.push(format!(
                        "{key_item} {name} {value_item}: {found}, not {expected}"
                    ));
                }
            }
        }
    }
    println!("{count} outcomes, {} wrong", wrong.len());
    wrong.truncate(50);
    assert_eq!(count, 16 * items.len() * items.len());
    assert!(wrong.is_empty(), "{wrong:#?}");
}

fn check(operator: Op, key: &Value, value: &Value) -> Result<bool, ConditionError> {
    let mut buffer = DocumentBuffer::new();
    let (key, value) = (push(&mut buffer, key), push(&mut buffer, value));
    let view = buffer.view(Texts::NONE, SymbolTable::EMPTY);
    holds(operator, key, value, &view, &mut 100_000)
}

#[test]
fn rows_of_section_3_that_the_grid_does_not_have() {
    let rows = [
        // §3.3: seconds wrap, and values out of range become -2^63.
        (json!(1e21), Op::LessThan, json!("1h"), true),
        (json!(1e21), Op::Equals, json!("0s"), false),
        (json!("0s"), Op::Equals, json!(1e21), true),
        // §3.9: a negative left end means "not this text".
        (json!(["-7"]), Op::AnyNotIn, json!("-5-10"), true),
        (json!(["5"]), Op::AnyNotIn, json!("-5-10"), true),
        // §12: worked cases.
        (json!("1.5.5"), Op::GreaterThan, json!("1.5.0"), true),
        (json!("v1.2.3"), Op::GreaterThan, json!("1.0.0"), false),
        (json!(64), Op::AllNotIn, json!("default"), true),
        (json!({"a": 1}), Op::AnyNotIn, json!(["b"]), false),
        (json!("15"), Op::Equals, json!("1*"), false),
        (json!("v15"), Op::Equals, json!("v1*"), true),
        (json!(5), Op::Never, json!(1), false),
    ];
    for (key, operator, value, expected) in rows {
        assert_eq!(
            check(operator, &key, &value),
            Ok(expected),
            "{key} {operator:?} {value}"
        );
    }
}

#[test]
fn a_missing_value_counts_as_null() {
    let mut buffer = DocumentBuffer::new();
    let text = push(&mut buffer, &json!("a"));
    let view = buffer.view(Texts::NONE, SymbolTable::EMPTY);
    for operator in Op::ALL {
        let missing_key = holds(operator, NodeId::MISSING, text, &view, &mut 100);
        assert_eq!(missing_key, Ok(false), "{operator:?}");
        let missing_value = holds(operator, text, NodeId::MISSING, &view, &mut 100);
        assert_eq!(missing_value, Ok(operator == Op::NotEquals), "{operator:?}");
    }
}

#[test]
fn a_crash_has_the_text_of_section_3_10() {
    for (item, go_type) in [
        (json!(1.5), "float64"),
        (json!(1), "int64"),
        (json!(true), "bool"),
        (json!([]), "[]interface {}"),
        (json!({}), "map[string]interface {}"),
        (json!(null), "nil"),
    ] {
        let error = check(Op::NotIn, &json!(["a", item]), &json!("x")).unwrap_err();
        let expected = format!("interface conversion: interface {{}} is {go_type}, not string");
        assert_eq!(error.to_string(), expected);
    }
}

#[test]
fn keys_of_maps_may_stand_in_any_order() {
    let rows = [
        (json!({"a": 1, "b": [2]}), r#"{"b": [2], "a": 1}"#, true),
        (json!({"a": 1, "b": [2]}), r#"{"b": [2], "c": 1}"#, false),
        (json!({"a": 1, "b": [2]}), r#"{"b": [1], "a": 1}"#, false),
        (json!({"a": 1}), r#"{"a": 1, "b": 2}"#, false),
        (
            json!({"a": {"x": 1, "y": null}}),
            r#"{"a": {"y": null, "x": 1}}"#,
            true,
        ),
    ];
    for (key, text, expected) in rows {
        let mut buffer = DocumentBuffer::new();
        let key = push(&mut buffer, &key);
        // Members are pushed by hand because a `Value` sorts them.
        let value: Value = serde_json::from_str(text).unwrap();
        let value = push_reversed(&mut buffer, &value);
        let view = buffer.view(Texts::NONE, SymbolTable::EMPTY);
        assert_eq!(
            holds(Op::Equals, key, value, &view, &mut 100),
            Ok(expected),
            "{text}"
        );
    }
}

/// A map with its members in reverse order.
fn push_reversed(buffer: &mut DocumentBuffer, value: &Value) -> NodeId {
    let members: Vec<_> = value.as_object().unwrap().iter().rev().collect();
    let nodes: Vec<NodeId> = members
        .iter()
        .map(|(_, member)| match member {
            Value::Object(_) => push_reversed(buffer, member),
            _ => push(buffer, member),
        })
        .collect();
    buffer.begin(Label::ITEM);
    for ((key, _), node) in members.iter().zip(nodes) {
        let label = buffer.label(key, &SymbolTable::EMPTY).unwrap();
        buffer.push_node(label, node);
    }
    buffer.finish_map(Texts::NONE);
    buffer.take().unwrap()
}

/// Two lists without shared nodes, of this depth, each level containing the previous one
/// twice.
fn doubled_list(buffer: &mut DocumentBuffer, depth: usize) -> NodeId {
    let mut node = push(buffer, &json!(1));
    for _ in 0..depth {
        buffer.begin(Label::ITEM);
        buffer.push_node(Label::ITEM, node);
        buffer.push_node(Label::ITEM, node);
        buffer.finish_list();
        node = buffer.take().unwrap();
    }
    node
}

#[test]
fn work_is_bounded_by_fuel() {
    let mut buffer = DocumentBuffer::new();
    let numbers: Vec<u32> = (0..5_000).collect();
    let others: Vec<u32> = (10_000..15_000).collect();
    let rows = [
        (
            push(&mut buffer, &json!(numbers)),
            push(&mut buffer, &json!(others)),
        ),
        (doubled_list(&mut buffer, 60), doubled_list(&mut buffer, 60)),
        (
            push(&mut buffer, &json!(["?a".repeat(50_000)])),
            push(&mut buffer, &json!(format!("*{}*", "?b".repeat(50_000)))),
        ),
    ];
    let blanks = format!("[{}\"a\"]", " ".repeat(100_000));
    let rows = [
        rows[0],
        rows[1],
        rows[2],
        (rows[0].0, push(&mut buffer, &json!(blanks))),
    ];
    let view = buffer.view(Texts::NONE, SymbolTable::EMPTY);
    for (key, value) in rows {
        for operator in [Op::AnyIn, Op::AllNotIn] {
            let mut fuel = 100_000;
            let result = holds(operator, key, value, &view, &mut fuel);
            assert_eq!(result, Err(ConditionError::OutOfFuel));
            assert_eq!(fuel, 0);
        }
    }
    let mut fuel = 100_000;
    let (left, right) = rows[1];
    let result = holds(Op::Equals, left, right, &view, &mut fuel);
    assert_eq!(result, Err(ConditionError::OutOfFuel));
}

#[test]
fn the_usual_comparisons_allocate_nothing() {
    let mut buffer = DocumentBuffer::new();
    let values = [
        json!("nginx:1.2"),
        json!(5),
        json!(1.5),
        json!(true),
        json!("1h"),
        json!("1Gi"),
        json!("5-10"),
        json!(["a*", "b", 3, 2.5]),
        json!(["x", "y"]),
        json!("[\"a\",\"b\"]"),
        json!({"a": [1, 2], "b": "c"}),
        json!({"a": [1, 2], "b": "c"}),
    ];
    let nodes: Vec<NodeId> = values
        .iter()
        .map(|value| push(&mut buffer, value))
        .collect();
    let view = buffer.view(Texts::NONE, SymbolTable::EMPTY);
    let counted = allocation_counter::measure(|| {
        for operator in Op::ALL {
            for &key in &nodes {
                for &value in &nodes {
                    let is_range = view.str(value) == "5-10";
                    // The text of the range's complement is concatenated.
                    if operator == Op::AnyNotIn && is_range {
                        continue;
                    }
                    let _ = std::hint::black_box(holds(operator, key, value, &view, &mut 1_000));
                }
            }
        }
    });
    assert_eq!(counted.count_total, 0);
}
