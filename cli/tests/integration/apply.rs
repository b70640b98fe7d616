//! `kpvm apply` and `kpvm eval` with the options of `kyverno apply`: effects, counts, exit
//! codes, and messages for people.

use crate::common::{Done, Files};

const POLICY: &str = "\
apiVersion: kyverno.io/v1
kind: ClusterPolicy
metadata:
  name: need-team
spec:
  rules:
    - name: team
      match:
        any:
          - resources:
              kinds: [Pod]
      validate:
        message: Say the team.
        pattern:
          metadata:
            labels:
              team: '?*'
";

/// A rule that fails with a message of what it reads.
fn seeing(name: &str, message: &str, more: &str) -> String {
    format!(
        "apiVersion: kyverno.io/v1\nkind: ClusterPolicy\nmetadata: {{name: {name}}}\nspec:\n  rules:\n  - name: see\n    match: {{any: [{{resources: {{kinds: [Pod]}}}}]}}\n{more}    validate:\n      message: \"{message}\"\n      deny: {{conditions: {{all: [{{key: a, operator: Equals, value: a}}]}}}}\n"
    )
}

const POD: &str = "{apiVersion: v1, kind: Pod, metadata: {name: pod}}\n";
const SERVICE: &str = "{apiVersion: v1, kind: Service, metadata: {name: service}}\n";

const EXCEPTION: &str = "\
apiVersion: kyverno.io/v2
kind: PolicyException
metadata: {name: one-pod, namespace: ops}
spec:
  match: {any: [{resources: {kinds: [Pod], names: [pod]}}]}
  exceptions: [{policyName: need-team, ruleNames: [team]}]
";

const ENTRY: &str = "\
apiVersion: kyverno.io/v2beta1
kind: GlobalContextEntry
metadata: {name: services}
spec:
  kubernetesResource: {group: '', version: v1, resource: services}
  projections: [{name: names, jmesPath: '[].metadata.name'}]
";

const CRD: &str = "\
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: geese.shop.io}
spec: {group: shop.io, names: {kind: Goose, plural: geese}}
";

const CONTEXT: &str = "    context:\n";

