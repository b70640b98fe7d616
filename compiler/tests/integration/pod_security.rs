//! The worked cases of docs/spec/pod-security.md and the facts of its sections, each with
//! the complete message.
//!
//! Omitted: 43 to 45 (exceptions).

use crate::common::{Response, compile, evaluate, policy, rule};
use kpvm::engine::{Engine, Input, Request, Session};
use kpvm_semantics::limits::Limits;
use kpvm_syntax::tree::Tree;
use kpvm_syntax::yaml::{self, DuplicateKeys};

/// A container's security context that the restricted level allows.
const OK: &str = "securityContext: {allowPrivilegeEscalation: false, capabilities: {drop: [ALL]}, \
    runAsNonRoot: true, seccompProfile: {type: RuntimeDefault}}";

/// The same without one field.
fn ok_without(field: &str) -> String {
    let start = OK.find(field).unwrap();
    let value = &OK[start..];
    let mut depth = 0;
    let end = value.find(|c| {
        depth += match c {
            '{' | '[' => 1,
            '}' | ']' => -1,
            _ => 0,
        };
        depth < 0 || (depth == 0 && c == ',')
    });
    let rest = value[end.unwrap()..].trim_start_matches(", ");
    format!("{}{rest}", &OK[..start]).replace(", }", "}")
}

/// Expected result of a case.
#[derive(Debug, Clone)]
enum Expected {
    Pass,
    /// The failing checks: reason and errors.
    Fail(Vec<(&'static str, Vec<&'static str>)>),
    Error(&'static str),
    Nothing,
}

use Expected::{Error, Fail, Nothing, Pass};

fn one(reason: &'static str, errors: &[&'static str]) -> Expected {
    Fail(vec![(reason, errors.to_vec())])
}

impl Expected {
    /// Status and message; `level` as the message shows it.
    fn response(&self, level: &str) -> Option<(&'static str, String)> {
        Some(match self {
            Pass => ("pass", "Validation rule 'r' passed.".to_owned()),
            Error(text) => ("error", (*text).to_owned()),
            Nothing => return None,
            Fail(checks) => {
                let checks = checks.iter().map(|(reason, errors)| {
                    let errors = errors.join(", ");
                    format!("(Forbidden reason: {reason}, field error list: [{errors}])")
                });
                let checks: String = checks.collect();
                let message = format!(
                    "Validation rule 'r' failed. It violates PodSecurity \"{level}\": {checks}"
                );
                ("fail", message)
            }
        })
    }
}

fn pods(pod_security: &str) -> String {
    let kinds = "match: {any: [{resources: {kinds: ['*']}}]}";
    policy(
        &[rule(
            "r",
            kinds,
            &format!("{{podSecurity: {pod_security}}}"),
        )],
        "",
    )
}

fn read(document: &str) -> Tree {
    let options = yaml::Options {
        duplicate_keys: DuplicateKeys::Refuse,
        limits: &Limits::DEFAULT,
    };
    let mut trees = yaml::read_all(document, options);
    assert_eq!(trees.len(), 1, "{document}");
    trees
        .remove(0)
        .unwrap_or_else(|error| panic!("{error}: {document}"))
}

fn pod(spec: &str) -> String {
    format!("{{apiVersion: v1, kind: Pod, metadata: {{name: p}}, spec: {spec}}}")
}

/// A pod with one container `a` of the image nginx.
fn container(fields: &str) -> String {
    pod(&format!(
        "{{containers: [{{name: a, image: nginx, {fields}}}]}}"
    ))
}

fn answers(pod_security: &str, object: &str) -> Vec<Response> {
    let tree = read(object);
    evaluate(&pods(pod_security), &Request::create(Input::Tree(&tree)))
}

/// A row: case or section, `podSecurity`, object, expected result.
type Row = (&'static str, &'static str, String, Expected);

fn check(rows: Vec<Row>) {
    for (case, pod_security, object, expected) in rows {
        let answers = answers(pod_security, &object);
        let found: Vec<(&str, String)> = answers
            .iter()
            .map(|response| (response.status.as_str(), response.message.clone()))
            .collect();
        let block = read(pod_security);
        let text = |key| block.get(key).and_then(Tree::as_str).unwrap_or_default();
        let level = format!("{}:{}", text("level"), text("version"));
        let expected: Vec<(&str, String)> = expected.response(&level).into_iter().collect();
        assert_eq!(found, expected, "{case}: {pod_security}\n{object}");
    }
}

const ESCALATION: &str = "allowPrivilegeEscalation != false";
const CAPABILITIES: &str = "unrestricted capabilities";
const NON_ROOT: &str = "runAsNonRoot != true";
const NO_ESCALATION: &str =
    "spec.containers[0].securityContext.allowPrivilegeEscalation: Required value";
const NO_DROP: &str = "spec.containers[0].securityContext.capabilities.drop: Required value";
const NO_NON_ROOT: &str = "spec.containers[0].securityContext.runAsNonRoot: Required value";
const NO_SECCOMP: &str = "spec.containers[0].securityContext.seccompProfile.type: Required value";

/// Result of the restricted level for a container without any fields.
fn bare() -> Expected {
    Fail(vec![
        (ESCALATION, vec![NO_ESCALATION]),
        (CAPABILITIES, vec![NO_DROP]),
        (NON_ROOT, vec![NO_NON_ROOT]),
        ("seccompProfile", vec![NO_SECCOMP]),
    ])
}

