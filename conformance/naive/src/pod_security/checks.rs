//! The checks (docs/spec/pod-security.md §3 to §6).

use std::collections::BTreeSet;

use serde_json::{Value, json};

use super::typed::{ALLOWED_VOLUMES, RESTRICTED_VOLUMES};

/// A version of the standards; without one the latest.
pub(super) type Version = Option<u64>;

/// One field error.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct FieldError {
    pub(super) path: String,
    /// Required, else forbidden.
    pub(super) is_required: bool,
    pub(super) bad: Value,
}

/// A check that does not hold.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Failing {
    pub(super) id: &'static str,
    pub(super) reason: &'static str,
    /// None for the check of probes.
    pub(super) errors: Option<Vec<FieldError>>,
}

fn forbidden(path: String, bad: impl Into<Value>) -> FieldError {
    FieldError {
        path,
        is_required: false,
        bad: bad.into(),
    }
}

fn required(path: String) -> FieldError {
    FieldError {
        path,
        is_required: true,
        bad: json!(""),
    }
}

/// A container with its path.
struct Container<'p> {
    path: String,
    value: &'p Value,
}

impl<'p> Container<'p> {
    fn context(&self) -> Option<&'p Value> {
        self.value.get("securityContext")
    }

    fn at(&self, field: &str) -> String {
        format!("{}.{field}", self.path)
    }

    fn in_context(&self, field: &str) -> String {
        format!("{}.securityContext.{field}", self.path)
    }
}

/// A Pod whose checks run.
struct Pod<'p> {
    metadata: &'p Value,
    spec: &'p Value,
    version: Version,
}

impl<'p> Pod<'p> {
    /// In visiting order (docs/spec/pod-security.md §2).
    fn containers(&self) -> Vec<Container<'p>> {
        let mut all = Vec::new();
        for kind in ["initContainers", "containers", "ephemeralContainers"] {
            let list = self.spec.get(kind).and_then(Value::as_array);
            for (at, value) in list.into_iter().flatten().enumerate() {
                all.push(Container {
                    path: format!("spec.{kind}[{at}]"),
                    value,
                });
            }
        }
        all
    }

    fn context(&self) -> Option<&'p Value> {
        self.spec.get("securityContext")
    }

    fn volumes(&self) -> &'p [Value] {
        let volumes = self.spec.get("volumes").and_then(Value::as_array);
        volumes.map_or(&[], Vec::as_slice)
    }

    /// The settings of the Pod, then of its containers, each with its path.
    fn contexts(&self) -> Vec<(String, &'p Value)> {
        let own = self.context();
        let own = own.map(|context| ("spec.securityContext".to_owned(), context));
        let of_containers = self.containers().into_iter().filter_map(|container| {
            let context = container.context()?;
            Some((container.at("securityContext"), context))
        });
        own.into_iter().chain(of_containers).collect()
    }

    fn is_at_least(&self, minor: u64) -> bool {
        self.version.is_none_or(|version| version >= minor)
    }

    /// Windows counts from v1.25 on (docs/spec/pod-security.md §6.19).
    fn is_exempt_windows(&self) -> bool {
        let os = self.spec.pointer("/os/name").and_then(Value::as_str);
        self.is_at_least(25) && os == Some("windows")
    }
}

