//! Inputs of the benches: Pods as the API server sends them, and bundles of many rules.
//!
//! Everything is built from the corpus and a fixed sequence of numbers, so that every run
//! on every machine does the same work.

use std::collections::BTreeSet;
use std::fmt::Write;
use std::path::{Path, PathBuf};

use kpvm_cli::input::read_inputs;
use kpvm_cli::resources::read_resources;
use kpvm_compiler::compile::{Options, compile, compile_documents};
use kpvm_compiler::source::{SourceId, Sources};
use kpvm_semantics::limits::Limits;
use kpvm_syntax::tree::Tree;
use kpvm_syntax::yaml::{self, DuplicateKeys};

/// A Pod of 7 KB as the API server sends it, including `managedFields` and `status`. Its
/// second container has no security context, which several rules refuse.
pub const POD: &[u8] = include_bytes!("../../corpus/bench/pod-7k.json");

/// The policies of the twenty rules that are not in `corpus/pod-security`.
const OTHER_POLICIES: [&str; 1] = ["operators/pinned-image-tags"];

/// [`POD`] with the first container's security context on the second one too, so that it
/// passes all of the [`twenty_rules`].
///
/// # Panics
/// If the Pod is not the one this was written for.
pub fn compliant_pod() -> Vec<u8> {
    let text = String::from_utf8_lossy(POD);
    let container = "\"name\":\"metrics\",\"image\"";
    assert_eq!(text.matches(container).count(), 1, "one such container");
    let with_context = "\"name\":\"metrics\",\"securityContext\":{\"capabilities\":\
        {\"drop\":[\"ALL\"]},\"runAsNonRoot\":true,\"readOnlyRootFilesystem\":true,\
        \"allowPrivilegeEscalation\":false},\"image\"";
    text.replace(container, with_context).into_bytes()
}

/// Members that [`different_pods`] leaves unchanged so that a rule's outcome does not
/// change; the last ones are times and quantities, which not every text is.
const KEPT: &str = "apiVersion kind metadata name namespace labels spec containers image \
    securityContext capabilities drop runAsNonRoot runAsUser allowPrivilegeEscalation \
    seccompProfile type volumes emptyDir projected \
    creationTimestamp time startTime startedAt lastTransitionTime cpu memory";

/// Pods that differ in which members they have and how long their texts are, so that no
/// processor can learn any one of them by heart. All look the same to the rules.
///
/// # Panics
/// If `pod` is not JSON.
pub fn different_pods(pod: &[u8], count: u64) -> Vec<Vec<u8>> {
    let pod: serde_json::Value = serde_json::from_slice(pod).unwrap_or_default();
    assert!(pod.is_object(), "a Pod is a map");
    let kept: Vec<&str> = KEPT.split_whitespace().collect();
    let mut state = 1;
    (0..count)
        .map(|_| {
            let mut pod = pod.clone();
            vary(&mut pod, &kept, &mut state);
            pod.to_string().into_bytes()
        })
        .collect()
}

/// Drops one member in 16 and lengthens each text by up to 8 bytes, but leaves everything
/// under `kept` keys alone.
fn vary(value: &mut serde_json::Value, kept: &[&str], state: &mut u64) {
    match value {
        serde_json::Value::String(text) => text.push_str(&"abcdefgh"[..next(state, 9)]),
        serde_json::Value::Array(items) => {
            items.iter_mut().for_each(|item| vary(item, kept, state));
        }
        serde_json::Value::Object(members) => {
            members.retain(|key, _| next(state, 16) != 0 || kept.contains(&key.as_str()));
            for (key, member) in members {
                let is_container = member.is_object() || member.is_array();
                if key != "drop" && (is_container || !kept.contains(&key.as_str())) {
                    vary(member, kept, state);
                }
            }
        }
        serde_json::Value::Null | serde_json::Value::Bool(_) | serde_json::Value::Number(_) => {}
    }
}

/// The next number below `end` from a fixed sequence.
fn next(state: &mut u64, end: u64) -> usize {
    *state = state
        .wrapping_mul(6_364_136_223_846_793_005)
        .wrapping_add(1);
    ((*state >> 33) % end) as usize
}

/// The corpus of this repository.
fn corpus() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../corpus")
}

/// Twenty rules that match Pods, all enforced: the controls of the Pod Security Standards,
/// and images with stable tags. The rules generated for Pod controllers come with them.
///
/// # Panics
/// If the corpus cannot be read.
pub fn twenty_rules() -> Sources {
    let mut sources = pod_security_policies();
    for name in OTHER_POLICIES {
        add_enforced(&mut sources, &corpus().join("policies").join(name));
    }
    sources
}

