//! Events that an observer receives for a rule: those of each construct in execution order,
//! one line per event. The order of filters, conditions and pattern keys is defined in
//! docs/spec/policies.md §5, docs/spec/patterns.md §3, and docs/spec/conditions.md §2 and
//! §11.
//!
//! A line of a test is `+` (held) or `-` (did not hold), the part of the rule, its text,
//! the path, and the value found. Structure that holds is omitted.

use crate::common::{compile, policy};
use kpvm::engine::observer::{EntryOutcome, Event, NotTried, Observer, Stage, Tested, Verdict};
use kpvm::engine::{Engine, Input, Operation, Request, Session, UserInfo};
use kpvm::host::NoHost;
use kpvm_format::Tables;
use kpvm_format::site::Site;
use kpvm_format::symbol::SymbolId;
use kpvm_format::table::SiteKind;

struct Lines<'t> {
    tables: Tables<'t>,
    lines: Vec<String>,
}

impl Lines<'_> {
    fn rule(&self, rule: u32) -> &str {
        self.tables.text(self.tables.rules[rule as usize].name)
    }

    fn entry(&self, entry: u32) -> &str {
        let slot = self.tables.entries[entry as usize].slot.get();
        let symbol = self.tables.slots[slot as usize].name.get();
        self.tables.symbols.text(SymbolId(symbol))
    }

    fn part(&self, site: &Site) -> String {
        let (part, written) = (
            self.tables.text(site.label.part),
            self.tables.text(site.label.written),
        );
        match written {
            "" => part.to_owned(),
            written => format!("{part} {written}"),
        }
    }

    fn line(&self, event: &Event<'_>) -> Option<String> {
        Some(match *event {
            Event::NotTried { rule, reason } => {
                let reason = match reason {
                    NotTried::Generated => "generated".into(),
                    NotTried::Namespace { namespace } => format!("namespace {namespace}"),
                    NotTried::AppliedOne => "applied one".into(),
                };
                format!("not tried {}: {reason}", self.rule(rule))
            }
            Event::Tried { rule, .. } => format!("tried {}", self.rule(rule)),
            Event::Stage(Stage::Exception { exception }) => {
                let exception = &self.tables.exceptions[exception as usize];
                format!("Exception {}", self.tables.exception_key(exception))
            }
            Event::Stage(stage) => format!("{stage:?}"),
            Event::Test(test) => {
                if test.held && test.site.kind == SiteKind::Structure {
                    return None;
                }
                let sign = if test.held { '+' } else { '-' };
                let path = test.path.to_string();
                let found = match test.subject {
                    Tested::Request(facts) => facts.kind.to_owned(),
                    Tested::Condition { key, value } => {
                        format!("{} and {}", key.show(60), value.show(60))
                    }
                    Tested::Value { found, pattern } => match pattern {
                        None => found.show(60),
                        Some(pattern) => format!("{} and {}", found.show(60), pattern.show(60)),
                    },
                    Tested::Tag { key, found, .. } => format!("{key} {}", found.show(60)),
                };
                let path = if path.is_empty() {
                    path
                } else {
                    format!(" {path}")
                };
                format!("{sign} {}{path}: {found}", self.part(test.site))
            }
            Event::AnchorSkips { site, path, .. } => format!("skips {} {path}", self.part(site)),
            Event::AlternativeFailed {
                site,
                index,
                skipped,
                ..
            } => {
                let verb = if skipped { "skipped" } else { "failed" };
                format!("{verb} {} ({index})", self.part(site))
            }
            Event::Element {
                site, index, value, ..
            } => {
                format!("element {} {index}: {}", self.part(site), value.show(60))
            }
            Event::ElementPassed => "element passed".into(),
            Event::ElementsEnd { site } => format!("end of {}", self.part(site)),
            Event::Finding {
                control,
                path,
                value,
            } => {
                let control = &self.tables.controls[control as usize];
                let id = self.tables.text(control.id);
                format!("finding {id} {path}: {}", value.show(60))
            }
            Event::Excluded {
                exclusion,
                findings,
            } => {
                let exclusion = &self.tables.exclusions[exclusion as usize];
                format!("excluded {}: {findings}", self.tables.text(exclusion.name))
            }
            Event::EntryBegins { entry } => format!("load {}", self.entry(entry)),
            Event::EntryEnds { entry, outcome } => {
                let outcome = match outcome {
                    EntryOutcome::Loaded(value) => value.show(60),
                    EntryOutcome::Missing => "missing".into(),
                    EntryOutcome::Failed(text) => format!("failed: {text}"),
                };
                format!("loaded {}: {outcome}", self.entry(entry))
            }
            Event::Failure(text) => format!("failure: {text}"),
            Event::Decided(verdict) => match verdict {
                Verdict::NotMatched => "not matched".into(),
                Verdict::Deletion => "deletion".into(),
                Verdict::NoElement => "no element".into(),
                Verdict::Response(response) => format!("{}", response.status()),
            },
        })
    }
}