/// The failing checks in the order of registration (docs/spec/pod-security.md §3, §4).
pub(super) fn run(pod: &Value, level: &str, version: Version) -> Vec<Failing> {
    let pod = Pod {
        metadata: &pod["metadata"],
        spec: &pod["spec"],
        version,
    };
    type Check = fn(&Pod<'_>) -> Vec<FieldError>;
    let all: [(&'static str, bool, &'static str, Check); 18] = [
        (
            "allowPrivilegeEscalation",
            false,
            "allowPrivilegeEscalation != false",
            escalation,
        ),
        ("appArmorProfile", true, "", app_armor),
        (
            "capabilities_baseline",
            true,
            "non-default capabilities",
            capabilities_baseline,
        ),
        (
            "capabilities_restricted",
            false,
            "unrestricted capabilities",
            capabilities_restricted,
        ),
        ("hostNamespaces", true, "host namespaces", host_namespaces),
        (
            "hostPathVolumes",
            true,
            "hostPath volumes",
            host_path_volumes,
        ),
        ("hostPorts", true, "hostPort", host_ports),
        (
            "hostProbesAndHostLifecycle",
            true,
            "probe or lifecycle host",
            probe_hosts,
        ),
        ("privileged", true, "privileged", privileged),
        ("procMount", true, "procMount", proc_mount),
        (
            "restrictedVolumes",
            false,
            "restricted volume types",
            restricted_volumes,
        ),
        (
            "runAsNonRoot",
            false,
            "runAsNonRoot != true",
            run_as_non_root,
        ),
        ("runAsUser", false, "runAsUser=0", run_as_user),
        ("seLinuxOptions", true, "seLinuxOptions", se_linux),
        (
            "seccompProfile_baseline",
            true,
            "seccompProfile",
            seccomp_baseline,
        ),
        (
            "seccompProfile_restricted",
            false,
            "seccompProfile",
            seccomp_restricted,
        ),
        ("sysctls", true, "forbidden sysctls", sysctls),
        ("windowsHostProcess", true, "hostProcess", host_process),
    ];
    let mut failing = Vec::new();
    for (id, is_baseline, reason, check) in all {
        if level == "baseline" && !is_baseline {
            continue;
        }
        let errors = check(&pod);
        if errors.is_empty() {
            continue;
        }
        let reason = match id {
            "appArmorProfile" => app_armor_reason(&errors),
            _ => reason,
        };
        let has_errors = id != "hostProbesAndHostLifecycle";
        failing.push(Failing {
            id,
            reason,
            errors: has_errors.then_some(errors),
        });
    }
    failing
}

/// §6.1
fn host_process(pod: &Pod<'_>) -> Vec<FieldError> {
    let contexts = pod.contexts().into_iter();
    contexts
        .filter(|(_, context)| context.pointer("/windowsOptions/hostProcess") == Some(&json!(true)))
        .map(|(path, _)| forbidden(format!("{path}.windowsOptions.hostProcess"), true))
        .collect()
}

/// §6.2
fn host_namespaces(pod: &Pod<'_>) -> Vec<FieldError> {
    ["hostNetwork", "hostPID", "hostIPC"]
        .into_iter()
        .filter(|field| pod.spec.get(field) == Some(&json!(true)))
        .map(|field| forbidden(format!("spec.{field}"), true))
        .collect()
}

/// §6.3
fn privileged(pod: &Pod<'_>) -> Vec<FieldError> {
    let is_privileged = |container: &Container<'_>| {
        container.value.pointer("/securityContext/privileged") == Some(&json!(true))
    };
    let containers = pod.containers().into_iter();
    containers
        .filter(is_privileged)
        .map(|container| forbidden(container.in_context("privileged"), true))
        .collect()
}

fn texts(list: Option<&Value>) -> Vec<&str> {
    let items = list.and_then(Value::as_array).into_iter().flatten();
    items.filter_map(Value::as_str).collect()
}

/// Sorted, each once.
fn distinct(texts: impl IntoIterator<Item = impl Into<String>>) -> Value {
    let texts: BTreeSet<String> = texts.into_iter().map(Into::into).collect();
    texts.into_iter().collect()
}

