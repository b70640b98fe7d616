//! Exclusions (docs/spec/pod-security.md §7).

use kpvm_semantics::wildcard::matches as wildcard;
use serde_json::{Map, Value, json};

use super::checks::{Failing, FieldError, Version, run};
use crate::value::go_text;

/// The checks of a control (docs/spec/pod-security.md §5).
fn ids(control: &str) -> &'static [&'static str] {
    match control {
        "HostProcess" => &["windowsHostProcess"],
        "Host Namespaces" => &["hostNamespaces"],
        "Privileged Containers" => &["privileged"],
        "Capabilities" => &["capabilities_baseline", "capabilities_restricted"],
        "HostPath Volumes" => &["hostPathVolumes"],
        "Host Ports" => &["hostPorts"],
        "AppArmor" => &["appArmorProfile"],
        "SELinux" => &["seLinuxOptions"],
        "/proc Mount Type" => &["procMount"],
        "Seccomp" => &["seccompProfile_baseline", "seccompProfile_restricted"],
        "Sysctls" => &["sysctls"],
        "Volume Types" => &["restrictedVolumes"],
        "Privilege Escalation" => &["allowPrivilegeEscalation"],
        "Running as Non-root" => &["runAsNonRoot"],
        "Running as Non-root user" => &["runAsUser"],
        _ => &[],
    }
}

fn texts(value: &Value, key: &str) -> Vec<String> {
    let items = value.get(key).and_then(Value::as_array);
    let items = items.into_iter().flatten().filter_map(Value::as_str);
    items.map(str::to_owned).collect()
}

fn text<'v>(value: &'v Value, key: &str) -> &'v str {
    value.get(key).and_then(Value::as_str).unwrap_or_default()
}

/// What is left of the failing checks after all exclusions (docs/spec/pod-security.md §7.1).
pub(super) fn apply(
    mut failing: Vec<Failing>,
    excludes: &[Value],
    pod: &Value,
    level: &str,
    version: Version,
) -> Vec<Failing> {
    for exclude in excludes {
        let images = texts(exclude, "images");
        let values = texts(exclude, "values");
        let restricted = text(exclude, "restrictedField");
        let of_pod = images.is_empty();
        let probe = match of_pod {
            true => bare(pod),
            false => only_images(pod, &images),
        };
        for result in run(&probe, level, version) {
            if !ids(text(exclude, "controlName")).contains(&result.id) {
                continue;
            }
            for error in result.errors.iter().flatten() {
                if !restricted.is_empty() && restricted != general(&error.path) {
                    continue;
                }
                if !values.is_empty() && !values_match(&error.bad, &values) {
                    continue;
                }
                let found = failing.iter_mut().find(|one| one.id == result.id);
                let errors = found.and_then(|one| one.errors.as_mut());
                let Some(errors) = errors else {
                    continue;
                };
                let corresponds = |default: &FieldError| {
                    general(&default.path) == general(&error.path)
                        && (of_pod
                            || container_name(pod, &default.path)
                                == container_name(&probe, &error.path))
                };
                if let Some(at) = errors.iter().position(corresponds) {
                    // Order changes (§7.5).
                    errors.swap_remove(at);
                }
            }
        }
        failing.retain(|one| one.errors.as_ref().is_none_or(|errors| !errors.is_empty()));
    }
    failing
}

/// The pod with one fake container.
fn bare(pod: &Value) -> Value {
    let mut pod = pod.clone();
    let mut spec = pod["spec"].as_object().cloned().unwrap_or_default();
    spec.remove("initContainers");
    spec.remove("ephemeralContainers");
    spec.insert("containers".into(), json!([{ "name": "fake" }]));
    pod["spec"] = Value::Object(spec);
    pod
}

/// Only the containers whose image matches (docs/spec/pod-security.md §7.2).
fn only_images(pod: &Value, images: &[String]) -> Value {
    let mut spec = Map::new();
    for kind in ["initContainers", "containers", "ephemeralContainers"] {
        let all = pod["spec"].get(kind).and_then(Value::as_array);
        let matches = |container: &&Value| {
            let image = text(container, "image");
            images.iter().any(|pattern| wildcard(pattern, image))
        };
        let kept: Vec<Value> = all.into_iter().flatten().filter(matches).cloned().collect();
        spec.insert(kind.to_owned(), Value::Array(kept));
    }
    json!({ "metadata": {}, "spec": spec })
}

/// Runs of digits become `*` (docs/spec/pod-security.md §7.3).
fn general(path: &str) -> String {
    let mut out = String::new();
    for letter in path.chars() {
        match letter.is_ascii_digit() {
            true if out.ends_with('*') => {}
            true => out.push('*'),
            false => out.push(letter),
        }
    }
    out
}

/// Every bad value matches some pattern; an empty text matches anything
/// (docs/spec/pod-security.md §7.3).
fn values_match(bad: &Value, patterns: &[String]) -> bool {
    let bad: Vec<String> = match bad {
        Value::String(text) if text.is_empty() => Vec::new(),
        Value::Array(items) => items.iter().map(go_text).collect(),
        other => vec![go_text(other)],
    };
    bad.iter()
        .all(|value| patterns.iter().any(|pattern| wildcard(pattern, value)))
}

/// The name of the container that a path is about, if it is about one
/// (docs/spec/pod-security.md §7.4).
fn container_name<'p>(pod: &'p Value, path: &str) -> Option<&'p str> {
    let word = path.split('.').nth(1)?;
    let (kind, index) = word.strip_suffix(']')?.split_once('[')?;
    if !["containers", "initContainers", "ephemeralContainers"].contains(&kind) {
        return None;
    }
    let container = pod["spec"].get(kind)?.get(index.parse::<usize>().ok()?)?;
    Some(text(container, "name"))
}