impl Observer for Lines<'_> {
    fn observe(&mut self, event: &Event<'_>) {
        // Of consecutive failures the last one is the most specific.
        let again = |line: &mut String| line.starts_with("failure: ");
        if matches!(event, Event::Failure(_)) {
            self.lines.pop_if(again);
        }
        let line = self.line(event);
        self.lines.extend(line);
    }
}

/// Events of a request; also checks that its responses equal those without an observer.
fn trace(policies: &str, request: &Request<'_>) -> Vec<String> {
    let engine = Engine::load(compile(policies).unwrap()).unwrap();
    let mut session = Session::new(&engine);
    let shown = |evaluation: kpvm::engine::Evaluation<'_>| -> Vec<String> {
        evaluation
            .responses()
            .map(|response| {
                let (status, message) = (response.status(), response.message());
                format!("{status} {message} {:?}", response.failure())
            })
            .collect()
    };
    let unobserved = shown(session.evaluate(request).unwrap());
    let mut lines = Lines {
        tables: engine.bundle().tables(),
        lines: Vec::new(),
    };
    let observed = session
        .evaluate_observed(request, &mut NoHost, &mut lines)
        .unwrap();
    assert_eq!(shown(observed), unobserved);
    lines.lines
}

const OBJECT: &str = r#"{
    "apiVersion": "example.com/v1", "kind": "Thing",
    "metadata": {"name": "t", "namespace": "ns", "labels": {"team": "blue", "tier": "web"}},
    "spec": {
        "size": 5, "mode": "fast", "nothing": null,
        "items": [{"name": "a", "ok": true}, {"name": "b", "ok": false}]
    }
}"#;

fn create() -> Request<'static> {
    Request::create(Input::Json(OBJECT.as_bytes()))
}

/// A rule `r` for things; its events after `tried` and the match block.
fn check(rows: &[(&str, &str, &[&str])]) {
    for (case, rule, expected) in rows {
        let rule =
            format!("{{name: r, match: {{any: [{{resources: {{kinds: [Thing]}}}}]}}, {rule}}}");
        let lines = trace(&policy(std::slice::from_ref(&rule), ""), &create());
        let begin = ["tried r", "Match", "+ match.any[0] kinds: Thing"];
        assert_eq!(lines[..3], begin, "{case}");
        assert_eq!(lines[3..], **expected, "{case}: {rule}");
    }
}

#[test]
fn filters() {
    let deny = "validate: {deny: {}}";
    let rows: &[(&str, &str, &[&str])] = &[
        (
            "the first filter of any that holds is the last that is tested",
            "match: {any: [{resources: {kinds: [Thing], names: [x*]}}, {resources: {kinds: [Thing], namespaces: [ns]}}, {resources: {kinds: [Thing]}}]}",
            &[
                "+ match.any[0] kinds: Thing",
                "- match.any[0] names: Thing",
                "+ match.any[1] kinds: Thing",
                "+ match.any[1] namespaces: Thing",
                "Body",
                "fail",
            ],
        ),
        (
            "the first filter of all that does not hold is the last",
            "match: {all: [{resources: {kinds: [Thing], operations: [DELETE]}}, {resources: {kinds: [Thing]}}]}",
            &["- match.all[0] operations: Thing", "not matched"],
        ),
        (
            "the direct form, selectors and annotations",
            "match: {resources: {kinds: [Thing], name: '?', annotations: {a: b}, selector: {matchLabels: {team: blue}}}}",
            &[
                "+ match kinds: Thing",
                "+ match name: Thing",
                "- match annotations: Thing",
                "not matched",
            ],
        ),
        (
            "a filter of exclude that holds",
            "match: {any: [{resources: {kinds: [Thing]}}]}, exclude: {any: [{resources: {selector: {matchLabels: {team: blue}}}}]}",
            &[
                "+ match.any[0] kinds: Thing",
                "+ exclude.any[0] selector: Thing",
                "not matched",
            ],
        ),
        (
            "users are not asked for where there is none",
            "match: {any: [{resources: {kinds: [Thing]}, clusterRoles: [admin]}]}",
            &[
                "+ match.any[0] kinds: Thing",
                "- match.any[0]: Thing",
                "Body",
                "fail",
            ],
        ),
    ];
    for (case, rule, expected) in rows {
        let rule = format!("{{name: r, {rule}, {deny}}}");
        let lines = trace(&policy(&[rule], ""), &create());
        assert_eq!(lines[..2], ["tried r", "Match"], "{case}");
        assert_eq!(lines[2..], **expected, "{case}");
    }
}