/// §6.4
fn capabilities_baseline(pod: &Pod<'_>) -> Vec<FieldError> {
    const ALLOWED: [&str; 13] = [
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
    let mut errors = Vec::new();
    for container in pod.containers() {
        let added = texts(container.value.pointer("/securityContext/capabilities/add"));
        let bad: Vec<&str> = added
            .into_iter()
            .filter(|one| !ALLOWED.contains(one))
            .collect();
        if !bad.is_empty() {
            errors.push(forbidden(
                container.in_context("capabilities.add"),
                distinct(bad),
            ));
        }
    }
    errors
}

/// §6.5
fn capabilities_restricted(pod: &Pod<'_>) -> Vec<FieldError> {
    if pod.is_exempt_windows() {
        return Vec::new();
    }
    let (mut drops, mut adds) = (Vec::new(), Vec::new());
    for container in pod.containers() {
        let drop_path = container.in_context("capabilities.drop");
        let Some(capabilities) = container.value.pointer("/securityContext/capabilities") else {
            drops.push(required(drop_path));
            continue;
        };
        let dropped = texts(capabilities.get("drop"));
        if dropped.is_empty() {
            drops.push(required(drop_path));
        } else if !dropped.contains(&"ALL") {
            drops.push(forbidden(drop_path, distinct(dropped)));
        }
        let added = texts(capabilities.get("add")).into_iter();
        let bad: Vec<&str> = added.filter(|one| *one != "NET_BIND_SERVICE").collect();
        if !bad.is_empty() {
            adds.push(forbidden(
                container.in_context("capabilities.add"),
                distinct(bad),
            ));
        }
    }
    drops.append(&mut adds);
    drops
}

/// §6.6
fn host_path_volumes(pod: &Pod<'_>) -> Vec<FieldError> {
    let mut errors = Vec::new();
    for (at, volume) in pod.volumes().iter().enumerate() {
        if let Some(host_path) = volume.get("hostPath") {
            let path = host_path.get("path").cloned().unwrap_or_else(|| json!(""));
            errors.push(forbidden(format!("spec.volumes[{at}].hostPath"), path));
        }
    }
    errors
}

/// §6.7
fn host_ports(pod: &Pod<'_>) -> Vec<FieldError> {
    let mut errors = Vec::new();
    for container in pod.containers() {
        let ports = container.value.get("ports").and_then(Value::as_array);
        for (at, port) in ports.into_iter().flatten().enumerate() {
            match port.get("hostPort").and_then(Value::as_i64) {
                None | Some(0) => {}
                Some(number) => {
                    errors.push(forbidden(
                        container.at(&format!("ports[{at}].hostPort")),
                        number,
                    ));
                }
            }
        }
    }
    errors
}

/// The type of a profile; a profile without one has an empty type.
fn profile_type<'p>(context: &'p Value, profile: &str) -> Option<&'p str> {
    let profile = context.get(profile)?;
    Some(
        profile
            .get("type")
            .and_then(Value::as_str)
            .unwrap_or_default(),
    )
}

fn is_good_profile(profile: &str) -> bool {
    ["RuntimeDefault", "Localhost"].contains(&profile)
}

fn bad_profiles(pod: &Pod<'_>, profile: &str) -> Vec<FieldError> {
    let mut errors = Vec::new();
    for (path, context) in pod.contexts() {
        match profile_type(context, profile) {
            Some(found) if !is_good_profile(found) => {
                errors.push(forbidden(format!("{path}.{profile}.type"), found));
            }
            _ => {}
        }
    }
    errors
}

fn annotations<'p>(pod: &Pod<'p>) -> Vec<(&'p str, &'p str)> {
    let all = pod.metadata.get("annotations").and_then(Value::as_object);
    let all = all.into_iter().flatten();
    all.filter_map(|(key, value)| Some((key.as_str(), value.as_str()?)))
        .collect()
}

/// §6.8
fn app_armor(pod: &Pod<'_>) -> Vec<FieldError> {
    const PREFIX: &str = "container.apparmor.security.beta.kubernetes.io/";
    let mut errors = bad_profiles(pod, "appArmorProfile");
    for (key, value) in annotations(pod) {
        let is_good = ["", "runtime/default"].contains(&value) || value.starts_with("localhost/");
        if key.starts_with(PREFIX) && !is_good {
            errors.push(forbidden(format!("metadata.annotations[{key}]"), value));
        }
    }
    errors
}