fn files(test: &str) -> Files {
    let entry = |entry: &str| format!("{CONTEXT}    - {entry}\n");
    let unscored = POLICY.replace(
        "name: need-team",
        "name: need-team\n  annotations: {policies.kyverno.io/scored: 'false'}",
    );
    let failing = "{{ nothing.here }}";
    let error = POLICY.replace("'?*'", &format!("'{failing}'"));
    let invalid = POLICY
        .replace("need-team", "invalid")
        .replace("pattern:", "patern:");
    let list = format!("apiVersion: v1\nkind: List\nitems:\n- {POD}- {POD}");
    let values = "apiVersion: cli.kyverno.io/v1alpha1\nkind: Values\n";
    let team = "request.object.metadata.labels.team: x";
    let calls = "{name: found, apiCall: {urlPath: '/api/v1/namespaces/default/services', jmesPath: 'items[].metadata.name'}}";
    let geese = "{name: found, apiCall: {urlPath: '/apis/shop.io/v1/geese', jmesPath: 'items[].metadata.name'}}";
    let service = "{name: found, apiCall: {service: {url: 'http://asked.example/x'}, method: GET}}";
    let config = "{name: found, configMap: {name: map, namespace: default}}";
    Files::new(
        test,
        &[
            ("p.yaml", POLICY),
            ("p/p.yaml", POLICY),
            ("p/e.yaml", EXCEPTION),
            (
                "enforce.yaml",
                &POLICY.replace("  rules:", "  validationFailureAction: Enforce\n  rules:"),
            ),
            ("unscored.yaml", &unscored),
            ("error.yaml", &error),
            ("invalid.yaml", &invalid),
            ("broken.yaml", "kind: [\n"),
            (
                "mutate.yaml",
                &POLICY.replace("need-team", "mutate").replace(
                    "validate:\n        message: Say the team.\n        pattern:",
                    "mutate:\n        patchStrategicMerge:",
                ),
            ),
            (
                "operation.yaml",
                &seeing("operation", "{{ request.operation }}", ""),
            ),
            (
                "sees.yaml",
                &seeing("sees", "{{ found.data.k || 'nothing' }}", &entry(config)),
            ),
            (
                "call.yaml",
                &seeing("call", "{{ found[0] }}", &entry(calls)),
            ),
            (
                "geese.yaml",
                &seeing("geese", "{{ found[0] || 'nothing' }}", &entry(geese)),
            ),
            (
                "service.yaml",
                &seeing("service", "{{ found || 'nothing' }}", &entry(service)),
            ),
            (
                "config.yaml",
                &seeing("config", "{{ found.data.k || 'nothing' }}", &entry(config)),
            ),
            (
                "global.yaml",
                &seeing(
                    "global",
                    "{{ found[0].metadata.name }}",
                    &entry("{name: found, globalReference: {name: services}}"),
                ),
            ),
            (
                "names.yaml",
                &seeing(
                    "names",
                    "{{ found[0] }}",
                    &entry("{name: found, globalReference: {name: services.names}}"),
                ),
            ),
            (
                "user.yaml",
                "apiVersion: cli.kyverno.io/v1alpha1\nkind: UserInfo\nuserInfo: {username: ann}\n",
            ),
            ("untyped.yaml", "userInfo: {username: ann}\n"),
            (
                "who.yaml",
                &seeing("who", "{{ request.userInfo.username }}", "")
                    .replace("spec:", "spec:\n  background: false"),
            ),
            ("pod.yaml", POD),
            (
                "good.yaml",
                "{apiVersion: v1, kind: Pod, metadata: {name: good, labels: {team: a}}}\n",
            ),
            ("service-object.yaml", SERVICE),
            ("list.yaml", &list),
            (
                "goose.yaml",
                "{apiVersion: shop.io/v1, kind: Goose, metadata: {name: martin}}\n",
            ),
            (
                "map.yaml",
                "{apiVersion: v1, kind: ConfigMap, metadata: {name: map}}\n",
            ),
            ("crd.yaml", CRD),
            ("entry.yaml", ENTRY),
            ("e.yaml", EXCEPTION),
            (
                "unknown.yaml",
                &EXCEPTION.replace("policyName: need-team", "policyName: need-taem"),
            ),
            ("none.yaml", "# nothing\n"),
            (
                "update.yaml",
                &format!("{values}globalValues: {{request.operation: UPDATE}}\n"),
            ),
            (
                "delete.yaml",
                &format!(
                    "{values}policies: [{{name: operation, resources: [{{name: pod, values: {{request.operation: DELETE}}}}]}}]\n"
                ),
            ),
            (
                "lower.yaml",
                &format!("{values}globalValues: {{request.operation: update}}\n"),
            ),
            (
                "label.yaml",
                &format!(
                    "{values}policies: [{{name: need-team, resources: [{{name: pod, values: {{{team}}}}}]}}]\n"
                ),
            ),
            (
                "rule.yaml",
                &format!(
                    "{values}policies: [{{name: sees, rules: [{{name: see, values: {{found.data.k: rule}}}}]}}, {{name: config, rules: [{{name: see, values: {{found.data.k: mock}}}}]}}]\n"
                ),
            ),
            (
                "typo.yaml",
                &format!(
                    "{values}policies: [{{name: need-tem}}, {{name: need-team, rules: [{{name: taem}}], resources: [{{name: pods, values: {{{team}}}}}]}}]\n"
                ),
            ),
            (
                "object.yaml",
                &format!("{values}globalValues: {{request.object: 5}}\n"),
            ),
            ("old.yaml", "globalValues: {a: b}\n"),
            ("wrong.yaml", &format!("{values}globalValue: {{a: b}}\n")),
        ],
    )
}

fn run(files: &Files, command: &str) -> Done {
    let arguments: Vec<&str> = command.split_whitespace().collect();
    files.run("kpvm", &arguments)
}

/// The last line of the text report.
fn counts(done: &Done) -> &str {
    done.out.lines().last().unwrap_or("")
}

/// A line of counts in short form.
fn summary(text: &str) -> String {
    let numbers: Vec<&str> = text.split(' ').collect();
    let kinds = ["pass", "fail", "warn", "error", "skip"];
    let parts: Vec<String> = kinds
        .iter()
        .zip(numbers)
        .map(|(kind, number)| format!("{kind}: {number}"))
        .collect();
    parts.join(", ")
}

