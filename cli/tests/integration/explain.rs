//! `--explain`: snapshots of the tree of each construct, and errors if there is nothing to
//! explain.

use crate::common::Files;

/// Two rules with every construct that a trace shows.
const POLICY: &str = r#"apiVersion: kyverno.io/v1
kind: ClusterPolicy
metadata:
  name: release-gate
spec:
  background: false
  rules:
    - name: containers-of-the-release
      match:
        any:
          - resources:
              kinds: [Job]
          - resources:
              kinds: [Pod]
              namespaces: ["team-*"]
              operations: [CREATE, UPDATE]
            clusterRoles: [admin]
      exclude:
        any:
          - resources:
              selector:
                matchLabels: {gate: "off"}
      context:
        - name: mirror
          variable:
            value: mirror.example.com
        - name: registries
          variable:
            jmesPath: "['registry.example.com', mirror]"
      preconditions:
        all:
          - key: "{{ request.object.metadata.labels.stage || 'none' }}"
            operator: AnyIn
            value: [beta, live]
      validate:
        message: "Containers of {{ request.object.metadata.name }} come from {{ registries }}."
        foreach:
          - list: request.object.spec.containers
            preconditions:
              all:
                - key: "{{ element.name }}"
                  operator: NotEquals
                  value: sidecar
            deny:
              conditions:
                any:
                  - key: "{{ split(element.image, '/')[0] }}"
                    operator: AnyNotIn
                    value: "{{ registries }}"
                  - key: "{{ element.image }}"
                    operator: Equals
                    value: "*:latest"
          - list: request.object.spec.volumes || `[]`
            deny: {}
    - name: forms
      match:
        any:
          - resources:
              kinds: [Pod]
      validate:
        message: Run as a user or say why not.
        anyPattern:
          - spec:
              securityContext:
                runAsNonRoot: true
          - metadata:
              =(annotations):
                X(exempt): "null"
              labels:
                "gate*": "o?f | none"
            spec:
              containers:
                - (name): "side*"
                  image: "*:*"
          - spec:
              ^(containers):
                - image: "*/ok:*"
    - name: named-after-the-team
      match:
        any:
          - resources:
              kinds: [Pod]
      preconditions:
        all:
          - key: "{{ request.object.metadata.labels.stage }}"
            operator: NotEquals
            value: x
      validate:
        pattern:
          metadata:
            name: "{{ request.namespace }}-*"
"#;

const POD: &str = "apiVersion: v1
kind: Pod
metadata:
  name: shop
  namespace: team-a
  labels: {stage: live, gate: on-demand}
spec:
  containers:
    - name: sidecar
      image: docker.io/library/proxy:1
    - name: shop
      image: registry.example.com/shop:2
    - name: debug
      image: quay.io/tools/debug:latest
---
apiVersion: v1
kind: Pod
metadata: {name: spare, namespace: team-a, labels: {gate: 'off'}}
spec:
  securityContext: {runAsNonRoot: true}
";

const USER: &str = "apiVersion: cli.kyverno.io/v1alpha1
kind: UserInfo
clusterRoles: [admin]
userInfo: {username: ann, groups: [team-a]}
";

fn files(test: &str) -> Files {
    Files::new(
        test,
        &[
            ("policy.yaml", POLICY),
            ("pod.yaml", POD),
            ("user.yaml", USER),
        ],
    )
}

