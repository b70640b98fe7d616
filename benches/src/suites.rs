//! Runs `kyverno-test.yaml` suites: policies, resources and the result expected for each.
//!
//! A directory enters, one [`Outcome`] for each suite leaves. Rows are read as `kyverno
//! test` reads them (sheet 08, sections 2, 3, 4 and 7), as far as rules of
//! bundles need it; a suite that needs more is unsupported, with the reason, and never agrees.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use kpvm::document::Numbers;
use kpvm::engine::{Bundle, GroupVersionKind, Input, Operation, Request, Session, UserInfo};
use kpvm::limits::Limits;
use kpvm::tree::{Member, Span, Tree, TreeValue};
use kpvm::yaml::{self, DuplicateKeys};
use kpvm_compiler::compile::{self, Options};
use kpvm_compiler::diagnostic::Severity;
use kpvm_compiler::policy::read::{DocumentKind, document_kind};
use kpvm_compiler::source::{SourceId, Sources};
use serde_json::{Map, Value};

use crate::golden::{tree_of, value_of};
use crate::mock_host::MockHost;

/// The name of the files that hold suites.
pub const SUITE_FILE: &str = "kyverno-test.yaml";

/// How a suite came out.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Outcome {
    /// It ran.
    Ran {
        /// Pairs of a row and a response or resource that were compared.
        rows: usize,
        /// What did not agree, one text for each pair.
        differences: Vec<String>,
    },
    /// It needs something that is not supported yet.
    Unsupported(String),
}

/// How strictly rows are compared.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Reading {
    /// As `kyverno test`: a row agrees whenever its rule gave no response at all
    /// (sheet 08, section 4.6), and responses without a row do not matter.
    Kyverno,
    /// Rows are complete: each needs its response, and each response its row.
    Complete,
}

/// Why a suite stops early.
pub(crate) enum Stop {
    /// It needs something that is not supported.
    Unsupported(String),
    /// It cannot be run as it stands.
    Broken(String),
}

/// What a step of a run gives, or why the suite stops there.
pub(crate) type Step<T> = Result<T, Stop>;

/// All suite files below a directory, hidden directories included, in order.
///
/// # Errors
/// When a directory cannot be listed.
pub fn discover(directory: &Path) -> std::io::Result<Vec<PathBuf>> {
    let mut found = Vec::new();
    let mut entries: Vec<fs::DirEntry> = fs::read_dir(directory)?.collect::<Result<_, _>>()?;
    entries.sort_by_key(fs::DirEntry::file_name);
    for entry in entries {
        if entry.file_type()?.is_dir() {
            found.extend(discover(&entry.path())?);
        } else if entry.file_name() == SUITE_FILE {
            found.push(entry.path());
        }
    }
    Ok(found)
}

/// Runs every suite of a file.
pub fn run_file(file: &Path, reading: Reading) -> Vec<Outcome> {
    let documents = match read_documents(file, DuplicateKeys::Refuse) {
        Ok(documents) => documents,
        Err(stop) => return vec![outcome(Err(stop))],
    };
    let directory = file.parent().unwrap_or(Path::new("."));
    documents
        .iter()
        .map(|document| outcome(run_suite(document, directory, reading)))
        .collect()
}

fn outcome(result: Step<Outcome>) -> Outcome {
    match result {
        Ok(outcome) => outcome,
        Err(Stop::Unsupported(reason)) => Outcome::Unsupported(reason),
        Err(Stop::Broken(reason)) => Outcome::Ran {
            rows: 1,
            differences: vec![reason],
        },
    }
}

fn run_suite(test: &Tree, directory: &Path, reading: Reading) -> Step<Outcome> {
    refuse_unsupported_fields(test)?;
    let rows = read_rows(test);
    let values = Values::read(test, directory)?;
    let user = User::read(test, directory)?;
    let bytes = compile_policies(test, directory, &values)?;
    let bundle = Bundle::load(bytes)
        .map_err(|error| Stop::Broken(format!("the compiled bundle does not load: {error}")))?;
    let resources = read_resources(test, directory)?;
    let trees = resources.iter().map(|resource| &resource.tree);
    let mut host = MockHost::read(test, directory, trees)?;
    let responses = evaluate(
        &bundle,
        &resources,
        &rows,
        &values,
        user.as_ref(),
        &mut host,
    )?;
    let run = Run {
        policies: policy_names(&bundle),
        responses,
        resources: &resources,
        reading,
    };
    Ok(run.compare(&rows))
}