/// The seventeen policies (eighteen rules for Pods) of `corpus/pod-security`, all enforced.
///
/// # Panics
/// If the corpus cannot be read.
#[allow(clippy::expect_used)] // a bench has nobody to report to
pub fn pod_security_policies() -> Sources {
    let directory = corpus().join("pod-security");
    let mut policies: Vec<PathBuf> = std::fs::read_dir(directory)
        .expect("the corpus is there")
        .map(|entry| entry.expect("the corpus can be listed").path())
        .collect();
    policies.sort();
    let mut sources = Sources::new();
    for policy in policies {
        add_enforced(&mut sources, &policy);
    }
    sources
}

/// `count` policies that all match Pods: [`pod_security_policies`] repeated under different
/// names.
///
/// # Panics
/// If the corpus cannot be read.
pub fn repeated_policies(count: usize) -> Sources {
    let originals = pod_security_policies();
    let mut sources = Sources::new();
    for (number, (_, file)) in originals
        .iter()
        .collect::<Vec<_>>()
        .into_iter()
        .cycle()
        .take(count)
        .enumerate()
    {
        let name = format!("\n  name: {}\n", file.name);
        assert_eq!(file.text.matches(&name).count(), 1, "a policy has one name");
        let other = format!("\n  name: {}-{number}\n", file.name);
        sources.add(&file.name, file.text.replace(&name, &other));
    }
    sources
}

/// The policy in one directory of the corpus.
#[allow(clippy::expect_used)]
fn add_enforced(sources: &mut Sources, policy: &Path) {
    let file = policy.join("policy.yaml");
    let text = std::fs::read_to_string(&file).expect("a policy can be read");
    let name = policy.file_name().unwrap_or_default().to_string_lossy();
    sources.add(
        name,
        text.replace("failureAction: Audit", "failureAction: Enforce"),
    );
}

