//! Autogen: derives rules for controllers from rules for Pods (docs/spec/policies.md §12).
//!
//! Input: a policy. Output: the rules that Kyverno evaluates. Generated rules keep the
//! locations of the text they are derived from. Nothing here fails: a rule that cannot be
//! generated is omitted.

use kpvm_syntax::tree::{Member, Span, Tree, TreeValue};

use super::kind_selector::contains_kind;
use super::model::{Filter, MatchBlock, Policy, ResourceDescription, Rule};
use super::read::{field, items, read_rule, text_of};
use super::schema::{self, without_omitted};
use super::text;

const ANNOTATION: &str = "pod-policies.kyverno.io/autogen-controllers";

/// Default controllers (§12.2).
const CONTROLLERS: [&str; 7] = [
    "DaemonSet",
    "Deployment",
    "Job",
    "StatefulSet",
    "ReplicaSet",
    "ReplicationController",
    "CronJob",
];

/// Rules that Kyverno evaluates for objects of a kind: written and generated ones. Without
/// a kind, for all controllers (§12.2).
pub fn compute_rules(policy: &Policy, kind: Option<&str>) -> Vec<Rule> {
    let written = || policy.rules.clone();
    let requested = autogen_controllers(policy);
    let requested = match kind {
        Some(kind) if !requested.iter().any(|one| one == kind) => return written(),
        Some(kind) => vec![kind.to_owned()],
        None => requested,
    };
    if requested == ["none"] {
        return written();
    }
    let generated: Vec<Rule> = policy
        .rules
        .iter()
        .flat_map(|rule| generate(rule, &requested))
        .collect();
    if generated.is_empty() {
        return written();
    }
    let mut rules = written();
    rules.retain(|rule| !is_generated_name(&rule.name.value));
    rules.extend(generated);
    rules
}

/// Controllers to generate rules for, sorted: `none` if the policy does not qualify, the
/// annotation's list if it has one (untrimmed), otherwise all (§12.2).
pub fn autogen_controllers(policy: &Policy) -> Vec<String> {
    if !can_autogen(policy) {
        return vec!["none".to_owned()];
    }
    let mut controllers: Vec<String> = match autogen_annotation(policy) {
        Some(list) => list.split(',').map(str::to_owned).collect(),
        None => CONTROLLERS.map(str::to_owned).to_vec(),
    };
    controllers.sort();
    controllers.dedup();
    controllers
}

/// Value of the annotation that selects the controllers.
pub(super) fn autogen_annotation(policy: &Policy) -> Option<&str> {
    let annotation = policy.annotations.iter().find(|(key, _)| key == ANNOTATION);
    annotation.map(|(_, value)| value.as_str())
}

/// Whether the policy qualifies; one disqualifying rule disqualifies it (§12.1).
pub fn can_autogen(policy: &Policy) -> bool {
    let rule_qualifies = |rule: &Rule| {
        let patches = |mutate: &Tree| {
            !text_of(mutate, "patchesJson6902").is_empty()
                || items(mutate, "foreach")
                    .iter()
                    .any(|foreach| !text_of(foreach, "patchesJson6902").is_empty())
        };
        !rule.generate.as_ref().is_some_and(has_content)
            && !rule.mutate.as_ref().is_some_and(patches)
            && blocks(rule).all(|filter| block_qualifies(&filter.resources))
    };
    let names_a_controller = |filter: &Filter| {
        let mut kinds = filter.resources.kinds.iter();
        kinds.any(|kind| kind.value == "Pod" || CONTROLLERS.contains(&kind.value.as_str()))
    };
    policy.rules.iter().all(rule_qualifies)
        && policy.rules.iter().flat_map(blocks).any(names_a_controller)
}

