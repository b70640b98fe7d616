//! Shrinks a differing case: removes parts as long as it still differs in the same way.
//! Independent of policies, so it works for every dialect and for cases that were not
//! generated.

use serde_json::Value;

/// Candidates per batch.
const BATCH: usize = 64;

/// Members that are never changed: a case without them could not exist.
const KEPT: [&str; 5] = ["id", "apiVersion", "kind", "name", "operation"];

/// Returns the smallest case found. `differs` tells for each candidate whether it still
/// differs, in order.
///
/// # Errors
/// When `differs` fails.
pub fn shrink<E>(
    case: Value,
    mut differs: impl FnMut(&[Value]) -> Result<Vec<bool>, E>,
) -> Result<Value, E> {
    let mut smallest = case;
    // A change often enables another one at an earlier place.
    loop {
        let before = smallest.clone();
        smallest = pass(smallest, &mut differs)?;
        if smallest == before {
            return Ok(smallest);
        }
    }
}

/// Tries every change once, continuing after each success.
fn pass<E>(
    case: Value,
    differs: &mut impl FnMut(&[Value]) -> Result<Vec<bool>, E>,
) -> Result<Value, E> {
    let mut smallest = case;
    let mut tried = 0;
    loop {
        let candidates: Vec<Value> = candidates(&smallest).skip(tried).take(BATCH).collect();
        if candidates.is_empty() {
            return Ok(smallest);
        }
        let still = differs(&candidates)?;
        let found = candidates.into_iter().zip(still).position_found();
        match found {
            Ok((index, candidate)) => {
                smallest = candidate;
                tried += index;
            }
            Err(count) => tried += count,
        }
    }
}

/// Index and case of the first candidate that differs, or the number of candidates.
trait PositionFound {
    fn position_found(self) -> Result<(usize, Value), usize>;
}

impl<I: Iterator<Item = (Value, bool)>> PositionFound for I {
    fn position_found(self) -> Result<(usize, Value), usize> {
        let mut count = 0;
        for (value, still) in self {
            if still {
                return Ok((count, value));
            }
            count += 1;
        }
        Err(count)
    }
}

/// Every case that is one step smaller, the smallest first.
fn candidates(case: &Value) -> impl Iterator<Item = Value> {
    let mut paths = Vec::new();
    collect_paths(case, &mut Vec::new(), &mut paths);
    paths.into_iter().flat_map(move |path| {
        let node = at(case, &path);
        let replacements = node.map(smaller).unwrap_or_default();
        let removed = removed(case, &path);
        let replaced = replacements
            .into_iter()
            .filter_map(move |value| replaced(case, &path, value));
        removed.into_iter().chain(replaced)
    })
}

#[derive(Debug, Clone, PartialEq)]
enum Step {
    Key(String),
    Index(usize),
}

fn collect_paths(value: &Value, path: &mut Vec<Step>, paths: &mut Vec<Vec<Step>>) {
    let children: Vec<(Step, &Value)> = match value {
        Value::Object(members) => {
            let members = members.iter();
            members
                .map(|(key, value)| (Step::Key(key.clone()), value))
                .collect()
        }
        Value::Array(items) => {
            let items = items.iter().enumerate();
            items
                .map(|(index, value)| (Step::Index(index), value))
                .collect()
        }
        _ => Vec::new(),
    };
    let is_kept = |step: &Step| matches!(step, Step::Key(key) if KEPT.contains(&key.as_str()));
    let children = children.into_iter().filter(|(step, _)| !is_kept(step));
    let children: Vec<(Step, &Value)> = children.collect();
    for (step, _) in &children {
        path.push(step.clone());
        paths.push(path.clone());
        path.pop();
    }
    for (step, child) in children {
        path.push(step);
        collect_paths(child, path, paths);
        path.pop();
    }
}

fn at<'v>(value: &'v Value, path: &[Step]) -> Option<&'v Value> {
    path.iter().try_fold(value, |value, step| match step {
        Step::Key(key) => value.get(key),
        Step::Index(index) => value.get(index),
    })
}

fn at_mut<'v>(value: &'v mut Value, path: &[Step]) -> Option<&'v mut Value> {
    path.iter().try_fold(value, |value, step| match step {
        Step::Key(key) => value.get_mut(key),
        Step::Index(index) => value.get_mut(index),
    })
}

fn removed(case: &Value, path: &[Step]) -> Option<Value> {
    let (last, outer) = path.split_last()?;
    let mut case = case.clone();
    match (at_mut(&mut case, outer)?, last) {
        (Value::Object(members), Step::Key(key)) => drop(members.remove(key)),
        (Value::Array(items), Step::Index(index)) => drop(items.remove(*index)),
        _ => return None,
    }
    Some(case)
}

fn replaced(case: &Value, path: &[Step], value: Value) -> Option<Value> {
    let mut case = case.clone();
    *at_mut(&mut case, path)? = value;
    Some(case)
}

/// Values that are simpler than this one.
fn smaller(value: &Value) -> Vec<Value> {
    match value {
        Value::Object(members) if !KEPT.iter().any(|key| members.contains_key(*key)) => {
            members.values().cloned().collect()
        }
        Value::Array(items) => items.clone(),
        Value::String(text) => shorter(text).into_iter().map(Value::from).collect(),
        Value::Number(number) if number.as_i64().is_some_and(|number| number.abs() > 1) => {
            vec![0.into(), 1.into()]
        }
        _ => Vec::new(),
    }
}

/// The text without one of its halves, quarters, and so on down to single characters.
fn shorter(text: &str) -> Vec<String> {
    let characters: Vec<char> = text.chars().collect();
    let mut texts = Vec::new();
    let mut size = characters.len();
    while size > 0 {
        for start in (0..characters.len()).step_by(size) {
            let end = (start + size).min(characters.len());
            let kept = characters[..start].iter().chain(&characters[end..]);
            texts.push(kept.collect());
        }
        size /= 2;
    }
    texts
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn only_what_makes_the_difference_is_left() {
        let case = json!({
            "policy": { "kind": "P", "rules": [{ "name": "r" }, { "name": "other", "value": "a > 5 b" }] },
            "resource": { "kind": "Pod", "spec": { "list": [1, 2, { "size": 100 }] } },
        });
        let differs = |candidates: &[Value]| -> Result<Vec<bool>, ()> {
            let has = |candidate: &Value| {
                let text = candidate.to_string();
                text.contains("> 5") && text.contains("size")
            };
            Ok(candidates.iter().map(has).collect())
        };
        let expected = json!({
            "policy": { "kind": "P", "rules": { "name": "other", "value": "> 5" } },
            "resource": { "kind": "Pod", "spec": { "size": 0 } },
        });
        assert_eq!(shrink(case, differs), Ok(expected));
    }
}