#[test]
fn levels_and_versions() {
    let plain = || container("");
    let probe = || container("livenessProbe: {httpGet: {port: 80, host: h}}");
    let windows = || {
        pod("{os: {name: windows}, securityContext: {runAsNonRoot: true}, containers: [{name: a}]}")
    };
    let host_probe = || one("probe or lifecycle host", &[]);
    let engine_type = || container("securityContext: {seLinuxOptions: {type: container_engine_t}}");
    let sysctl = |name: &str| {
        pod(&format!(
            "{{containers: [], securityContext: {{sysctls: [{{name: {name}, value: '1'}}]}}}}"
        ))
    };
    let bad_sysctl = |error| one("forbidden sysctls", &[error]);
    check(vec![
        ("1", "{level: baseline, version: latest}", plain(), Pass),
        (
            "2",
            "{level: baseline, version: latest}",
            pod("{hostNetwork: true, hostPID: true, containers: []}"),
            one(
                "host namespaces",
                &[
                    "spec.hostNetwork is forbidden, forbidden values found: true",
                    "spec.hostPID is forbidden, forbidden values found: true",
                ],
            ),
        ),
        ("3", "{level: privileged, version: latest}", plain(), bare()),
        ("3, section 1", "{level: other, version: latest}", plain(), bare()),
        ("3, section 1", "{version: latest}", plain(), bare()),
        ("4", "{level: restricted, version: v1.19}", plain(), bare()),
        ("4, section 3", "{level: restricted, version: v1.0}", plain(), bare()),
        ("5", "{level: baseline, version: v1.24}", probe(), host_probe()),
        (
            "5",
            "{level: baseline, version: v1.24, exclude: [{controlName: Privileged Containers, images: ['*']}]}",
            probe(),
            host_probe(),
        ),
        (
            "6",
            "{level: restricted, version: v1.24}",
            windows(),
            Fail(vec![
                (ESCALATION, vec![NO_ESCALATION]),
                (CAPABILITIES, vec![NO_DROP]),
                ("seccompProfile", vec![NO_SECCOMP]),
            ]),
        ),
        ("6", "{level: restricted, version: v1.25}", windows(), Pass),
        ("6, section 6.19", "{level: restricted, version: latest}", windows(), Pass),
        (
            "33",
            "{level: baseline, version: v1.30}",
            engine_type(),
            one(
                "seLinuxOptions",
                &["spec.containers[0].securityContext.seLinuxOptions.type is forbidden, forbidden values found: container_engine_t"],
            ),
        ),
        ("33", "{level: baseline, version: v1.31}", engine_type(), Pass),
        ("33", "{level: baseline, version: latest}", engine_type(), Pass),
        (
            "34",
            "{level: baseline, version: v1.31}",
            sysctl("net.ipv4.tcp_rmem"),
            bad_sysctl("spec.securityContext.sysctls[0].name is forbidden, forbidden values found: net.ipv4.tcp_rmem"),
        ),
        ("34", "{level: baseline, version: v1.32}", sysctl("net.ipv4.tcp_rmem"), Pass),
        (
            "section 12: 1.37 is not in the fork",
            "{level: baseline, version: latest}",
            sysctl("net.ipv4.tcp_slow_start_after_idle"),
            bad_sysctl("spec.securityContext.sysctls[0].name is forbidden, forbidden values found: net.ipv4.tcp_slow_start_after_idle"),
        ),
        (
            "35",
            "{level: restricted, version: latest}",
            pod(&format!("{{hostUsers: false, securityContext: {{runAsUser: 0}}, containers: [{{name: a, {OK}}}]}}")),
            one(
                "runAsUser=0",
                &["spec.securityContext.runAsUser is forbidden, forbidden values found: 0"],
            ),
        ),
        (
            "39",
            "{level: baseline}",
            pod("{hostIPC: true, containers: []}"),
            one("host namespaces", &["spec.hostIPC is forbidden, forbidden values found: true"]),
        ),
        ("48", "{level: restricted, version: latest}", pod("{containers: []}"), Pass),
        (
            "49",
            "{level: baseline, version: v1.18}",
            container("securityContext: {seccompProfile: {type: Unconfined}}"),
            Pass,
        ),
        (
            "49",
            "{level: baseline, version: v1.18}",
            "{apiVersion: v1, kind: Pod, metadata: {name: p, annotations: {seccomp.security.alpha.kubernetes.io/pod: unconfined}}, spec: {containers: []}}".into(),
            one(
                "seccompProfile",
                &["spec.template.metadata.annotations[seccomp.security.alpha.kubernetes.io/pod] is forbidden, forbidden values found: unconfined"],
            ),
        ),
        (
            "section 6.11",
            "{level: baseline, version: v1.18}",
            "{apiVersion: v1, kind: Pod, metadata: {name: p, annotations: {container.seccomp.security.alpha.kubernetes.io/a: '', container.seccomp.security.alpha.kubernetes.io/gone: unconfined}}, spec: {containers: [{name: a}]}}".into(),
            one(
                "seccompProfile",
                &["spec.template.metadata.annotations[container.seccomp.security.alpha.kubernetes.io/a]: Forbidden"],
            ),
        ),
        (
            "section 8, row 4",
            "{level: baseline, version: '1.25'}",
            plain(),
            Error("failed to parse pod security api version: must be \"latest\" or \"v1.x\""),
        ),
        (
            "section 8, rows 3 and 4",
            "{level: baseline, version: '1.25'}",
            pod("{containers: 1}"),
            Error("Error while getting new resource: json: cannot unmarshal number into Go struct field PodSpec.spec.containers of type []v1.Container"),
        ),
        ("section 1: all zero", "{}", plain(), Nothing),
    ]);
}