/// Whether an untyped body has content: a field that differs from the zero value of
/// Kyverno's type.
pub(super) fn has_content(body: &Tree) -> bool {
    body.as_map().unwrap_or_default().iter().any(|member| {
        let key = &*member.key;
        match &member.value.value {
            TreeValue::Null => false,
            TreeValue::String(text) => !text.is_empty(),
            // These two fields distinguish an explicit `false` from an absent field.
            TreeValue::Bool(false) => {
                ["mutateExistingOnPolicyUpdate", "generateExisting"].contains(&key)
            }
            TreeValue::Map(_) if ["clone", "cloneList"].contains(&key) => {
                has_content(&member.value)
            }
            TreeValue::Bool(true)
            | TreeValue::Int(_)
            | TreeValue::Float(_)
            | TreeValue::List(_)
            | TreeValue::Map(_) => true,
        }
    })
}

/// All filters of a rule: direct, any and all, of match and exclude.
fn blocks(rule: &Rule) -> impl Iterator<Item = &Filter> {
    [Some(&rule.match_block), rule.exclude_block.as_ref()]
        .into_iter()
        .flatten()
        .flat_map(filters)
}

/// Filters of one block: direct, any and all.
pub(super) fn filters(block: &MatchBlock) -> impl Iterator<Item = &Filter> {
    let listed = [&block.any, &block.all].into_iter().flatten().flatten();
    std::iter::once(&block.direct).chain(listed)
}

fn block_qualifies(resources: &ResourceDescription) -> bool {
    let kinds = resources.kinds.iter().map(|kind| kind.value.as_str());
    let mixed = resources.kinds.len() > 1 && contains_kind(kinds, "Pod");
    resources.name.is_empty()
        && resources.names.is_empty()
        && resources.selector.is_none()
        && resources.annotations.is_none()
        && !mixed
}

fn is_generated_name(name: &str) -> bool {
    name.starts_with("autogen-")
}

/// Generated rules of one rule: controllers first, then CronJob (§12.3).
fn generate(rule: &Rule, requested: &[String]) -> Vec<Rule> {
    let mut source = without_omitted(&rule.tree, &schema::RULE);
    if rule
        .validate
        .as_ref()
        .is_some_and(|validate| validate.assert.is_none())
    {
        source = with_member(&source, "validate", |validate| without(validate, "assert"));
    }
    let without_cron_job: Vec<&str> = requested
        .iter()
        .map(String::as_str)
        .filter(|controller| *controller != "CronJob")
        .collect();
    let all: Vec<&str> = requested.iter().map(String::as_str).collect();
    let controllers =
        controllers_rule(rule, &source, &without_cron_job).map(|tree| (tree, "spec.template"));
    let wants_cron_job = all
        .iter()
        .any(|one| one.contains("CronJob") || one.contains("all"));
    let cron_job = controllers_rule(rule, &source, &all)
        .filter(|_| wants_cron_job)
        .and_then(|tree| cron_job_rule(rule, &tree))
        .map(|tree| (tree, "spec.jobTemplate.spec.template"));
    [controllers, cron_job]
        .into_iter()
        .flatten()
        .map(|(tree, template)| read_rule(&rewrite_paths(&tree, template)))
        .collect()
}

/// The rule for the controllers, before its texts are rewritten.
fn controllers_rule(rule: &Rule, source: &Tree, controllers: &[&str]) -> Option<Tree> {
    let kinds_of = |block: &MatchBlock| -> Vec<String> {
        filters(block)
            .flat_map(|filter| &filter.resources.kinds)
            .map(|kind| kind.value.clone())
            .collect()
    };
    let has_pod = |kinds: &[String]| contains_kind(kinds.iter().map(String::as_str), "Pod");
    let excluded = rule
        .exclude_block
        .as_ref()
        .map(kinds_of)
        .unwrap_or_default();
    if is_generated_name(&rule.name.value)
        || controllers.iter().all(|controller| controller.is_empty())
        || !has_pod(&kinds_of(&rule.match_block))
        || !(excluded.is_empty() || has_pod(&excluded))
    {
        return None;
    }
    let shape = Shape {
        template_key: "template",
        shift: "spec/template",
        kinds: controller_kinds(controllers),
        only_pod_filters: true,
    };
    shape.apply(source, generated_name("autogen", &rule.name.value))
}