/// Sheet 08, section 2: the parts of a test that go beyond this harness.
fn refuse_unsupported_fields(test: &Tree) -> Step<()> {
    let is_legacy = ["apiVersion", "kind"]
        .iter()
        .any(|key| text(test, key).is_empty())
        || !text(test, "name").is_empty();
    if is_legacy {
        return Err(Stop::Broken(
            "the test uses the form without apiVersion and kind".into(),
        ));
    }
    let beyond = [
        "targetResources",
        "paramResources",
        "context",
        "jsonPayload",
        "jsonPayloads",
        "httpPayloads",
        "envoyPayloads",
    ];
    match beyond.iter().find(|key| test.get(key).is_some()) {
        Some(key) => Err(Stop::Unsupported(format!("`{key}` of a test"))),
        None => Ok(()),
    }
}

// ---- small readers ----

/// The text under a key; empty if there is none.
pub(crate) fn text(tree: &Tree, key: &str) -> String {
    match tree.get(key).map(|value| &value.value) {
        Some(TreeValue::String(text)) => text.to_string(),
        Some(TreeValue::Int(number)) => number.to_string(),
        Some(TreeValue::Bool(value)) => value.to_string(),
        _ => String::new(),
    }
}

/// The items under a key; none if there is no list.
pub(crate) fn list<'t>(tree: &'t Tree, key: &str) -> &'t [Tree] {
    tree.get(key).and_then(Tree::as_list).unwrap_or(&[])
}

/// The texts of the list under a key.
pub(crate) fn texts(tree: &Tree, key: &str) -> Vec<String> {
    list(tree, key)
        .iter()
        .filter_map(|item| item.as_str().map(str::to_owned))
        .collect()
}

fn pairs(tree: Option<&Tree>) -> Vec<(String, String)> {
    let members = tree.and_then(Tree::as_map).unwrap_or(&[]);
    members
        .iter()
        .filter_map(|member| tree.map(|tree| (member.key.to_string(), text(tree, &member.key))))
        .collect()
}

fn read_text(file: &Path) -> Step<String> {
    fs::read_to_string(file).map_err(|error| Stop::Broken(format!("{}: {error}", file.display())))
}

/// The YAML documents of a file.
pub(crate) fn read_documents(file: &Path, duplicate_keys: DuplicateKeys) -> Step<Vec<Tree>> {
    let options = yaml::Options {
        duplicate_keys,
        limits: &Limits::DEFAULT,
    };
    yaml::read_all(&read_text(file)?, options)
        .into_iter()
        .collect::<Result<_, _>>()
        .map_err(|error| Stop::Broken(format!("{}: {error}", file.display())))
}

/// A path that is a directory stands for the YAML files in it.
fn expand(path: PathBuf, recursive: bool) -> Vec<PathBuf> {
    if !path.is_dir() {
        return vec![path];
    }
    let mut entries: Vec<PathBuf> = fs::read_dir(&path)
        .into_iter()
        .flatten()
        .flatten()
        .map(|entry| entry.path())
        .collect();
    entries.sort();
    let is_yaml = |path: &Path| {
        path.extension()
            .is_some_and(|extension| extension == "yaml" || extension == "yml")
    };
    entries
        .into_iter()
        .flat_map(|entry| match entry.is_dir() {
            true if recursive => expand(entry, true),
            false if is_yaml(&entry) => vec![entry],
            _ => Vec::new(),
        })
        .collect()
}

// ---- policies ----

fn compile_policies(test: &Tree, directory: &Path, values: &Values) -> Step<Vec<u8>> {
    let mut sources = Sources::new();
    let mut policies = Vec::new();
    for (file, document) in referenced(test, "policies", directory, &mut sources)? {
        // Exceptions beside policies are loaded and not used (sheet 08, section 3).
        if document_kind(&document) != DocumentKind::PolicyException {
            refuse_other_kind(&document)?;
            values.refuse_seen_rewrites(&document)?;
            policies.push((file, document));
        }
    }
    let exceptions = referenced(test, "exceptions", directory, &mut sources)?;
    let is_cel = |document: &Tree| text(document, "apiVersion").starts_with("policies.kyverno.io/");
    if exceptions.iter().any(|(_, document)| is_cel(document)) {
        return Err(Stop::Unsupported("exceptions of CEL policies".into()));
    }
    let compilation = compile::compile_with_exceptions(
        &policies,
        &exceptions,
        &sources,
        &Options::default(),
        Vec::new(),
    );
    if let Some(bytes) = compilation.bundle {
        return Ok(bytes);
    }
    let errors = || {
        compilation
            .diagnostics
            .iter()
            .filter(|diagnostic| diagnostic.severity == Severity::Error)
    };
    let refused = errors().find(|diagnostic| diagnostic.code != "unsupported");
    Err(match (refused, errors().next()) {
        (Some(refused), _) => Stop::Broken(format!(
            "{}: refused: {} ({})",
            refused.subject.as_deref().unwrap_or("policy"),
            refused.message,
            refused.code
        )),
        (None, Some(first)) => Stop::Unsupported(first.message.clone()),
        (None, None) => Stop::Broken("refused without a reason".into()),
    })
}