#[test]
fn controls() {
    let baseline = "{level: baseline, version: latest}";
    let restricted = "{level: restricted, version: latest}";
    let with = |fields: &str| container(&format!("securityContext: {{{fields}}}"));
    // A container allowed by the restricted level, except for these capabilities.
    let capabilities = |fields: &str| {
        container(&OK.replace(
            "capabilities: {drop: [ALL]}",
            &format!("capabilities: {{{fields}}}"),
        ))
    };
    let drop_error = |error| one(CAPABILITIES, &[error]);
    check(vec![
        (
            "6.1",
            baseline,
            pod("{securityContext: {windowsOptions: {hostProcess: true}}, containers: [{name: a, securityContext: {windowsOptions: {hostProcess: true}}}], initContainers: [{name: b, securityContext: {windowsOptions: {hostProcess: true}}}]}"),
            one(
                "hostProcess",
                &[
                    "spec.securityContext.windowsOptions.hostProcess is forbidden, forbidden values found: true",
                    "spec.initContainers[0].securityContext.windowsOptions.hostProcess is forbidden, forbidden values found: true",
                    "spec.containers[0].securityContext.windowsOptions.hostProcess is forbidden, forbidden values found: true",
                ],
            ),
        ),
        (
            "6.3",
            baseline,
            pod("{containers: [{name: a}, {name: b, securityContext: {privileged: true}}], ephemeralContainers: [{name: c, securityContext: {privileged: true}}]}"),
            one(
                "privileged",
                &[
                    "spec.containers[1].securityContext.privileged is forbidden, forbidden values found: true",
                    "spec.ephemeralContainers[0].securityContext.privileged is forbidden, forbidden values found: true",
                ],
            ),
        ),
        (
            "6.4: one error for each container, values sorted and once",
            baseline,
            with("capabilities: {add: [SYS_ADMIN, KILL, CAP_KILL, NET_RAW, SYS_ADMIN]}"),
            one(
                "non-default capabilities",
                &["spec.containers[0].securityContext.capabilities.add is forbidden, forbidden values found: [CAP_KILL NET_RAW SYS_ADMIN]"],
            ),
        ),
        (
            "8",
            restricted,
            capabilities("drop: [ALL], add: [SYS_ADMIN]"),
            Fail(vec![
                (
                    "non-default capabilities",
                    vec!["spec.containers[0].securityContext.capabilities.add is forbidden, forbidden values found: [SYS_ADMIN]"],
                ),
                (
                    CAPABILITIES,
                    vec!["spec.containers[0].securityContext.capabilities.add is forbidden, forbidden values found: [SYS_ADMIN]"],
                ),
            ]),
        ),
        (
            "6.5: drop before add",
            restricted,
            capabilities("drop: [NET_RAW, KILL, KILL], add: [KILL]"),
            one(
                CAPABILITIES,
                &[
                    "spec.containers[0].securityContext.capabilities.drop is forbidden, forbidden values found: [KILL NET_RAW]",
                    "spec.containers[0].securityContext.capabilities.add is forbidden, forbidden values found: [KILL]",
                ],
            ),
        ),
        ("6.5", restricted, capabilities("add: [NET_BIND_SERVICE]"), drop_error(NO_DROP)),
        ("6.5", restricted, capabilities("drop: []"), drop_error(NO_DROP)),
        ("6.5: null is an empty text", restricted, capabilities("drop: [null]"), drop_error("spec.containers[0].securityContext.capabilities.drop is forbidden, forbidden values found: []")),
        ("31", restricted, capabilities("drop: [all]"), drop_error("spec.containers[0].securityContext.capabilities.drop is forbidden, forbidden values found: [all]")),
        ("32", restricted, capabilities("drop: [NET_RAW, ALL]"), Pass),
        (
            "6.6",
            baseline,
            pod("{containers: [], volumes: [{name: v, emptyDir: {}}, {name: w, hostPath: {path: /etc}}, {name: x, hostPath: {}}, {name: z, hostPath: null}]}"),
            one(
                "hostPath volumes",
                &[
                    "spec.volumes[1].hostPath is forbidden, forbidden values found: /etc",
                    "spec.volumes[2].hostPath: Forbidden",
                ],
            ),
        ),
        (
            "6.7",
            baseline,
            container("ports: [{containerPort: 1}, {containerPort: 2, hostPort: 0}, {containerPort: 3, hostPort: 53}]"),
            one("hostPort", &["spec.containers[0].ports[2].hostPort is forbidden, forbidden values found: 53"]),
        ),
        (
            "6.8: one bad value",
            baseline,
            with("appArmorProfile: {type: Unconfined}"),
            one(
                "forbidden AppArmor profile",
                &["spec.containers[0].securityContext.appArmorProfile.type is forbidden, forbidden values found: Unconfined"],
            ),
        ),
        (
            "6.8: two",
            baseline,
            pod("{securityContext: {appArmorProfile: {}}, containers: [{name: a, securityContext: {appArmorProfile: {type: Unconfined}}}]}"),
            one(
                "forbidden AppArmor profiles",
                &[
                    "spec.securityContext.appArmorProfile.type: Forbidden",
                    "spec.containers[0].securityContext.appArmorProfile.type is forbidden, forbidden values found: Unconfined",
                ],
            ),
        ),
        (
            "23",
            baseline,
            "{apiVersion: v1, kind: Pod, metadata: {name: p, annotations: {container.apparmor.security.beta.kubernetes.io/x: unconfined, container.apparmor.security.beta.kubernetes.io/y: localhost/z, container.apparmor.security.beta.kubernetes.io/z: ''}}, spec: {containers: []}}".into(),
            one(
                "forbidden AppArmor profile",
                &["spec.template.metadata.annotations[container.apparmor.security.beta.kubernetes.io/x] is forbidden, forbidden values found: unconfined"],
            ),
        ),
        (
            "6.9: type, user, role of each, the pod's first",
            baseline,
            pod("{securityContext: {seLinuxOptions: {role: r}}, containers: [{name: a, securityContext: {seLinuxOptions: {type: t, user: u, role: r, level: s0}}}]}"),
            one(
                "seLinuxOptions",
                &[
                    "spec.securityContext.seLinuxOptions.role is forbidden, forbidden values found: r",
                    "spec.containers[0].securityContext.seLinuxOptions.type is forbidden, forbidden values found: t",
                    "spec.containers[0].securityContext.seLinuxOptions.user is forbidden, forbidden values found: u",
                    "spec.containers[0].securityContext.seLinuxOptions.role is forbidden, forbidden values found: r",
                ],
            ),
        ),
        ("6.9", baseline, with("seLinuxOptions: {level: s0}"), Pass),
        ("29", baseline, with("procMount: ''"), one("procMount", &["spec.containers[0].securityContext.procMount: Forbidden"])),
        ("6.10", baseline, with("procMount: Default"), Pass),
        ("30", baseline, with("seccompProfile: {}"), one("seccompProfile", &["spec.containers[0].securityContext.seccompProfile.type: Forbidden"])),
        (
            "6.12: what is missing is not told where something is wrong",
            restricted,
            pod(&format!("{{containers: [{{name: a, {}}}, {{name: b, {}}}]}}", ok_without("seccompProfile"), OK.replace("RuntimeDefault", "Unconfined"))),
            Fail(vec![
                ("seccompProfile", vec!["spec.containers[1].securityContext.seccompProfile.type is forbidden, forbidden values found: Unconfined"]),
                ("seccompProfile", vec!["spec.containers[1].securityContext.seccompProfile.type is forbidden, forbidden values found: Unconfined"]),
            ]),
        ),
        (
            "6.12: the pod's profile counts",
            restricted,
            pod(&format!("{{securityContext: {{seccompProfile: {{type: Localhost}}}}, containers: [{{name: a, {}}}]}}", ok_without("seccompProfile"))),
            Pass,
        ),
        (
            "36",
            restricted,
            pod("{containers: [], volumes: [{name: v}]}"),
            one("restricted volume types", &["spec.volumes[0].unknown: Forbidden"]),
        ),
        ("37", restricted, pod("{containers: [], volumes: [{name: v, nfs: {}, emptyDir: {}}]}"), Pass),
        (
            "6.14: the first type by Kyverno's order",
            restricted,
            pod("{containers: [], volumes: [{name: v, storageos: {}, nfs: {}, gitRepo: {repository: r}}]}"),
            one("restricted volume types", &["spec.volumes[0].gitRepo: Forbidden"]),
        ),
        (
            "6.15",
            restricted,
            container(&ok_without("allowPrivilegeEscalation")),
            one(ESCALATION, &["spec.containers[0].securityContext.allowPrivilegeEscalation is forbidden, forbidden values found: nil"]),
        ),
        (
            "6.15",
            restricted,
            container(&OK.replace("Escalation: false", "Escalation: true")),
            one(ESCALATION, &["spec.containers[0].securityContext.allowPrivilegeEscalation is forbidden, forbidden values found: true"]),
        ),
        (
            "46",
            restricted,
            pod(&format!("{{securityContext: {{runAsNonRoot: false}}, containers: [{{name: a, {}}}]}}", ok_without("runAsNonRoot"))),
            one(
                NON_ROOT,
                &["spec.securityContext.runAsNonRoot is forbidden, forbidden values found: false", NO_NON_ROOT],
            ),
        ),
        (
            "6.17",
            restricted,
            container(&OK.replace("runAsNonRoot: true", "runAsNonRoot: true, runAsUser: 0")),
            one("runAsUser=0", &["spec.containers[0].securityContext.runAsUser is forbidden, forbidden values found: 0"]),
        ),
        (
            "6.18: other handlers are not looked at",
            baseline,
            container("readinessProbe: {grpc: {port: 1}}, startupProbe: {tcpSocket: {port: 1, host: ''}}, lifecycle: {preStop: {exec: {command: [a]}}}"),
            Pass,
        ),
        (
            "6.18",
            baseline,
            pod("{containers: [], initContainers: [{name: a, lifecycle: {postStart: {tcpSocket: {port: 1, host: h}}, preStop: {httpGet: {port: 1, host: i}}}}]}"),
            one("probe or lifecycle host", &[]),
        ),
    ]);
}