/// Command line; exit code; pass, fail, warn, error and skip; part of the report; part of
/// the messages for people. Empty parts are not checked.
#[test]
fn what_is_counted_and_told() {
    let files = files("counted");
    let rows: &[(&str, i32, &str, &str, &str)] = &[
        // docs/spec/cli.md §9.9, and cases 53 to 56 and 60.
        ("p.yaml -r pod.yaml", 1, "0 1 0 0 0", "Say the team.", ""),
        ("enforce.yaml -r pod.yaml", 1, "0 1 0 0 0", "", ""),
        ("p.yaml -r pod.yaml --audit-warn", 0, "0 0 1 0 0", "", ""),
        (
            "enforce.yaml -r pod.yaml --audit-warn",
            1,
            "0 1 0 0 0",
            "",
            "",
        ),
        ("unscored.yaml -r pod.yaml", 0, "0 0 1 0 0", "", ""),
        (
            "unscored.yaml -r pod.yaml --warn-exit-code 3",
            3,
            "0 0 1 0 0",
            "",
            "note: exit as warnExitCode is 3",
        ),
        (
            "p.yaml -r service-object.yaml --warn-no-pass --warn-exit-code 5",
            5,
            "0 0 0 0 0",
            "",
            "note: exit as no objects satisfied policy",
        ),
        (
            "p.yaml -r service-object.yaml --warn-exit-code 5",
            0,
            "0 0 0 0 0",
            "",
            "no rule applied",
        ),
        (
            "p.yaml -r service-object.yaml --warn-no-pass",
            0,
            "0 0 0 0 0",
            "",
            "",
        ),
        (
            "p.yaml -r service-object.yaml --fail-on-empty",
            1,
            "0 0 0 0 0",
            "",
            "",
        ),
        ("error.yaml -r pod.yaml", 1, "0 0 0 1 0", "", ""),
        // §9.4: the heading, and duplicate objects.
        (
            "p.yaml -r pod.yaml,good.yaml",
            1,
            "1 1 0 0 0",
            "",
            "Applying 3 policy rule(s) to 2 resource(s)...\n",
        ),
        (
            "p.yaml -r pod.yaml --resource good.yaml --resources pod.yaml",
            1,
            "1 2 0 0 0",
            "",
            "to 3 resource(s)...\n",
        ),
        ("p.yaml -r list.yaml", 1, "0 2 0 0 0", "", ""),
        (
            "p.yaml -r pod.yaml -e e.yaml",
            0,
            "0 0 0 0 1",
            "",
            "to 1 resource(s) with 1 exception(s)...\n",
        ),
        // §9.4: each invalid policy is an error, and the others are evaluated.
        (
            "invalid.yaml p.yaml -r good.yaml",
            1,
            "1 0 0 1 0",
            "",
            "error: skipped because invalid, each counted as an error: invalid\n",
        ),
        (
            "invalid.yaml -r good.yaml",
            1,
            "0 0 0 1 0",
            "",
            "unknown field `patern`",
        ),
        // Sections 7.2 to 7.4, and cases 36 to 39 and 42.
        (
            "operation.yaml -r pod.yaml",
            1,
            "0 1 0 0 0",
            "  CREATE\n",
            "",
        ),
        (
            "operation.yaml -r pod.yaml -f update.yaml",
            1,
            "0 1 0 0 0",
            "  UPDATE\n",
            "",
        ),
        (
            "operation.yaml -r pod.yaml --values-file delete.yaml",
            1,
            "0 1 0 0 0",
            "  DELETE\n",
            "",
        ),
        (
            "operation.yaml -r pod.yaml --operation update",
            1,
            "0 1 0 0 0",
            "  UPDATE\n",
            "",
        ),
        (
            "operation.yaml -r pod.yaml -s request.operation=UPDATE",
            1,
            "0 1 0 0 0",
            "  UPDATE\n",
            "",
        ),
        ("p.yaml -r pod.yaml -f label.yaml", 0, "1 0 0 0 0", "", ""),
        (
            "sees.yaml -r pod.yaml -f rule.yaml",
            1,
            "0 1 0 0 0",
            "  rule\n",
            "the values of the policy `config` are not used",
        ),
        (
            "sees.yaml -r pod.yaml --set a=1,found.data.k=set",
            1,
            "0 1 0 0 0",
            "  set\n",
            "",
        ),
        (
            "sees.yaml -r pod.yaml -s found.data.k=one -s found.data.k=two",
            1,
            "0 1 0 0 0",
            "  one\n",
            "--set found.data.k=two is ignored: the first value of a key holds",
        ),
        (
            "sees.yaml -r pod.yaml -s found.data.k=bar=baz",
            1,
            "0 1 0 0 0",
            "  nothing\n",
            "--set found.data.k=bar=baz is ignored",
        ),
        (
            "p.yaml -r pod.yaml -s request.object.metadata.labels.team=x",
            1,
            "0 1 0 0 0",
            "",
            "keys below request.object cannot be set",
        ),
        // §7.5: results of context entries.
        (
            "call.yaml -r pod.yaml,service-object.yaml",
            1,
            "0 1 0 0 0",
            "  service\n",
            "",
        ),
        (
            "geese.yaml -r pod.yaml,goose.yaml",
            1,
            "0 1 0 0 0",
            "  nothing\n",
            "",
        ),
        (
            "geese.yaml -r pod.yaml,goose.yaml --crd-paths crd.yaml",
            1,
            "0 1 0 0 0",
            "  martin\n",
            "",
        ),
        (
            "geese.yaml -r pod.yaml,goose.yaml,crd.yaml",
            1,
            "0 1 0 0 0",
            "  martin\n",
            "",
        ),
        (
            "config.yaml -r pod.yaml,map.yaml",
            1,
            "0 1 0 0 0",
            "  nothing\n",
            "",
        ),
        (
            "config.yaml -r pod.yaml,map.yaml -f rule.yaml",
            1,
            "0 1 0 0 0",
            "  mock\n",
            "",
        ),
        (
            "service.yaml -r pod.yaml",
            1,
            "0 1 0 0 0",
            "  nothing\n",
            "services are never asked",
        ),
        (
            "global.yaml -r pod.yaml,service-object.yaml,entry.yaml",
            1,
            "0 1 0 0 0",
            "  service\n",
            "to 2 resource(s)...\n",
        ),
        (
            "names.yaml -r pod.yaml,service-object.yaml,entry.yaml",
            1,
            "0 1 0 0 0",
            "  service\n",
            "",
        ),
        // Section 7.10.
        (
            "who.yaml -r pod.yaml -u user.yaml",
            1,
            "0 1 0 0 0",
            "  ann\n",
            "",
        ),
        (
            "who.yaml -r pod.yaml --userinfo untyped.yaml",
            1,
            "0 1 0 0 0",
            "  ann\n",
            "untyped.yaml lacks apiVersion or kind",
        ),
        // Section 9.1: where exceptions come from.
        ("p.yaml -r pod.yaml,e.yaml", 1, "0 1 0 0 0", "", ""),
        (
            "p.yaml -r pod.yaml,e.yaml --exceptions-with-resources",
            0,
            "0 0 0 0 1",
            "",
            "with 1 exception(s)",
        ),
        (
            "p.yaml -r pod.yaml,e.yaml --exceptions-within-resources",
            0,
            "0 0 0 0 1",
            "",
            "",
        ),
        (
            "p.yaml -r pod.yaml -e e.yaml --exceptions-with-resources",
            1,
            "0 1 0 0 0",
            "",
            "--exception is ignored",
        ),
        (
            "p -r pod.yaml",
            1,
            "0 1 0 0 0",
            "",
            "the PolicyException ops/one-pod is not applied",
        ),
        (
            "p -r pod.yaml --exceptions-within-policies",
            0,
            "0 0 0 0 1",
            "",
            "",
        ),
        (
            "p.yaml -r pod.yaml --exceptions unknown.yaml",
            1,
            "0 1 0 0 0",
            "",
            "did you mean `need-team`?",
        ),
        (
            "p.yaml -r pod.yaml -e none.yaml",
            1,
            "0 1 0 0 0",
            "",
            "warning: there is no exception in the inputs",
        ),
        // Values for unknown names are reported.
        (
            "p.yaml -r pod.yaml -f typo.yaml",
            1,
            "0 1 0 0 0",
            "",
            "the values of the policy `need-tem` are not used",
        ),
        (
            "p.yaml -r pod.yaml -f typo.yaml",
            1,
            "0 1 0 0 0",
            "",
            "the values of the rule `taem` are not used",
        ),
        (
            "p.yaml -r pod.yaml -f typo.yaml",
            1,
            "0 1 0 0 0",
            "",
            "the values of the resource `pods` are not used",
        ),
        (
            "p.yaml -r none.yaml",
            0,
            "0 0 0 0 0",
            "",
            "there is no resource in the inputs",
        ),
        (
            "p.yaml -r pod.yaml -o mutated.yaml",
            1,
            "0 1 0 0 0",
            "",
            "nothing is written to mutated.yaml",
        ),
        (
            "p.yaml -r pod.yaml --concurrent 4 --continue-on-error=true",
            1,
            "0 1 0 0 0",
            "",
            "note: --concurrent changes nothing",
        ),
        (
            "p.yaml -r pod.yaml,nowhere.yaml",
            2,
            "0 1 0 0 0",
            "",
            "cannot read nowhere.yaml",
        ),
        (
            "p.yaml -r pod.yaml,nowhere.yaml --continue-on-fail",
            2,
            "0 1 0 0 0",
            "",
            "cannot read nowhere.yaml",
        ),
        // §7.2 and §9.4: a resource that values turn into something other than an object.
        (
            "p.yaml -r pod.yaml -f object.yaml",
            2,
            "0 0 0 0 0",
            "",
            "the object retrieved from the json context is not valid",
        ),
        (
            "p.yaml -r pod.yaml -f object.yaml --continue-on-fail",
            0,
            "0 0 0 0 0",
            "",
            "1 input could not be used",
        ),
        // Flags in Go's syntax.
        (
            "p.yaml -r=pod.yaml --audit-warn=true",
            0,
            "0 0 1 0 0",
            "",
            "",
        ),
        (
            "p.yaml -r pod.yaml --audit-warn=false -v 4",
            1,
            "0 1 0 0 0",
            "",
            "",
        ),
        ("-ir pod.yaml p.yaml --remove-color", 1, "0 1 0 0 0", "", ""),
    ];
    for (arguments, code, counted, reported, told) in rows {
        let done = run(&files, &format!("apply {arguments}"));
        assert_eq!(counts(&done), summary(counted), "{arguments}\n{}", done.err);
        assert_eq!(done.code, *code, "{arguments}\n{}", done.err);
        assert!(done.out.contains(reported), "{arguments}\n{}", done.out);
        assert!(done.err.contains(told), "{arguments}\n{}", done.err);
    }
}

