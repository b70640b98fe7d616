//! Kyverno's Values document: variables for policies, resources and rules, labels of
//! namespaces, and the kinds that represent subresources (docs/spec/cli.md §7.1 to §7.4).
//!
//! Everything is checked and keys are split while reading a file or the `values` of a Test;
//! afterwards [`Values`] only answers queries for the variables of a policy, a resource and
//! a rule.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use kpvm::engine::merge;
use kpvm_compiler::diagnostic::Diagnostic;
use kpvm_compiler::source::{Location, SourceId, Sources};
use kpvm_semantics::limits::Limits;
use kpvm_syntax::tree::Tree;
use serde_json::{Map, Value, json};

use crate::computed_rule::is_computed_from;
use crate::input::{Unreadable, read_file};
use crate::nearest::did_you_mean;
use crate::problem::Problem;
use crate::strict::{Decoder, Fields, Text};

/// The variable for the operation on the resource.
const OPERATION: &str = "request.operation";

/// Labels in the order of the document.
pub type Labels = Vec<(String, String)>;

/// Variables as written: values by key, with keys not yet split.
type Written = BTreeMap<String, Value>;

/// A Values document.
#[derive(Debug, Clone, Default)]
pub struct Values {
    globals: Written,
    policies: Vec<PolicyValues>,
    /// Variables given on the command line, which take precedence.
    set: Written,
    namespaces: BTreeMap<String, Labels>,
    /// The namespaces as objects.
    namespace_objects: BTreeMap<String, Value>,
    subresources: Vec<Subresource>,
    source: SourceId,
}

/// The values of one policy.
#[derive(Debug, Clone)]
struct PolicyValues {
    name: Text,
    resources: Vec<(Text, Written)>,
    /// Variables of rules, with keys split.
    rules: Vec<(Text, Value)>,
}

/// An object of kind `child` represents a subresource of kind `parent`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Subresource {
    /// Group, version and kind of the object.
    pub child: [String; 3],
    /// Group, version and kind used for matching rules.
    pub parent: [String; 3],
    /// The subresource, such as `scale`.
    pub name: String,
}

const FIELDS: &[&str] = &[
    "globalValues",
    "policies",
    "namespaceSelector",
    "namespaces",
    "subresources",
];

const FILE_FIELDS: &[&str] = &[
    "apiVersion",
    "kind",
    "metadata",
    "globalValues",
    "policies",
    "namespaceSelector",
    "namespaces",
    "subresources",
];

const API_RESOURCE_FIELDS: &[&str] = &[
    "name",
    "singularName",
    "namespaced",
    "group",
    "version",
    "kind",
    "verbs",
    "shortNames",
    "categories",
    "storageVersionHash",
];

impl Values {
    /// Whether they have no effect.
    pub fn are_empty(&self) -> bool {
        self.globals.is_empty() && self.policies.is_empty() && self.set.is_empty()
    }

    /// Whether they contain variables for resources by name.
    pub fn name_resources(&self) -> bool {
        let mut policies = self.policies.iter();
        policies.any(|policy| !policy.resources.is_empty())
    }

    /// Reads a file of kind Values and adds it to the sources.
    ///
    /// # Errors
    /// All its errors.
    pub fn read_file(path: &Path, sources: &mut Sources) -> Result<Self, Vec<Problem>> {
        let name = path.display().to_string();
        match read_file(path) {
            Ok(text) => Self::read(&name, &text, sources),
            Err(reason) => Err(vec![Problem::Unreadable(Unreadable { name, reason })]),
        }
    }

    /// Parses a text of kind Values and adds it to the sources under a name.
    ///
    /// # Errors
    /// All its errors.
    pub fn read(name: &str, text: &str, sources: &mut Sources) -> Result<Self, Vec<Problem>> {
        let source = sources.add(name, text);
        let mut decoder = Decoder::new("values", source);
        let documents = decoder.documents(text);
        let values = match documents.first() {
            Some(tree) => Self::from_document(tree, source, &mut decoder),
            None => Self::default(),
        };
        if let Some(second) = documents.get(1) {
            decoder.refuse(
                second.span,
                "expected one Values document, found a second one, which Kyverno would not read",
                Some("put all values into one document".to_owned()),
            );
        }
        decoder.finish(values)
    }