/// The documents of all files that a field of the test names.
fn referenced(
    test: &Tree,
    key: &str,
    directory: &Path,
    sources: &mut Sources,
) -> Step<Vec<(SourceId, Tree)>> {
    let mut documents = Vec::new();
    for path in texts(test, key) {
        if path.contains("://") {
            return Err(Stop::Unsupported(format!("{key} from the network")));
        }
        for file in expand(directory.join(path), true) {
            let source = sources.add(file.display().to_string(), read_text(&file)?);
            let read = read_documents(&file, DuplicateKeys::Refuse)?;
            let read = read.into_iter().filter(|document| !document.is_null());
            documents.extend(read.map(|document| (source, document)));
        }
    }
    Ok(documents)
}

fn refuse_other_kind(document: &Tree) -> Step<()> {
    match text(document, "kind").as_str() {
        "ClusterPolicy" | "Policy" => Ok(()),
        "" => Err(Stop::Broken("a policy document without a kind".into())),
        kind => Err(Stop::Unsupported(format!("{kind} as a policy"))),
    }
}

fn policy_names(bundle: &Bundle<'_>) -> Vec<String> {
    let tables = bundle.tables();
    tables
        .policies
        .iter()
        .map(|policy| tables.text(policy.name).to_owned())
        .collect()
}

/// Policy and rule of every computed rule.
fn rule_names(bundle: &Bundle<'_>) -> Vec<(String, String)> {
    let tables = bundle.tables();
    let names = |rule: &kpvm_format::table::Rule| {
        let policy = tables.policies.get(rule.policy.get() as usize);
        let policy = policy.map_or("", |policy| tables.text(policy.name));
        (policy.to_owned(), tables.text(rule.name).to_owned())
    };
    tables.rules.iter().map(names).collect()
}

// ---- values and user (sheet 08, section 7) ----

#[derive(Default)]
struct Values {
    /// Labels by namespace.
    labels: BTreeMap<String, Vec<(String, String)>>,
    global_operation: Option<String>,
    /// Operation by policy and resource name.
    operations: BTreeMap<(String, String), String>,
    subresources: Vec<Subresource>,
    variables: Vec<Variables>,
}

/// Variables and where they hold.
struct Variables {
    /// Empty: every policy.
    policy: String,
    scope: Scope,
    /// A map; keys with dots are taken apart.
    values: Value,
}

enum Scope {
    Everywhere,
    Resource(String),
    Rule(String),
}

/// An object of the kind `child` stands for a subresource of `parent`.
struct Subresource {
    child: [String; 3],
    parent: [String; 3],
    name: String,
}

impl Values {
    fn read(test: &Tree, directory: &Path) -> Step<Self> {
        if let Some(values) = test.get("values") {
            return Ok(Self::from_tree(values));
        }
        let file = text(test, "variables");
        if file.is_empty() {
            return Ok(Self::default());
        }
        let documents = read_documents(&directory.join(file), DuplicateKeys::Refuse)?;
        let values = documents.first();
        Ok(values.map_or_else(Self::default, Self::from_tree))
    }

    fn from_tree(tree: &Tree) -> Self {
        let mut values = Self {
            global_operation: operation_of(tree.get("globalValues")),
            ..Self::default()
        };
        if let Some(globals) = tree.get("globalValues") {
            values.add("", Scope::Everywhere, globals);
        }
        for policy in list(tree, "policies") {
            let name = text(policy, "name");
            for rule in list(policy, "rules") {
                let scope = || Scope::Rule(text(rule, "name"));
                if let Some(set) = rule.get("values") {
                    values.add(&name, scope(), set);
                }
                if let Some(set) = rule.get("foreachValues") {
                    values.add(&name, scope(), &first_items(set));
                }
            }
            for resource in list(policy, "resources") {
                if let Some(set) = resource.get("values") {
                    values.add(&name, Scope::Resource(text(resource, "name")), set);
                }
                if let Some(operation) = operation_of(resource.get("values")) {
                    let key = (text(policy, "name"), text(resource, "name"));
                    values.operations.insert(key, operation);
                }
            }
        }
        for entry in list(tree, "namespaceSelector") {
            let labels = pairs(entry.get("labels"));
            values.labels.insert(text(entry, "name"), labels);
        }
        for namespace in list(tree, "namespaces") {
            let metadata = namespace.get("metadata");
            let labels = pairs(metadata.and_then(|metadata| metadata.get("labels")));
            let name = metadata.map_or_else(String::new, |metadata| text(metadata, "name"));
            values.labels.insert(name, labels);
        }
        for entry in list(tree, "subresources") {
            values.subresources.extend(Subresource::read(entry));
        }
        values
    }

