//! Cases of `podSecurity`: Pods and their controllers with settings of every control,
//! rarely of the wrong type; levels, versions and exclusions.

use serde_json::{Map, Value, json};

use super::random::Random;
use super::vocabulary::{message, policy, request, rule, scalar, user};

/// Names for `exclude` and exceptions; the last two are not controls.
pub(super) const CONTROLS: [&str; 17] = [
    "HostProcess",
    "Host Namespaces",
    "Privileged Containers",
    "Capabilities",
    "HostPath Volumes",
    "Host Ports",
    "AppArmor",
    "SELinux",
    "/proc Mount Type",
    "Seccomp",
    "Sysctls",
    "Volume Types",
    "Privilege Escalation",
    "Running as Non-root",
    "Running as Non-root user",
    "seccomp",
    "",
];

/// Fields that a control restricts, as `restrictedField` names them.
const FIELDS: [&str; 24] = [
    "spec.securityContext.windowsOptions.hostProcess",
    "spec.containers[*].securityContext.windowsOptions.hostProcess",
    "spec.hostNetwork",
    "spec.hostPID",
    "spec.containers[*].securityContext.privileged",
    "spec.initContainers[*].securityContext.privileged",
    "spec.containers[*].securityContext.capabilities.add",
    "spec.containers[*].securityContext.capabilities.drop",
    "spec.initContainers[*].securityContext.capabilities.add",
    "spec.volumes[*].hostPath",
    "spec.volumes[*].nfs",
    "spec.containers[*].ports[*].hostPort",
    "spec.securityContext.appArmorProfile.type",
    "metadata.annotations",
    "metadata.annotations[container.apparmor.security.beta.kubernetes.io/*]",
    "spec.securityContext.seLinuxOptions.type",
    "spec.containers[*].securityContext.seLinuxOptions.user",
    "spec.containers[*].securityContext.procMount",
    "spec.securityContext.seccompProfile.type",
    "spec.containers[*].securityContext.seccompProfile.type",
    "spec.securityContext.sysctls[*].name",
    "spec.containers[*].securityContext.allowPrivilegeEscalation",
    "spec.containers[*].securityContext.runAsNonRoot",
    "spec.containers[*].securityContext.runAsUser",
];

/// Forbidden and allowed values of those fields, and patterns for them.
const VALUES: [&str; 26] = [
    "true",
    "false",
    "*",
    "?*",
    "",
    "NET_ADMIN",
    "SYS_*",
    "KILL",
    "ALL",
    "/var/run",
    "/*",
    "80",
    "8?",
    "Unconfined",
    "Localhost",
    "spc_t",
    "sys*",
    "Unmasked",
    "kernel.msgmax",
    "kernel.*",
    "nil",
    "0",
    "1",
    "root",
    "system_u",
    "container_t",
];

const IMAGES: [&str; 7] = [
    "nginx",
    "nginx:1.25",
    "ghcr.io/acme/app:v1.2.3",
    "docker.io/library/busybox:1.36",
    "localhost:5000/app",
    "",
    "a:b:c",
];

pub(super) fn case(random: &mut Random) -> Value {
    let object = object(random);
    let mut rule = rule("r", &object);
    rule["validate"] = json!({ "podSecurity": subrule(random) });
    if random.percent(25) {
        rule["validate"]["message"] = json!(message(random));
    }
    if random.percent(15) {
        rule["validate"]["failureAction"] = json!(random.pick(&["Audit", "Enforce"]));
    }
    let mut case = json!({ "policy": policy(vec![rule]) });
    request(random, &mut case, object);
    if random.percent(10) {
        case["user"] = user(random);
    }
    case
}

/// A Pod or a controller of Pods; rarely another kind.
pub(super) fn object(random: &mut Random) -> Value {
    let mut template = json!({ "spec": spec(random) });
    if random.percent(40) {
        template["metadata"] = metadata(random);
    }
    let (version, kind) = *random.pick(&[
        ("v1", "Pod"),
        ("v1", "Pod"),
        ("v1", "Pod"),
        ("v1", "Pod"),
        ("v1", "Pod"),
        ("apps/v1", "Deployment"),
        ("apps/v1", "StatefulSet"),
        ("apps/v1", "DaemonSet"),
        ("apps/v1", "ReplicaSet"),
        ("v1", "ReplicationController"),
        ("batch/v1", "Job"),
        ("batch/v1", "CronJob"),
        ("acme.io/v1", "Widget"),
    ]);
    let mut object = json!({ "apiVersion": version, "kind": kind, "metadata": metadata(random) });
    object["metadata"]["name"] = json!("web");
    match kind {
        "Pod" => object["spec"] = template["spec"].take(),
        "CronJob" => {
            object["spec"] = json!({ "jobTemplate": { "spec": { "template": template } } });
            if random.percent(30) {
                object["spec"]["jobTemplate"]["metadata"] = metadata(random);
            }
        }
        _ => object["spec"] = json!({ "template": template }),
    }
    object
}