    fn from_document(tree: &Tree, source: SourceId, decoder: &mut Decoder) -> Self {
        let fields = decoder.fields(tree, FILE_FIELDS);
        let is_typed = ["apiVersion", "kind"]
            .map(|field| !decoder.text(fields.get(field)).is_empty())
            .into_iter()
            .all(|is_there| is_there);
        if !is_typed && tree.as_map().is_some() {
            decoder.refuse(
                tree.span,
                "the values file has no apiVersion or no kind",
                Some("write `apiVersion: cli.kyverno.io/v1alpha1` and `kind: Values`".to_owned()),
            );
        }
        Self::from_fields(&fields, source, decoder)
    }

    /// Reads the `values` of a Test.
    pub fn read_inline(tree: &Tree, source: SourceId, decoder: &mut Decoder) -> Self {
        let fields = decoder.fields(tree, FIELDS);
        Self::from_fields(&fields, source, decoder)
    }

    fn from_fields(fields: &Fields<'_>, source: SourceId, decoder: &mut Decoder) -> Self {
        let globals = fields.get("globalValues");
        if let Some(operation) = globals.and_then(|globals| globals.get(OPERATION)) {
            check_operation(operation, decoder);
        }
        let policies = decoder.items(fields.get("policies"));
        let (mut namespaces, mut namespace_objects) = (BTreeMap::new(), BTreeMap::new());
        for item in decoder.items(fields.get("namespaceSelector")) {
            let entry = decoder.fields(item, &["name", "labels"]);
            let name = decoder.text(entry.get("name"));
            let labels = decoder.pairs(entry.get("labels"));
            namespace_objects.insert(name.clone(), namespace_object(&name, &labels));
            namespaces.insert(name, labels);
        }
        // A Namespace takes precedence over a selector of the same name.
        for item in decoder.items(fields.get("namespaces")) {
            let known = &["apiVersion", "kind", "metadata", "spec", "status"];
            let metadata = decoder.fields(item, known).get("metadata").cloned();
            let part = |key| metadata.as_ref().and_then(|metadata| metadata.get(key));
            let name = decoder.text(part("name"));
            let labels = part("labels").filter(|labels| !labels.is_null());
            let mut object = item.to_json();
            if let Value::Object(object) = &mut object {
                for part in ["spec", "status"] {
                    let entry = object.entry(part);
                    entry.or_insert_with(|| Value::Object(Map::new()));
                }
            }
            namespace_objects.insert(name.clone(), object);
            namespaces.insert(name, decoder.pairs(labels));
        }
        let subresources = decoder.items(fields.get("subresources"));
        Self {
            globals: read_written(globals, decoder),
            policies: policies
                .iter()
                .map(|policy| PolicyValues::read(policy, decoder))
                .collect(),
            set: Written::new(),
            namespaces,
            namespace_objects,
            subresources: subresources
                .iter()
                .filter_map(|entry| Subresource::read(entry, decoder))
                .collect(),
            source,
        }
    }

    /// Sets a variable from the command line, which takes precedence over all others except
    /// those of rules. The first value of a key is kept (docs/spec/cli.md §7.9).
    ///
    /// # Errors
    /// If the key is invalid.
    pub fn set(&mut self, key: &str, value: &str) -> Result<(), String> {
        split_key(key)?;
        let entry = self.set.entry(key.to_owned());
        entry.or_insert_with(|| Value::from(value));
        Ok(())
    }

    /// The labels of namespaces.
    pub fn namespaces(&self) -> &BTreeMap<String, Labels> {
        &self.namespaces
    }

    /// The namespaces as objects, for `namespaceObject` of CEL.
    pub fn namespace_objects(&self) -> &BTreeMap<String, Value> {
        &self.namespace_objects
    }

    /// Kinds that represent subresources.
    pub fn subresources(&self) -> &[Subresource] {
        &self.subresources
    }

    /// Whether a policy has its own variables for resources with a name.
    pub fn has_resource(&self, policy: &str, resource: &str) -> bool {
        self.of_resource(policy, resource).next().is_some()
    }

    /// Variables of a policy for resources with a name. Precedence, lowest first: global
    /// ones, those of the resource, those of the command line (docs/spec/cli.md §7.2).
    pub fn variables(&self, policy: &str, resource: &str) -> Variables {
        self.overlaid(self.of_resource(policy, resource))
    }