#[test]
fn kinds_and_decoding() {
    let baseline = "{level: baseline, version: latest}";
    let controller = |kind: &str| {
        format!(
            "{{apiVersion: apps/v1, kind: {kind}, metadata: {{name: d}}, spec: {{template: {{spec: {{containers: [{{name: a, securityContext: {{privileged: true}}}}]}}}}}}}}"
        )
    };
    let in_template = || {
        one(
            "privileged",
            &[
                "spec.template.spec.containers[0].securityContext.privileged is forbidden, forbidden values found: true",
            ],
        )
    };
    let decoding = |text| Error(text);
    check(vec![
        ("24", baseline, controller("Deployment"), in_template()),
        ("26", baseline, controller("Job"), in_template()),
        ("26", baseline, controller("ReplicationController"), in_template()),
        ("26", baseline, controller("StatefulSet"), in_template()),
        ("section 2", baseline, controller("DaemonSet"), in_template()),
        ("section 2", baseline, controller("ReplicaSet"), in_template()),
        (
            "27",
            baseline,
            controller("Rollout"),
            Error("Error while getting new resource: could not find correct resource type"),
        ),
        (
            "25",
            baseline,
            "{apiVersion: batch/v1, kind: CronJob, metadata: {name: c, annotations: {container.apparmor.security.beta.kubernetes.io/own: unconfined}}, spec: {jobTemplate: {metadata: {annotations: {container.apparmor.security.beta.kubernetes.io/job: unconfined}}, spec: {template: {metadata: {annotations: {container.apparmor.security.beta.kubernetes.io/pod: unconfined}}, spec: {containers: [{name: a, securityContext: {privileged: true}}]}}}}}}".into(),
            Fail(vec![
                ("forbidden AppArmor profile", vec!["spec.template.metadata.annotations[container.apparmor.security.beta.kubernetes.io/job] is forbidden, forbidden values found: unconfined"]),
                ("privileged", vec!["spec.jobTemplate.spec.template.spec.containers[0].securityContext.privileged is forbidden, forbidden values found: true"]),
            ]),
        ),
        (
            "section 8: words inside of keys are rewritten too",
            baseline,
            "{apiVersion: apps/v1, kind: Deployment, metadata: {name: d}, spec: {template: {metadata: {annotations: {container.apparmor.security.beta.kubernetes.io/spec-metadata: bad}}, spec: {}}}}".into(),
            one("forbidden AppArmor profile", &["spec.template.metadata.annotations[container.apparmor.security.beta.kubernetes.io/spec.template.spec-spec.template.metadata] is forbidden, forbidden values found: bad"]),
        ),
        ("28", baseline, container("ports: [{hostPort: '80'}]"), decoding("Error while getting new resource: json: cannot unmarshal string into Go struct field ContainerPort.spec.containers.ports.hostPort of type int32")),
        ("section 2", baseline, container("securityContext: {privileged: 'true'}"), decoding("Error while getting new resource: json: cannot unmarshal string into Go struct field SecurityContext.spec.containers.securityContext.privileged of type bool")),
        ("section 2", baseline, container("securityContext: {runAsUser: 1.5}"), decoding("Error while getting new resource: json: cannot unmarshal number 1.5 into Go struct field SecurityContext.spec.containers.securityContext.runAsUser of type int64")),
        ("section 2", baseline, pod("{containers: [], volumes: [{hostPath: x}]}"), decoding("Error while getting new resource: json: cannot unmarshal string into Go struct field Volume.spec.volumes.VolumeSource.hostPath of type v1.HostPathVolumeSource")),
        ("section 2: the first in the order of keys", baseline, pod("{hostPID: 1, containers: {}}"), decoding("Error while getting new resource: json: cannot unmarshal object into Go struct field PodSpec.spec.containers of type []v1.Container")),
        ("section 2: a field that no check looks at", baseline, pod("{containers: [], dnsPolicy: 1}"), decoding("Error while getting new resource: json: cannot unmarshal number into Go struct field PodSpec.spec.dnsPolicy of type v1.DNSPolicy")),
        ("section 2: unknown fields are ignored", baseline, pod("{containers: [], hostUnknown: {a: [1]}}"), Pass),
        ("section 2: null is absent", baseline, pod("{containers: null, securityContext: null, volumes: null, hostNetwork: null}"), Pass),
        ("section 2: a null in a list is an empty one", "{level: restricted, version: latest}", pod("{containers: [null]}"), bare()),
        ("section 2: keys in any case", baseline, pod("{containers: [], HostNetwork: true}"), one("host namespaces", &["spec.hostNetwork is forbidden, forbidden values found: true"])),
        ("section 2: keys in any case, the last in their order counts", baseline, pod("{containers: [], HostNetwork: false, hostNetwork: true}"), one("host namespaces", &["spec.hostNetwork is forbidden, forbidden values found: true"])),
    ]);
}