fn metadata(random: &mut Random) -> Value {
    let keys = [
        "container.apparmor.security.beta.kubernetes.io/c0",
        "container.apparmor.security.beta.kubernetes.io/c1",
        "container.seccomp.security.alpha.kubernetes.io/c0",
        "seccomp.security.alpha.kubernetes.io/pod",
        "a",
    ];
    let values = [
        "runtime/default",
        "docker/default",
        "localhost/x",
        "unconfined",
        "",
    ];
    let mut metadata = json!({});
    if random.percent(25) {
        // At most one: the order of several errors is random.
        metadata["annotations"] = json!({ random.text(&keys): random.pick(&values) });
    }
    metadata
}

/// A member that is present in `percent` of the cases; rarely of a random type.
fn set(random: &mut Random, into: &mut Value, key: &str, percent: u32, value: Value) {
    if !random.percent(percent) {
        return;
    }
    let key = match random.percent(1) {
        true => key.to_uppercase(),
        false => key.to_owned(),
    };
    into[key] = match random.weighted(&[985, 8, 7]) {
        0 => value,
        1 => Value::Null,
        _ => scalar(random),
    };
}

fn spec(random: &mut Random) -> Value {
    let mut spec = json!({});
    for (key, percent, most) in [
        ("initContainers", 25, 2),
        ("containers", 95, 3),
        ("ephemeralContainers", 10, 1),
    ] {
        if random.percent(percent) {
            let count = random.between(0, most);
            let containers: Vec<Value> =
                (0..count).map(|number| container(random, number)).collect();
            spec[key] = containers.into();
        }
    }
    for key in ["hostNetwork", "hostPID", "hostIPC", "hostUsers"] {
        let value = json!(random.percent(50));
        set(random, &mut spec, key, 8, value);
    }
    if random.percent(60) {
        let mut context = context(random);
        if random.percent(15) {
            context["sysctls"] = Value::Array(random.list(0, 2, |random| {
                json!({ "name": random.pick(&["kernel.shm_rmid_forced", "net.ipv4.tcp_rmem", "kernel.msgmax", "net.ipv4.tcp_keepalive_time"]), "value": "1" })
            }));
        }
        spec["securityContext"] = context;
    }
    if random.percent(35) {
        spec["volumes"] = Value::Array(random.list(0, 2, volume));
    }
    if random.percent(8) {
        spec["os"] = json!({ "name": random.pick(&["windows", "linux", "Windows"]) });
    }
    spec
}

fn volume(random: &mut Random) -> Value {
    let mut volume = json!({ "name": random.pick(&["v", "w"]) });
    let kinds = [
        ("emptyDir", json!({})),
        (
            "hostPath",
            json!({ "path": random.pick(&["/", "/var/run", "/etc/x"]) }),
        ),
        ("configMap", json!({ "name": "c" })),
        ("nfs", json!({ "server": "s", "path": "/" })),
        ("secret", json!({ "secretName": "s" })),
        ("csi", json!({ "driver": "d" })),
        ("gitRepo", json!({ "repository": "r" })),
        ("cephfs", json!({ "monitors": ["m"] })),
        ("persistentVolumeClaim", json!({ "claimName": "p" })),
        ("unknownKind", json!({})),
    ];
    for _ in 0..random.weighted(&[10, 80, 10]) {
        let (kind, value) = random.pick(&kinds);
        volume[*kind] = value.clone();
    }
    volume
}

