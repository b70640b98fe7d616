//! The eighteen checks of `corpus/pod-security`, hand-written over a parsed value, as for a
//! program that has only these checks.

use serde_json::Value;

const PROFILES: [&str; 2] = ["RuntimeDefault", "Localhost"];

const CAPABILITIES: [&str; 13] = [
    "AUDIT_WRITE",
    "CHOWN",
    "DAC_OVERRIDE",
    "FOWNER",
    "FSETID",
    "KILL",
    "MKNOD",
    "NET_BIND_SERVICE",
    "SETFCAP",
    "SETGID",
    "SETPCAP",
    "SETUID",
    "SYS_CHROOT",
];

const SELINUX_TYPES: [&str; 5] = [
    "container_t",
    "container_init_t",
    "container_kvm_t",
    "container_engine_t",
    "",
];

const SYSCTLS: [&str; 12] = [
    "kernel.shm_rmid_forced",
    "net.ipv4.ip_local_port_range",
    "net.ipv4.ip_local_reserved_ports",
    "net.ipv4.ip_unprivileged_port_start",
    "net.ipv4.ping_group_range",
    "net.ipv4.tcp_fin_timeout",
    "net.ipv4.tcp_keepalive_intvl",
    "net.ipv4.tcp_keepalive_probes",
    "net.ipv4.tcp_keepalive_time",
    "net.ipv4.tcp_rmem",
    "net.ipv4.tcp_syncookies",
    "net.ipv4.tcp_wmem",
];

const NODE_VOLUMES: [&str; 21] = [
    "hostPath",
    "gcePersistentDisk",
    "awsElasticBlockStore",
    "gitRepo",
    "nfs",
    "iscsi",
    "glusterfs",
    "rbd",
    "flexVolume",
    "cinder",
    "cephfs",
    "flocker",
    "fc",
    "azureFile",
    "vsphereVolume",
    "quobyte",
    "azureDisk",
    "photonPersistentDisk",
    "portworxVolume",
    "scaleIO",
    "storageos",
];

fn items<'v>(value: Option<&'v Value>, key: &str) -> &'v [Value] {
    let list = value.and_then(|value| value.get(key)?.as_array());
    list.map_or(&[], Vec::as_slice)
}

fn one_of(value: Option<&Value>, texts: &[&str]) -> bool {
    let text = value.and_then(Value::as_str);
    text.is_some_and(|text| texts.contains(&text))
}