/// The rule for CronJob, derived from the controllers rule (§12.3).
fn cron_job_rule(rule: &Rule, controllers_rule: &Tree) -> Option<Tree> {
    let shape = Shape {
        template_key: "jobTemplate",
        shift: "spec/jobTemplate/spec/template",
        kinds: vec!["batch/v1/CronJob".to_owned()],
        only_pod_filters: false,
    };
    shape.apply(
        controllers_rule,
        generated_name("autogen-cronjob", &rule.name.value),
    )
}

/// Known controllers among the requested ones, or all requested ones if none is known.
fn controller_kinds(controllers: &[&str]) -> Vec<String> {
    let mut chosen: Vec<&str> = match controllers {
        ["all"] => CONTROLLERS.to_vec(),
        _ => controllers.to_vec(),
    };
    let known = |kind: &str| kind != "CronJob" && CONTROLLERS.contains(&kind);
    if chosen.iter().any(|kind| known(kind)) {
        chosen.retain(|kind| known(kind));
    }
    chosen.sort_unstable();
    chosen.into_iter().map(qualified).collect()
}

/// A known kind with group and version.
fn qualified(kind: &str) -> String {
    let group_version = match kind {
        "DaemonSet" | "Deployment" | "StatefulSet" | "ReplicaSet" => "apps/v1",
        "Job" | "CronJob" => "batch/v1",
        "ReplicationController" | "Pod" => "v1",
        _ => return kind.to_owned(),
    };
    format!("{group_version}/{kind}")
}

/// The name, truncated after 63 bytes; each byte of a split character becomes U+FFFD.
fn generated_name(prefix: &str, name: &str) -> String {
    let name = format!("{prefix}-{name}");
    let bytes = name.as_bytes();
    let kept = bytes.get(..63).unwrap_or(bytes);
    let mut cut = String::new();
    for chunk in kept.utf8_chunks() {
        cut.push_str(chunk.valid());
        cut.extend(chunk.invalid().iter().map(|_| char::REPLACEMENT_CHARACTER));
    }
    cut
}

/// Differences between a kind of generated rule and its source.
struct Shape {
    /// Key below `spec` that wraps the pattern.
    template_key: &'static str,
    /// Prefix added to `$(...)` references in the message.
    shift: &'static str,
    /// Kinds the rule matches.
    kinds: Vec<String>,
    /// Whether filters without Pod keep their kinds.
    only_pod_filters: bool,
}

impl Shape {
    fn apply(&self, source: &Tree, name: String) -> Option<Tree> {
        let (body_key, body) = self.body(source)?;
        let mut out = Vec::new();
        for member in source.as_map().unwrap_or_default() {
            let value = match &*member.key {
                "name" => string(&name, member.value.span),
                "match" => self.block(&member.value, true),
                "exclude" => self.block(&member.value, false),
                key if key == body_key => body.clone(),
                "imageExtractors" => continue,
                _ => member.value.clone(),
            };
            out.push(Member {
                value,
                ..member.clone()
            });
        }
        if source.get("name").is_none() {
            out.push(member("name", string(&name, source.span)));
        }
        Some(Tree::new(TreeValue::Map(out), source.span))
    }

    /// `match` or `exclude` with the new kinds (§12.3, last table).
    fn block(&self, block: &Tree, is_match: bool) -> Tree {
        for key in ["any", "all"] {
            if let [_, ..] = items(block, key) {
                return with_member(block, key, |list| {
                    let filters = list.as_list().unwrap_or_default();
                    let filters = filters.iter().map(|filter| self.filter(filter)).collect();
                    Tree::new(TreeValue::List(filters), list.span)
                });
            }
        }
        let kinds = field(block, "resources").map(|resources| items(resources, "kinds"));
        if is_match || !kinds.unwrap_or_default().is_empty() {
            self.with_kinds(block)
        } else {
            block.clone()
        }
    }

    fn filter(&self, filter: &Tree) -> Tree {
        let kinds = field(filter, "resources").map(|resources| items(resources, "kinds"));
        let kinds = kinds.unwrap_or_default().iter().filter_map(Tree::as_str);
        if self.only_pod_filters && !contains_kind(kinds, "Pod") {
            return filter.clone();
        }
        self.with_kinds(filter)
    }

