//! Checks which variables a policy uses, and where (docs/spec/policies.md §2.3).

use kpvm_syntax::tree::{Span, Tree, TreeValue};

use super::expressions::{self, Place, Problem};
use super::structure::span_at;
use super::walk::{Element, Visit, walk};
use super::{CheckedRule, Report};
use crate::policy::model::{Filter, MatchBlock, Policy};
use crate::policy::read::{field, items, text_of};
use crate::policy::text;
use kpvm_semantics::wildcard::matches;

pub(super) fn check(policy: &Policy, computed: &[CheckedRule], report: &mut Report<'_>) {
    if policy.background {
        check_background(policy, computed, report);
    }
    for rule in computed {
        report.enter_rule(&rule.rule);
        for section in ["exclude", "match"] {
            check_section_without_variables(rule, section, report);
        }
        check_image_references(&rule.encoded, report);
        let known = Known::new(&rule.encoded, policy.background);
        dry_run(&rule.encoded, &known, report);
        check_elements(&rule.encoded, report);
    }
    report.leave_rule();
}

/// A background scan has neither user nor request (items 1 and 2).
fn check_background(policy: &Policy, computed: &[CheckedRule], report: &mut Report<'_>) {
    for rule in computed {
        report.enter_rule(&rule.rule);
        for (block, key) in [
            (Some(&rule.rule.match_block), "match"),
            (rule.rule.exclude_block.as_ref(), "exclude"),
        ] {
            if let (Some(block), Some(tree)) = (block, rule.rule.tree.get(key)) {
                check_user_info(block, tree, report);
            }
        }
    }
    report.leave_rule();
    let mutates_existing = policy.rules.iter().any(|rule| {
        let mutate = rule.mutate.as_ref();
        mutate.is_some_and(|mutate| !items(mutate, "targets").is_empty())
    });
    if !mutates_existing {
        check_user_variables(&policy.tree, report);
    }
}

const BACKGROUND_HINT: &str = "set spec.background to false, or do without it";

fn check_user_info(block: &MatchBlock, tree: &Tree, report: &mut Report<'_>) {
    let trees = [items(tree, "any"), items(tree, "all")].concat();
    let filters = [&block.any, &block.all].into_iter().flatten().flatten();
    for (filter, tree) in filters.zip(&trees).chain([(&block.direct, tree)]) {
        if let Some(name) = user_info(filter) {
            let message = format!("`{name}` cannot be known in a background scan");
            let span = span_at(tree, &[name]);
            report.error("user-info-in-background", span, message, BACKGROUND_HINT);
        }
    }
}

/// First kind of user information that a filter uses.
pub(super) fn user_info(filter: &Filter) -> Option<&'static str> {
    let filled = |list: &Option<Vec<String>>| list.as_ref().is_some_and(|list| !list.is_empty());
    if filled(&filter.roles) {
        Some("roles")
    } else if filled(&filter.cluster_roles) {
        Some("clusterRoles")
    } else if filter
        .subjects
        .as_ref()
        .is_some_and(|list| !list.is_empty())
    {
        Some("subjects")
    } else {
        None
    }
}

/// Variables about the user, anywhere in the document except its status and kubectl's copy
/// of it.
fn check_user_variables(policy: &Tree, report: &mut Report<'_>) {
    const LAST_APPLIED: &str =
        "/metadata/annotations/kubectl.kubernetes.io/last-applied-configuration";
    walk(policy, &mut |visit| {
        let Element::Text(text) = visit.element else {
            return;
        };
        if visit.path == LAST_APPLIED || visit.path.starts_with("/status") {
            return;
        }
        for found in text::variables(text) {
            let variable = text.get(found.inner).unwrap_or_default();
            if is_about_user(variable) {
                let message = format!("{variable} cannot be known in a background scan");
                report.error(
                    "user-variable-in-background",
                    visit.span,
                    message,
                    BACKGROUND_HINT,
                );
            }
        }
    });
}

/// One of the five names, not after a dot and followed by a word boundary. The dots of the
/// names match any character, as in Kyverno's regular expressions.
fn is_about_user(variable: &str) -> bool {
    const NAMES: [&str; 5] = [
        "serviceAccountName",
        "serviceAccountNamespace",
        "request.userInfo",
        "request.roles",
        "request.clusterRoles",
    ];
    let is_word = |c: char| c.is_ascii_alphanumeric() || c == '_';
    let starts_with_name = |rest: &str, name: &str| {
        let mut chars = rest.chars();
        let fits = name.chars().all(|wanted| match chars.next() {
            Some('\n') => wanted == '\n',
            Some(found) => wanted == '.' || wanted == found,
            None => false,
        });
        fits && !chars.next().is_some_and(is_word)
    };
    variable.char_indices().any(|(at, before)| {
        let rest = variable.get(at + before.len_utf8()..).unwrap_or_default();
        before != '.' && NAMES.iter().any(|name| starts_with_name(rest, name))
    })
}