    fn add(&mut self, policy: &str, scope: Scope, set: &Tree) {
        let mut values = Value::Object(Map::new());
        for member in set.as_map().unwrap_or(&[]) {
            // The operation is that of the request, see `Values::operation`.
            if &*member.key == "request.operation" && text(set, &member.key) != "CONNECT" {
                continue;
            }
            let value = value_of(&member.value);
            set_path(&mut values, &split_key(&member.key), value);
        }
        self.variables.push(Variables {
            policy: policy.to_owned(),
            scope,
            values,
        });
    }

    /// The variables of a rule on a resource; `None` if there are none.
    fn variables(&self, policy: &str, rule: &str, resource: &str) -> Option<Value> {
        let holds = |set: &&Variables| {
            let here = match &set.scope {
                Scope::Everywhere => true,
                Scope::Resource(name) => name == resource,
                Scope::Rule(name) => is_rule(rule, name),
            };
            here && (set.policy.is_empty() || set.policy == policy)
        };
        let mut merged = Value::Object(Map::new());
        for set in self.variables.iter().filter(holds) {
            merge(&mut merged, &set.values);
        }
        let is_empty = merged.as_object().is_some_and(Map::is_empty);
        (!is_empty).then_some(merged)
    }

    /// Values of a rule reach its context only (sheet 08, section 7.4), here they rewrite
    /// the resource. That differs where a rule also sees the resource itself: what it
    /// matches is in the metadata, and some checks judge the resource.
    fn refuse_seen_rewrites(&self, policy: &Tree) -> Step<()> {
        let name = policy
            .get("metadata")
            .map(|metadata| text(metadata, "name"));
        let rules = policy
            .get("spec")
            .map_or(&[][..], |spec| list(spec, "rules"));
        for rule in rules {
            let rule_name = text(rule, "name");
            let own = self.variables.iter().filter(|set| {
                Some(&set.policy) == name.as_ref()
                    && matches!(&set.scope, Scope::Rule(scope) if is_rule(&rule_name, scope))
            });
            let objects = own.flat_map(|set| {
                let request = set.values.get("request");
                ["object", "oldObject"].map(|side| request.and_then(|request| request.get(side)))
            });
            let mut objects = objects.flatten().peekable();
            let judges = ["pattern", "anyPattern", "podSecurity", "assert"];
            let check = rule.get("validate");
            let is_judged = judges
                .iter()
                .any(|key| check.is_some_and(|check| check.get(key).is_some()));
            let is_seen = is_judged && objects.peek().is_some();
            if is_seen || objects.any(|object| object.get("metadata").is_some()) {
                return Err(Stop::Unsupported(
                    "values of a rule that rewrite what it sees of the resource".into(),
                ));
            }
        }
        Ok(())
    }

    /// The operation of a resource's default run under a policy.
    fn operation(&self, policy: &str, resource: &str) -> Operation {
        let key = (policy.to_owned(), resource.to_owned());
        let name = self.operations.get(&key).or(self.global_operation.as_ref());
        match name.map(String::as_str) {
            Some("UPDATE") => Operation::Update,
            Some("DELETE") => Operation::Delete,
            _ => Operation::Create,
        }
    }
}

/// `request.operation` of a map of variables.
fn operation_of(values: Option<&Tree>) -> Option<String> {
    let operation = text(values?, "request.operation");
    Some(operation).filter(|operation| !operation.is_empty())
}

/// Of the values for each element only the first is ever used (sheet 08, section 7.4).
fn first_items(set: &Tree) -> Tree {
    let mut first = set.clone();
    if let TreeValue::Map(members) = &mut first.value {
        for member in members {
            if let Some(item) = member.value.as_list().and_then(<[Tree]>::first).cloned() {
                member.value = item;
            }
        }
    }
    first
}

/// Parts of a key between dots; a part in quotes may hold dots (sheet 08, section 7.2).
fn split_key(key: &str) -> Vec<String> {
    let mut parts = vec![String::new()];
    let mut quoted = false;
    for character in key.chars() {
        match character {
            '"' => quoted = !quoted,
            '.' if !quoted => parts.push(String::new()),
            other => parts
                .last_mut()
                .into_iter()
                .for_each(|part| part.push(other)),
        }
    }
    parts
}

