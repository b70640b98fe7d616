//! Pods as Go decodes them (docs/spec/pod-security.md §2): keys in any case, wrong types are
//! errors, null means absent.
//!
//! The table holds the fields that checks read and the commonest others; a wrong type in any
//! other field goes unnoticed here.

use serde_json::{Map, Value};

/// Type of a field.
enum Type {
    Text,
    Bool,
    Int32,
    Int64,
    /// A port: a number or a text.
    IntOrText,
    List(&'static Type),
    Texts,
    /// A map of texts.
    TextMap,
    /// A struct of which nothing is known.
    Opaque,
    Struct(&'static [(&'static str, Type)]),
}

use Type::{Bool, Int32, Int64, IntOrText, List, Opaque, Struct, Text, TextMap, Texts};

const METADATA: Type = Struct(&[
    ("name", Text),
    ("namespace", Text),
    ("generateName", Text),
    ("labels", TextMap),
    ("annotations", TextMap),
    ("finalizers", Texts),
]);

const PROFILE: Type = Struct(&[("type", Text), ("localhostProfile", Text)]);
const SE_LINUX: Type = Struct(&[
    ("user", Text),
    ("role", Text),
    ("type", Text),
    ("level", Text),
]);
const WINDOWS: Type = Struct(&[
    ("gmsaCredentialSpecName", Text),
    ("gmsaCredentialSpec", Text),
    ("runAsUserName", Text),
    ("hostProcess", Bool),
]);

const CONTAINER_CONTEXT: Type = Struct(&[
    ("capabilities", Struct(&[("add", Texts), ("drop", Texts)])),
    ("privileged", Bool),
    ("seLinuxOptions", SE_LINUX),
    ("windowsOptions", WINDOWS),
    ("runAsUser", Int64),
    ("runAsGroup", Int64),
    ("runAsNonRoot", Bool),
    ("readOnlyRootFilesystem", Bool),
    ("allowPrivilegeEscalation", Bool),
    ("procMount", Text),
    ("seccompProfile", PROFILE),
    ("appArmorProfile", PROFILE),
]);

const SYSCTL: Type = Struct(&[("name", Text), ("value", Text)]);
const POD_CONTEXT: Type = Struct(&[
    ("seLinuxOptions", SE_LINUX),
    ("windowsOptions", WINDOWS),
    ("runAsUser", Int64),
    ("runAsGroup", Int64),
    ("runAsNonRoot", Bool),
    ("supplementalGroups", List(&Int64)),
    ("supplementalGroupsPolicy", Text),
    ("fsGroup", Int64),
    ("sysctls", List(&SYSCTL)),
    ("fsGroupChangePolicy", Text),
    ("seccompProfile", PROFILE),
    ("appArmorProfile", PROFILE),
    ("seLinuxChangePolicy", Text),
]);

const HTTP_GET: Type = Struct(&[
    ("path", Text),
    ("port", IntOrText),
    ("host", Text),
    ("scheme", Text),
]);
const TCP_SOCKET: Type = Struct(&[("port", IntOrText), ("host", Text)]);
const PROBE: Type = Struct(&[
    ("httpGet", HTTP_GET),
    ("tcpSocket", TCP_SOCKET),
    ("exec", Struct(&[("command", Texts)])),
    ("initialDelaySeconds", Int32),
    ("timeoutSeconds", Int32),
    ("periodSeconds", Int32),
    ("successThreshold", Int32),
    ("failureThreshold", Int32),
]);
const PORT: Type = Struct(&[
    ("name", Text),
    ("hostPort", Int32),
    ("containerPort", Int32),
    ("protocol", Text),
    ("hostIP", Text),
]);
const ENV: Type = Struct(&[("name", Text), ("value", Text), ("valueFrom", Opaque)]);
const MOUNT: Type = Struct(&[
    ("name", Text),
    ("readOnly", Bool),
    ("mountPath", Text),
    ("subPath", Text),
]);
const CONTAINER: Type = Struct(&[
    ("name", Text),
    ("image", Text),
    ("command", Texts),
    ("args", Texts),
    ("workingDir", Text),
    ("ports", List(&PORT)),
    ("env", List(&ENV)),
    ("resources", Opaque),
    ("volumeMounts", List(&MOUNT)),
    ("livenessProbe", PROBE),
    ("readinessProbe", PROBE),
    ("startupProbe", PROBE),
    (
        "lifecycle",
        Struct(&[("postStart", PROBE), ("preStop", PROBE)]),
    ),
    ("imagePullPolicy", Text),
    ("securityContext", CONTAINER_CONTEXT),
    ("stdin", Bool),
    ("stdinOnce", Bool),
    ("tty", Bool),
]);