    fn with_kinds(&self, filter: &Tree) -> Tree {
        with_member(filter, "resources", |resources| {
            with_member(resources, "kinds", |kinds| {
                let kinds = self.kinds.iter().map(|kind| string(kind, kinds.span));
                Tree::new(TreeValue::List(kinds.collect()), resources.span)
            })
        })
    }

    /// The rewritten body, in the first form present (§12.4).
    fn body(&self, source: &Tree) -> Option<(&'static str, Tree)> {
        if let Some(mutate) = field(source, "mutate").and_then(|tree| self.mutate(tree)) {
            return Some(("mutate", mutate));
        }
        if let Some(validate) = field(source, "validate").and_then(|tree| self.validate(tree)) {
            return Some(("validate", validate));
        }
        let images = field(source, "verifyImages")?;
        Some(("verifyImages", images.clone()))
    }

    fn mutate(&self, mutate: &Tree) -> Option<Tree> {
        const PATCH: &str = "patchStrategicMerge";
        if let Some(patch) = field(mutate, PATCH) {
            let members = vec![member(PATCH, self.wrap(patch))];
            return Some(Tree::new(TreeValue::Map(members), mutate.span));
        }
        let foreach = field(mutate, "foreach").filter(|list| list.as_list() != Some(&[]))?;
        let wrapped = items(mutate, "foreach").iter().map(|entry| {
            let mut members: Vec<Member> = ["list", "context", "preconditions"]
                .iter()
                .filter_map(|key| entry.member(key).cloned())
                .collect();
            let null = Tree::new(TreeValue::Null, entry.span);
            let patch = field(entry, PATCH).unwrap_or(&null);
            members.push(member(PATCH, self.wrap(patch)));
            Tree::new(TreeValue::Map(members), entry.span)
        });
        let foreach = Tree::new(TreeValue::List(wrapped.collect()), foreach.span);
        let members = vec![member("foreach", foreach)];
        Some(Tree::new(TreeValue::Map(members), mutate.span))
    }

    fn validate(&self, validate: &Tree) -> Option<Tree> {
        if let Some(pattern) = field(validate, "pattern") {
            let wrapped = self.wrap(pattern);
            return Some(self.validate_with(validate, "pattern", wrapped, "pattern"));
        }
        if let Some(deny) = field(validate, "deny") {
            return Some(self.validate_with(validate, "deny", deny.clone(), "deny"));
        }
        if let Some(pod_security) = field(validate, "podSecurity") {
            // The copy always has a list of exclusions, so it is never the empty block that
            // Kyverno ignores (docs/spec/pod-security.md §1).
            let copy = with_member(pod_security, "exclude", |exclude| {
                let items = exclude.as_list().unwrap_or_default().to_vec();
                Tree::new(TreeValue::List(items), exclude.span)
            });
            return Some(self.validate_with(validate, "podSecurity", copy, "podSecurity"));
        }
        if let Some(patterns) = field(validate, "anyPattern") {
            let wrapped = patterns.as_list().unwrap_or_default().iter();
            let wrapped: Vec<Tree> = wrapped.map(|pattern| self.wrap(pattern)).collect();
            // Without elements, Go's nil slice is encoded as null: the copy checks nothing,
            // and is not a rule at all if it has no other content.
            let is_empty = wrapped.is_empty();
            let wrapped = match is_empty {
                true => TreeValue::Null,
                false => TreeValue::List(wrapped),
            };
            let wrapped = Tree::new(wrapped, patterns.span);
            let copy = self.validate_with(validate, "anyPattern", wrapped, "anyPattern");
            let has_more = copy.as_map().is_some_and(|members| members.len() > 1);
            return (!is_empty || has_more).then_some(copy);
        }
        if let Some(foreach) = field(validate, "foreach") {
            return Some(self.validate_with(validate, "foreach", foreach.clone(), "pattern"));
        }
        if field(validate, "cel").is_some() {
            return Some(validate.clone());
        }
        let assert = field(validate, "assert")?;
        let wrapped = self.wrap_assertion(assert);
        Some(self.validate_with(validate, "assert", wrapped, "assert"))
    }