fn set_path(target: &mut Value, path: &[String], value: Value) {
    let nested = path.iter().rev().fold(value, |value, part| {
        Value::Object(Map::from_iter([(part.clone(), value)]))
    });
    merge(target, &nested);
}

/// Maps merge, anything else replaces.
fn merge(target: &mut Value, from: &Value) {
    match (target, from) {
        (Value::Object(target), Value::Object(from)) => {
            for (key, value) in from {
                merge(target.entry(key.clone()).or_insert(Value::Null), value);
            }
        }
        (target, from) => *target = from.clone(),
    }
}

/// Whether a computed rule is a written rule or made from it.
fn is_rule(computed: &str, written: &str) -> bool {
    computed == written
        || computed.strip_prefix("autogen-") == Some(written)
        || computed.strip_prefix("autogen-cronjob-") == Some(written)
}

impl Subresource {
    fn read(entry: &Tree) -> Option<Self> {
        let kind = |tree: &Tree| {
            [
                text(tree, "group"),
                text(tree, "version"),
                text(tree, "kind"),
            ]
        };
        let child = entry.get("subresource")?;
        let name = text(child, "name").split_once('/')?.1.to_owned();
        Some(Self {
            child: kind(child),
            parent: kind(entry.get("parentResource")?),
            name,
        })
    }
}

#[derive(Default)]
struct User {
    username: String,
    groups: Vec<String>,
    roles: Vec<String>,
    cluster_roles: Vec<String>,
}

impl User {
    fn read(test: &Tree, directory: &Path) -> Step<Option<Self>> {
        let file = text(test, "userinfo");
        if file.is_empty() {
            return Ok(None);
        }
        let documents = read_documents(&directory.join(file), DuplicateKeys::Refuse)?;
        let Some(tree) = documents.first() else {
            return Ok(None);
        };
        let info = tree.get("userInfo");
        Ok(Some(Self {
            username: info.map_or_else(String::new, |info| text(info, "username")),
            groups: info.map_or_else(Vec::new, |info| texts(info, "groups")),
            roles: texts(tree, "roles"),
            cluster_roles: texts(tree, "clusterRoles"),
        }))
    }
}

// ---- resources (sheet 08, section 8.6) ----

struct Resource {
    tree: Tree,
    api_version: String,
    kind: String,
    namespace: String,
    name: String,
}

fn read_resources(test: &Tree, directory: &Path) -> Step<Vec<Resource>> {
    let mut paths: Vec<PathBuf> = texts(test, "resources")
        .iter()
        .map(|path| directory.join(path))
        .collect();
    if let Some(first) = paths.first().filter(|first| first.is_dir()) {
        paths = expand(first.clone(), false);
    }
    let mut resources: Vec<Resource> = Vec::new();
    for (number, path) in paths.iter().enumerate() {
        // A later path that does not exist is skipped with a warning.
        if number > 0 && !path.exists() {
            continue;
        }
        for tree in read_documents(path, DuplicateKeys::LastWins)? {
            let resource = Resource::new(tree)?;
            if !resources.iter().any(|other| other.is_same(&resource)) {
                resources.push(resource);
            }
        }
    }
    Ok(resources)
}

impl Resource {
    fn new(mut tree: Tree) -> Step<Self> {
        let (api_version, kind) = (text(&tree, "apiVersion"), text(&tree, "kind"));
        if kind.is_empty() {
            return Err(Stop::Broken("a resource without a kind".into()));
        }
        fill_empty_maps(&mut tree);
        let group = api_version.split_once('/').map_or("", |(group, _)| group);
        let metadata = |tree: &Tree, key: &str| {
            tree.get("metadata")
                .map_or_else(String::new, |metadata| text(metadata, key))
        };
        let mut namespace = metadata(&tree, "namespace");
        if namespace.is_empty() && !is_cluster_scoped(group, &kind) {
            "default".clone_into(&mut namespace);
            set_namespace(&mut tree, &namespace);
        }
        Ok(Self {
            name: metadata(&tree, "name"),
            tree,
            api_version,
            kind,
            namespace,
        })
    }

    fn group(&self) -> &str {
        self.api_version
            .split_once('/')
            .map_or("", |(group, _)| group)
    }

    fn version(&self) -> &str {
        self.api_version
            .split_once('/')
            .map_or(&self.api_version, |(_, version)| version)
    }

    /// The version is not part of an object's identity.
    fn is_same(&self, other: &Self) -> bool {
        self.group() == other.group()
            && self.kind == other.kind
            && self.namespace == other.namespace
            && self.name == other.name
    }