/// An AdmissionReview of an update, as the API server sends it.
pub fn review(object: &[u8], old_object: &[u8]) -> Vec<u8> {
    let mut text = br#"{"kind":"AdmissionReview","apiVersion":"admission.k8s.io/v1","request":{"uid":"8d0a7c1e-5a5e-4f7e-9f0e-2f4f7d1f7c55","kind":{"group":"","version":"v1","kind":"Pod"},"resource":{"group":"","version":"v1","resource":"pods"},"name":"orders-api","namespace":"shop-production","operation":"UPDATE","userInfo":{"username":"deployer","groups":["system:authenticated"]},"object":"#.to_vec();
    text.extend_from_slice(object);
    text.extend_from_slice(br#","oldObject":"#);
    text.extend_from_slice(old_object);
    text.extend_from_slice(
        br#","dryRun":false,"options":{"kind":"UpdateOptions","apiVersion":"meta.k8s.io/v1"}}}"#,
    );
    text
}

/// W2: every available policy, over the manifests of real applications.
pub struct Everything {
    /// The bundle of all policies.
    pub bundle: Vec<u8>,
    /// The number of policies.
    pub policies: usize,
    /// The objects, as JSON.
    pub objects: Vec<Vec<u8>>,
}

impl Everything {
    /// The policies of the corpus and of the conformance data; `None` if `../shared`, which
    /// has most of them and the manifests, does not exist.
    ///
    /// # Panics
    /// If they do not compile together.
    pub fn read() -> Option<Self> {
        let shared = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../shared");
        let objects = manifests(&shared.join("manifests"));
        if objects.is_empty() {
            return None;
        }
        let (bundle, policies) = all_policies(&[shared.join("conformance"), corpus()]);
        Some(Self {
            bundle,
            policies,
            objects,
        })
    }
}

/// Every policy below the directories that compiles on its own, each name once, in one
/// bundle; and the number of policies.
///
/// # Panics
/// If they do not compile together.
pub fn all_policies(directories: &[PathBuf]) -> (Vec<u8>, usize) {
    let options = Options {
        skip_unsupported: true,
        ..Options::default()
    };
    let mut sources = Sources::new();
    let (mut documents, mut names) = (Vec::new(), BTreeSet::new());
    for file in read_inputs(directories, &mut std::io::empty()).files {
        if !file.text.contains("kyverno.io/") {
            continue;
        }
        let trees = yaml::read_all(
            &file.text,
            yaml::Options {
                duplicate_keys: DuplicateKeys::LastWins,
                limits: &Limits::DEFAULT,
            },
        );
        let source = sources.add(file.name, file.text);
        for tree in trees.into_iter().flatten() {
            if let Some(name) = policy_name(&tree)
                && !names.contains(&name)
                && compiles_alone(&tree, source, &sources, &options)
            {
                names.insert(name);
                documents.push((source, tree));
            }
        }
    }
    let compilation = compile_documents(&documents, &sources, &options, Vec::new());
    match compilation.bundle {
        Some(bytes) => (bytes, documents.len()),
        None => panic!("the policies do not compile: {:?}", compilation.diagnostics),
    }
}

fn policy_name(tree: &Tree) -> Option<[String; 2]> {
    let text = |tree: &Tree, key: &str| tree.get(key).and_then(Tree::as_str).map(str::to_owned);
    let kind = text(tree, "kind")?;
    let metadata = tree.get("metadata")?;
    ["ClusterPolicy", "Policy"]
        .contains(&kind.as_str())
        .then_some([
            text(metadata, "namespace").unwrap_or_default(),
            text(metadata, "name")?,
        ])
}

fn compiles_alone(tree: &Tree, source: SourceId, sources: &Sources, options: &Options) -> bool {
    let documents = [(source, tree.clone())];
    let compilation = compile_documents(&documents, sources, options, Vec::new());
    compilation.bundle.is_some() && compilation.rules > 0
}

/// Every object below a directory, as JSON.
pub fn manifests(directory: &Path) -> Vec<Vec<u8>> {
    let resources = read_resources(&[directory.to_owned()], &mut std::io::empty());
    let objects = resources.list.iter();
    objects
        .map(|resource| resource.tree.to_json().to_string().into_bytes())
        .collect()
}

/// W4: `count` Pods of about a kilobyte, one per line, the same for the same seed. Every
/// tenth has a container that the Pod Security policies refuse.
///
/// # Errors
/// If writing fails.
pub fn write_pods(count: usize, seed: u64, out: &mut impl std::io::Write) -> std::io::Result<()> {
    let mut state = seed;
    for number in 0..count {
        let mut pick = |end| next(&mut state, end);
        let (team, app, image) = (pick(50), pick(400), pick(3000));
        let user = if pick(10) == 0 { 0 } else { 1000 + pick(9000) };
        write!(
            out,
            r#"{{"apiVersion":"v1","kind":"Pod","metadata":{{"name":"app-{app}-{number}","namespace":"team-{team}","uid":"{number:08x}-{app:04x}-4000-8000-{image:012x}","labels":{{"app.kubernetes.io/name":"app-{app}","team":"team-{team}"}},"annotations":{{"example.com/owner":"team-{team}@example.com"}}}},"spec":{{"serviceAccountName":"app-{app}","securityContext":{{"runAsNonRoot":true,"runAsUser":{user},"seccompProfile":{{"type":"RuntimeDefault"}}}},"containers":["#
        )?;
        for container in 0..1 + pick(2) {
            let comma = if container == 0 { "" } else { "," };
            write!(
                out,
                r#"{comma}{{"name":"c{container}","image":"registry.example.com/app-{app}:1.{image}","ports":[{{"containerPort":{}}}],"env":[{{"name":"LEVEL","value":"info"}},{{"name":"SHARD","value":"{}"}}],"resources":{{"requests":{{"cpu":"{}m","memory":"{}Mi"}},"limits":{{"memory":"{}Mi"}}}},"securityContext":{{"allowPrivilegeEscalation":false,"readOnlyRootFilesystem":true,"capabilities":{{"drop":["ALL"]}}}},"volumeMounts":[{{"name":"data","mountPath":"/data"}}]}}"#,
                8000 + pick(100),
                pick(64),
                50 * (1 + pick(20)),
                64 * (1 + pick(16)),
                128 * (1 + pick(16)),
            )?;
        }
        writeln!(
            out,
            r#"],"volumes":[{{"name":"data","emptyDir":{{}}}}]}},"status":{{"phase":"Running","podIP":"10.{}.{}.{}"}}}}"#,
            pick(256),
            pick(256),
            pick(256),
        )?;
    }
    Ok(())
}

/// Pods of 7 KB as an API server returns them, one per line, the same for the same seed:
/// with `managedFields`, `status`, and nulls such as that of `lastProbeTime`. Every tenth
/// is [`POD`], which the Pod Security policies refuse.
///
/// # Errors
/// If writing fails.
///
/// # Panics
/// If the Pod is not the one this was written for.
pub fn write_server_pods(
    count: usize,
    seed: u64,
    out: &mut impl std::io::Write,
) -> std::io::Result<()> {
    const NAME: &str = "orders-api-7d9c6b5f4-x2x8k";
    const NAMESPACE: &str = "shop-production";
    const UID: &str = "3f0c5a52-7b1e-4c58-9d3a-5be1c0a7e2d4";
    const ANNOTATIONS: &str = "\"annotations\":{";
    const APPLIED: &str = r#""annotations":{"kubectl.kubernetes.io/last-applied-configuration":"{\"apiVersion\":\"v1\",\"kind\":\"Pod\",\"metadata\":{\"creationTimestamp\":null,\"labels\":null,\"name\":\"NAME\"},\"status\":{}}\n","#;
    let pods = [compliant_pod(), POD.to_vec()];
    let [compliant, refused] = pods.map(|pod| String::from_utf8_lossy(&pod).into_owned());
    assert!(
        refused.contains("\"lastProbeTime\":null"),
        "a Pod has nulls"
    );
    assert_eq!(
        refused.matches(ANNOTATIONS).count(),
        1,
        "one map of annotations"
    );
    let mut state = seed;
    for number in 0..count {
        let mut pick = |end| next(&mut state, end);
        let (team, app) = (pick(50), pick(400));
        let pod = if pick(10) == 0 { &refused } else { &compliant };
        let deletion = ["", "\"deletionTimestamp\":null,"][pick(2)];
        let name = format!("app-{app}-{number:08}");
        let pod = pod
            .replace(ANNOTATIONS, &format!("{deletion}{APPLIED}"))
            .replace("NAME", &name)
            .replace(NAME, &name)
            .replace(NAMESPACE, &format!("team-{team}"))
            .replace(
                UID,
                &format!("{number:08x}-{app:04x}-4000-8000-{team:012x}"),
            );
        writeln!(out, "{pod}")?;
    }
    Ok(())
}

/// One enforced rule of the Pod Security Standards at the restricted level.
pub fn restricted_rule() -> Sources {
    let mut sources = Sources::new();
    let policy = "apiVersion: kyverno.io/v1
kind: ClusterPolicy
metadata:
  name: restricted
spec:
  rules:
    - name: restricted
      match:
        any:
          - resources:
              kinds: [Pod]
      validate:
        failureAction: Enforce
        podSecurity:
          level: restricted
          version: latest
";
    sources.add("restricted.yaml", policy);
    sources
}

/// Which objects the policies of [`further_policies`] match.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum About {
    /// A different kind for each policy.
    OtherKinds,
    /// Pods in a namespace that no Pod here is in, selected by the match blocks.
    PodsOfOtherNamespaces,
    /// Pods in a namespace that no Pod here is in, as namespaced policies.
    NamespacedPolicies,
    /// Pods with a name that no Pod here has.
    PodsByOtherNames,
    /// Pods with a label that no Pod here has. There is no index of labels, so these rules
    /// are tried and found not to match.
    PodsByOtherLabels,
}