/// Plural for more than one bad item: distinct types, and annotations.
fn app_armor_reason(errors: &[FieldError]) -> &'static str {
    let (annotations, types): (Vec<_>, Vec<_>) = errors
        .iter()
        .partition(|error| error.path.starts_with("metadata."));
    let types: BTreeSet<&str> = types
        .iter()
        .filter_map(|error| error.bad.as_str())
        .collect();
    match annotations.len() + types.len() {
        1 => "forbidden AppArmor profile",
        _ => "forbidden AppArmor profiles",
    }
}

/// §6.9
fn se_linux(pod: &Pod<'_>) -> Vec<FieldError> {
    let mut types = vec!["", "container_t", "container_init_t", "container_kvm_t"];
    if pod.is_at_least(31) {
        types.push("container_engine_t");
    }
    let mut errors = Vec::new();
    for (path, context) in pod.contexts() {
        let Some(options) = context.get("seLinuxOptions") else {
            continue;
        };
        for field in ["type", "user", "role"] {
            let found = options
                .get(field)
                .and_then(Value::as_str)
                .unwrap_or_default();
            let is_good = match field {
                "type" => types.contains(&found),
                _ => found.is_empty(),
            };
            if !is_good {
                errors.push(forbidden(format!("{path}.seLinuxOptions.{field}"), found));
            }
        }
    }
    errors
}

/// §6.10
fn proc_mount(pod: &Pod<'_>) -> Vec<FieldError> {
    let mut errors = Vec::new();
    for container in pod.containers() {
        let mount = container.value.pointer("/securityContext/procMount");
        if let Some(mount) = mount.filter(|mount| *mount != "Default") {
            errors.push(forbidden(container.in_context("procMount"), mount.clone()));
        }
    }
    errors
}

/// §6.11
fn seccomp_baseline(pod: &Pod<'_>) -> Vec<FieldError> {
    if pod.is_at_least(19) {
        return bad_profiles(pod, "seccompProfile");
    }
    let names: Vec<String> = pod
        .containers()
        .iter()
        .map(|container| {
            let name = container.value.get("name").and_then(Value::as_str);
            let prefix = "container.seccomp.security.alpha.kubernetes.io/";
            format!("{prefix}{}", name.unwrap_or_default())
        })
        .collect();
    let mut errors = Vec::new();
    for (key, value) in annotations(pod) {
        let counts =
            key == "seccomp.security.alpha.kubernetes.io/pod" || names.iter().any(|n| n == key);
        let is_good = ["runtime/default", "docker/default"].contains(&value)
            || value.starts_with("localhost/");
        if counts && !is_good {
            errors.push(forbidden(format!("metadata.annotations[{key}]"), value));
        }
    }
    errors
}

/// §6.12
fn seccomp_restricted(pod: &Pod<'_>) -> Vec<FieldError> {
    if pod.is_exempt_windows() {
        return Vec::new();
    }
    let explicit = bad_profiles(pod, "seccompProfile");
    let own = pod
        .context()
        .and_then(|context| profile_type(context, "seccompProfile"));
    if !explicit.is_empty() || own.is_some_and(is_good_profile) {
        return explicit;
    }
    let lacks = |container: &Container<'_>| {
        container
            .context()
            .and_then(|context| profile_type(context, "seccompProfile"))
            .is_none()
    };
    let containers = pod.containers().into_iter().filter(lacks);
    containers
        .map(|container| required(container.in_context("seccompProfile.type")))
        .collect()
}