    fn key(&self) -> String {
        format!(
            "{}/{}/{}/{}",
            self.api_version, self.kind, self.namespace, self.name
        )
    }
}

/// Null under these keys, anywhere, becomes an empty map.
fn fill_empty_maps(tree: &mut Tree) {
    const KEYS: [&str; 6] = [
        "annotations",
        "labels",
        "matchLabels",
        "nodeSelector",
        "data",
        "stringData",
    ];
    // The reader bounds the nesting of a document.
    match &mut tree.value {
        TreeValue::Map(members) => {
            for member in members {
                if member.value.is_null() && KEYS.contains(&&*member.key) {
                    member.value.value = TreeValue::Map(Vec::new());
                }
                fill_empty_maps(&mut member.value);
            }
        }
        TreeValue::List(items) => items.iter_mut().for_each(fill_empty_maps),
        _ => {}
    }
}

fn set_namespace(tree: &mut Tree, namespace: &str) {
    let TreeValue::Map(members) = &mut tree.value else {
        return;
    };
    if !members.iter().any(|member| &*member.key == "metadata") {
        members.push(member("metadata", TreeValue::Map(Vec::new())));
    }
    for outer in members {
        if &*outer.key == "metadata"
            && let TreeValue::Map(metadata) = &mut outer.value.value
        {
            metadata.retain(|member| &*member.key != "namespace");
            metadata.push(member("namespace", TreeValue::String(namespace.into())));
        }
    }
}

fn member(key: &str, value: TreeValue) -> Member {
    Member {
        key: key.into(),
        key_span: Span::default(),
        value: Tree::new(value, Span::default()),
    }
}

/// The kinds without a namespace that Kyverno knows offline.
fn is_cluster_scoped(group: &str, kind: &str) -> bool {
    let kinds: &[&str] = match group {
        "" => &["Namespace", "Node", "PersistentVolume", "ComponentStatus"],
        "rbac.authorization.k8s.io" => &["ClusterRole", "ClusterRoleBinding"],
        "apiextensions.k8s.io" => &["CustomResourceDefinition"],
        "apiregistration.k8s.io" => &["APIService"],
        "admissionregistration.k8s.io" => &[
            "ValidatingWebhookConfiguration",
            "MutatingWebhookConfiguration",
            "ValidatingAdmissionPolicy",
            "ValidatingAdmissionPolicyBinding",
        ],
        "certificates.k8s.io" => &["CertificateSigningRequest"],
        "networking.k8s.io" => &["IngressClass", "IPAddress", "ServiceCIDR"],
        "node.k8s.io" => &["RuntimeClass"],
        "resource.k8s.io" => &["DeviceClass", "ResourceSlice"],
        "scheduling.k8s.io" => &["PriorityClass"],
        "storage.k8s.io" => &[
            "CSIDriver",
            "CSINode",
            "StorageClass",
            "VolumeAttachment",
            "VolumeAttributesClass",
        ],
        "flowcontrol.apiserver.k8s.io" => &["FlowSchema", "PriorityLevelConfiguration"],
        "authentication.k8s.io" => &["TokenReview", "SelfSubjectReview"],
        "authorization.k8s.io" => &[
            "SelfSubjectAccessReview",
            "SelfSubjectRulesReview",
            "SubjectAccessReview",
        ],
        _ => &[],
    };
    kinds.contains(&kind)
}

// ---- evaluation (sheet 08, section 3) ----

struct Response {
    policy: String,
    rule: String,
    result: &'static str,
    message: String,
}

/// Responses by resource number and row operation; the default run has none.
type Responses = BTreeMap<(usize, Option<String>), Vec<Response>>;

fn evaluate(
    bundle: &Bundle<'_>,
    resources: &[Resource],
    rows: &[Row],
    values: &Values,
    user: Option<&User>,
    host: &mut MockHost,
) -> Step<Responses> {
    let mut session = Session::new(bundle);
    let mut operations: Vec<Option<String>> =
        rows.iter().map(|row| row.operation.clone()).collect();
    operations.push(None);
    operations.sort();
    operations.dedup();
    let mut responses = Responses::new();
    for (number, resource) in resources.iter().enumerate() {
        for operation in &operations {
            // How the default run looks may depend on the rule.
            let wanted = |policy: &str, rule: &str| {
                let kind = match operation.as_deref() {
                    Some(name) => Operation::parse(name).unwrap_or_default(),
                    None => values.operation(policy, &resource.name),
                };
                (kind, values.variables(policy, rule, &resource.name))
            };
            let mut runs: Vec<(Operation, Option<Value>)> = Vec::new();
            for (policy, rule) in rule_names(bundle) {
                let run = wanted(&policy, &rule);
                if !runs.contains(&run) {
                    runs.push(run);
                }
            }
            let mut found = Vec::new();
            for run in &runs {
                let (kind, variables) = run;
                let variables = variables.as_ref();
                let all =
                    evaluate_one(&mut session, resource, *kind, values, variables, user, host)?;
                let own = |one: &Response| wanted(&one.policy, &one.rule) == *run;
                found.extend(all.into_iter().filter(own));
            }
            responses.insert((number, operation.clone()), found);
        }
    }
    Ok(responses)
}