/// `count` policies of one rule that do not match the Pods here.
pub fn further_policies(about: About, count: usize) -> String {
    let mut text = String::new();
    for number in 0..count {
        let (kind, policy_namespace, object, filter) = match about {
            About::OtherKinds => (
                "ClusterPolicy",
                String::new(),
                format!("Widget{number}"),
                String::new(),
            ),
            About::PodsOfOtherNamespaces => (
                "ClusterPolicy",
                String::new(),
                "Pod".into(),
                format!("\n              namespaces: [team-{number}]"),
            ),
            About::NamespacedPolicies => (
                "Policy",
                format!("\n  namespace: team-{number}"),
                "Pod".into(),
                String::new(),
            ),
            About::PodsByOtherNames => (
                "ClusterPolicy",
                String::new(),
                "Pod".into(),
                format!("\n              names: [worker-{number}-*]"),
            ),
            About::PodsByOtherLabels => (
                "ClusterPolicy",
                String::new(),
                "Pod".into(),
                format!("\n              selector: {{matchLabels: {{worker: w-{number}}}}}"),
            ),
        };
        let _ = write!(
            text,
            "---
apiVersion: kyverno.io/v1
kind: {kind}
metadata:
  name: further-{number}{policy_namespace}
  annotations:
    pod-policies.kyverno.io/autogen-controllers: none
spec:
  rules:
    - name: labelled
      match:
        any:
          - resources:
              kinds: [{object}]{filter}
      validate:
        failureAction: Enforce
        message: Set the label team-{number}.
        pattern:
          metadata:
            labels:
              team-{number}: \"?*\"
          spec:
            =(replicas): \">{number}\"
"
        );
    }
    text
}