#[test]
fn exclusions() {
    let two_unset = || {
        let unset = ok_without("runAsNonRoot");
        pod(&format!(
            "{{containers: [{{name: a, {unset}}}, {{name: b, {unset}}}]}}"
        ))
    };
    let host_path = || {
        pod(&format!(
            "{{volumes: [{{name: v, hostPath: {{path: /etc}}}}], containers: [{{name: a, {OK}}}]}}"
        ))
    };
    let capabilities = |add: &str, drop: &str| {
        let fields = format!("capabilities: {{add: [{add}], drop: [{drop}]}}");
        container(&OK.replace("capabilities: {drop: [ALL]}", &fields))
    };
    const SYS: &str = "{level: restricted, version: latest, exclude: [{controlName: Capabilities, images: ['*'], restrictedField: 'spec.containers[*].securityContext.capabilities.add', values: ['SYS_*']}]}";
    const NON_ROOT_ONLY: &str =
        "{level: restricted, version: latest, exclude: [{controlName: Running as Non-root}]}";
    const NIL: &str = "{level: restricted, version: latest, exclude: [{controlName: Privilege Escalation, images: ['*'], restrictedField: 'spec.containers[*].securityContext.allowPrivilegeEscalation', values: [nil]}]}";
    const TRUE: &str = "{level: restricted, version: latest, exclude: [{controlName: Privilege Escalation, images: ['*'], restrictedField: 'spec.containers[*].securityContext.allowPrivilegeEscalation', values: ['true']}]}";
    const NGINX: &str = "{level: baseline, version: latest, exclude: [{controlName: Privileged Containers, images: [nginx]}]}";
    let privileged = |containers: &str| pod(&format!("{{{containers}}}"));
    let unconfined_pod = |fields: &str| {
        pod(&format!(
            "{{securityContext: {{seccompProfile: {{type: Unconfined}}}}, containers: [{{name: a, image: nginx, {fields}}}]}}"
        ))
    };
    let root_container = || {
        let fields = OK.replace("runAsNonRoot: true", "runAsNonRoot: false");
        pod(&format!(
            "{{securityContext: {{runAsNonRoot: true}}, containers: [{{name: a, image: nginx, {fields}}}]}}"
        ))
    };
    let annotated = || {
        "{apiVersion: v1, kind: Pod, metadata: {name: p, annotations: {container.apparmor.security.beta.kubernetes.io/web1: unconfined}}, spec: {containers: []}}".to_owned()
    };
    check(vec![
        (
            "7",
            "{level: restricted, version: latest, exclude: [{controlName: Volume Types}]}",
            host_path(),
            one(
                "hostPath volumes",
                &["spec.volumes[0].hostPath is forbidden, forbidden values found: /etc"],
            ),
        ),
        (
            "7",
            "{level: restricted, version: latest, exclude: [{controlName: Volume Types}, {controlName: HostPath Volumes}]}",
            host_path(),
            Pass,
        ),
        ("9", SYS, capabilities("SYS_ADMIN", "ALL"), Pass),
        (
            "10",
            SYS,
            capabilities("SYS_ADMIN, NET_RAW", "ALL"),
            Fail(vec![
                (
                    "non-default capabilities",
                    vec![
                        "spec.containers[0].securityContext.capabilities.add is forbidden, forbidden values found: [NET_RAW SYS_ADMIN]",
                    ],
                ),
                (
                    CAPABILITIES,
                    vec![
                        "spec.containers[0].securityContext.capabilities.add is forbidden, forbidden values found: [NET_RAW SYS_ADMIN]",
                    ],
                ),
            ]),
        ),
        (
            "11",
            SYS,
            capabilities("SYS_ADMIN", ""),
            one(CAPABILITIES, &[NO_DROP]),
        ),
        (
            "12",
            NON_ROOT_ONLY,
            container(&ok_without("runAsNonRoot")),
            Pass,
        ),
        (
            "12",
            NON_ROOT_ONLY,
            container(&OK.replace("NonRoot: true", "NonRoot: false")),
            Pass,
        ),
        (
            "13",
            NON_ROOT_ONLY,
            two_unset(),
            one(
                NON_ROOT,
                &["spec.containers[1].securityContext.runAsNonRoot: Required value"],
            ),
        ),
        (
            "14",
            NON_ROOT_ONLY,
            pod(&format!(
                "{{initContainers: [{{name: a, {}}}]}}",
                ok_without("runAsNonRoot")
            )),
            one(
                NON_ROOT,
                &["spec.initContainers[0].securityContext.runAsNonRoot: Required value"],
            ),
        ),
        (
            "15",
            "{level: restricted, version: latest, exclude: [{controlName: Seccomp, images: ['*']}]}",
            unconfined_pod(OK),
            Fail(vec![
                (
                    "seccompProfile",
                    vec![
                        "spec.securityContext.seccompProfile.type is forbidden, forbidden values found: Unconfined",
                    ],
                ),
                (
                    "seccompProfile",
                    vec![
                        "spec.securityContext.seccompProfile.type is forbidden, forbidden values found: Unconfined",
                    ],
                ),
            ]),
        ),
        (
            "16",
            "{level: restricted, version: latest, exclude: [{controlName: Seccomp}]}",
            unconfined_pod(&ok_without("seccompProfile")),
            Pass,
        ),
        (
            "17",
            "{level: baseline, version: latest, exclude: [{controlName: Host Ports, images: ['*'], restrictedField: 'spec.containers[*].ports[*].hostPort', values: ['443']}]}",
            container("ports: [{hostPort: 80}, {hostPort: 443}]"),
            one(
                "hostPort",
                &["spec.containers[0].ports[1].hostPort is forbidden, forbidden values found: 443"],
            ),
        ),
        (
            "18: Required ignores the values",
            TRUE,
            pod(
                "{securityContext: {runAsNonRoot: true, seccompProfile: {type: RuntimeDefault}}, containers: [{name: a, image: x}]}",
            ),
            one(CAPABILITIES, &[NO_DROP]),
        ),
        (
            "19",
            TRUE,
            container(&ok_without("allowPrivilegeEscalation")),
            one(
                ESCALATION,
                &[
                    "spec.containers[0].securityContext.allowPrivilegeEscalation is forbidden, forbidden values found: nil",
                ],
            ),
        ),
        (
            "19",
            NIL,
            container(&ok_without("allowPrivilegeEscalation")),
            Pass,
        ),
        (
            "20",
            NGINX,
            privileged(
                "containers: [{name: a, image: nginx, securityContext: {privileged: true}}], initContainers: [{name: a, image: busybox, securityContext: {privileged: true}}]",
            ),
            one(
                "privileged",
                &[
                    "spec.initContainers[0].securityContext.privileged is forbidden, forbidden values found: true",
                ],
            ),
        ),
        (
            "21",
            NGINX,
            privileged(
                "containers: [{name: a, image: nginx, securityContext: {privileged: true}}, {name: a, image: nginx, securityContext: {privileged: true}}]",
            ),
            Pass,
        ),
        (
            "section 7.2: the image as written",
            NGINX,
            privileged(
                "containers: [{name: a, image: 'nginx:1.2.3', securityContext: {privileged: true}}]",
            ),
            one(
                "privileged",
                &[
                    "spec.containers[0].securityContext.privileged is forbidden, forbidden values found: true",
                ],
            ),
        ),
        (
            "section 7.2: no image is an empty one",
            "{level: baseline, version: latest, exclude: [{controlName: Privileged Containers, images: ['*']}]}",
            privileged("containers: [{name: a, securityContext: {privileged: true}}]"),
            Pass,
        ),
        (
            "22",
            "{level: baseline, version: latest, exclude: [{controlName: AppArmor, restrictedField: 'metadata.annotations[container.apparmor.security.beta.kubernetes.io/web1]', values: [unconfined]}]}",
            annotated(),
            one(
                "forbidden AppArmor profile",
                &[
                    "spec.template.metadata.annotations[container.apparmor.security.beta.kubernetes.io/web1] is forbidden, forbidden values found: unconfined",
                ],
            ),
        ),
        (
            "22",
            "{level: baseline, version: latest, exclude: [{controlName: AppArmor, restrictedField: 'metadata.annotations[container.apparmor.security.beta.kubernetes.io/web*]', values: [unconfined]}]}",
            annotated(),
            Pass,
        ),
        (
            "38: an empty bad value satisfies every wildcard",
            "{level: baseline, version: latest, exclude: [{controlName: HostPath Volumes, restrictedField: 'spec.volumes[*].hostPath', values: [/x]}]}",
            pod("{volumes: [{name: v, hostPath: {path: ''}}]}"),
            Pass,
        ),
        (
            "47",
            NON_ROOT_ONLY,
            root_container(),
            one(
                NON_ROOT,
                &[
                    "spec.containers[0].securityContext.runAsNonRoot is forbidden, forbidden values found: false",
                ],
            ),
        ),
        (
            "47",
            "{level: restricted, version: latest, exclude: [{controlName: Running as Non-root, images: [nginx]}]}",
            root_container(),
            Pass,
        ),
        (
            "50",
            "{level: restricted, version: latest, exclude: [{controlName: Sysctls, restrictedField: 'spec.securityContext.sysctls[*].name', values: [a]}]}",
            pod(&format!(
                "{{securityContext: {{sysctls: [{{name: a, value: '1'}}, {{name: b, value: '1'}}]}}, containers: [{{name: c, {OK}}}]}}"
            )),
            one(
                "forbidden sysctls",
                &["spec.securityContext.sysctls[1].name is forbidden, forbidden values found: b"],
            ),
        ),
        (
            "section 7.5: the last error takes the place of the one that goes",
            "{level: baseline, version: latest, exclude: [{controlName: Sysctls, restrictedField: 'spec.securityContext.sysctls[*].name', values: [a]}]}",
            pod("{securityContext: {sysctls: [{name: a}, {name: b}, {name: c}, {name: d}]}}"),
            one(
                "forbidden sysctls",
                &[
                    "spec.securityContext.sysctls[3].name is forbidden, forbidden values found: d",
                    "spec.securityContext.sysctls[1].name is forbidden, forbidden values found: b",
                    "spec.securityContext.sysctls[2].name is forbidden, forbidden values found: c",
                ],
            ),
        ),
        (
            "section 7.3: no part of a path",
            "{level: baseline, version: latest, exclude: [{controlName: HostPath Volumes, restrictedField: 'spec.volumes[*]', values: ['*']}]}",
            pod("{volumes: [{name: v, hostPath: {path: /x}}]}"),
            one(
                "hostPath volumes",
                &["spec.volumes[0].hostPath is forbidden, forbidden values found: /x"],
            ),
        ),
        (
            "section 1: an unknown name exempts from nothing",
            "{level: baseline, version: latest, exclude: [{controlName: Host namespaces}]}",
            pod("{hostPID: true}"),
            one(
                "host namespaces",
                &["spec.hostPID is forbidden, forbidden values found: true"],
            ),
        ),
    ]);
}