fn apply<'a>(rule: &'a str, more: &[&'a str]) -> Vec<&'a str> {
    let mut arguments = vec!["apply", "policy.yaml", "-r", "pod.yaml", "--explain", rule];
    arguments.extend(more);
    arguments
}

#[test]
fn filters_context_preconditions_and_foreach() {
    let files = files("explain-foreach");
    let arguments = apply(
        "release-gate/containers-of-the-release",
        &["--userinfo", "user.yaml"],
    );
    let done = files.run("kpvm", &arguments);
    assert_eq!((done.code, &*done.err), (1, ""));
    insta::assert_snapshot!(done.out);
}

#[test]
fn alternatives_and_anchors() {
    let done = files("explain-anchors").run("kpvm", &apply("release-gate/forms", &[]));
    assert_eq!((done.code, &*done.err), (1, ""));
    insta::assert_snapshot!(done.out);
}

#[test]
fn variables_and_errors() {
    let done =
        files("explain-variables").run("kpvm", &apply("release-gate/named-after-the-team", &[]));
    assert_eq!((done.code, &*done.err), (1, ""));
    insta::assert_snapshot!(done.out);
}

#[test]
fn json_of_one_resource() {
    let files = files("explain-json");
    let more = ["--explain-resource", "Pod/team-a/spare", "-o", "json"];
    let done = files.run("kpvm", &apply("release-gate/forms", &more));
    // The excluded pod satisfies the first alternative.
    assert_eq!((done.code, &*done.err), (0, ""));
    insta::assert_snapshot!(done.out);
    let more = ["--explain-resource", "spare", "-o", "yaml"];
    let yaml = files.run("kpvm", &apply("release-gate/forms", &more));
    assert!(yaml.out.contains("result: pass"), "{}", yaml.out);
}

#[test]
fn pod_security_with_an_exception() {
    let policy = "apiVersion: kyverno.io/v1
kind: ClusterPolicy
metadata: {name: baseline}
spec:
  background: false
  rules:
    - name: pods
      match: {any: [{resources: {kinds: [Pod]}}]}
      validate:
        podSecurity:
          level: baseline
          exclude:
            - controlName: Host Namespaces
";
    let exception = "apiVersion: kyverno.io/v2
kind: PolicyException
metadata: {name: tools, namespace: team-a}
spec:
  exceptions: [{policyName: baseline, ruleNames: [pods]}]
  match: {any: [{resources: {kinds: [Pod], namespaces: [team-a]}}]}
  podSecurity: [{controlName: Capabilities, images: ['*']}]
";
    let pod = "apiVersion: v1
kind: Pod
metadata: {name: tool, namespace: team-a}
spec:
  hostPID: true
  containers:
    - name: tool
      image: tool:1
      securityContext:
        privileged: true
        capabilities: {add: [SYS_ADMIN]}
";
    let files = Files::new(
        "explain-pod-security",
        &[
            ("policy.yaml", policy),
            ("pod.yaml", pod),
            ("exception.yaml", exception),
        ],
    );
    let done = files.run(
        "kpvm",
        &apply("baseline/pods", &["--exception", "exception.yaml"]),
    );
    assert_eq!((done.code, &*done.err), (1, ""));
    insta::assert_snapshot!(done.out);
}

/// A trace is bounded, and says so.
#[test]
fn many_elements() {
    let items: Vec<String> = (0..30_000).map(|item| item.to_string()).collect();
    let object = format!(
        "{{apiVersion: v1, kind: Pod, metadata: {{name: a}}, spec: [{}]}}",
        items.join(",")
    );
    let policy = "{apiVersion: kyverno.io/v1, kind: ClusterPolicy, metadata: {name: p}, spec: {background: false, rules: [{name: r, match: {any: [{resources: {kinds: [Pod]}}]}, validate: {message: m, foreach: [{list: request.object.spec, deny: {conditions: {all: [{key: '{{ element }}', operator: Equals, value: x}]}}}]}}]}}";
    let files = Files::new(
        "explain-many",
        &[("policy.yaml", policy), ("pod.yaml", &object)],
    );
    let done = files.run("kpvm", &apply("p/r", &[]));
    assert_eq!((done.code, &*done.err), (0, ""));
    assert!(done.out.lines().count() < 10_010, "{}", done.out.len());
    let mut end = done.out.lines().rev();
    assert_eq!(end.next(), Some("  pass: rule passed"));
    // Two stages, a filter, three events per element, and the end of the list.
    assert_eq!(end.next(), Some("  … and 80004 further steps"));
}

/// Conditions and validations of CEL as written, with their results.
#[test]
fn validating_policy() {
    let policy = r#"apiVersion: policies.kyverno.io/v1
kind: ValidatingPolicy
metadata:
  name: sizes
spec:
  matchConstraints:
    resourceRules:
      - apiGroups: [""]
        apiVersions: [v1]
        operations: [CREATE]
        resources: [configmaps]
  matchConditions:
    - name: with-data
      expression: has(object.data)
  variables:
    - name: size
      expression: object.data.size()
  validations:
    - expression: variables.size > 0
    - expression: variables.size < 2
      message: one key at most
"#;
    let maps = "{apiVersion: v1, kind: ConfigMap, metadata: {name: none}}\n---\n\
        {apiVersion: v1, kind: ConfigMap, metadata: {name: two}, data: {a: x, b: y}}\n";
    let files = Files::new(
        "explain-validating",
        &[("policy.yaml", policy), ("maps.yaml", maps)],
    );
    let arguments = ["apply", "policy.yaml", "-r", "maps.yaml"];
    let done = files.run("kpvm", &[&arguments[..], &["--explain", "sizes"]].concat());
    assert_eq!(done.err, "");
    insta::assert_snapshot!("validating_policy", done.out);
}

#[test]
fn nothing_to_explain() {
    let files = files("explain-nothing");
    // Arguments, message.
    let rows: [(&[&str], &str); 5] = [
        (
            &["release-gate/form"],
            "there is no rule release-gate/form to explain: expected POLICY/RULE; did you mean `release-gate/forms`?",
        ),
        (
            &["elsewhere"],
            "there is no rule elsewhere to explain: expected POLICY/RULE",
        ),
        (
            &["release-gate/forms", "--explain-resource", "shopp"],
            "there is no resource shopp to explain the rule for; did you mean `shop`?",
        ),
        (
            &["release-gate/forms", "-o", "policyreport"],
            "--explain gives text, json or yaml, and no other form of output",
        ),
        (&["release-gate/forms", "-r", "empty.yaml"], "empty.yaml"),
    ];
    for (arguments, message) in rows {
        let done = files.run("kpvm", &apply(arguments[0], &arguments[1..]));
        assert_eq!(done.code, 2, "{arguments:?}: {done:?}");
        assert!(done.err.contains(message), "{arguments:?}: {}", done.err);
    }
}