/// Adds the rules that a Pod violates to `broken`, without duplicates.
pub(crate) fn check(pod: &Value, broken: &mut Vec<&'static str>) {
    broken.clear();
    let mut breaks = |rule: &'static str, is_broken: bool| {
        if is_broken && !broken.contains(&rule) {
            broken.push(rule);
        }
    };
    let spec = pod.get("spec");
    let field = |key: &str| spec.and_then(|spec| spec.get(key));
    let pod_context = field("securityContext");
    let annotations = pod.get("metadata").and_then(|it| it.get("annotations"));
    for (key, value) in annotations.and_then(Value::as_object).into_iter().flatten() {
        if key.starts_with("container.apparmor.security.beta.kubernetes.io/") {
            let value = value.as_str().unwrap_or("-");
            let is_good =
                matches!(value, "runtime/default" | "") || value.starts_with("localhost/");
            breaks("apparmor-annotations", !is_good);
        }
    }
    for key in ["hostPID", "hostIPC", "hostNetwork"] {
        breaks(
            "no-host-namespaces",
            field(key).is_some_and(|value| value != &Value::Bool(false)),
        );
    }
    for volume in items(spec, "volumes") {
        breaks("no-host-path-volumes", volume.get("hostPath").is_some());
        if let Some(volume) = volume.as_object() {
            let on_node = volume
                .keys()
                .any(|key| NODE_VOLUMES.contains(&key.as_str()));
            breaks("only-cluster-volumes", on_node);
        }
    }
    for sysctl in items(pod_context, "sysctls") {
        breaks("only-safe-sysctls", !one_of(sysctl.get("name"), &SYSCTLS));
    }
    let seccomp = |context: Option<&Value>| {
        let profile = context.and_then(|context| context.get("seccompProfile"));
        one_of(profile.and_then(|profile| profile.get("type")), &PROFILES)
    };
    let non_root = |context: Option<&Value>| {
        let value = context.and_then(|context| context.get("runAsNonRoot"));
        value.and_then(Value::as_bool)
    };
    let (pod_seccomp, pod_non_root) = (seccomp(pod_context), non_root(pod_context));
    let (mut all_seccomp, mut all_non_root, mut some_root) = (true, true, false);
    let groups = ["containers", "initContainers", "ephemeralContainers"];
    let containers = groups.iter().flat_map(|group| items(spec, group));
    for container in containers {
        let context = container.get("securityContext");
        check_context(context, &mut breaks);
        let get = |key: &str| context.and_then(|context| context.get(key));
        for port in items(Some(container), "ports") {
            let host_port = port.get("hostPort").and_then(Value::as_i64);
            breaks("no-host-ports", host_port.is_some_and(|port| port != 0));
        }
        breaks(
            "no-privilege-escalation",
            get("allowPrivilegeEscalation") != Some(&Value::Bool(false)),
        );
        breaks(
            "not-privileged",
            get("privileged").is_some_and(|value| value != &Value::Bool(false)),
        );
        breaks(
            "default-proc-mount",
            get("procMount").is_some_and(|value| value.as_str() != Some("Default")),
        );
        let capabilities = get("capabilities");
        let drop = capabilities.and_then(|capabilities| capabilities.get("drop")?.as_array());
        let drops_all = drop.is_some_and(|drop| {
            !drop.is_empty() && drop.iter().all(|item| item.as_str() == Some("ALL"))
        });
        breaks("drop-all", !drops_all);
        for added in items(capabilities, "add") {
            breaks(
                "only-default-capabilities",
                !one_of(Some(added), &CAPABILITIES),
            );
            breaks("drop-all", added.as_str() != Some("NET_BIND_SERVICE"));
        }
        all_seccomp &= seccomp(context);
        all_non_root &= non_root(context) == Some(true);
        some_root |= non_root(context) == Some(false);
    }
    check_context(pod_context, &mut breaks);
    breaks("seccomp-chosen", !pod_seccomp && !all_seccomp);
    let by_pod = pod_non_root == Some(true) && !some_root;
    let by_containers = pod_non_root != Some(false) && all_non_root;
    breaks("non-root-everywhere", !by_pod && !by_containers);
}

/// Checks common to the contexts of pods and of containers.
fn check_context(context: Option<&Value>, breaks: &mut impl FnMut(&'static str, bool)) {
    let get = |key: &str| context.and_then(|context| context.get(key));
    if let Some(profile) = get("appArmorProfile") {
        breaks("apparmor-fields", !one_of(profile.get("type"), &PROFILES));
    }
    if let Some(windows) = get("windowsOptions") {
        let host = windows.get("hostProcess").and_then(Value::as_bool);
        breaks("no-host-process", host == Some(true));
    }
    if let Some(profile) = get("seccompProfile") {
        breaks("seccomp-not-off", !one_of(profile.get("type"), &PROFILES));
    }
    if let Some(options) = get("seLinuxOptions") {
        let is_other = |key: &str, known: &[&str]| {
            let value = options.get(key);
            value.is_some() && !one_of(value, known)
        };
        breaks(
            "selinux-options-are-safe",
            is_other("type", &SELINUX_TYPES) || is_other("user", &[""]) || is_other("role", &[""]),
        );
    }
    let user = get("runAsUser").and_then(Value::as_i64);
    breaks("user-is-not-zero", user == Some(0));
}