/// Case, policy, request, and the status and message of each response.
type RequestRow<'r> = (&'r str, String, Request<'r>, &'r [(&'r str, &'r str)]);

/// Section 8, row 1 and section 9; cases 40 to 42.
#[test]
fn requests() {
    let kinds = "match: {any: [{resources: {kinds: [Pod]}}]}";
    let block = "podSecurity: {level: baseline, version: latest}";
    let with = |more: &str| policy(&[rule("r", kinds, &format!("{{{more}{block}}}"))], "");
    let (bad, worse) = (
        r#"{"apiVersion":"v1","kind":"Pod","metadata":{"name":"p"},"spec":{"hostPID":true}}"#,
        r#"{"apiVersion":"v1","kind":"Pod","metadata":{"name":"p"},"spec":{"hostIPC":true}}"#,
    );
    let fine = r#"{"apiVersion":"v1","kind":"Pod","metadata":{"name":"p"},"spec":{}}"#;
    let json = |text: &'static str| Input::Json(text.as_bytes());
    let failed = "Validation rule 'r' failed. It violates PodSecurity \"baseline:latest\": (Forbidden reason: host namespaces, field error list: [spec.hostIPC is forbidden, forbidden values found: true])";
    let existing = "skipping the rule evaluation as pre-existing violations are allowed";
    let rows: [RequestRow<'_>; 6] = [
        ("40", with(""), Request::delete(json(bad)), &[]),
        (
            "41",
            with("failureAction: Enforce, "),
            Request::update(json(bad), json(worse)),
            &[("skip", existing)],
        ),
        (
            "42",
            with("failureAction: Audit, "),
            Request::update(json(bad), json(worse)),
            &[("fail", failed)],
        ),
        (
            "section 9",
            with("failureAction: Enforce, "),
            Request::update(json(fine), json(worse)),
            &[("fail", failed)],
        ),
        (
            "section 9",
            with("failureAction: Enforce, allowExistingViolations: false, "),
            Request::update(json(bad), json(worse)),
            &[("fail", failed)],
        ),
        (
            "section 8: the rule's message is not used",
            with("message: 'look: {{ request.nothing }}', "),
            Request::create(json(worse)),
            &[("fail", failed)],
        ),
    ];
    for (case, policy, request, expected) in rows {
        let responses = evaluate(&policy, &request);
        let found: Vec<(&str, &str)> = responses
            .iter()
            .map(|response| (response.status.as_str(), response.message.as_str()))
            .collect();
        assert_eq!(found, expected, "{case}");
    }
}