#[test]
fn users() {
    let rule = "{name: r, match: {any: [{resources: {kinds: [Thing]}, subjects: [{kind: Group, name: g}], roles: ['n:r']}]}, validate: {deny: {}}}";
    let request = Request {
        user: Some(UserInfo {
            username: "u",
            uid: "",
            groups: &["g"],
            roles: &["n:other"],
            cluster_roles: &[],
        }),
        ..create()
    };
    assert_eq!(
        trace(&policy(&[rule.into()], ""), &request)[3..],
        ["- match.any[0] roles: Thing", "not matched"]
    );
}

#[test]
fn rules_that_are_not_tried() {
    let rule = |name: &str, kinds: &str| {
        format!(
            "{{name: {name}, match: {{any: [{{resources: {{kinds: [{kinds}]}}}}]}}, validate: {{deny: {{}}}}}}"
        )
    };
    let rules = [
        rule("a", "Node"),
        rule("b", "Thing"),
        rule("c", "Thing"),
        rule("d", "Node"),
    ];
    // The index knows that `a` and `d` do not apply to things.
    assert_eq!(
        trace(&policy(&rules, "applyRules: One,"), &create()),
        [
            "tried a",
            "Match",
            "- match.any[0] kinds: Thing",
            "not matched",
            "tried b",
            "Match",
            "+ match.any[0] kinds: Thing",
            "Body",
            "fail",
            "not tried c: applied one",
            "not tried d: applied one",
        ]
    );
    let named = "{name: r, match: {any: [{resources: {kinds: [Thing], names: [x]}}]}, validate: {deny: {}}}";
    assert_eq!(
        trace(&policy(&[named.into()], ""), &create()),
        [
            "tried r",
            "Match",
            "+ match.any[0] kinds: Thing",
            "- match.any[0] names: Thing",
            "not matched",
        ]
    );

    let namespaced = policy(&[rule("e", "Thing")], "")
        .replace("ClusterPolicy", "Policy")
        .replace("{name: p}", "{name: p, namespace: other}");
    assert_eq!(
        trace(&namespaced, &create()),
        ["not tried e: namespace other"]
    );
}

#[test]
fn conditions() {
    let size = "{{ request.object.spec.size }}";
    check(&[
        (
            "preconditions: any stops at the first that holds, all at the first that does not",
            &format!(
                "preconditions: {{any: [{{key: '{size}', operator: Equals, value: 4}}, {{key: '{size}', operator: Equals, value: 5}}, {{key: a, operator: Equals, value: a}}], all: [{{key: x, operator: AnyIn, value: [x, z]}}, {{key: x, operator: Equals, value: z}}, {{key: a, operator: Equals, value: a}}]}}, validate: {{deny: {{}}}}"
            ),
            &[
                "Preconditions",
                "- preconditions.any[0] {{ request.object.spec.size }}: 5 and 4",
                "+ preconditions.any[1] {{ request.object.spec.size }}: 5 and 5",
                "+ preconditions.all[0] x: \"x\" and [\"x\", \"z\"]",
                "- preconditions.all[1] x: \"x\" and \"z\"",
                "skip",
            ],
        ),
        (
            "deny, the plain list",
            &format!(
                "validate: {{deny: {{conditions: [{{key: '{size}', operator: GreaterThan, value: 3}}, {{key: '{size}', operator: LessThan, value: 9}}]}}}}"
            ),
            &[
                "Body",
                "+ deny.conditions[0] {{ request.object.spec.size }}: 5 and 3",
                "+ deny.conditions[1] {{ request.object.spec.size }}: 5 and 9",
                "fail",
            ],
        ),
        (
            "a key that cannot be evaluated",
            "validate: {deny: {conditions: {all: [{key: '{{ nope }}', operator: Equals, value: 1}]}}}",
            &[
                "Body",
                "failure: failed to check deny conditions: failed to substitute variables in condition key: failed to resolve nope at path : JMESPath query failed: Unknown key \"nope\" in path",
                "error",
            ],
        ),
    ]);
}

