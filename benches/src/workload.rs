//! What the benches run: Pods as the API server sends them, and bundles of many rules.
//!
//! Everything is made from the corpus and from a fixed sequence of numbers, so that
//! every run on every machine does the same work.

use std::fmt::Write;
use std::path::{Path, PathBuf};

use kpvm_compiler::compile::{Options, compile};
use kpvm_compiler::source::Sources;

/// A Pod of 7 KB as the API server sends it, `managedFields` and `status` included.
/// Its second container has no security context, which several rules refuse.
pub const POD: &[u8] = include_bytes!("../../corpus/bench/pod-7k.json");

/// The policies of the twenty rules, beside those in `corpus/pod-security`.
const OTHER_POLICIES: [&str; 1] = ["operators/pinned-image-tags"];

/// [`POD`] with the first container's security context on the second one too, which
/// makes all of the [`twenty_rules`] pass.
///
/// # Panics
/// When the Pod is not the one that this was written for.
pub fn compliant_pod() -> Vec<u8> {
    let text = String::from_utf8_lossy(POD);
    let container = "\"name\":\"metrics\",\"image\"";
    assert_eq!(text.matches(container).count(), 1, "one such container");
    let with_context = "\"name\":\"metrics\",\"securityContext\":{\"capabilities\":\
        {\"drop\":[\"ALL\"]},\"runAsNonRoot\":true,\"readOnlyRootFilesystem\":true,\
        \"allowPrivilegeEscalation\":false},\"image\"";
    text.replace(container, with_context).into_bytes()
}

/// Members that [`different_pods`] leaves where they are, so that a rule's outcome
/// does not change; the last ones are times and quantities, of which not every text is one.
const KEPT: &str = "apiVersion kind metadata name namespace labels spec containers image \
    securityContext capabilities drop runAsNonRoot runAsUser allowPrivilegeEscalation \
    seccompProfile type volumes emptyDir projected \
    creationTimestamp time startTime startedAt lastTransitionTime cpu memory";

/// Pods that differ in which members they have and how long their texts are, so
/// that no processor can learn one of them by heart; to the rules they are all alike.
///
/// # Panics
/// When `pod` is no JSON.
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

/// Drops one member in 16 and makes each text longer by up to 8 bytes, but leaves
/// what stands under `kept` keys.
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

/// The next number below `end` of a fixed sequence.
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

/// Twenty rules that match Pods: the controls of the Pod Security Standards and
/// images with tags that stay, all enforced. Rules generated for the controllers of
/// Pods come with them.
///
/// # Panics
/// When the corpus cannot be read.
#[allow(clippy::expect_used)] // a bench has nobody to report to
pub fn twenty_rules() -> Sources {
    let directory = corpus().join("pod-security");
    let mut policies: Vec<PathBuf> = std::fs::read_dir(directory)
        .expect("the corpus is there")
        .map(|entry| entry.expect("the corpus can be listed").path())
        .collect();
    policies.sort();
    policies.extend(OTHER_POLICIES.map(|name| corpus().join("policies").join(name)));
    let mut sources = Sources::new();
    for policy in policies {
        let file = policy.join("policy.yaml");
        let text = std::fs::read_to_string(&file).expect("a policy can be read");
        let name = policy.file_name().unwrap_or_default().to_string_lossy();
        sources.add(
            name,
            text.replace("failureAction: Audit", "failureAction: Enforce"),
        );
    }
    sources
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

/// Which objects the policies of [`further_policies`] are about.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum About {
    /// A kind of their own each.
    OtherKinds,
    /// Pods of a namespace that no Pod here lives in, by the policies' match blocks.
    PodsOfOtherNamespaces,
    /// Pods of a namespace that no Pod here lives in, as namespaced policies.
    NamespacedPolicies,
    /// Pods by a name that no Pod here has.
    PodsByOtherNames,
}

/// So many policies of one rule that do not match the Pods here.
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

/// The expressions of [`expression_rule`], as they stand between the braces.
pub const EXPRESSIONS: [&str; 3] = [
    "request.object.spec.containers[].securityContext.privileged | contains(@, `true`)",
    "length(request.object.spec.containers[?!(resources.limits.memory)])",
    "request.object.spec.containers[].image",
];

/// One deny rule whose three conditions ask for [`EXPRESSIONS`] of a Pod's containers:
/// nobody privileged, memory limited everywhere, no image from elsewhere. Any of them
/// denies, so that a Pod goes through all three before it is admitted.
pub fn expression_rule() -> Sources {
    let [privileged, without_limit, images] = EXPRESSIONS;
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
        deny:
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
        cel:
          expressions:
{expressions}"
    );
    sources.add("containers.yaml", policy);
    sources
}

/// A text as a YAML scalar.
fn quoted(text: &str) -> String {
    serde_json::Value::from(text).to_string()
}

/// [`POD`] with a memory limit on the second container too, which the
/// [`expression_rule`] admits.
///
/// # Panics
/// When the Pod is not the one that this was written for.
pub fn limited_pod() -> Vec<u8> {
    let text = String::from_utf8_lossy(POD);
    let without = "\"resources\":{}";
    assert_eq!(text.matches(without).count(), 1, "one container without");
    let with_limit = "\"resources\":{\"limits\":{\"memory\":\"64Mi\"}}";
    text.replace(without, with_limit).into_bytes()
}

/// The bundle of the sources.
///
/// # Panics
/// When they do not compile.
pub fn bundle(sources: &Sources) -> Vec<u8> {
    let compilation = compile(sources, &Options::default());
    match compilation.bundle {
        Some(bytes) => bytes,
        None => panic!("the policies do not compile: {:?}", compilation.diagnostics),
    }
}