    /// Variables used if no policy has its own for the resource.
    pub fn general_variables(&self) -> Variables {
        self.overlaid(std::iter::empty())
    }

    fn overlaid<'v>(&'v self, own: impl Iterator<Item = &'v Written>) -> Variables {
        let mut written: BTreeMap<&str, &Value> = BTreeMap::new();
        let sets = std::iter::once(&self.globals).chain(own);
        for set in sets.chain(std::iter::once(&self.set)) {
            written.extend(set.iter().map(|(key, value)| (key.as_str(), value)));
        }
        let operation = written.get(OPERATION).and_then(|value| value.as_str());
        Variables {
            operation: operation.map(str::to_owned),
            values: nested(written),
        }
    }

    fn of_resource<'v>(
        &'v self,
        policy: &'v str,
        resource: &'v str,
    ) -> impl Iterator<Item = &'v Written> {
        let of_policy = self.of_policy(policy);
        of_policy
            .flat_map(|values| &values.resources)
            .filter(move |(name, _)| name.text == resource)
            .map(|(_, written)| written)
    }

    fn of_policy<'v>(&'v self, policy: &'v str) -> impl Iterator<Item = &'v PolicyValues> {
        let all = self.policies.iter();
        all.filter(move |values| values.name.text == policy)
    }

    /// Variables of a rule, added to its context whenever that is loaded: those of the
    /// first entry that names the rule or the rule it was generated from (docs/spec/cli.md
    /// §7.4).
    pub fn of_rule<'v>(&'v self, policy: &str, rule: &str) -> Option<&'v Value> {
        let all = self.policies.iter();
        let own = all.filter(|values| values.name.text == policy);
        let mut rules = own.flat_map(|values| &values.rules);
        let found = rules.find(|(name, _)| is_computed_from(rule, &name.text));
        found.map(|(_, value)| value)
    }

    /// A warning for each entry about an unknown policy, rule or resource.
    ///
    /// `known`: policies with the names of their rules, including generated ones; `None` if
    /// these are unknown.
    pub fn unused(
        &self,
        known: &BTreeMap<&str, Option<&[String]>>,
        resources: &BTreeSet<&str>,
    ) -> Vec<Diagnostic> {
        let mut warnings = Vec::new();
        let mut warn = |name: &Text, what: &str, hint: Option<String>| {
            let message = format!("the values of the {what} `{}` are not used", name.text);
            let location = Location {
                source: self.source,
                span: name.span,
            };
            let mut warning = Diagnostic::warning("unused-values", message, location);
            warning.hint = hint.or_else(|| Some(format!("there is no {what} of this name")));
            warnings.push(warning);
        };
        for values in &self.policies {
            let Some(rules) = known.get(values.name.text.as_str()) else {
                let hint = did_you_mean(&values.name.text, known.keys().copied());
                warn(&values.name, "policy", hint);
                continue;
            };
            for (name, _) in &values.rules {
                let Some(rules) = rules else { break };
                if !rules.iter().any(|rule| is_computed_from(rule, &name.text)) {
                    let names = rules.iter().map(String::as_str);
                    warn(name, "rule", did_you_mean(&name.text, names));
                }
            }
            for (name, _) in &values.resources {
                if !resources.contains(name.text.as_str()) {
                    let hint = did_you_mean(&name.text, resources.iter().copied());
                    warn(name, "resource", hint);
                }
            }
        }
        warnings
    }
}

/// A namespace object of which only the labels are known.
pub fn namespace_object(name: &str, labels: &Labels) -> Value {
    let labels: Map<String, Value> = labels
        .iter()
        .map(|(key, value)| (key.clone(), Value::from(value.as_str())))
        .collect();
    let mut metadata = Map::new();
    metadata.insert("name".to_owned(), Value::from(name));
    if !labels.is_empty() {
        metadata.insert("labels".to_owned(), Value::Object(labels));
    }
    json!({"metadata": metadata, "spec": {}, "status": {}})
}

/// Variables of a policy for a resource.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Variables {
    /// `request.operation`, if it is a text.
    pub operation: Option<String>,
    /// All variables merged into one map.
    pub values: Value,
}