#[test]
fn context_entries() {
    check(&[
        (
            "an entry loads when it is mentioned, with what it mentions, and only once",
            "context: [{name: inner, variable: {jmesPath: request.object.spec.mode}}, {name: outer, variable: {value: '{{ inner }}!'}}], validate: {deny: {conditions: {all: [{key: '{{ outer }}', operator: Equals, value: 'fast!'}, {key: '{{ outer }}', operator: Equals, value: x}]}}}",
            &[
                "Body",
                "load outer",
                "load inner",
                "loaded inner: \"fast\"",
                "loaded outer: \"fast!\"",
                "+ deny.conditions.all[0] {{ outer }}: \"fast!\" and \"fast!\"",
                "- deny.conditions.all[1] {{ outer }}: \"fast!\" and \"x\"",
                "pass",
            ],
        ),
        (
            "an entry that fails",
            "context: [{name: a, variable: {jmesPath: nope}}], validate: {deny: {conditions: {all: [{key: '{{ a }}', operator: Equals, value: b}]}}}",
            &[
                "Body",
                "load a",
                "loaded a: failed: failed to apply jmespath nope to variable <nil>: JMESPath query failed: Unknown key \"nope\" in path",
                "failure: failed to check deny conditions: failed to substitute variables in condition key: failed to resolve a at path : failed to apply jmespath nope to variable <nil>: JMESPath query failed: Unknown key \"nope\" in path",
                "error",
            ],
        ),
    ]);
}

#[test]
fn leaves() {
    check(&[
        (
            "plain keys ascend; the first that fails ends the pattern",
            "validate: {pattern: {spec: {size: '>3', mode: 'slow | fast', nothing: 1}}}",
            &[
                "Body",
                "+ pattern /spec/mode/: \"fast\"",
                "- pattern /spec/nothing/: null",
                "fail",
            ],
        ),
        (
            "a key that has to be there, structure that is not",
            "validate: {pattern: {spec: {size: '*', zone: {name: x}}}}",
            &[
                "Body",
                "+ pattern /spec/: 5",
                "- pattern /spec/zone/: nothing",
                "fail",
            ],
        ),
        (
            "every item of a list",
            "validate: {pattern: {spec: {items: [{ok: true}]}}}",
            &[
                "Body",
                "+ pattern /spec/items/0/ok/: true",
                "- pattern /spec/items/1/ok/: false",
                "fail",
            ],
        ),
        (
            "a leaf with a variable",
            "validate: {pattern: {spec: {mode: '{{ request.object.spec.mode }}'}}}",
            &[
                "Body",
                "+ pattern {{ request.object.spec.mode }} /spec/mode/: \"fast\" and \"fast\"",
                "pass",
            ],
        ),
        (
            "labels with wildcards",
            "validate: {pattern: {metadata: {labels: {'te*': blue, 'ti*': db}}}}",
            &[
                "Body",
                "+ pattern /metadata/labels/: team \"blue\"",
                "- pattern /metadata/labels/: tier \"web\"",
                "fail",
            ],
        ),
    ]);
}

