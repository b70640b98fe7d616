//! Runs `kyverno-test.yaml` suites: policies, resources and the result expected for each.
//!
//! A directory enters, one [`Outcome`] for each suite leaves. Rows are read as `kyverno
//! test` reads them (sheet 08, sections 2, 3, 4 and 7), as far as rules of
//! bundles need it; a suite that needs more is unsupported, with the reason, and never agrees.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use kpvm::engine::{Bundle, Operation};
use kpvm::limits::Limits;
use kpvm::tree::{Member, Span, Tree, TreeValue};
use kpvm::yaml::{self, DuplicateKeys};
use kpvm_compiler::compile::{self, Options};
use kpvm_compiler::diagnostic::Severity;
use kpvm_compiler::policy::read::{DocumentKind, document_kind};
use kpvm_compiler::source::{SourceId, Sources};

use kpvm_cli::evaluation::{Circumstances, Evaluator, is_computed_from};
use kpvm_cli::mock_host::{Cluster, MockHost};
use kpvm_cli::problem::Problem;
use kpvm_cli::strict::Decoder;
use kpvm_cli::user_info::{User, read_user};
use kpvm_cli::values::Values;

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
enum Stop {
    /// It needs something that is not supported.
    Unsupported(String),
    /// It cannot be run as it stands.
    Broken(String),
}

/// What a step of a run gives, or why the suite stops there.
type Step<T> = Result<T, Stop>;

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
    let mut decoder = Decoder::new("test", SourceId::default());
    let values = read_values(test, directory, &mut decoder)?;
    let user = read_user_of(test, directory)?;
    let bytes = compile_policies(test, directory)?;
    let bundle = Bundle::load(bytes)
        .map_err(|error| Stop::Broken(format!("the compiled bundle does not load: {error}")))?;
    let resources = read_resources(test, directory)?;
    let mut host = read_mocks(test, directory, &resources, &mut decoder);
    if let Some(first) = decoder.diagnostics.first() {
        return Err(Stop::Broken(first.message.clone()));
    }
    let mut namespaces = BTreeMap::new();
    if let Some(cluster) = host.cluster() {
        namespaces.extend(cluster.namespace_labels());
    }
    namespaces.extend(values.namespaces().clone());
    let circumstances = Circumstances {
        // A cluster knows subresources by itself (sheet 08, section 7.3).
        subresources: match host.cluster() {
            Some(_) => Vec::new(),
            None => values.subresources().to_vec(),
        },
        values,
        namespaces,
        user,
        ..Circumstances::default()
    };
    let responses = evaluate(&bundle, &resources, &rows, &circumstances, &mut host)?;
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
fn text(tree: &Tree, key: &str) -> String {
    match tree.get(key).map(|value| &value.value) {
        Some(TreeValue::String(text)) => text.to_string(),
        Some(TreeValue::Int(number)) => number.to_string(),
        Some(TreeValue::Bool(value)) => value.to_string(),
        _ => String::new(),
    }
}

/// The items under a key; none if there is no list.
fn list<'t>(tree: &'t Tree, key: &str) -> &'t [Tree] {
    tree.get(key).and_then(Tree::as_list).unwrap_or(&[])
}

/// The texts of the list under a key.
fn texts(tree: &Tree, key: &str) -> Vec<String> {
    list(tree, key)
        .iter()
        .filter_map(|item| item.as_str().map(str::to_owned))
        .collect()
}

fn read_text(file: &Path) -> Step<String> {
    fs::read_to_string(file).map_err(|error| Stop::Broken(format!("{}: {error}", file.display())))
}

/// The YAML documents of a file.
fn read_documents(file: &Path, duplicate_keys: DuplicateKeys) -> Step<Vec<Tree>> {
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

fn compile_policies(test: &Tree, directory: &Path) -> Step<Vec<u8>> {
    let mut sources = Sources::new();
    let mut policies = Vec::new();
    for (file, document) in referenced(test, "policies", directory, &mut sources)? {
        // Exceptions beside policies are loaded and not used (sheet 08, section 3).
        if document_kind(&document) != DocumentKind::PolicyException {
            refuse_other_kind(&document)?;
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

// ---- values, user, mocks (sheet 08, section 7) ----

/// The values of a test.
fn read_values(test: &Tree, directory: &Path, decoder: &mut Decoder) -> Step<Values> {
    if let Some(values) = test.get("values") {
        return Ok(Values::read_inline(values, SourceId::default(), decoder));
    }
    let file = text(test, "variables");
    if file.is_empty() {
        return Ok(Values::default());
    }
    Values::read_file(&directory.join(file), &mut Sources::new()).map_err(broken_by)
}

fn read_user_of(test: &Tree, directory: &Path) -> Step<Option<User>> {
    let file = text(test, "userinfo");
    if file.is_empty() {
        return Ok(None);
    }
    let user = read_user(&directory.join(file), &mut Sources::new());
    user.map(Some).map_err(broken_by)
}

fn broken_by(problems: Vec<Problem>) -> Stop {
    Stop::Broken(format!("{problems:?}"))
}

/// The mocks of a test.
fn read_mocks(
    test: &Tree,
    directory: &Path,
    resources: &[Resource],
    decoder: &mut Decoder,
) -> MockHost {
    let mut host = MockHost::default();
    host.read_calls(test.get("apiCallResponses"), decoder);
    host.read_global_entries(test.get("globalContextEntries"), directory, decoder);
    let files = decoder.texts(test.get("clusterResources"));
    if !files.is_empty() {
        let mut cluster = Cluster::read(&files, directory, decoder);
        resources
            .iter()
            .for_each(|resource| cluster.add(resource.object.tree.to_json()));
        host.set_cluster(cluster, true);
    }
    host
}

// ---- resources (sheet 08, section 8.6) ----

struct Resource {
    object: kpvm_cli::resources::Resource,
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
            object: kpvm_cli::resources::Resource {
                tree,
                source: SourceId::default(),
            },
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
    circumstances: &Circumstances,
    host: &mut MockHost,
) -> Step<Responses> {
    let mut evaluator = Evaluator::new(bundle, circumstances);
    let mut operations: Vec<Option<String>> =
        rows.iter().map(|row| row.operation.clone()).collect();
    operations.push(None);
    operations.sort();
    operations.dedup();
    let mut responses = Responses::new();
    for (number, resource) in resources.iter().enumerate() {
        for operation in &operations {
            let name = operation.as_deref();
            let given = name.map(|name| Operation::parse(name).unwrap_or_default());
            let found = evaluator
                .evaluate(&resource.object, given, host)
                .map_err(|error| Stop::Broken(format!("{}: {error}", resource.key())))?;
            let response = |response: &kpvm::engine::RuleResponse<'_>| Response {
                policy: response.policy().to_owned(),
                rule: response.rule().to_owned(),
                result: match response.status().as_str() {
                    "fail" if !response.is_scored() => "warn",
                    status => status,
                },
                message: response.message().into_owned(),
            };
            let found = found.iter().map(response).collect();
            responses.insert((number, operation.clone()), found);
        }
    }
    Ok(responses)
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
        response.policy == self.policy
            && (self.rule.is_empty() || is_computed_from(rule, &self.rule))
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