/// docs/spec/cli.md §9.2; nothing is evaluated, and the exit code is always 2.
#[test]
fn what_cannot_be_done_is_refused() {
    let files = files("refused");
    for (arguments, told) in [
        ("-r pod.yaml", "error: require policy"),
        ("p.yaml", "error: resource file(s) or cluster required"),
        (
            "- -r -",
            "error: a stdin pipe can be used for either policies or resources, not both",
        ),
        (
            "- -r pod.yaml -e -",
            "error: standard input can be read only once",
        ),
        (
            "p.yaml -r pod.yaml --json x.json",
            "error: both resource and json files can not be used together, use one or the other",
        ),
        (
            "p.yaml -r pod.yaml -s a=b -f update.yaml",
            "error: pass the values either using set flag or values_file flag",
        ),
        (
            "p.yaml -r pod.yaml --crd-paths crd.yaml --kubeconfig x",
            "error: crd-paths and kubeconfig flags are mutually exclusive",
        ),
        (
            "p.yaml -r pod.yaml -t -o json",
            "error: the form of the report is given twice",
        ),
        ("p.yaml -r pod.yaml -o jsn", "did you mean `json`?"),
        // Options of later issues.
        ("p.yaml --cluster", "error: --cluster is not supported yet"),
        (
            "p.yaml -c -n prod",
            "error: --namespace is not supported yet",
        ),
        (
            "p.yaml -r pod.yaml --registry",
            "error: --registry is not supported yet",
        ),
        (
            "p.yaml -r pod.yaml -b main",
            "error: --git-branch is not supported yet",
        ),
        (
            "p.yaml -r pod.yaml --target-resources x",
            "error: --target-resource is not supported yet",
        ),
        (
            "p.yaml -r pod.yaml --context-file nowhere.yaml",
            "cannot read nowhere.yaml",
        ),
        (
            "https://example.com/p -r pod.yaml",
            "error: https://example.com/p would have to be fetched",
        ),
        // Policies: §9.3, where Kyverno reports nothing.
        ("nowhere.yaml -r pod.yaml", "cannot read nowhere.yaml"),
        ("p.yaml broken.yaml -r pod.yaml", "nothing was evaluated"),
        (
            "p.yaml mutate.yaml -r pod.yaml",
            "leave such rules out with --skip-unsupported",
        ),
        ("none.yaml -r pod.yaml", "there is no policy in the inputs"),
        (
            "p.yaml -r pod.yaml good.yaml",
            "note: every path that is not behind --resource is a policy",
        ),
        // Other files.
        (
            "p.yaml -r pod.yaml -f old.yaml",
            "has no apiVersion or no kind",
        ),
        (
            "p.yaml -r pod.yaml -f wrong.yaml",
            "did you mean `globalValues`?",
        ),
        (
            "p.yaml -r pod.yaml -f lower.yaml",
            "must be one of CREATE, UPDATE, DELETE, CONNECT",
        ),
        (
            "p.yaml -r pod.yaml -f nowhere.yaml",
            "cannot read nowhere.yaml",
        ),
        (
            "p.yaml -r pod.yaml -s \"a=b",
            "failed to add variable to context",
        ),
        (
            "p.yaml -r pod.yaml --crd-paths pod.yaml",
            "expected CustomResourceDefinitions behind --crd-paths",
        ),
        ("p.yaml -r pod.yaml -e p.yaml", "expected a PolicyException"),
    ] {
        let done = run(&files, &format!("apply {arguments}"));
        assert!(done.err.contains(told), "{arguments}\n{}", done.err);
        assert_eq!((done.code, done.out.as_str()), (2, ""), "{arguments}");
    }
}