    /// A `validate` with one form and the fields that generated rules keep.
    fn validate_with(&self, validate: &Tree, form: &str, value: Tree, pivot: &str) -> Tree {
        let mut members = Vec::new();
        for old in validate.as_map().unwrap_or_default() {
            match &*old.key {
                "message" => {
                    let message = old.value.as_str().unwrap_or_default();
                    let shifted = shift_references(message, self.shift, pivot);
                    members.push(Member {
                        value: string(&shifted, old.value.span),
                        ..old.clone()
                    });
                }
                "failureAction" | "failureActionOverrides" | "allowExistingViolations" => {
                    members.push(old.clone());
                }
                key if key == form => members.push(Member {
                    value: value.clone(),
                    ..old.clone()
                }),
                _ => {}
            }
        }
        Tree::new(TreeValue::Map(members), validate.span)
    }

    /// docs/spec/assert.md §2: only maps under these keys are moved.
    fn wrap_assertion(&self, tree: &Tree) -> Tree {
        let Some(members) = tree.as_map() else {
            return tree.clone();
        };
        let mut members = members.to_vec();
        for member in &mut members {
            let is_object = matches!(&*member.key, "object" | "oldObject");
            if is_object && member.value.as_map().is_some() {
                member.value = self.wrap(&member.value);
            }
        }
        Tree::new(TreeValue::Map(members), tree.span)
    }

    /// `spec: {template: pattern}`, or with `jobTemplate`.
    fn wrap(&self, pattern: &Tree) -> Tree {
        let inside = |key, value: Tree| {
            let span = value.span;
            Tree::new(TreeValue::Map(vec![member_at(key, value, span)]), span)
        };
        inside("spec", inside(self.template_key, pattern.clone()))
    }
}

fn string(text: &str, span: Span) -> Tree {
    Tree::new(TreeValue::String(text.into()), span)
}

fn member(key: &str, value: Tree) -> Member {
    let span = value.span;
    member_at(key, value, span)
}

fn member_at(key: &str, value: Tree, key_span: Span) -> Member {
    Member {
        key: key.into(),
        key_span,
        value,
    }
}

/// The map with one member replaced, or created from an empty map if missing.
fn with_member(tree: &Tree, key: &str, change: impl FnOnce(&Tree) -> Tree) -> Tree {
    let mut members = tree.as_map().unwrap_or_default().to_vec();
    match members.iter_mut().find(|member| &*member.key == key) {
        Some(found) => found.value = change(&found.value),
        None => {
            let empty = Tree::new(TreeValue::Map(Vec::new()), tree.span);
            members.push(member(key, change(&empty)));
        }
    }
    Tree::new(TreeValue::Map(members), tree.span)
}

/// A map without a key.
fn without(tree: &Tree, key: &str) -> Tree {
    let members = tree.as_map().unwrap_or_default().iter();
    let kept = members.filter(|member| &*member.key != key).cloned();
    Tree::new(TreeValue::Map(kept.collect()), tree.span)
}

/// Inserts the shift after the pivot word of every `$(...)` (§12.5, last part).
fn shift_references(message: &str, shift: &str, pivot: &str) -> String {
    let mut pivot = pivot.to_owned();
    let mut shifted = message.to_owned();
    for found in text::references(message) {
        let Some(reference) = message.get(found.whole) else {
            continue;
        };
        if pivot == "anyPattern" {
            // The index of the first reference applies to all of them. Kyverno reads it
            // after the expected position of the word, even if the word is missing.
            let after = match reference.find("anyPattern") {
                Some(at) => at + "anyPattern/".len(),
                None => "anyPattern/".len() - 1,
            };
            let index = reference.get(after..).unwrap_or_default();
            pivot = format!("anyPattern/{}", index.split('/').next().unwrap_or_default());
        }
        let new = reference.replacen(&pivot, &format!("{pivot}/{shift}"), 1);
        shifted = shifted.replace(reference, &new);
    }
    shifted
}