/// Sources of volumes: first those that are allowed, then the others in the order in which
/// the check looks for them (docs/spec/pod-security.md §6.14).
pub(super) const ALLOWED_VOLUMES: [&str; 9] = [
    "configMap",
    "csi",
    "downwardAPI",
    "emptyDir",
    "ephemeral",
    "image",
    "persistentVolumeClaim",
    "projected",
    "secret",
];
pub(super) const RESTRICTED_VOLUMES: [&str; 21] = [
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
const VOLUME: Type = Struct(&[
    ("name", Text),
    ("hostPath", Struct(&[("path", Text), ("type", Text)])),
    ("configMap", Opaque),
    ("csi", Opaque),
    ("downwardAPI", Opaque),
    ("emptyDir", Opaque),
    ("ephemeral", Opaque),
    ("image", Opaque),
    ("persistentVolumeClaim", Opaque),
    ("projected", Opaque),
    ("secret", Opaque),
    ("gcePersistentDisk", Opaque),
    ("awsElasticBlockStore", Opaque),
    ("gitRepo", Opaque),
    ("nfs", Opaque),
    ("iscsi", Opaque),
    ("glusterfs", Opaque),
    ("rbd", Opaque),
    ("flexVolume", Opaque),
    ("cinder", Opaque),
    ("cephfs", Opaque),
    ("flocker", Opaque),
    ("fc", Opaque),
    ("azureFile", Opaque),
    ("vsphereVolume", Opaque),
    ("quobyte", Opaque),
    ("azureDisk", Opaque),
    ("photonPersistentDisk", Opaque),
    ("portworxVolume", Opaque),
    ("scaleIO", Opaque),
    ("storageos", Opaque),
]);

const SPEC: Type = Struct(&[
    ("volumes", List(&VOLUME)),
    ("initContainers", List(&CONTAINER)),
    ("containers", List(&CONTAINER)),
    ("ephemeralContainers", List(&CONTAINER)),
    ("restartPolicy", Text),
    ("terminationGracePeriodSeconds", Int64),
    ("activeDeadlineSeconds", Int64),
    ("dnsPolicy", Text),
    ("nodeSelector", TextMap),
    ("serviceAccountName", Text),
    ("serviceAccount", Text),
    ("automountServiceAccountToken", Bool),
    ("nodeName", Text),
    ("hostNetwork", Bool),
    ("hostPID", Bool),
    ("hostIPC", Bool),
    ("shareProcessNamespace", Bool),
    ("securityContext", POD_CONTEXT),
    ("hostname", Text),
    ("subdomain", Text),
    ("schedulerName", Text),
    ("priorityClassName", Text),
    ("priority", Int32),
    ("runtimeClassName", Text),
    ("enableServiceLinks", Bool),
    ("preemptionPolicy", Text),
    ("setHostnameAsFQDN", Bool),
    ("os", Struct(&[("name", Text)])),
    ("hostUsers", Bool),
]);

const TEMPLATE: Type = Struct(&[("metadata", METADATA), ("spec", SPEC)]);
const POD: Type = TEMPLATE;
const DEPLOYMENT_SPEC: Type = Struct(&[
    ("replicas", Int32),
    ("selector", Struct(&[("matchLabels", TextMap)])),
    ("template", TEMPLATE),
    ("minReadySeconds", Int32),
    ("revisionHistoryLimit", Int32),
    ("paused", Bool),
    ("progressDeadlineSeconds", Int32),
]);
const DEPLOYMENT: Type = Struct(&[("metadata", METADATA), ("spec", DEPLOYMENT_SPEC)]);
const JOB: Type = Struct(&[
    ("parallelism", Int32),
    ("completions", Int32),
    ("backoffLimit", Int32),
    ("suspend", Bool),
    ("template", TEMPLATE),
]);
const CRON_JOB: Type = Struct(&[
    ("metadata", METADATA),
    (
        "spec",
        Struct(&[
            ("schedule", Text),
            ("suspend", Bool),
            ("concurrencyPolicy", Text),
            (
                "jobTemplate",
                Struct(&[("metadata", METADATA), ("spec", JOB)]),
            ),
        ]),
    ),
]);

/// Why there is no Pod.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Problem {
    UnknownKind,
    WrongType,
}