#[test]
fn anchors() {
    check(&[
        (
            "a conditional anchor that applies to one item of two",
            "validate: {pattern: {spec: {items: [{(name): b, ok: true}]}}}",
            &[
                "Body",
                "+ pattern (name) /spec/items/0/name/: \"a\"",
                "- pattern /spec/items/0/name/: \"a\"",
                "skips pattern (name) /spec/items/0/name/",
                "+ pattern (name) /spec/items/1/name/: \"b\"",
                "+ pattern /spec/items/1/name/: \"b\"",
                "- pattern /spec/items/1/ok/: false",
                "fail",
            ],
        ),
        (
            "a conditional anchor on a key that is not there",
            "validate: {pattern: {spec: {(zone): x}}}",
            &["Body", "- pattern (zone) /spec/zone/: nothing", "skip"],
        ),
        (
            "equality, negation and existence",
            "validate: {pattern: {spec: {=(zone): x, =(mode): fast, X(zone): x, ^(items): [{ok: false}], X(mode): x}}}",
            &[
                "Body",
                "+ pattern =(mode) /spec/mode/: \"fast\"",
                "+ pattern /spec/mode/: \"fast\"",
                "- pattern =(zone) /spec/zone/: nothing",
                "- pattern X(mode) /spec/mode/: \"fast\"",
                "fail",
            ],
        ),
        (
            "existence",
            "validate: {pattern: {spec: {^(items): [{ok: 7}]}}}",
            &[
                "Body",
                "+ pattern ^(items) /spec/items/: [{\"name\": \"a\", \"ok\": true}, {\"name\": \"b\", \"ok\": false}]",
                "- pattern /spec/items/0/ok/: true",
                "- pattern /spec/items/1/ok/: false",
                "- pattern /spec/items/: nothing",
                "fail",
            ],
        ),
        (
            "a global anchor",
            "validate: {pattern: {spec: {<(mode): slow, size: 7}}}",
            &[
                "Body",
                "+ pattern <(mode) /spec/mode/: \"fast\"",
                "- pattern /spec/mode/: \"fast\"",
                "skips pattern <(mode) /spec/mode/",
                "skip",
            ],
        ),
    ]);
}

#[test]
fn alternatives() {
    check(&[(
        "the first that holds is the last",
        "validate: {anyPattern: [{spec: {size: 6}}, {spec: {(zone): x}}, {spec: {size: 5}}, {spec: {size: 7}}]}",
        &[
            "Body",
            "- anyPattern[0] /spec/size/: 5",
            "failed anyPattern[0] (0)",
            "- anyPattern[1] (zone) /spec/zone/: nothing",
            "skipped anyPattern[1] (1)",
            "+ anyPattern[2] /spec/size/: 5",
            "pass",
        ],
    )]);
}

#[test]
fn elements() {
    check(&[
        (
            "deny with preconditions",
            "validate: {foreach: [{list: request.object.spec.items, preconditions: {all: [{key: '{{ element.name }}', operator: Equals, value: b}]}, deny: {conditions: {any: [{key: '{{ element.ok }}', operator: Equals, value: true}]}}}]}",
            &[
                "Body",
                "element foreach[0] request.object.spec.items 0: {\"name\": \"a\", \"ok\": true}",
                "- foreach[0].preconditions.all[0] {{ element.name }}: \"a\" and \"b\"",
                "element foreach[0] request.object.spec.items 1: {\"name\": \"b\", \"ok\": false}",
                "+ foreach[0].preconditions.all[0] {{ element.name }}: \"b\" and \"b\"",
                "- foreach[0].deny.conditions.any[0] {{ element.ok }}: false and true",
                "element passed",
                "end of foreach[0] request.object.spec.items",
                "pass",
            ],
        ),
        (
            "nested, with patterns",
            "validate: {foreach: [{list: '[`[1]`, `[2]`]', foreach: [{list: element, pattern: {spec: {size: '{{ element }}'}}}]}]}",
            &[
                "Body",
                "element foreach[0] [`[1]`, `[2]`] 0: [1]",
                "element foreach[0].foreach[0] element 0: 1",
                "- foreach[0].foreach[0].pattern {{ element }} /spec/size/: 5 and 1",
                "fail",
            ],
        ),
        (
            "alternatives",
            "validate: {foreach: [{list: request.object.spec.items, anyPattern: [{ok: true}, {name: b}]}]}",
            &[
                "Body",
                "element foreach[0] request.object.spec.items 0: {\"name\": \"a\", \"ok\": true}",
                "+ foreach[0].anyPattern[0] /ok/: true",
                "element passed",
                "element foreach[0] request.object.spec.items 1: {\"name\": \"b\", \"ok\": false}",
                "- foreach[0].anyPattern[0] /ok/: false",
                "failed foreach[0].anyPattern[0] (0)",
                "+ foreach[0].anyPattern[1] /name/: \"b\"",
                "element passed",
                "end of foreach[0] request.object.spec.items",
                "pass",
            ],
        ),
        (
            "no element",
            "validate: {foreach: [{list: '[]', deny: {}}]}",
            &["Body", "end of foreach[0] []", "no element"],
        ),
    ]);
}