/// Replaces paths to the Pod by paths to the pod template, in every text and key of the
/// rule (§12.5). None of the searched texts needs an escape in JSON, so replacing them text
/// by text is equivalent to Kyverno's replacement in the encoded rule.
fn rewrite_paths(rule: &Tree, template: &str) -> Tree {
    let is_cel = field(rule, "validate").is_some_and(|validate| field(validate, "cel").is_some());
    let prefix = if is_cel { "" } else { "request." };
    let replacements: Vec<(String, String)> = [("spec", "object"), ("spec", "oldObject")]
        .into_iter()
        .chain([("metadata", "object"), ("metadata", "oldObject")])
        .map(|(part, object)| {
            (
                format!("{prefix}{object}.{part}"),
                format!("{prefix}{object}.{template}.{part}"),
            )
        })
        .collect();
    map_texts(rule, &|text| {
        // All these paths have a dot; most texts have none.
        if !text.contains('.') {
            return text.to_owned();
        }
        replacements
            .iter()
            .fold(text.to_owned(), |text, (from, to)| text.replace(from, to))
    })
}

/// The tree with every text and every key changed.
fn map_texts(tree: &Tree, change: &impl Fn(&str) -> String) -> Tree {
    let value = match &tree.value {
        TreeValue::String(text) => TreeValue::String(change(text).into()),
        TreeValue::List(list) => {
            TreeValue::List(list.iter().map(|item| map_texts(item, change)).collect())
        }
        TreeValue::Map(members) => TreeValue::Map(
            members
                .iter()
                .map(|member| Member {
                    key: change(&member.key).into(),
                    key_span: member.key_span,
                    value: map_texts(&member.value, change),
                })
                .collect(),
        ),
        TreeValue::Null | TreeValue::Bool(_) | TreeValue::Int(_) | TreeValue::Float(_) => {
            tree.value.clone()
        }
    };
    Tree::new(value, tree.span)
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;
    use crate::policy::read::read_policy;
    use crate::policy::test_tree::{json as to_json, tree};
    use crate::source::SourceId;

    fn policy(annotation: Option<&str>, rules: Value) -> Policy {
        let mut document = json!({
            "apiVersion": "kyverno.io/v1",
            "kind": "ClusterPolicy",
            "metadata": {"name": "p"},
            "spec": {"rules": rules},
        });
        if let Some(annotation) = annotation {
            document["metadata"]["annotations"] = json!({ANNOTATION: annotation});
        }
        read_policy(&tree(&document), SourceId(0), &mut Vec::new()).unwrap()
    }

    fn rule(name: &str, resources: Value) -> Value {
        json!({
            "name": name,
            "match": {"any": [{"resources": resources}]},
            "validate": {"pattern": {"spec": {"x": "y"}}},
        })
    }

    fn names(policy: &Policy, kind: Option<&str>) -> Vec<String> {
        let rules = compute_rules(policy, kind);
        rules.into_iter().map(|rule| rule.name.value).collect()
    }

    #[test]
    fn names_of_generated_rules() {
        let pod = json!({"kinds": ["Pod"]});
        let selected = json!({"kinds": ["Pod"], "selector": {"matchLabels": {"a": "b"}}});
        let long = "too-long-this-rule-name-will-be-truncated-to-63-characters";
        type Case<'a> = (
            &'a str,
            Option<&'a str>,
            Value,
            Option<&'a str>,
            &'a [&'a str],
        );
        let cases: [Case; 13] = [
            (
                "54",
                None,
                json!([rule("r", pod.clone())]),
                Some("Deployment"),
                &["r", "autogen-r"],
            ),
            (
                "54",
                None,
                json!([rule("r", pod.clone())]),
                Some("Pod"),
                &["r"],
            ),
            (
                "55",
                None,
                json!([rule("r1", pod.clone()), rule("r2", selected)]),
                None,
                &["r1", "r2"],
            ),
            (
                "56",
                None,
                json!([rule("r", json!({"kinds": ["Pod", "Service"]}))]),
                None,
                &["r"],
            ),
            (
                "57",
                None,
                json!([rule("r", json!({"kinds": ["v1/Pod"]}))]),
                None,
                &["r"],
            ),
            (
                "57",
                None,
                json!([
                    rule("r", json!({"kinds": ["v1/Pod"]})),
                    rule("s", pod.clone())
                ]),
                Some("Job"),
                &["r", "s", "autogen-r", "autogen-s"],
            ),
            (
                "58",
                None,
                json!([rule("r", json!({"kinds": ["Deployment"]}))]),
                None,
                &["r"],
            ),
            (
                "59",
                Some("Deployment, Job"),
                json!([rule("r", pod.clone())]),
                Some("Job"),
                &["r"],
            ),
            (
                "60",
                Some("CloneSet"),
                json!([rule("r", pod.clone())]),
                Some("CloneSet"),
                &["r", "autogen-r"],
            ),
            (
                "61",
                None,
                json!([rule(long, pod.clone())]),
                None,
                &[
                    long,
                    "autogen-too-long-this-rule-name-will-be-truncated-to-63-charact",
                    "autogen-cronjob-too-long-this-rule-name-will-be-truncated-to-63",
                ],
            ),
            (
                "64b",
                Some("CronJob"),
                json!([rule("r", pod.clone())]),
                Some("Deployment"),
                &["r"],
            ),
            (
                "64b",
                Some("CronJob"),
                json!([rule("r", pod.clone())]),
                Some("CronJob"),
                &["r", "autogen-cronjob-r"],
            ),
            (
                "65",
                None,
                json!([
                    rule("autogen-x", json!({"kinds": ["Deployment"]})),
                    rule("y", pod)
                ]),
                Some("Deployment"),
                &["y", "autogen-y"],
            ),
        ];
        for (case, annotation, rules, kind, expected) in cases {
            assert_eq!(
                names(&policy(annotation, rules), kind),
                expected,
                "case {case}"
            );
        }
    }

    #[test]
    fn a_name_cut_inside_a_character_shows_replacement_characters() {
        // Case 64c; the truncation leaves two of three bytes.
        assert_eq!(
            generated_name("autogen", &format!("{}€", "a".repeat(53))).len(),
            8 + 53 + 6
        );
    }

    #[test]
    fn only_what_is_written_plainly_is_rewritten() {
        // Cases 63 and 64.
        let rewritten = |value: Value, template| to_json(&rewrite_paths(&tree(&value), template));
        let key =
            json!("{{ request.object.metadata.labels.app }}{{ request.\"object\".metadata }}");
        assert_eq!(
            rewritten(key, "spec.jobTemplate.spec.template"),
            json!(
                "{{ request.object.spec.jobTemplate.spec.template.metadata.labels.app }}{{ request.\"object\".metadata }}"
            )
        );
        let cel =
            json!({"validate": {"cel": {"expression": "object.spec.containers.all(c, true)"}}});
        assert_eq!(
            rewritten(cel, "spec.template")["validate"]["cel"]["expression"],
            "object.spec.template.spec.containers.all(c, true)"
        );
    }

    #[test]
    fn an_empty_any_disappears_in_the_generated_rule() {
        // docs/spec/policies.md §12.5.
        let mut written = rule("r", json!({"kinds": ["Pod"]}));
        written["preconditions"] = json!({"any": []});
        written["validate"] = json!({"deny": {"conditions": {"any": []}}});
        let rules = compute_rules(&policy(None, json!([written])), Some("Job"));
        let of = |index: usize| to_json(&rules[index].tree);
        assert_eq!(of(0)["preconditions"], json!({"any": []}));
        assert_eq!(of(1)["preconditions"], json!({}));
        assert_eq!(of(1)["validate"]["deny"], json!({"conditions": {}}));
    }

    #[test]
    fn generated_rules_keep_their_places() {
        let policy = policy(None, json!([rule("r", json!({"kinds": ["Pod"]}))]));
        let rules = compute_rules(&policy, Some("Job"));
        let pattern = |rule: &Rule| rule.validate.clone().unwrap().pattern.unwrap().span;
        assert_eq!(pattern(&rules[0]), pattern(&rules[1]));
    }
}