/// Metadata and spec of the Pod in an object (docs/spec/pod-security.md §2).
pub(super) fn pod(object: &Value) -> Result<Value, Problem> {
    let wrong = |object: Result<Value, ()>| object.map_err(|()| Problem::WrongType);
    let kind = object
        .get("kind")
        .and_then(Value::as_str)
        .unwrap_or_default();
    let part = |value: &Value, path: &str| value.pointer(path).cloned().unwrap_or(Value::Null);
    let pod = |metadata: Value, spec: Value| {
        let mut pod = Map::new();
        pod.insert("metadata".into(), metadata);
        pod.insert("spec".into(), spec);
        Value::Object(pod)
    };
    match kind {
        "Pod" => wrong(decode(object, &POD)),
        "Deployment"
        | "DaemonSet"
        | "StatefulSet"
        | "ReplicaSet"
        | "ReplicationController"
        | "Job" => {
            let decoded = wrong(decode(object, &DEPLOYMENT))?;
            Ok(pod(
                part(&decoded, "/spec/template/metadata"),
                part(&decoded, "/spec/template/spec"),
            ))
        }
        "CronJob" => {
            let decoded = wrong(decode(object, &CRON_JOB))?;
            Ok(pod(
                part(&decoded, "/spec/jobTemplate/metadata"),
                part(&decoded, "/spec/jobTemplate/spec/template/spec"),
            ))
        }
        _ => Err(Problem::UnknownKind),
    }
}

/// A value of a type, with the names of its fields as declared.
fn decode(value: &Value, kind: &Type) -> Result<Value, ()> {
    match (kind, value) {
        (_, Value::Null) => Ok(Value::Null),
        (Text, Value::String(_)) | (Bool, Value::Bool(_)) => Ok(value.clone()),
        (Int32 | Int64, Value::Number(number)) => {
            // A whole float is printed without its fraction before it is decoded.
            let float = number.as_f64().filter(|float| float.fract() == 0.0);
            let whole = number.as_i64().or(float
                .filter(|float| float.abs() < 9.3e18)
                .map(|float| float as i64));
            let whole = whole.ok_or(())?;
            let is_small = i32::try_from(whole).is_ok() || matches!(kind, Int64);
            is_small.then_some(Value::from(whole)).ok_or(())
        }
        (IntOrText, Value::Number(_) | Value::String(_)) => Ok(value.clone()),
        (Texts, Value::Array(items)) => items
            .iter()
            .map(|item| match item {
                Value::Null => Ok(Value::from("")),
                Value::String(_) => Ok(item.clone()),
                _ => Err(()),
            })
            .collect(),
        (List(of), Value::Array(items)) => items
            .iter()
            .map(|item| match item {
                Value::Null => Ok(Value::Object(Map::new())),
                other => decode(other, of),
            })
            .collect(),
        (TextMap, Value::Object(members)) => {
            let mut texts = Map::new();
            for (key, item) in members {
                let text = match item {
                    Value::Null => "",
                    other => other.as_str().ok_or(())?,
                };
                texts.insert(key.clone(), Value::from(text));
            }
            Ok(Value::Object(texts))
        }
        (Opaque, Value::Object(_)) => Ok(value.clone()),
        (Struct(fields), Value::Object(members)) => {
            let mut decoded = Map::new();
            for (key, item) in members {
                let exact = fields.iter().find(|(name, _)| name == key);
                let field = exact.or_else(|| {
                    fields
                        .iter()
                        .find(|(name, _)| name.eq_ignore_ascii_case(key))
                });
                let Some((name, of)) = field else {
                    continue;
                };
                // Null removes what is behind a pointer; an own value keeps what was there.
                match decode(item, of)? {
                    Value::Null => {}
                    found => {
                        decoded.insert((*name).to_owned(), found);
                    }
                }
            }
            Ok(Value::Object(decoded))
        }
        _ => Err(()),
    }
}