fn container(random: &mut Random, number: usize) -> Value {
    let mut container = json!({ "name": format!("c{number}"), "image": random.pick(&IMAGES) });
    if random.percent(75) {
        let mut own = context(random);
        let yes = json!(random.percent(40));
        set(random, &mut own, "privileged", 25, yes);
        let yes = json!(random.percent(25));
        set(random, &mut own, "allowPrivilegeEscalation", 75, yes);
        let mount = json!(random.pick(&["Default", "Unmasked", ""]));
        set(random, &mut own, "procMount", 12, mount);
        if random.percent(70) {
            let names = [
                "ALL",
                "all",
                "NET_ADMIN",
                "NET_BIND_SERVICE",
                "CHOWN",
                "SYS_TIME",
            ];
            let mut capabilities = json!({});
            let drop = match random.percent(70) {
                true => json!(["ALL"]),
                false => json!(random.list(0, 2, |random| random.text(&names))),
            };
            set(random, &mut capabilities, "drop", 85, drop);
            let add = json!(random.list(0, 2, |random| random.text(&names)));
            set(random, &mut capabilities, "add", 30, add);
            own["capabilities"] = capabilities;
        }
        set(random, &mut container, "securityContext", 98, own);
    }
    if random.percent(20) {
        container["ports"] = Value::Array(random.list(0, 2, |random| {
            let mut port = json!({ "containerPort": 80 });
            let number = json!(random.pick(&[0, 80, 443, 8080]));
            set(random, &mut port, "hostPort", 60, number);
            port
        }));
    }
    if random.percent(6) {
        let host = random.text(&["", "10.0.0.1", "example.com"]);
        let probe = random.text(&["livenessProbe", "readinessProbe", "startupProbe"]);
        let action = random.text(&["httpGet", "tcpSocket"]);
        container[probe] = json!({ action: { "port": 80, "host": host } });
    }
    if random.percent(3) {
        container["lifecycle"] =
            json!({ "preStop": { "httpGet": { "port": 80, "host": "x.io" } } });
    }
    container
}

/// Settings that both Pods and containers may have.
fn context(random: &mut Random) -> Value {
    let mut context = json!({});
    let profile = |random: &mut Random| -> Value {
        let types = [
            "RuntimeDefault",
            "RuntimeDefault",
            "Localhost",
            "Unconfined",
            "",
            "x",
        ];
        match random.percent(92) {
            true => json!({ "type": random.pick(&types) }),
            false => json!({}),
        }
    };
    let seccomp = profile(random);
    set(random, &mut context, "seccompProfile", 50, seccomp);
    let apparmor = profile(random);
    set(random, &mut context, "appArmorProfile", 12, apparmor);
    let yes = json!(random.percent(75));
    set(random, &mut context, "runAsNonRoot", 55, yes);
    let number = json!(random.pick(&[0, 1000, 1]));
    set(random, &mut context, "runAsUser", 25, number);
    if random.percent(14) {
        let mut options = json!({});
        let types = [
            "container_t",
            "container_engine_t",
            "spc_t",
            "",
            "container_init_t",
        ];
        let kind = json!(random.pick(&types));
        set(random, &mut options, "type", 70, kind);
        let user = json!(random.pick(&["", "system_u"]));
        set(random, &mut options, "user", 30, user);
        let role = json!(random.pick(&["", "sysadm_r"]));
        set(random, &mut options, "role", 30, role);
        context["seLinuxOptions"] = options;
    }
    if random.percent(8) {
        context["windowsOptions"] = json!({ "hostProcess": random.percent(50) });
    }
    context
}

fn subrule(random: &mut Random) -> Value {
    let mut subrule = json!({
        "level": random.pick(&["baseline", "restricted", "restricted", "restricted", "privileged"]),
    });
    if random.percent(70) {
        let versions = [
            "latest", "v1.19", "v1.22", "v1.24", "v1.25", "v1.27", "v1.28", "v1.29", "v1.30",
            "v1.31", "v1.32", "v1.18", "v1.0", "v1.99", "",
        ];
        subrule["version"] = json!(random.pick(&versions));
    }
    if random.percent(60) {
        subrule["exclude"] = Value::Array(random.list(1, 4, exclusion));
    }
    subrule
}

/// An entry of `exclude`, or of an exception's `podSecurity`.
pub(super) fn exclusion(random: &mut Random) -> Value {
    let mut exclusion = Map::new();
    exclusion.insert("controlName".into(), json!(random.pick(&CONTROLS)));
    if random.percent(50) {
        let images = [
            "*",
            "nginx*",
            "ghcr.io/*",
            "docker.io/library/busybox:*",
            "",
            "a:b:c",
        ];
        let images = random.list(0, 2, |random| random.text(&images));
        exclusion.insert("images".into(), json!(images));
    }
    if random.percent(45) {
        exclusion.insert("restrictedField".into(), json!(random.pick(&FIELDS)));
        let values = random.list(0, 2, |random| random.text(&VALUES));
        exclusion.insert("values".into(), json!(values));
    }
    exclusion.into()
}
