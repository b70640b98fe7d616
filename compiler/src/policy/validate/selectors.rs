//! Checks whether Kubernetes accepts a label selector (docs/spec/policies.md §2.2 and
//! §5.4).

use crate::policy::model::{LabelRequirement, LabelSelector};
use kpvm_semantics::wildcard::contains_wildcard;

/// Error of a filter's selector, if any. A selector with a wildcard in its labels is not
/// checked: it is expanded for each object.
pub(in crate::policy) fn problem(selector: &LabelSelector) -> Option<String> {
    let mut labels = selector.match_labels.iter();
    if labels.any(|(key, value)| contains_wildcard(key) || contains_wildcard(value)) {
        return None;
    }
    if selector.match_labels.is_empty() && selector.match_expressions.is_empty() {
        return Some("the selector has no requirement".to_owned());
    }
    let of_label =
        |(key, value): &(String, String)| key_problem(key).or_else(|| value_problem(value));
    let mut labels = selector.match_labels.iter().filter_map(of_label);
    let mut expressions = selector
        .match_expressions
        .iter()
        .filter_map(requirement_problem);
    labels.next().or_else(|| expressions.next())
}

fn requirement_problem(requirement: &LabelRequirement) -> Option<String> {
    let LabelRequirement {
        key,
        operator,
        values,
    } = requirement;
    let count_fits = match operator.as_str() {
        "In" | "NotIn" => !values.is_empty(),
        "Exists" | "DoesNotExist" => values.is_empty(),
        _ => return Some(format!("{operator:?} is not a label selector operator")),
    };
    if !count_fits {
        let wanted = if values.is_empty() {
            "needs"
        } else {
            "takes no"
        };
        return Some(format!("operator {operator} {wanted} values"));
    }
    key_problem(key).or_else(|| values.iter().find_map(|value| value_problem(value)))
}

fn key_problem(key: &str) -> Option<String> {
    let fits = match key.split('/').collect::<Vec<_>>()[..] {
        [name] => is_name(name),
        [prefix, name] => is_dns_subdomain(prefix) && is_name(name),
        _ => false,
    };
    (!fits).then(|| format!("{key:?} is not a valid label key"))
}

fn value_problem(value: &str) -> Option<String> {
    let fits = value.is_empty() || is_name(value);
    (!fits).then(|| format!("{value:?} is not a valid label value"))
}

/// At most 63 characters, letters and digits with `-_.` inside.
fn is_name(name: &str) -> bool {
    let is_edge = |byte: Option<&u8>| byte.is_some_and(u8::is_ascii_alphanumeric);
    let bytes = name.as_bytes();
    bytes.len() <= 63
        && is_edge(bytes.first())
        && is_edge(bytes.last())
        && bytes
            .iter()
            .all(|byte| byte.is_ascii_alphanumeric() || b"-_.".contains(byte))
}

fn is_dns_subdomain(text: &str) -> bool {
    let is_edge =
        |byte: Option<&u8>| byte.is_some_and(|b| b.is_ascii_lowercase() || b.is_ascii_digit());
    text.len() <= 253
        && text.split('.').all(|label| {
            let bytes = label.as_bytes();
            is_edge(bytes.first())
                && is_edge(bytes.last())
                && bytes
                    .iter()
                    .all(|byte| is_edge(Some(byte)) || *byte == b'-')
        })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_and_values() {
        let keys = [
            ("app", true),
            ("a.b/app_1", true),
            ("a/b/c", false),
            ("/a", false),
            ("-a", false),
            ("A.b/c", false),
        ];
        for (key, valid) in keys {
            assert_eq!(key_problem(key).is_none(), valid, "{key}");
        }
        assert!(value_problem("").is_none() && value_problem("b c").is_some());
        assert!(value_problem(&"a".repeat(64)).is_some());
    }
}