fn check_section_without_variables(
    rule: &CheckedRule,
    section: &'static str,
    report: &mut Report<'_>,
) {
    let Some(tree) = field(&rule.encoded, section) else {
        return;
    };
    walk(tree, &mut |visit| {
        if matches!(visit.element, Element::Text(text) if text::has_plain_variable(text)) {
            let message = format!("`{section}` cannot use variables");
            let hint = "move the test to `preconditions`";
            report.error("variable-in-match", visit.span, message, hint);
        }
    });
}

/// Image references must not contain variables (item 3).
fn check_image_references(rule: &Tree, report: &mut Report<'_>) {
    for entry in items(rule, "verifyImages") {
        let old_spelling = field(entry, "image").into_iter();
        for reference in old_spelling.chain(items(entry, "imageReferences")) {
            let text = reference.as_str().unwrap_or_default();
            if !text::variables(text).is_empty() {
                let message = "image references cannot use variables";
                let hint = "write a pattern with `*`";
                report.error("variable-in-image", reference.span, message, hint);
            }
        }
    }
}

/// What the variables of a rule may refer to.
struct Known {
    background: bool,
    mutates_target: bool,
    patterns: Vec<String>,
}

impl Known {
    fn new(rule: &Tree, background: bool) -> Self {
        let mut entries: Vec<&Tree> = items(rule, "context").iter().collect();
        for (body, key) in [
            ("validate", "foreach"),
            ("mutate", "foreach"),
            ("mutate", "targets"),
            ("generate", "foreach"),
        ] {
            let body = field(rule, body).map(|body| items(body, key));
            let of_foreach = body.unwrap_or_default().iter();
            entries.extend(of_foreach.flat_map(|foreach| items(foreach, "context")));
        }
        let mut patterns: Vec<String> = entries.into_iter().flat_map(context_patterns).collect();
        let attestations = items(rule, "verifyImages")
            .iter()
            .flat_map(|image| items(image, "attestations"));
        patterns.extend(attestations.map(|one| format!("{}*", text_of(one, "name"))));
        let mutate = field(rule, "mutate");
        Self {
            background,
            mutates_target: mutate.is_some_and(|mutate| !items(mutate, "targets").is_empty()),
            patterns,
        }
    }

    /// Whether a query refers to something known (item 4). As in Kyverno, names may occur
    /// anywhere in the text.
    fn query(&self, query: &str) -> Result<(), String> {
        let query = query.replace('"', "");
        let names: &[&str] = match (self.background, self.mutates_target) {
            (true, false) => &["request."],
            (true, true) => &["request.", "target."],
            (false, false) => &["request", "serviceAccountName", "serviceAccountNamespace"],
            (false, true) => &[
                "request.",
                "target.",
                "serviceAccountName",
                "serviceAccountNamespace",
            ],
        };
        let always = ["element", "@", "images", "image."];
        let known = names.iter().chain(&always).any(|name| query.contains(name))
            || (!self.background && !self.mutates_target && query.contains("image"))
            || calls_function(&query)
            || self.patterns.iter().any(|pattern| matches(pattern, &query));
        if known {
            Ok(())
        } else {
            Err(format!(
                "nothing is known under the name of variable {query:?}"
            ))
        }
    }
}

/// Names that a context entry declares.
fn context_patterns(entry: &Tree) -> Vec<String> {
    let name = text_of(entry, "name");
    let mut patterns = Vec::new();
    let whole = ["apiCall", "globalReference", "imageRegistry", "variable"];
    if whole.iter().any(|key| field(entry, key).is_some()) {
        patterns.push(format!("{name}*"));
    }
    if field(entry, "configMap").is_some() {
        for part in ["data", "metadata", "data.*", "metadata.*"] {
            patterns.push(format!("{name}.{part}"));
        }
    }
    patterns
}

/// Whether the text contains a lower-case name followed by `(` and a character that is not
/// a brace.
fn calls_function(query: &str) -> bool {
    let is_name = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '_';
    query.match_indices('(').any(|(at, _)| {
        let before = query.get(..at).and_then(|text| text.chars().next_back());
        let after = query.get(at + 1..).and_then(|text| text.chars().next());
        before.is_some_and(is_name) && after.is_some_and(|c| c != '{' && c != '}')
    })
}