/// §6.13
fn sysctls(pod: &Pod<'_>) -> Vec<FieldError> {
    const ADDED: [(u64, &[&str]); 4] = [
        (
            0,
            &[
                "kernel.shm_rmid_forced",
                "net.ipv4.ip_local_port_range",
                "net.ipv4.tcp_syncookies",
                "net.ipv4.ping_group_range",
                "net.ipv4.ip_unprivileged_port_start",
            ],
        ),
        (27, &["net.ipv4.ip_local_reserved_ports"]),
        (
            29,
            &[
                "net.ipv4.tcp_keepalive_time",
                "net.ipv4.tcp_fin_timeout",
                "net.ipv4.tcp_keepalive_intvl",
                "net.ipv4.tcp_keepalive_probes",
            ],
        ),
        (32, &["net.ipv4.tcp_rmem", "net.ipv4.tcp_wmem"]),
    ];
    let is_allowed = |name: &str| {
        let mut added = ADDED.iter();
        added.any(|(since, names)| pod.is_at_least(*since) && names.contains(&name))
    };
    let list = pod
        .context()
        .and_then(|context| context.get("sysctls")?.as_array());
    let mut errors = Vec::new();
    for (at, sysctl) in list.into_iter().flatten().enumerate() {
        let name = sysctl
            .get("name")
            .and_then(Value::as_str)
            .unwrap_or_default();
        if !is_allowed(name) {
            let path = format!("spec.securityContext.sysctls[{at}].name");
            errors.push(forbidden(path, name));
        }
    }
    errors
}

/// §6.14
fn restricted_volumes(pod: &Pod<'_>) -> Vec<FieldError> {
    let mut errors = Vec::new();
    for (at, volume) in pod.volumes().iter().enumerate() {
        let has = |source: &&&str| volume.get(**source).is_some();
        if ALLOWED_VOLUMES.iter().any(|source| has(&source)) {
            continue;
        }
        let kind = RESTRICTED_VOLUMES
            .iter()
            .find(has)
            .copied()
            .unwrap_or("unknown");
        errors.push(forbidden(format!("spec.volumes[{at}].{kind}"), ""));
    }
    errors
}

/// §6.15
fn escalation(pod: &Pod<'_>) -> Vec<FieldError> {
    if pod.is_exempt_windows() {
        return Vec::new();
    }
    let mut errors = Vec::new();
    for container in pod.containers() {
        let path = container.in_context("allowPrivilegeEscalation");
        match container
            .context()
            .map(|context| context.get("allowPrivilegeEscalation"))
        {
            None => errors.push(required(path)),
            Some(None) => errors.push(forbidden(path, "nil")),
            Some(Some(Value::Bool(true))) => errors.push(forbidden(path, true)),
            Some(Some(_)) => {}
        }
    }
    errors
}

/// §6.16
fn run_as_non_root(pod: &Pod<'_>) -> Vec<FieldError> {
    let own = pod
        .context()
        .and_then(|context| context.get("runAsNonRoot")?.as_bool());
    let mut errors = Vec::new();
    if own == Some(false) {
        errors.push(forbidden("spec.securityContext.runAsNonRoot".into(), false));
    }
    let mut unset = Vec::new();
    for container in pod.containers() {
        let path = container.in_context("runAsNonRoot");
        match container
            .context()
            .and_then(|context| context.get("runAsNonRoot")?.as_bool())
        {
            Some(false) => errors.push(forbidden(path, false)),
            None if own != Some(true) => unset.push(required(path)),
            _ => {}
        }
    }
    errors.append(&mut unset);
    errors
}

/// §6.17
fn run_as_user(pod: &Pod<'_>) -> Vec<FieldError> {
    let contexts = pod.contexts().into_iter();
    contexts
        .filter(|(_, context)| context.get("runAsUser").and_then(Value::as_i64) == Some(0))
        .map(|(path, _)| forbidden(format!("{path}.runAsUser"), 0))
        .collect()
}

/// §6.18; only whether there is an error counts.
fn probe_hosts(pod: &Pod<'_>) -> Vec<FieldError> {
    const HANDLERS: [&str; 5] = [
        "/livenessProbe",
        "/readinessProbe",
        "/startupProbe",
        "/lifecycle/postStart",
        "/lifecycle/preStop",
    ];
    let has_host = |container: &Container<'_>| {
        HANDLERS.iter().any(|handler| {
            ["httpGet", "tcpSocket"].iter().any(|action| {
                let host = container.value.pointer(&format!("{handler}/{action}/host"));
                host.and_then(Value::as_str)
                    .is_some_and(|host| !host.is_empty())
            })
        })
    };
    let containers = pod.containers().into_iter().filter(has_host);
    containers
        .map(|container| forbidden(container.path, ""))
        .collect()
}