/// Autogen keeps the block unchanged (§2), including the paths of exclusions.
#[test]
fn generated_rules_have_the_same_exclusions() {
    let kinds = "match: {any: [{resources: {kinds: [Pod]}}]}";
    let block = "{podSecurity: {level: baseline, version: latest, exclude: [{controlName: HostPath Volumes, restrictedField: 'spec.volumes[*].hostPath', values: ['/var/log*']}]}}";
    let policy = policy(&[rule("r", kinds, block)], "");
    let deployment = |path: &str| {
        format!(
            r#"{{"apiVersion":"apps/v1","kind":"Deployment","metadata":{{"name":"d"}},"spec":{{"template":{{"spec":{{"volumes":[{{"name":"v","hostPath":{{"path":"{path}"}}}}]}}}}}}}}"#
        )
    };
    for (path, status) in [("/var/log/pods", "pass"), ("/etc", "fail")] {
        let responses = crate::common::create(&policy, &deployment(path));
        assert_eq!(responses.len(), 1);
        assert_eq!(
            (responses[0].rule.as_str(), responses[0].status.as_str()),
            ("autogen-r", status)
        );
    }
}

/// Section 11: details of failing checks in reports.
#[test]
fn controls_of_reports() {
    // Object, exclusions, controls, their JSON.
    let rows = [
        (
            "hostPorts and volumes name no images",
            pod("{volumes: [{name: v, hostPath: {path: /x}}], containers: [{name: a, image: nginx, ports: [{hostPort: 1}]}]}"),
            "",
            "hostPathVolumes,hostPorts",
            r#"[{"ID":"hostPathVolumes","Name":"HostPath Volumes","Images":null},{"ID":"hostPorts","Name":"Host Ports","Images":null}]"#,
        ),
        (
            "canonical images",
            pod("{initContainers: [{name: i, image: 'ghcr.io/a/b:v1', securityContext: {privileged: true}}], containers: [{name: a, image: nginx, securityContext: {privileged: true}}]}"),
            "",
            "privileged",
            r#"[{"ID":"privileged","Name":"Privileged Containers","Images":["ghcr.io/a/b:v1","docker.io/nginx:latest"]}]"#,
        ),
        (
            "exempted containers are still listed",
            pod("{initContainers: [{name: i, image: busybox, securityContext: {privileged: true}}], containers: [{name: a, image: nginx, securityContext: {privileged: true}}]}"),
            ", exclude: [{controlName: Privileged Containers, images: [nginx]}]",
            "privileged",
            r#"[{"ID":"privileged","Name":"Privileged Containers","Images":["docker.io/busybox:latest","docker.io/nginx:latest"]}]"#,
        ),
        (
            "a container without an image keeps its name; the probe check has no name",
            pod("{containers: [{name: a, securityContext: {privileged: true}, livenessProbe: {httpGet: {port: 1, host: h}}}]}"),
            "",
            "hostProbesAndHostLifecycle,privileged",
            r#"[{"ID":"hostProbesAndHostLifecycle","Name":"","Images":null},{"ID":"privileged","Name":"Privileged Containers","Images":["a"]}]"#,
        ),
        (
            "mixed setters garble the name",
            "{apiVersion: v1, kind: Pod, metadata: {name: p, annotations: {container.apparmor.security.beta.kubernetes.io/x: bad}}, spec: {containers: [{name: a, image: nginx, securityContext: {appArmorProfile: {type: Unconfined}}}]}}".into(),
            "",
            "appArmorProfile",
            r#"[{"ID":"appArmorProfile","Name":"AppArmor","Images":["aandannotation"]}]"#,
        ),
        (
            "of the pod alone, nothing",
            pod("{securityContext: {seccompProfile: {type: Unconfined}}, containers: [{name: a, image: nginx}]}"),
            "",
            "seccompProfile_baseline",
            r#"[{"ID":"seccompProfile_baseline","Name":"Seccomp","Images":null}]"#,
        ),
    ];
    for (case, object, more, controls, json) in rows {
        let bytes = compile(&pods(&format!("{{level: baseline, version: v1.29{more}}}"))).unwrap();
        let engine = Engine::load(bytes).unwrap();
        let mut session = Session::new(&engine);
        let tree = read(&object);
        let evaluation = session
            .evaluate(&Request::create(Input::Tree(&tree)))
            .unwrap();
        let response = evaluation.responses().next().unwrap();
        let detail = response.pod_security().unwrap();
        assert_eq!(
            (detail.standard, detail.version),
            ("baseline", "v1.29"),
            "{case}"
        );
        assert_eq!(
            (detail.controls, detail.controls_json),
            (controls, json),
            "{case}"
        );
    }
}