/// Substitutes every reference and variable of the rule by unknown values, and reports
/// those that can never be resolved (item 4).
fn dry_run(rule: &Tree, known: &Known, report: &mut Report<'_>) {
    walk(rule, &mut |visit| {
        let Element::Text(text) = visit.element else {
            return;
        };
        // The conditions of attestations have their own variables.
        if visit.path.starts_with("/verifyImages/") && visit.path.contains("/conditions/") {
            return;
        }
        match resolve_references(rule, &visit, text) {
            Ok(resolved) => {
                // Locations are known only in a text that occurs in the policy.
                let written = (resolved == text).then_some(text);
                for problem in substitute(&resolved, known) {
                    problem.report(visit.span, written, report);
                }
            }
            Err(problem) => report.error("bad-reference", visit.span, problem, REFERENCE_HINT),
        }
    });
}

const VARIABLE_HINT: &str = "declare it in `context`, or use request.object, element, images";
const REFERENCE_HINT: &str = "write the path of a text in the rule, or escape it as \\$(...)";

/// Maximum nesting of variables in one text.
const NESTING: usize = 64;

/// Replaces every variable of the text by null, pass after pass, innermost first
/// (docs/spec/conditions.md §4.3), and returns their problems. Stops at the first variable
/// that cannot be resolved, as Kyverno does.
fn substitute(text: &str, known: &Known) -> Vec<Problem> {
    let mut problems = Vec::new();
    let mut value = text.to_owned();
    for pass in 0..NESTING {
        let found = text::variables(&value);
        let mut next = String::new();
        let mut copied = 0;
        let mut shallow = false;
        for one in &found {
            let variable = value.get(one.inner.clone()).unwrap_or_default();
            let name = variable.replace("{{", "").replace("}}", "");
            let name = name.trim();
            shallow = name.starts_with('-');
            let name = name.strip_prefix('-').unwrap_or(name).trim();
            // In later passes, other variables have been replaced by nulls.
            let offset = variable.find(name).map(|at| one.inner.start + at);
            let offset = offset.filter(|_| pass == 0);
            if name != "@" && !check_variable(name, offset, known, &mut problems) {
                return problems;
            }
            if value == variable {
                return problems;
            }
            next.push_str(value.get(copied..one.inner.start).unwrap_or_default());
            next.push_str("null");
            copied = one.inner.end;
        }
        if found.is_empty() || shallow {
            return problems;
        }
        next.push_str(value.get(copied..).unwrap_or_default());
        value = next;
    }
    let message = format!("variables are nested more than {NESTING} deep");
    problems.push(Problem::plain("bad-variable", message, VARIABLE_HINT));
    problems
}

/// Whether Kyverno continues after this variable. `offset` is the start of its name in a
/// text that occurs in the policy.
fn check_variable(
    name: &str,
    offset: Option<usize>,
    known: &Known,
    problems: &mut Vec<Problem>,
) -> bool {
    if name.is_empty() {
        let message = "the variable is empty".to_owned();
        problems.push(Problem::plain("bad-variable", message, VARIABLE_HINT));
        return false;
    }
    let found = expressions::check_expression(name, offset, "bad-variable");
    if let Err(problem) = found {
        problems.push(problem);
        return false;
    }
    if let Err(message) = known.query(name) {
        let place = offset.map(|offset| Place {
            part: offset..offset + name.len(),
            expression: offset..offset + name.len(),
        });
        problems.push(Problem {
            place,
            ..Problem::plain("bad-variable", message, VARIABLE_HINT)
        });
        return false;
    }
    // An inner variable may change the calls around it.
    if offset.is_some() {
        problems.extend(found.unwrap_or_default());
    }
    true
}

/// Replaces every `$(...)` in the text by what it refers to (docs/spec/conditions.md §5).
fn resolve_references(rule: &Tree, visit: &Visit<'_>, text: &str) -> Result<String, String> {
    let mut value = text.to_owned();
    for found in text::references(text) {
        let reference = text.get(found.inner).unwrap_or_default();
        let resolved = resolve(rule, reference, visit.path)?;
        value = value.replacen(reference, &resolved, 1);
    }
    Ok(value)
}

fn resolve(rule: &Tree, reference: &str, leaf_path: &str) -> Result<String, String> {
    let body = reference.trim_matches(['$', '(', ')']);
    let operator = [">=", "<=", ">", "<", "!"]
        .into_iter()
        .find(|operator| body.starts_with(operator))
        .unwrap_or_default();
    let path = body.strip_prefix(operator).unwrap_or(body);
    if path.is_empty() {
        return Err(format!("reference {reference} has no path"));
    }
    let path = match path.starts_with('/') {
        true => path.to_owned(),
        false => join(leaf_path, path),
    };
    let mut found: Option<Result<String, &'static str>> = None;
    walk(rule, &mut |visit| {
        if without_anchors(visit.path) == path {
            found = match visit.element {
                Element::Text(text) => Some(Ok(text.to_owned())),
                Element::Other(TreeValue::Null) => None,
                Element::Other(TreeValue::Int(number)) => Some(number_text(operator, number)),
                Element::Other(TreeValue::Float(number)) => Some(number_text(operator, number)),
                Element::Other(_) => Some(Err("neither text nor a number")),
            };
        }
    });
    match found {
        Some(Ok(text)) => Ok(format!("{operator}{text}")),
        Some(Err(what)) => Err(format!("reference {reference} refers to {what}")),
        None => Err(format!(
            "reference {reference} refers to nothing: there is no {path}"
        )),
    }
}