fn evaluate_one(
    session: &mut Session<'_>,
    resource: &Resource,
    operation: Operation,
    values: &Values,
    variables: Option<&Value>,
    user: Option<&User>,
    host: &mut MockHost,
) -> Step<Vec<Response>> {
    let strs = |list: &'_ [String]| list.iter().map(String::clone).collect::<Vec<_>>();
    let lists = user.map(|user| {
        [
            strs(&user.groups),
            strs(&user.roles),
            strs(&user.cluster_roles),
        ]
    });
    let borrowed = lists
        .iter()
        .flatten()
        .map(|list| list.iter().map(String::as_str).collect::<Vec<_>>())
        .collect::<Vec<_>>();
    let part = |index: usize| borrowed.get(index).map_or(&[][..], Vec::as_slice);
    let labels = values.labels.get(&resource.namespace).cloned();
    let labels = labels.unwrap_or_else(|| host.namespace_labels(&resource.namespace));
    let labels: Vec<(&str, &str)> = labels
        .iter()
        .map(|(key, value)| (key.as_str(), value.as_str()))
        .collect();
    let own = [resource.group(), resource.version(), &resource.kind];
    // A cluster knows subresources by itself (sheet 08, section 7.3).
    let listed = values.subresources.iter();
    let subresource = listed
        .filter(|_| !host.has_cluster())
        .find(|entry| entry.child == own);
    let [group, version, kind] = match subresource {
        Some(entry) => [&*entry.parent[0], &*entry.parent[1], &*entry.parent[2]],
        None => own,
    };
    let object = rewritten(&resource.tree, variables, "object")?;
    let old_object = rewritten(&resource.tree, variables, "oldObject")?;
    let request = Request {
        object: (operation != Operation::Delete).then_some(Input::Tree(&object)),
        old_object: (operation != Operation::Create).then_some(Input::Tree(&old_object)),
        operation,
        kind: Some(GroupVersionKind {
            group,
            version,
            kind,
        }),
        subresource: subresource.map_or("", |entry| &entry.name),
        user: user.map(|user| UserInfo {
            username: &user.username,
            groups: part(0),
            roles: part(1),
            cluster_roles: part(2),
        }),
        namespace_labels: &labels,
        variables,
        numbers: Numbers::Float,
    };
    let evaluation = session
        .evaluate_with(&request, host)
        .map_err(|error| Stop::Broken(format!("{}: {error}", resource.key())))?;
    let response = |response: kpvm::engine::RuleResponse<'_>| Response {
        policy: response.policy().to_owned(),
        rule: response.rule().to_owned(),
        result: match response.status().as_str() {
            "fail" if !response.is_scored() => "warn",
            status => status,
        },
        message: response.message().into_owned(),
    };
    Ok(evaluation.responses().map(response).collect())
}

/// The resource with what the values put into `request.object` or `request.oldObject`
/// (sheet 08, section 7.2).
fn rewritten<'r>(tree: &'r Tree, variables: Option<&Value>, side: &str) -> Step<Cow<'r, Tree>> {
    let request = variables.and_then(|variables| variables.get("request"));
    match request.and_then(|request| request.get(side)) {
        None => Ok(Cow::Borrowed(tree)),
        Some(Value::Object(members)) => {
            let mut object = value_of(tree);
            merge(&mut object, &Value::Object(members.clone()));
            Ok(Cow::Owned(tree_of(&object)))
        }
        Some(_) => Err(Stop::Broken(
            "the object retrieved from the json context is not valid".into(),
        )),
    }
}

// ---- rows (sheet 08, section 4) ----

struct Row {
    policy: String,
    rule: String,
    result: String,
    operation: Option<String>,
    resources: Vec<String>,
    specs: Vec<[String; 3]>,
}