impl PolicyValues {
    fn read(tree: &Tree, decoder: &mut Decoder) -> Self {
        let fields = decoder.fields(tree, &["name", "resources", "rules"]);
        let mut resources = Vec::new();
        for item in decoder.items(fields.get("resources")) {
            let entry = decoder.fields(item, &["name", "values"]);
            let name = decoder.spanned(entry.get("name"));
            resources.push((name, read_written(entry.get("values"), decoder)));
        }
        let mut rules = Vec::new();
        for item in decoder.items(fields.get("rules")) {
            let entry = decoder.fields(item, &["name", "values", "foreachValues"]);
            let mut written = read_written(entry.get("values"), decoder);
            written.extend(first_elements(entry.get("foreachValues"), decoder));
            let all = written.iter().map(|(key, value)| (key.as_str(), value));
            rules.push((decoder.spanned(entry.get("name")), nested(all.collect())));
        }
        Self {
            name: decoder.spanned(fields.get("name")),
            resources,
            rules,
        }
    }
}

/// Reads variables and rejects keys that cannot be split.
fn read_written(tree: Option<&Tree>, decoder: &mut Decoder) -> Written {
    let mut written = Written::new();
    for (key, value) in decoder.members(tree) {
        match split_key(&key.text) {
            Ok(_) => {
                written.insert(key.text, value.to_json());
            }
            Err(error) => decoder.refuse(key.span, error, None),
        }
    }
    written
}

/// Only the first value for each element is ever used (docs/spec/cli.md §7.4).
fn first_elements(tree: Option<&Tree>, decoder: &mut Decoder) -> Written {
    let mut written = Written::new();
    for (key, list) in decoder.members(tree) {
        if let Err(error) = split_key(&key.text) {
            decoder.refuse(key.span, error, None);
            continue;
        }
        match decoder.items(Some(list)).first() {
            Some(first) => {
                written.insert(key.text, first.to_json());
            }
            None if list.as_list().is_some() => {
                decoder.refuse(list.span, "expected at least one value, found none", None);
            }
            None => {}
        }
    }
    written
}

/// A global operation must be valid (docs/spec/cli.md §3.2); values that are not text are
/// ignored.
fn check_operation(tree: &Tree, decoder: &mut Decoder) {
    let Some(text) = tree.as_str() else { return };
    if !["", "CREATE", "UPDATE", "DELETE", "CONNECT"].contains(&text) {
        let message = format!(
            "invalid request.operation value \"{text}\", must be one of CREATE, UPDATE, DELETE, CONNECT"
        );
        decoder.refuse(tree.span, message, None);
    }
}

/// Builds the nested map of dotted keys. If a key is a prefix of another one, which is
/// undefined in Kyverno, the longer one wins.
fn nested(written: BTreeMap<&str, &Value>) -> Value {
    let mut paths: Vec<(Vec<String>, &Value)> = written
        .into_iter()
        .filter_map(|(key, value)| Some((split_key(key).ok()?, value)))
        .collect();
    paths.sort_by_key(|(path, _)| path.len());
    let mut values = Value::Object(Map::new());
    for (path, value) in paths {
        let nested = path.into_iter().rev().fold(value.clone(), |value, part| {
            Value::Object(Map::from_iter([(part, value)]))
        });
        merge(&mut values, &nested);
    }
    values
}

/// Splits a key at dots; a part in double quotes may contain dots, like a CSV field may
/// contain commas (docs/spec/cli.md §7.2).
fn split_key(key: &str) -> Result<Vec<String>, String> {
    let wrong = |what: &str| Err(format!("failed to add variable to context {key} ({what})"));
    if key.is_empty() {
        return wrong("the key is empty");
    }
    let depth = Limits::DEFAULT.document_depth;
    let mut parts = Vec::new();
    let mut rest = Some(key);
    while let Some(text) = rest {
        if parts.len() == depth {
            return Err(format!(
                "a key has more than {depth} parts (document-depth)"
            ));
        }
        if let Some(quoted) = text.strip_prefix('"') {
            let mut part = String::new();
            let mut characters = quoted.char_indices().peekable();
            let end = loop {
                match characters.next() {
                    Some((_, '"')) if characters.peek().is_some_and(|(_, next)| *next == '"') => {
                        characters.next();
                        part.push('"');
                    }
                    Some((at, '"')) => break at + 1,
                    Some((_, other)) => part.push(other),
                    None => return wrong("a quote is not closed"),
                }
            };
            parts.push(part);
            let after = quoted.get(end..).unwrap_or("");
            rest = after.strip_prefix('.');
            if rest.is_none() && !after.is_empty() {
                return wrong("a quoted part goes on behind its quote");
            }
        } else {
            let (part, after) = match text.split_once('.') {
                Some((part, after)) => (part, Some(after)),
                None => (text, None),
            };
            if part.contains('"') {
                return wrong("a quote stands inside a part that is not quoted");
            }
            parts.push(part.to_owned());
            rest = after;
        }
    }
    Ok(parts)
}