/// A number becomes text only with an operator.
fn number_text(operator: &str, number: &impl ToString) -> Result<String, &'static str> {
    match operator {
        "" => Err("a number, which needs an operator before it"),
        _ => Ok(number.to_string()),
    }
}

/// Resolves a path relative to a leaf, removing `.` and `..`.
fn join(base: &str, relative: &str) -> String {
    let mut steps: Vec<&str> = Vec::new();
    for step in base.split('/').chain(relative.split('/')) {
        match step {
            "" | "." => {}
            ".." => {
                steps.pop();
            }
            step => steps.push(step),
        }
    }
    format!("/{}", steps.join("/"))
}

/// Removes anchors: `/(spec)/^(x)` becomes `/spec/x`.
fn without_anchors(path: &str) -> String {
    let steps: Vec<&str> = path
        .split('/')
        .map(|step| anchored(step).map_or(step, |(_, key)| key))
        .collect();
    steps.join("/")
}

/// Modifier and name of an anchored key: `=(a)` gives `=` and `a`.
pub(super) fn anchored(key: &str) -> Option<(&str, &str)> {
    let (sign, rest) = key.split_once('(')?;
    let inner = rest.strip_suffix(')')?;
    let known = ["", "+", "<", "=", "X", "^"].contains(&sign);
    (known && !inner.is_empty() && !inner.contains('\n')).then_some((sign, inner))
}

/// `element` exists only inside foreach (item 5).
fn check_elements(rule: &Tree, report: &mut Report<'_>) {
    walk(rule, &mut |visit| {
        let Element::Text(text) = visit.element else {
            return;
        };
        if visit.path.contains("/foreach/") {
            return;
        }
        for found in text::variables(text) {
            let name = text.get(found.inner).unwrap_or_default();
            let name = name.replace("{{", "").replace("}}", "");
            if name.trim().starts_with("element") {
                element_error(name.trim(), visit.span, report);
            }
        }
    });
}

fn element_error(name: &str, span: Span, report: &mut Report<'_>) {
    let message = format!("variable {name:?} only exists inside `foreach`");
    let hint = "move it into a foreach, or name the field of request.object";
    report.error("element-outside-foreach", span, message, hint);
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::policy::test_tree::tree;

    #[test]
    fn user_variables() {
        let cases = [
            ("{{request.userInfo}}", true),
            ("{{ request.userInfo.username }}", true),
            ("{{ request.userInfoX }}", false),
            ("{{ a.request.roles }}", false),
            ("{{ lower(serviceAccountName) }}", true),
            ("{{ serviceAccountNamespace }}", true),
            ("{{ request.object }}", false),
        ];
        for (variable, expected) in cases {
            assert_eq!(is_about_user(variable), expected, "{variable}");
        }
    }

    #[test]
    fn known_names() {
        let rule = tree(&json!({"context": [
            {"name": "v", "variable": {"value": 1}},
            {"name": "c", "configMap": {"name": "n"}},
        ]}));
        let known = |background, query: &str| {
            let mut problems = Vec::new();
            let known = Known::new(&rule, background);
            check_variable(query, None, &known, &mut problems)
        };
        let cases = [
            ("foo.request.x", true, true),
            ("lower(foo)", true, true),
            ("lower({a: b})", false, false),
            ("request", false, true),
            ("imagesX", true, true),
            ("image", false, true),
            ("v.x", true, true),
            ("c.data.x", true, true),
            ("c.other", false, false),
            ("\"c\".data", true, true),
            ("", false, false),
        ];
        for (query, in_background, otherwise) in cases {
            assert_eq!(known(true, query), in_background, "{query} in background");
            assert_eq!(known(false, query), otherwise, "{query}");
        }
    }

    #[test]
    fn known_references() {
        let rule = tree(&json!({"a": {"(b)": {"c": "x", "n": 5}}}));
        let resolved = |reference: &str| resolve(&rule, reference, "/a/b/d").ok();
        let cases = [
            ("$(/a/b/c)", Some("x")),
            ("$(./../c)", Some("x")),
            ("$(<=../n)", Some("<=5")),
            ("$(../n)", None),
            ("$(HOME)", None),
        ];
        for (reference, expected) in cases {
            assert_eq!(resolved(reference).as_deref(), expected, "{reference}");
        }
    }
}