/// The expressions of [`expression_rule`], as written between the braces.
pub const EXPRESSIONS: [&str; 3] = [
    "request.object.spec.containers[].securityContext.privileged | contains(@, `true`)",
    "length(request.object.spec.containers[?!(resources.limits.memory)])",
    "request.object.spec.containers[].image",
];

/// One deny rule whose three conditions query a Pod's containers with [`EXPRESSIONS`]:
/// nothing privileged, memory limits everywhere, no image from elsewhere. Each condition
/// alone denies, so a Pod that is admitted has gone through all three.
pub fn expression_rule() -> Sources {
    let [privileged, without_limit, images] = EXPRESSIONS;
    container_rule(&format!(
        "        deny:
          conditions:
            any:
              - key: \"{{{{ {privileged} }}}}\"
                operator: Equals
                value: true
              - key: \"{{{{ {without_limit} }}}}\"
                operator: GreaterThan
                value: 0
              - key: \"{{{{ {images} }}}}\"
                operator: AnyNotIn
                value: [registry.example.com/*, mirror.example.com/*]
"
    ))
}

/// A rule for Pods with the given check.
fn container_rule(check: &str) -> Sources {
    let mut sources = Sources::new();
    let policy = format!(
        "apiVersion: kyverno.io/v1
kind: ClusterPolicy
metadata:
  name: containers
  annotations:
    pod-policies.kyverno.io/autogen-controllers: none
spec:
  rules:
    - name: contained
      match:
        any:
          - resources:
              kinds: [Pod]
      validate:
        failureAction: Enforce
        message: Containers are limited, unprivileged and of known images.
{check}"
    );
    sources.add("containers.yaml", policy);
    sources
}

/// Four CEL expressions over all containers of a Pod, which [`limited_pod`] satisfies.
pub const CEL_EXPRESSIONS: [&str; 4] = [
    "object.spec.containers.all(c, !c.image.endsWith(':latest'))",
    "object.spec.containers.all(c, has(c.resources.limits) && has(c.resources.limits.memory))",
    "object.spec.containers.all(c, c.image.startsWith('registry.example.com/'))",
    "object.spec.containers.all(c, !has(c.securityContext) || !has(c.securityContext.privileged) || c.securityContext.privileged == false)",
];

/// One rule of [`CEL_EXPRESSIONS`].
pub fn cel_rule() -> Sources {
    let expressions: String = CEL_EXPRESSIONS
        .iter()
        .map(|expression| format!("            - expression: {}\n", quoted(expression)))
        .collect();
    container_rule(&format!(
        "        cel:
          expressions:
{expressions}"
    ))
}

/// A text as a YAML scalar.
fn quoted(text: &str) -> String {
    serde_json::Value::from(text).to_string()
}

/// [`POD`] with a memory limit on the second container too; the [`expression_rule`] admits
/// it.
///
/// # Panics
/// If the Pod is not the one this was written for.
pub fn limited_pod() -> Vec<u8> {
    let text = String::from_utf8_lossy(POD);
    let without = "\"resources\":{}";
    assert_eq!(text.matches(without).count(), 1, "one container without");
    let with_limit = "\"resources\":{\"limits\":{\"memory\":\"64Mi\"}}";
    text.replace(without, with_limit).into_bytes()
}

/// Kyverno's Pod Security Standards as ValidatingPolicies; empty if the conformance data
/// does not exist.
///
/// # Panics
/// If a policy cannot be read.
#[allow(clippy::expect_used)] // a bench has nobody to report to
pub fn validating_policies() -> Option<Sources> {
    let policies = "../shared/conformance/kyverno/policies/pod-security-vpol";
    let root = Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("..")
        .join(policies);
    let mut sources = Sources::new();
    for level in ["baseline", "restricted"] {
        let directories = std::fs::read_dir(root.join(level)).ok()?;
        let mut paths: Vec<PathBuf> = directories
            .map(|entry| entry.expect("the directory can be read").path())
            .collect();
        paths.sort();
        for path in paths {
            let name = path.file_name().unwrap_or_default().to_string_lossy();
            let file = path.join(format!("{name}.yaml"));
            let text = std::fs::read_to_string(file).expect("the policy can be read");
            sources.add(format!("{name}.yaml"), text);
        }
    }
    Some(sources)
}

/// The bundle of the sources.
///
/// # Panics
/// If they do not compile.
pub fn bundle(sources: &Sources) -> Vec<u8> {
    let compilation = compile(sources, &Options::default());
    match compilation.bundle {
        Some(bytes) => bytes,
        None => panic!("the policies do not compile: {:?}", compilation.diagnostics),
    }
}