#[test]
fn other_endings() {
    let rule = |body: &str| {
        policy(
            &[format!(
                "{{name: r, match: {{any: [{{resources: {{kinds: [Thing]}}}}]}}, {body}}}"
            )],
            "",
        )
    };
    let input = Input::Json(OBJECT.as_bytes());
    let delete = trace(
        &rule("validate: {pattern: {spec: {size: 5}}}"),
        &Request::delete(input),
    );
    assert_eq!(
        delete[3..],
        ["Body", "+ pattern /spec/size/: 5", "deletion"]
    );

    // An enforced rule runs once more for the old object.
    let update = trace(
        &rule(
            "validate: {failureAction: Enforce, message: '{{ request.operation }}', pattern: {spec: {size: 6}}}",
        ),
        &Request::update(input, input),
    );
    assert_eq!(
        update[3..],
        [
            "Body",
            "- pattern /spec/size/: 5",
            "Message",
            "OldMatch",
            "+ match.any[0] kinds: Thing",
            "OldBody",
            "- pattern /spec/size/: 5",
            "Message",
            "skip"
        ]
    );
    assert_eq!(
        Operation::parse("UPDATE"),
        Some(Request::update(input, input).operation)
    );
}

/// docs/spec/pod-security.md §7 and 10; docs/spec/policies.md §9.
#[test]
fn pod_security_and_exceptions() {
    let policies = "
{apiVersion: kyverno.io/v1, kind: ClusterPolicy, metadata: {name: p}, spec: {rules: [{name: r, match: {any: [{resources: {kinds: [Pod]}}]}, validate: {podSecurity: {level: baseline, exclude: [{controlName: Host Namespaces}, {controlName: HostPath Volumes}]}}}]}}
---
{apiVersion: kyverno.io/v2, kind: PolicyException, metadata: {name: e, namespace: x}, spec: {exceptions: [{policyName: p, ruleNames: [r]}], match: {any: [{resources: {kinds: [Pod], names: [b*]}}]}, podSecurity: [{controlName: Privileged Containers, images: ['*']}]}}
";
    let pod = br#"{"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "bad"}, "spec": {"hostPID": true, "containers": [{"name": "c", "image": "i", "securityContext": {"privileged": true}}]}}"#;
    let lines = trace(policies, &Request::create(Input::Json(pod)));
    let written: Vec<&String> = lines
        .iter()
        .skip_while(|line| *line != "tried r")
        .take_while(|line| !line.starts_with("tried autogen"))
        .collect();
    assert_eq!(
        written,
        [
            "tried r",
            "Match",
            "+ match.any[0] kinds: Pod",
            "Exception x/e",
            "+ match.any[0] kinds: Pod",
            "+ match.any[0] names: Pod",
            "Body",
            "finding hostNamespaces /spec/hostPID/: true",
            "finding privileged /spec/containers/0/securityContext/privileged/: true",
            "excluded Host Namespaces: 1",
            "Exception x/e",
            "excluded Privileged Containers: 1",
            "skip",
        ]
    );
}

#[test]
fn data_of_a_secret_is_not_told() {
    let secret =
        br#"{"apiVersion": "v1", "kind": "Secret", "data": {"k": "c2VjcmV0"}, "type": "t"}"#;
    let rule = "{name: r, match: {any: [{resources: {kinds: [Secret]}}]}, validate: {pattern: {data: {k: x}, type: t}}}";
    let lines = trace(
        &policy(&[rule.into()], ""),
        &Request::create(Input::Json(secret)),
    );
    assert_eq!(lines[3..], ["Body", "- pattern /data/k/: ***", "fail"]);
}