/// A bundle accepts the options for resources, and gives the same results as its policies.
#[test]
fn a_bundle_takes_the_same_options() {
    let files = files("bundle");
    for policy in ["p", "operation", "sees", "call", "names", "who"] {
        let (source, bundle) = (format!("{policy}.yaml"), format!("{policy}.kpb"));
        let done = files.run("kpc", &["compile", &source, "-o", &bundle]);
        assert_eq!(done.code, 0, "{}", done.err);
    }
    for (policy, resources, options) in [
        ("p", "pod.yaml good.yaml", ""),
        ("p", "pod.yaml", "-e e.yaml"),
        ("p", "pod.yaml e.yaml", "--exceptions-with-resources"),
        ("p", "pod.yaml", "-f label.yaml"),
        ("p", "pod.yaml", "--audit-warn=true --warn-exit-code=4"),
        ("operation", "pod.yaml", "-f delete.yaml"),
        ("sees", "pod.yaml", "-s found.data.k=set"),
        ("sees", "pod.yaml", "-f rule.yaml"),
        ("call", "pod.yaml service-object.yaml", ""),
        ("names", "pod.yaml service-object.yaml entry.yaml", ""),
        ("who", "pod.yaml", "-u user.yaml"),
    ] {
        let evaluated = run(
            &files,
            &format!("eval {policy}.kpb {resources} {options} -o json"),
        );
        let resources = resources.replace(' ', ",");
        let applied = run(
            &files,
            &format!("apply {policy}.yaml -r {resources} {options} -o json"),
        );
        assert!(
            applied.out.contains("\"rule\""),
            "{policy} {options}\n{}",
            applied.err
        );
        assert_eq!(evaluated.out, applied.out, "{policy} {options}");
        assert_eq!(evaluated.code, applied.code, "{policy} {options}");
    }
    let both = run(&files, "eval p.kpb pod.yaml -s a=b -f update.yaml");
    assert_eq!((both.code, both.out.as_str()), (2, ""));
    let unused = run(&files, "eval p.kpb pod.yaml -f typo.yaml");
    assert!(
        unused.err.contains("did you mean `need-team`?"),
        "{}",
        unused.err
    );
}

