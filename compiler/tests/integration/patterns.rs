//! The worked cases of docs/spec/patterns.md, each as a whole policy: the status and the
//! message or path of a rule `r` for the given pattern and object.
//!
//! Omitted, since they are about other features: 67, 73 and the second half of 65
//! (foreach), 70 (a pattern that is a variable), the variable in the message of 64.

use crate::common::{create, evaluate, policy, rule};
use kpvm::engine::{Input, Operation, Request};

const MATCH: &str = "match: {any: [{resources: {kinds: [Thing]}}]}";

const CASE_75: &str = "{annotations: {}, metadata: {annotations: {(foo*): true}}}";

fn object(fields: &str) -> String {
    let comma = if fields.is_empty() { "" } else { ", " };
    format!(r#"{{"apiVersion": "example.com/v1", "kind": "Thing"{comma}{fields}}}"#)
}

/// Expected result of rule `r`.
///
/// `pass`, `skip`, `error`: that status; `fail /path/`: a failure at that path;
/// `STATUS: text`: that status with exactly that message; `nothing`: no response.
fn check(case: &str, validate: &str, fields: &str, expected: &str) {
    let found = create(&policy(&[rule("r", MATCH, validate)], ""), &object(fields));
    let context = format!("case {case}: {validate} × {fields}: {found:?}");
    let Some(found) = found.first() else {
        assert_eq!(expected, "nothing", "{context}");
        return;
    };
    if let Some(path) = expected.strip_prefix("fail ") {
        let message = format!("validation error: rule r failed at path {path}");
        assert_eq!(
            (&*found.status, &*found.message),
            ("fail", &*message),
            "{context}"
        );
    } else if let Some((status, message)) = expected.split_once(": ") {
        assert_eq!(
            (&*found.status, &*found.message),
            (status, message),
            "{context}"
        );
    } else {
        assert_eq!(found.status, expected, "{context}");
    }
}

fn check_patterns(rows: &[(&str, &str, &str, &str)]) {
    for (case, pattern, fields, expected) in rows {
        check(case, &format!("{{pattern: {pattern}}}"), fields, expected);
    }
}

/// Marks a key that the object lacks.
const MISSING: &str = "";

#[test]
fn scalars_and_strings() {
    // Case, pattern of the field, value in the object (JSON), whether it matches.
    let rows: &[(&str, &str, &str, bool)] = &[
        ("1", "5", r#""5""#, true),
        ("1", "5", r#""5.0""#, false),
        ("2", "5", "5.0", true),
        ("2", "5", "5.1", false),
        ("3", "true", r#""true""#, false),
        ("3", "'true'", "true", true),
        ("3", "'!true'", "false", true),
        ("3", "'!true'", MISSING, false),
        ("4", "null", "0", true),
        ("4", "null", r#""""#, true),
        ("4", "null", "false", true),
        ("4", "null", MISSING, true),
        ("4", "null", "[]", true),
        ("4", "null", "{}", false),
        ("4", "null", r#""a""#, false),
        ("4", "null", "true", false),
        ("5", "''", MISSING, false),
        ("5", "''", r#""""#, true),
        ("6", "'?*'", "{}", false),
        ("6", "'?*'", "[]", true),
        ("6", "'?*'", r#""""#, false),
        ("6", "'?*'", "5", true),
        ("6", "'?*'", "true", true),
        ("7", "'*'", "{}", true),
        ("7", "'*'", "[]", true),
        ("7", "'*'", r#""""#, true),
        ("7", "'*'", "false", true),
        ("9", "'<=2Gi'", MISSING, true),
        ("9", "'>0'", MISSING, false),
        ("9", "'0-2'", MISSING, true),
        ("9", "'!foo'", MISSING, false),
        ("9", "'!5'", MISSING, true),
        ("10", "'<4|8'", r#""8""#, true),
        ("10", "'<4|8'", "3", true),
        ("10", "'<4|8'", "5", false),
        ("11", "'>1 & <20 | >31 & <33'", r#""10""#, true),
        ("11", "'>1 & <20 | >31 & <33'", r#""32""#, true),
        ("11", "'>1 & <20 | >31 & <33'", r#""21""#, false),
        (
            "12",
            "'192.168.88.1 | 10.100.11.*'",
            r#""10.100.11.54""#,
            true,
        ),
        (
            "13",
            "'!5.10.84-1 & !5.15.2-1'",
            r#""5.16.5-arch1-1""#,
            true,
        ),
        ("13", "'!5.10.84-1 & !5.15.2-1'", r#""5.15.2-1""#, false),
        ("13", "'!5.10.84-1'", r#""!5.10.84-1""#, true),
        ("14", "'10!-20'", "0", true),
        ("14", "'10!-20'", "15", false),
        ("14", "'10!-20'", "25", true),
        ("14", "'2-2'", "2", true),
        ("14", "'2!-2'", "2", false),
        ("15", "'-10--8'", "9", false),
        ("15", "'-10!--8'", "9", true),
        ("15", "'-10Mi-8Mi'", r#""-9Mi""#, true),
        ("16", "'128Mi-512Mi'", r#""256Mi""#, true),
        ("16", "'128Mi-512Mi'", r#""1024Mi""#, false),
        ("17", "'0.00001-2.00001'", "2", true),
        ("17", "'0.00001-2.00001'", "2.0001", false),
        ("17", "'0.00001-2.00001'", "0", false),
        ("18", "'!1-5'", "3", true),
        ("19", "'1 - 5'", "3", false),
        ("19b", "'2023-01'", r#""2023-01""#, true),
        ("19b", "'2023-01 | 2023-02'", r#""2023-01""#, false),
        ("19b", "'!2023-01'", r#""2023-01""#, false),
        ("19b", "'!2023-01'", r#""2023-02""#, true),
        ("20", "'200m'", r#""0.2""#, true),
        ("20", "'1Gi'", r#""1024Mi""#, true),
        ("20", "'>=0.6'", r#""500m""#, false),
        ("21", "'<15s'", r#""12s""#, true),
        ("21", "'60s'", r#""1m""#, true),
        ("21", "'30s'", "30", false),
        ("21", "'<30s'", "0", true),
        ("22", "'<=1h'", r#""100m""#, false),
        ("22", "'<1'", r#""100m""#, true),
        ("23", "'1.10'", r#""1.1""#, true),
        ("23", "'1.2?'", r#""1.20""#, true),
        ("23", "'1.2?'", r#""1.2""#, false),
        ("24", "'M'", r#""G""#, true),
        ("24", "'small|M'", r#""k""#, true),
        ("24", "'Pi'", r#""Ei""#, false),
        ("24", "'e5'", r#""e9""#, true),
        ("25", "'1E+*'", "1.0", true),
        ("25", "'1*'", "1.0", true),
        ("25", "'1.0'", "1.0", true),
        ("26", "'6'", "6.000000001", true),
        ("26", "'<6'", "6.000000001", false),
        ("26", "'>7.000001'", "7.00001", true),
        ("27", "'>=1.4.1'", r#""1.5.0""#, false),
        ("28", "'a.c'", r#""abc""#, false),
        ("28", "'a?c'", r#""aéc""#, true),
        ("28", "'ab?ba'", r#""abba""#, false),
        ("29", "'>0'", r#"["2", "5", "10"]"#, true),
        ("29", "'>0'", "[]", true),
        ("29", "'>0'", r#"["2", "0"]"#, false),
        ("66", "'1e-10'", r#""1n""#, false),
        ("66", "'1n'", r#""1e-10""#, true),
    ];
    for (case, pattern, value, matches) in rows {
        let fields = match *value {
            MISSING => r#""other": 1"#.to_owned(),
            value => format!(r#""v": {value}"#),
        };
        let expected = if *matches { "pass" } else { "fail /v/" };
        check(
            case,
            &format!("{{pattern: {{v: {pattern}}}}}"),
            &fields,
            expected,
        );
    }
    // Case 1: the number of an anyPattern is a float, which 5.0 equals.
    check("1", "{anyPattern: [{v: 5}]}", r#""v": "5.0""#, "pass");
}

#[test]
fn presence() {
    check_patterns(&[
        ("7", "{a: {v: '*'}}", r#""a": {"v": null}"#, "fail /a/"),
        ("7", "{a: {v: '*'}}", r#""a": {}"#, "fail /a/"),
        (
            "8",
            "{=(emptyDir): '*'}",
            r#""emptyDir": {}"#,
            "fail /emptyDir/",
        ),
        (
            "8",
            "{(hostPath): '*'}",
            r#""hostPath": {"path": "x"}"#,
            "skip",
        ),
    ]);
}

#[test]
fn lists() {
    let ports = "{ports: [{containerPort: '<1024'}, {containerPort: '>5'}]}";
    check_patterns(&[
        (
            "30",
            ports,
            r#""ports": [{"containerPort": 80}, {"containerPort": 3}]"#,
            "pass",
        ),
        (
            "30",
            ports,
            r#""ports": [{"containerPort": 80}, {"containerPort": 2000}]"#,
            "fail /ports/1/containerPort/",
        ),
        ("31", "{args: [a, b]}", r#""args": ["a", "a"]"#, "pass"),
        (
            "31",
            "{args: [a, b]}",
            r#""args": ["a", "b"]"#,
            "fail /args/",
        ),
        (
            "32",
            "{spec: {containers: []}}",
            r#""spec": {"containers": []}"#,
            "fail /spec/containers/",
        ),
        (
            "33",
            "{m: [[1, 2]]}",
            r#""m": []"#,
            "error: validation error: rule r execution error: validate Array failed, array length \
             mismatch, resource Array len is 0 and pattern Array len is 1",
        ),
        ("33", "{m: [[1, 2]]}", r#""m": [[1, 1], [9]]"#, "pass"),
        (
            "34",
            "{spec: {containers: [{image: x}]}}",
            r#""spec": {}"#,
            "fail /spec/containers/",
        ),
    ]);
}

#[test]
fn conditional_anchors() {
    let latest = "{c: [{(image): '*:latest', imagePullPolicy: '!Always'}]}";
    let global = latest.replace("(image)", "<(image)");
    check_patterns(&[
        ("35", latest, r#""c": [{"image": "a:1.2.3"}]"#, "skip"),
        (
            "35",
            latest,
            r#""c": [{"image": "a:latest", "imagePullPolicy": "Always"}]"#,
            "fail /c/0/imagePullPolicy/",
        ),
        (
            "35",
            latest,
            r#""c": [{"image": "a:1.2.3"}, {"image": "a:latest", "imagePullPolicy": "IfNotPresent"}]"#,
            "pass",
        ),
        (
            "35",
            latest,
            r#""c": [{"image": "a:latest", "imagePullPolicy": "Never"}, {"image": "a:1.2.3", "imagePullPolicy": "Always"}]"#,
            "pass",
        ),
        (
            "35",
            latest,
            r#""c": [{"image": "a:1.2.3"}, {"image": "a:latest", "imagePullPolicy": "Always"}]"#,
            "fail /c/1/imagePullPolicy/",
        ),
        (
            "36",
            latest,
            r#""c": [{"name": "a"}]"#,
            "skip: conditional anchor mismatch: conditional anchor key doesn't exist in the resource",
        ),
        (
            "37",
            &global,
            r#""c": [{"imagePullPolicy": "Always"}]"#,
            "fail /c/0/imagePullPolicy/",
        ),
        (
            "37",
            &global,
            r#""c": [{"imagePullPolicy": "Never"}]"#,
            "pass",
        ),
        (
            "37b",
            "{=(sc): {(u): 0, p: 1}, =(other): 5}",
            r#""sc": {"u": 7, "p": 9}"#,
            "pass",
        ),
        (
            "37b",
            "{=(sc): {(u): 0, p: 1}}",
            r#""sc": {"u": 7, "p": 9}"#,
            "skip",
        ),
        (
            "38",
            "{spec: {(a): 1, X(b): 'null'}}",
            r#""spec": {"a": 2, "b": 3}"#,
            "skip",
        ),
        (
            "38",
            "{spec: {(a): 1, X(b): 'null'}}",
            r#""spec": {"a": 1, "b": 3}"#,
            "fail /spec/b/",
        ),
    ]);
    let volumes = "{spec: {volumes: [{(name): '!cache', =(emptyDir): {sizeLimit: '?*'}}]}}";
    check_patterns(&[
        (
            "39",
            volumes,
            r#""spec": {"volumes": [{"name": "cache", "emptyDir": {}}]}"#,
            "skip",
        ),
        (
            "39",
            volumes,
            r#""spec": {"volumes": [{"name": "data"}]}"#,
            "pass",
        ),
        (
            "39",
            volumes,
            r#""spec": {"volumes": [{"name": "data", "emptyDir": {}}]}"#,
            "fail /spec/volumes/0/emptyDir/sizeLimit/",
        ),
        ("52", "{' (name) ': a}", r#""name": "b""#, "skip"),
        // Inner spaces are part of the key, which does not exist.
        ("52", "{'( name )': a}", r#""name": "a""#, "skip"),
    ]);
}

#[test]
fn two_lists_with_conditions() {
    let item = "[{(image): '!*/foo*', securityContext: {x: 'false'}}]";
    let both = format!("{{spec: {{=(initContainers): {item}, =(containers): {item}}}}}");
    let foo = r#"[{"image": "r/foo1"}]"#;
    let bar = |x: &str| format!(r#"[{{"image": "r/bar", "securityContext": {{"x": "{x}"}}}}]"#);
    let spec = |containers: &str, init: &str| {
        format!(r#""spec": {{"containers": {containers}, "initContainers": {init}}}"#)
    };
    check_patterns(&[
        ("40", &both, &spec(foo, foo), "skip"),
        (
            "40",
            &both,
            &spec(foo, &bar("true")),
            "fail /spec/initContainers/0/securityContext/x/",
        ),
        ("40", &both, &spec(&bar("false"), foo), "pass"),
        (
            "41",
            &both,
            &format!(r#""spec": {{"containers": {foo}}}"#),
            "pass",
        ),
        (
            "42",
            "{spec: {containers: [{(image): a, p: 1}], initContainers: [{(image): a, p: 1}]}}",
            &spec(r#"[{"image": "a", "p": 2}]"#, r#"[{"image": "b", "p": 1}]"#),
            "skip",
        ),
    ]);
}

#[test]
fn nested_anchors() {
    let sockets = "{metadata: {labels: {allow: 'true'}}, \
                   (spec): {(volumes): [{(hostPath): {path: /s}}]}}";
    let with = |labels: &str, spec: &str| {
        format!(r#""metadata": {{"name": "t"{labels}}}, "spec": {spec}"#)
    };
    let socket = r#"{"volumes": [{"hostPath": {"path": "/s"}}]}"#;
    check_patterns(&[
        ("43", sockets, &with("", "{}"), "skip"),
        (
            "43",
            sockets,
            &with(r#", "labels": {"a": "b"}"#, socket),
            "fail /metadata/labels/allow/",
        ),
        ("43", sockets, &with("", socket), "fail /metadata/labels/"),
        (
            "43",
            sockets,
            &with("", &socket.replace("/s", "/other")),
            "skip",
        ),
    ]);
}

#[test]
fn existence_and_negation() {
    let both = "{spec: {^(containers): [{image: 'a*'}, {image: 'b*'}]}}";
    let hosts = "{spec: {^(initContainers): [{name: x}], hostNetwork: false}}";
    check_patterns(&[
        (
            "44",
            both,
            r#""spec": {"containers": [{"image": "a1"}, {"image": "b1"}]}"#,
            "pass",
        ),
        (
            "44",
            both,
            r#""spec": {"containers": [{"image": "a1"}]}"#,
            "fail /spec/containers/",
        ),
        ("44", both, r#""spec": {"containers": []}"#, "fail"),
        ("44", both, r#""spec": {}"#, "pass"),
        ("44", both, r#""spec": {"containers": null}"#, "fail"),
        (
            "45",
            hosts,
            r#""spec": {"hostNetwork": true}"#,
            "error: validation error: rule r execution error: resource value 'true' does not match \
             'false' at path /spec/hostNetwork/",
        ),
        (
            "46",
            hosts,
            r#""spec": {"initContainers": [{"name": "x"}], "hostNetwork": true}"#,
            "fail /spec/hostNetwork/",
        ),
        (
            "47",
            "{spec: {^(containers): [{(name): x, image: z}]}}",
            r#""spec": {"containers": [{"image": "a"}]}"#,
            "error",
        ),
        (
            "48",
            "{X(hostPath): 'null'}",
            r#""hostPath": null"#,
            "fail /hostPath/",
        ),
    ]);
}

#[test]
fn global_anchors() {
    let secrets = "{metadata: {<(name): nginx}, spec: {imagePullSecrets: [{name: reg}]}}";
    let wrong = r#""spec": {"imagePullSecrets": [{"name": "x"}]}"#;
    let corp = "{spec: {containers: [{<(image): 'corp/*'}], imagePullSecrets: [{name: s}]}}";
    let images = |images: &[&str]| {
        let items: Vec<String> = images
            .iter()
            .map(|i| format!(r#"{{"image": "{i}"}}"#))
            .collect();
        format!(
            r#""spec": {{"containers": [{}], "imagePullSecrets": [{{"name": "x"}}]}}"#,
            items.join(", ")
        )
    };
    check_patterns(&[
        (
            "49",
            secrets,
            &format!(r#""metadata": {{"name": "other"}}, {wrong}"#),
            "skip",
        ),
        (
            "49",
            secrets,
            &format!(r#""metadata": {{"name": "nginx"}}, {wrong}"#),
            "fail /spec/imagePullSecrets/0/name/",
        ),
        (
            "50",
            corp,
            &images(&["corp/a", "docker/a"]),
            "fail /spec/imagePullSecrets/0/name/",
        ),
        ("50", corp, &images(&["docker/a"]), "skip"),
        (
            "51",
            "{spec: {<(type): LB, sub: {=(x): 1}}}",
            r#""spec": {"type": "C", "sub": {"x": 2}}"#,
            "fail /spec/sub/x/",
        ),
        (
            "51",
            "{spec: {<(type): LB, sub: {x: 1}}}",
            r#""spec": {"type": "C", "sub": {"x": 2}}"#,
            "skip",
        ),
    ]);
}

#[test]
fn metadata_keys() {
    let labels = |labels: &str| format!(r#""metadata": {{"labels": {labels}}}"#);
    check_patterns(&[
        (
            "53",
            "{metadata: {labels: {'foo/*': bar}}}",
            &labels(r#"{"foo/1": "baz"}"#),
            "fail /metadata/labels/foo/1/",
        ),
        (
            "53",
            "{metadata: {labels: {'foo/*': bar}}}",
            &labels(r#"{"x": "1"}"#),
            "fail /metadata/labels/foo/*/",
        ),
        (
            "53",
            "{metadata: {annotations: {'foo/*': bar}}}",
            &labels(r#"{"x": "1"}"#),
            "fail /metadata/annotations/",
        ),
        (
            "54",
            "{=(metadata): {=(labels): {'foo/1*': bar, 'foo/4*': z}}}",
            &labels(r#"{"foo/123": "bar"}"#),
            "fail /metadata/labels/foo/4*/",
        ),
        (
            "55",
            "{metadata: {labels: {X(foo): null}}}",
            &labels(r#"{"foo": "a"}"#),
            "pass",
        ),
        (
            "55",
            "{metadata: {labels: {X(foo): 'null'}}}",
            &labels(r#"{"foo": "a"}"#),
            "fail /metadata/labels/foo/",
        ),
        (
            "56",
            "{metadata: {labels: {allow: true}}}",
            &labels(r#"{"allow": "false"}"#),
            "pass",
        ),
        (
            "56",
            "{metadata: {labels: {allow: true}}}",
            r#""metadata": {"name": "t"}"#,
            "fail /metadata/labels/",
        ),
        // Case 75, each asked of the real engine: what is dropped where the resource has labels
        // or annotations moves their map to the front where it has none.
        ("75", CASE_75, "", "fail /metadata/"),
        (
            "75",
            CASE_75,
            r#""metadata": {"name": "t"}"#,
            "fail /metadata/annotations/",
        ),
        (
            "75",
            CASE_75,
            r#""metadata": {"name": "t", "annotations": null}"#,
            "fail /metadata/annotations/",
        ),
        (
            "75",
            CASE_75,
            r#""metadata": {"name": "t", "annotations": {"foo": "x"}}"#,
            "fail /annotations/",
        ),
        (
            "75",
            "{metadata: {annotations: {a: b}, labels: {(foo*): true}}}",
            r#""metadata": {"name": "t"}"#,
            "fail /metadata/labels/",
        ),
        (
            "75",
            "{metadata: {annotations: {a: b}, labels: {(foo*): true}}}",
            &labels(r#"{"foo": "x"}"#),
            "fail /metadata/annotations/",
        ),
        (
            "75",
            "{metadata: {annotations: {(a): 1}, labels: {(foo*): true}}}",
            r#""metadata": {"name": "t"}"#,
            "fail /metadata/labels/",
        ),
        (
            "75",
            "{spec: {a: {}, metadata: {labels: {(foo*): true}}}}",
            r#""spec": {}"#,
            "fail /spec/metadata/",
        ),
        (
            "75",
            "{spec: {a: {}, metadata: {labels: {(foo*): true}}}}",
            r#""spec": {"metadata": {"labels": {}}}"#,
            "fail /spec/a/",
        ),
        // Case 74: spaces outside an anchor are removed when the key is expanded.
        (
            "74",
            "{metadata: {labels: {' =(foo*) ': a}}}",
            &labels(r#"{"foo": "a"}"#),
            "pass",
        ),
        (
            "74",
            "{metadata: {labels: {' =(foo*) ': a}}}",
            &labels(r#"{"foo": "b"}"#),
            "fail /metadata/labels/foo/",
        ),
    ]);
}

#[test]
fn references() {
    let memory = "{requests: {memory: '$(<=./../../limits/memory)'}, limits: {memory: 2048Mi}}";
    check_patterns(&[
        (
            "57",
            memory,
            r#""requests": {"memory": "1024Mi"}, "limits": {"memory": "2048Mi"}"#,
            "pass",
        ),
        (
            "57",
            memory,
            r#""requests": {"memory": "4096Mi"}, "limits": {"memory": "2048Mi"}"#,
            "fail /requests/memory/",
        ),
        (
            "58",
            "{a: '$(./../b)', b: 5}",
            r#""a": 5, "b": 5"#,
            "error: variable substitution failed: NotResolvedReferenceErr,reference $(./../b) not resolved at path /a",
        ),
        (
            "58",
            "{a: '$(<=./../b)', b: 5}",
            r#""a": 4, "b": 5"#,
            "pass",
        ),
        (
            "58",
            "{a: '$(<=./../b)', b: 5}",
            r#""a": 6, "b": 5"#,
            "fail /a/",
        ),
        (
            "59",
            "{(spec): {x: '$(./../y)', 'y': '1'}}",
            r#""spec": {"x": "1", "y": "1"}"#,
            "error",
        ),
        (
            "59",
            "{(spec): {x: '$(/spec/y)', 'y': '1'}}",
            r#""spec": {"x": "1", "y": "1"}"#,
            "pass",
        ),
        (
            "60",
            "{x: '$(HOME)'}",
            r#""x": "a""#,
            "error: variable substitution failed: got nil resolved variable $(HOME) at path /x: <nil>",
        ),
        ("60", r"{x: '\$(HOME)'}", r#""x": "$(HOME)""#, "pass"),
        (
            "68",
            "{a: '$(./../b)', b: '$(./../c)', c: x}",
            r#""a": "x", "b": "x", "c": "x""#,
            "fail /a/",
        ),
    ]);
    let listed = |reference: &str| format!("{{anyPattern: [{{a: '{reference}', b: x}}]}}");
    let fields = r#""a": "x", "b": "x""#;
    check("69", &listed("$(/b)"), fields, "error");
    check("69", &listed("$(/0/b)"), fields, "pass");
    check("69", &listed("$(./../b)"), fields, "pass");
}

#[test]
fn any_pattern_and_messages() {
    let namespace = "{metadata: {namespace: '?*'}}";
    check(
        "61",
        &format!("{{message: A namespace is required, anyPattern: [{namespace}, {namespace}]}}"),
        r#""metadata": {"name": "t"}"#,
        "fail: validation error: A namespace is required. rule r[0] failed at path \
         /metadata/namespace/ rule r[1] failed at path /metadata/namespace/",
    );
    let fields = r#""a": 1, "b": 1"#;
    let (skips, fails, holds) = ("{(a): 2, b: 1}", "{b: 2}", "{b: 1}");
    check(
        "62",
        &format!("{{anyPattern: [{skips}, {fails}]}}"),
        fields,
        "fail: validation error: rule r[1] failed at path /b/",
    );
    check(
        "62",
        &format!("{{anyPattern: [{skips}, {skips}]}}"),
        fields,
        "skip",
    );
    check(
        "62",
        "{message: 'm $(x)', anyPattern: []}",
        fields,
        "pass: m $(x)",
    );
    check(
        "62",
        &format!("{{anyPattern: [{fails}, {holds}]}}"),
        fields,
        "pass: validation rule 'r' anyPattern[1] passed.",
    );
    check(
        "63",
        "{message: 'Not allowed!', pattern: {spec: {x: ok}}}",
        r#""spec": {"x": "bad"}"#,
        "fail: validation error: Not allowed!. rule r failed at path /spec/x/",
    );
    // With a reference, which a message cannot resolve either (§12.3).
    check(
        "64",
        "{message: '$(nope)', pattern: {spec: {x: ok}}}",
        r#""spec": {"x": "bad"}"#,
        "fail: validation error: variables substitution error in rule r execution error: resource \
         value 'bad' does not match 'ok' at path /spec/x/",
    );
}

#[test]
fn old_objects() {
    let pattern = policy(&[rule("r", MATCH, "{pattern: {x: ok}}")], "");
    let old = object(r#""x": "bad""#);
    let request = Request::delete(Input::Json(old.as_bytes()));
    assert_eq!(evaluate(&pattern, &request), [], "case 65");

    let update = |validate: &str, old: &str, new: &str| {
        let policy = policy(
            &[rule("r", MATCH, validate)],
            "validationFailureAction: Enforce,",
        );
        let (old, new) = (object(old), object(new));
        let request = Request {
            operation: Operation::Update,
            ..Request::update(Input::Json(old.as_bytes()), Input::Json(new.as_bytes()))
        };
        evaluate(&policy, &request)[0].status.clone()
    };
    let labels = |labels: &str| format!(r#""metadata": {{"labels": {labels}}}"#);
    let status = update(
        "{pattern: {metadata: {labels: {'a*': x}}}}",
        &labels(r#"{"a2": "x"}"#),
        &labels(r#"{"a1": "z"}"#),
    );
    assert_eq!(status, "skip", "case 71");
    let hosts = "{pattern: {spec: {^(initContainers): [{name: x}], hostNetwork: false}}}";
    let bad = r#""spec": {"hostNetwork": true}"#;
    assert_eq!(update(hosts, bad, bad), "error", "case 72");
}