impl Subresource {
    fn read(tree: &Tree, decoder: &mut Decoder) -> Option<Self> {
        let fields = decoder.fields(tree, &["subresource", "parentResource"]);
        let mut kind = |field: &str| {
            let part = fields.get(field)?;
            let fields = decoder.fields(part, API_RESOURCE_FIELDS);
            let kind = ["group", "version", "kind"].map(|name| decoder.text(fields.get(name)));
            Some((kind, decoder.spanned(fields.get("name"))))
        };
        let (child, parent) = (kind("subresource"), kind("parentResource"));
        let (Some((child, name)), Some((parent, _))) = (child, parent) else {
            let message = "expected subresource and parentResource";
            decoder.refuse(tree.span, message, None);
            return None;
        };
        let Some((_, subresource)) = name.text.split_once('/') else {
            let message = format!(
                "expected the name of a subresource such as `deployments/scale`, found `{}`",
                name.text
            );
            decoder.refuse(name.span, message, None);
            return None;
        };
        Some(Self {
            child,
            parent,
            name: subresource.split('/').next().unwrap_or_default().to_owned(),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn values(text: &str) -> Result<Values, Vec<String>> {
        let source = SourceId(0);
        let mut decoder = Decoder::new("values", source);
        let documents = decoder.documents(text);
        let found = documents.first().map_or_else(Values::default, |tree| {
            Values::from_document(tree, source, &mut decoder)
        });
        let messages: Vec<String> = decoder
            .diagnostics
            .into_iter()
            .map(|diagnostic| diagnostic.message)
            .collect();
        if messages.is_empty() {
            Ok(found)
        } else {
            Err(messages)
        }
    }

    const HEAD: &str = "apiVersion: cli.kyverno.io/v1alpha1\nkind: Values\n";

    /// docs/spec/cli.md §7.2: CSV with dots for commas.
    #[test]
    fn keys_are_split_at_dots_outside_of_quotes() {
        for (key, expected) in [
            ("a", Some(vec!["a"])),
            ("a.b.c", Some(vec!["a", "b", "c"])),
            ("a..b", Some(vec!["a", "", "b"])),
            ("a.", Some(vec!["a", ""])),
            (
                r#"labels."app.kubernetes.io/name""#,
                Some(vec!["labels", "app.kubernetes.io/name"]),
            ),
            (r#""a.b".c"#, Some(vec!["a.b", "c"])),
            (r#""say ""x""".c"#, Some(vec![r#"say "x""#, "c"])),
            ("", None),
            (r#"a."b"#, None),
            (r#"a.b"c""#, None),
            (r#""a"b"#, None),
        ] {
            assert_eq!(
                split_key(key).ok(),
                expected.map(|parts| parts.iter().map(ToString::to_string).collect()),
                "{key}"
            );
        }
    }

    /// docs/spec/cli.md §7.2: global values, then those of the resource, then --set.
    #[test]
    fn later_variables_win_by_the_whole_key() {
        let mut values = values(&format!(
            "{HEAD}globalValues: {{a: 1, m.x: 1, k: {{x: 1}}}}\npolicies:\n- name: p\n  resources:\n  \
             - name: r\n    values: {{a: 2, m.z: 2, k: {{z: 2}}, request.operation: DELETE}}\n"
        ))
        .unwrap();
        let found = |values: &Values, resource| values.variables("p", resource).values;
        let global = json!({"a": 1, "m": {"x": 1}, "k": {"x": 1}});
        assert_eq!(found(&values, "other"), global);
        assert_eq!(
            found(&values, "r"),
            json!({"a": 2, "m": {"x": 1, "z": 2}, "k": {"z": 2}, "request": {"operation": "DELETE"}})
        );
        assert_eq!(values.variables("q", "r").values, global);
        values.set("a", "3").unwrap();
        values.set("a", "4").unwrap();
        assert_eq!(found(&values, "r")["a"], json!("3"));
        let operation = values.variables("p", "r").operation;
        assert_eq!(operation.as_deref(), Some("DELETE"));
    }

    /// docs/spec/cli.md §7.4.
    #[test]
    fn variables_of_rules_hold_for_generated_rules_and_take_first_elements() {
        let values = values(&format!(
            "{HEAD}policies:\n- name: p\n  rules:\n  - name: r\n    values: {{d.k: v}}\n    \
             foreachValues: {{e: [1, 2]}}\n  - name: r\n    values: {{never: used}}\n"
        ))
        .unwrap();
        for (policy, rule, expected) in [
            ("p", "r", true),
            ("p", "autogen-r", true),
            ("p", "autogen-cronjob-r", true),
            ("p", "other", false),
            ("q", "r", false),
        ] {
            let expected = expected.then(|| json!({"d": {"k": "v"}, "e": 1}));
            assert_eq!(values.of_rule(policy, rule), expected.as_ref(), "{rule}");
        }
    }

    /// docs/spec/cli.md §7.1, and case 41.
    #[test]
    fn namespaces_win_over_selectors() {
        let values = values(&format!(
            "{HEAD}namespaceSelector: [{{name: one, labels: {{x: z}}}}, {{name: two, labels: {{a: true}}}}]\n\
             namespaces: [{{metadata: {{name: one, labels: {{x: w}}}}}}]\n"
        ))
        .unwrap();
        let pair = |key: &str, value: &str| vec![(key.to_owned(), value.to_owned())];
        assert_eq!(values.namespaces()["one"], pair("x", "w"));
        assert_eq!(values.namespaces()["two"], pair("a", "true"));
    }

    #[test]
    fn what_is_not_of_the_form_is_refused() {
        for (text, expected) in [
            (
                "policies: []",
                "the values file has no apiVersion or no kind",
            ),
            (
                &format!("{HEAD}globalValue: {{}}"),
                "unknown field `globalValue`",
            ),
            (
                &format!("{HEAD}globalValues: [a]"),
                "expected a map, found a list",
            ),
            (
                &format!("{HEAD}policies: {{}}"),
                "expected a list, found a map",
            ),
            (
                &format!("{HEAD}globalValues: {{request.operation: update}}"),
                "invalid request.operation value \"update\", must be one of CREATE, UPDATE, DELETE, CONNECT",
            ),
            (
                &format!("{HEAD}globalValues: {{'a.\"b': 1}}"),
                "failed to add variable to context a.\"b (a quote is not closed)",
            ),
            (
                &format!(
                    "{HEAD}policies: [{{name: p, rules: [{{name: r, foreachValues: {{e: []}}}}]}}]"
                ),
                "expected at least one value, found none",
            ),
            (
                &format!(
                    "{HEAD}subresources: [{{subresource: {{name: scale}}, parentResource: {{}}}}]"
                ),
                "expected the name of a subresource such as `deployments/scale`, found `scale`",
            ),
        ] {
            assert_eq!(values(text).unwrap_err(), [expected], "{text}");
        }
        // Field names are case-insensitive, see §8.4.
        assert!(values(&format!("{HEAD}globalvalues: {{a: 1}}")).is_ok());
    }

    /// Hostile inputs, row 97.
    #[test]
    fn entries_that_are_about_nothing_are_named() {
        let values = values(&format!(
            "{HEAD}policies: [{{name: labels, resources: [{{name: wbe, values: {{a: 1}}}}], \
             rules: [{{name: chek, values: {{a: 1}}}}]}}, {{name: lables}}]"
        ))
        .unwrap();
        let rules = ["check".to_owned()];
        let known = BTreeMap::from([("labels", Some(&rules[..]))]);
        let warnings = values.unused(&known, &BTreeSet::from(["web"]));
        let shown: Vec<_> = warnings
            .iter()
            .map(|warning| {
                format!(
                    "{}: {}",
                    warning.message,
                    warning.hint.as_deref().unwrap_or("")
                )
            })
            .collect();
        assert_eq!(
            shown,
            [
                "the values of the rule `chek` are not used: did you mean `check`?",
                "the values of the resource `wbe` are not used: did you mean `web`?",
                "the values of the policy `lables` are not used: did you mean `labels`?",
            ]
        );
    }
}