/// The heading is for people, and an invalid policy appears in every report format.
#[test]
fn headings_and_invalid_policies_in_reports() {
    let files = files("forms");
    for (form, has_heading, expected) in [
        ("-o text", true, "error: 1"),
        ("-o text -i", false, "error: 1"),
        ("-t", true, "need-team"),
        ("-p", false, "kind: ClusterReport"),
        ("-o json", false, "\"invalidPolicies\""),
        ("-o yaml", false, "invalidPolicies:"),
        ("-o junit", false, "skipped the invalid policy invalid"),
        ("-o sarif", false, "skipped the invalid policy invalid"),
        ("-o github", false, "skipped the invalid policy invalid"),
        ("-o markdown", false, "skipped the invalid policy invalid"),
    ] {
        let done = run(
            &files,
            &format!("apply invalid.yaml p.yaml -r pod.yaml {form}"),
        );
        assert!(done.out.contains(expected), "{form}\n{}", done.out);
        assert_eq!(done.err.contains("Applying "), has_heading, "{form}");
        assert_eq!(done.code, 1, "{form}");
    }
}

#[test]
fn help_names_flags_without_values() {
    let files = files("help");
    for command in ["apply", "eval", "test"] {
        let done = run(&files, &format!("{command} --help"));
        assert_eq!(done.code, 0);
        assert!(!done.out.contains("BOOL"), "{}", done.out);
    }
}