fn read_rows(test: &Tree) -> Vec<Row> {
    let row = |tree: &Tree| {
        let policy = text(tree, "policy");
        let spec = |spec: &Tree| {
            let api_version = match text(spec, "group") {
                group if group.is_empty() => text(spec, "version"),
                group => format!("{group}/{}", text(spec, "version")),
            };
            [api_version, text(spec, "namespace"), text(spec, "name")]
        };
        let has_names = tree.get("resources").is_some_and(|names| !names.is_null());
        Row {
            policy: policy.rsplit('/').next().unwrap_or(&policy).to_owned(),
            rule: text(tree, "rule"),
            result: text(tree, "result"),
            operation: Some(text(tree, "operation")).filter(|operation| !operation.is_empty()),
            resources: texts(tree, "resources"),
            specs: match has_names {
                true => list(tree, "resourceSpecs").iter().map(spec).collect(),
                false => Vec::new(),
            },
        }
    };
    list(test, "results").iter().map(row).collect()
}

impl Row {
    /// The resources that the row is about: all, where it names none that exist.
    fn select(&self, resources: &[Resource]) -> Vec<usize> {
        let named = |name: &str, resource: &Resource| match name.split_once('/') {
            None => resource.name == name,
            Some((namespace, name)) => resource.namespace == namespace && resource.name == name,
        };
        let is_spec = |[api_version, namespace, name]: &[String; 3], resource: &Resource| {
            resource.api_version == *api_version
                && resource.namespace == *namespace
                && resource.name == *name
        };
        let numbers = |test: &dyn Fn(&Resource) -> bool| -> Vec<usize> {
            let all = resources.iter().enumerate();
            all.filter(|(_, resource)| test(resource))
                .map(|(number, _)| number)
                .collect()
        };
        let by_name = self.resources.iter();
        let mut selected: Vec<usize> = by_name
            .flat_map(|name| numbers(&|resource| named(name, resource)))
            .collect();
        let by_spec = self.specs.iter();
        selected.extend(by_spec.flat_map(|spec| numbers(&|resource| is_spec(spec, resource))));
        if selected.is_empty() {
            selected = numbers(&|_| true);
        }
        selected
    }

    fn covers(&self, response: &Response) -> bool {
        let rule = &response.rule;
        response.policy == self.policy && (self.rule.is_empty() || is_rule(rule, &self.rule))
    }
}

struct Run<'r> {
    policies: Vec<String>,
    responses: Responses,
    resources: &'r [Resource],
    reading: Reading,
}

impl Run<'_> {
    fn compare(&self, rows: &[Row]) -> Outcome {
        let mut compared = 0;
        let mut differences = Vec::new();
        for row in rows {
            for number in row.select(self.resources) {
                let checks = self.check(row, number);
                compared += checks.len();
                differences.extend(checks.into_iter().flatten());
            }
        }
        if self.reading == Reading::Complete {
            differences.extend(self.responses_without_row(rows));
        }
        Outcome::Ran {
            rows: compared,
            differences,
        }
    }

    /// One entry for each pair compared; a text where it differs.
    fn check(&self, row: &Row, number: usize) -> Vec<Option<String>> {
        let resource = &self.resources[number];
        let place = |rule: &str| format!("{}/{rule} on {}", row.policy, resource.key());
        let all = self.responses.get(&(number, row.operation.clone()));
        let chosen: Vec<&Response> = all
            .into_iter()
            .flatten()
            .filter(|response| row.covers(response))
            .collect();
        if chosen.is_empty() {
            // A policy of the suite without a response excludes the resource, whatever
            // the row says; an unknown policy is a mistake of the row.
            let excluded = self.policies.contains(&row.policy) && self.reading == Reading::Kyverno;
            let difference = (!excluded)
                .then(|| format!("{}: want {}, got nothing", place(&row.rule), row.result));
            return vec![difference];
        }
        let verdict = |response: &Response| {
            (response.result != row.result).then(|| {
                let (place, result) = (place(&response.rule), response.result);
                format!(
                    "{place}: want {}, got {result} ({})",
                    row.result, response.message
                )
            })
        };
        chosen.into_iter().map(verdict).collect()
    }

    fn responses_without_row(&self, rows: &[Row]) -> Vec<String> {
        let mut without = Vec::new();
        for ((number, operation), responses) in &self.responses {
            for response in responses {
                let has_row = rows.iter().any(|row| {
                    row.operation == *operation
                        && row.covers(response)
                        && row.select(self.resources).contains(number)
                });
                // The default run of a suite whose rows all name an operation has no rows.
                let is_asked = rows.iter().any(|row| row.operation == *operation);
                if is_asked && !has_row {
                    without.push(format!(
                        "{}/{} on {}: no row, got {}",
                        response.policy,
                        response.rule,
                        self.resources[*number].key(),
                        response.result
                    ));
                }
            }
        }
        without
    }
}
