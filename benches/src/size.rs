//! The Pod of the benches in three sizes, always the same to the rules.

use serde_json::Value;

/// Members of a Pod of [`Size::Small`], of its metadata, its spec and its containers.
const SMALL: [&[&str]; 4] = [
    &["apiVersion", "kind", "metadata", "spec"],
    &["name", "namespace", "labels"],
    &["containers", "securityContext"],
    &["name", "image", "resources", "securityContext"],
];

/// How many times [`Size::Large`] repeats what the Pod has once.
const TIMES: usize = 12;

/// How large a Pod is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Size {
    /// A kilobyte: what somebody would write who has only the rules to satisfy.
    Small,
    /// 5 KB: as the API server sends it, but without the status.
    Medium,
    /// 50 KB: twelve times the containers, their status and the fields that are managed.
    Large,
}

impl Size {
    /// All of them, from small to large.
    pub const ALL: [Size; 3] = [Size::Small, Size::Medium, Size::Large];

    /// The Pod in this size, as JSON.
    ///
    /// # Panics
    /// If the Pod is not like that of [`crate::workload`].
    #[allow(clippy::expect_used)] // a bench has nobody to report to
    pub fn of(self, pod: &[u8]) -> Vec<u8> {
        let mut pod: Value = serde_json::from_slice(pod).expect("the Pod is JSON");
        match self {
            Size::Small => shrink(&mut pod),
            Size::Medium => {
                let members = pod.as_object_mut().expect("the Pod is a map");
                members.remove("status");
            }
            Size::Large => {
                for list in [
                    "/spec/containers",
                    "/spec/volumes",
                    "/status/containerStatuses",
                    "/metadata/managedFields",
                ] {
                    repeat(pod.pointer_mut(list).expect("the Pod has the list"));
                }
            }
        }
        pod.to_string().into_bytes()
    }
}

/// Keeps only what [`SMALL`] names.
fn shrink(pod: &mut Value) {
    let [top, metadata, spec, container] = SMALL;
    keep(pod, top);
    keep(&mut pod["metadata"], metadata);
    keep(&mut pod["spec"], spec);
    let containers = pod["spec"]["containers"].as_array_mut();
    for one in containers.into_iter().flatten() {
        keep(one, container);
    }
}

fn keep(value: &mut Value, members: &[&str]) {
    if let Some(map) = value.as_object_mut() {
        map.retain(|key, _| members.contains(&key.as_str()));
    }
}

/// Repeats the items of a list [`TIMES`] times, renamed if they have names.
fn repeat(list: &mut Value) {
    let items = list.as_array().cloned().unwrap_or_default();
    let copies = (0..TIMES).flat_map(|time| items.iter().map(move |item| renamed(item, time)));
    *list = copies.collect();
}

fn renamed(item: &Value, time: usize) -> Value {
    let mut item = item.clone();
    if let Some(Value::String(name)) = item.get_mut("name") {
        *name = format!("{name}-{time}");
    }
    item
}