#[test]
fn everything_that_people_are_told() {
    let files = files("told");
    let done = run(
        &files,
        "apply invalid.yaml p.yaml -r pod.yaml,good.yaml,nowhere.yaml -f typo.yaml -e unknown.yaml -o x.yaml --batch-size 5",
    );
    assert_eq!(done.code, 2);
    insta::assert_snapshot!(done.err);
}

/// docs/spec/cli.md §10.4: the generated exceptions let the failures pass, and nothing
/// else.
#[test]
fn generated_exceptions_are_those_that_are_missing() {
    let cron_job = "{apiVersion: batch/v1, kind: CronJob, metadata: {name: nightly}, spec: {jobTemplate: {spec: {template: {metadata: {labels: {}}}}}}}";
    let node = "{apiVersion: v1, kind: Node, metadata: {name: node-a, labels: {}}}";
    let good = "{apiVersion: v1, kind: Pod, metadata: {name: good, labels: {team: a}}}";
    let nodes = POLICY
        .replace("kinds: [Pod]", "kinds: [Node]")
        .replace("name: need-team", "name: nodes");
    let files = Files::new(
        "generated-exceptions",
        &[
            ("p/pods.yaml", POLICY),
            ("p/nodes.yaml", &nodes),
            ("r/cron.yaml", cron_job),
            ("r/node.yaml", node),
            ("r/good.yaml", good),
        ],
    );
    let before = run(&files, "apply p -r r");
    assert_eq!(counts(&before), summary("1 2 0 0 0"), "{}", before.err);
    for (form, file) in [("yaml", "e.yaml"), ("json", "e.json")] {
        let command = format!("apply p -r r --generate-exceptions -o {form} --output-file {file}");
        let written = run(&files, &command);
        assert_eq!(written.code, 1, "{}", written.err);
        let after = run(&files, &format!("apply p -r r -e {file}"));
        assert_eq!(counts(&after), summary("1 0 0 0 2"), "{}", after.err);
    }
    let command = "apply p -r r --generate-exceptions --generated-exception-ttl 0";
    let told = run(&files, command);
    assert!(!told.out.contains("labels"), "{}", told.out);
    for name in [
        "need-team-autogen-cronjob-team-default-nightly",
        "nodes-team--node-a",
    ] {
        let name = format!("  name: {name}\n");
        assert!(told.out.contains(&name), "{}", told.out);
    }
}
