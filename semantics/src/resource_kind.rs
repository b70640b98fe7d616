//! Kubernetes kinds and the plural names of their resources: a table of the built-in kinds,
//! and a guess for all others.
//!
//! Admission policies match resources but receive objects that only state their kind
//! (docs/spec/cel.md §6.3 and §6.6; docs/spec/cli.md §8.6, step 3).

/// Whether objects of a kind are namespaced.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Scope {
    /// Objects belong to a namespace.
    Namespaced,
    /// Objects are cluster-scoped.
    Cluster,
}

/// A built-in kind.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct BuiltInKind {
    /// API group; empty for core.
    pub group: &'static str,
    /// Versions that serve it, the preferred one first.
    pub versions: &'static [&'static str],
    /// The kind.
    pub kind: &'static str,
    /// Scope of its objects.
    pub scope: Scope,
}

impl BuiltInKind {
    /// Name of its resource, e.g. `pods`.
    pub fn resource(&self) -> String {
        plural(self.kind)
    }
}

/// An API group with its namespaced and cluster-scoped kinds.
struct Group {
    name: &'static str,
    versions: &'static [&'static str],
    namespaced: &'static [&'static str],
    cluster: &'static [&'static str],
}

const V1: &[&str] = &["v1"];

/// Kinds that Kyverno's command line knows without a cluster.
const GROUPS: &[Group] = &[
    Group {
        name: "",
        versions: V1,
        namespaced: &[
            "Binding",
            "ConfigMap",
            "Endpoints",
            "Event",
            "LimitRange",
            "PersistentVolumeClaim",
            "Pod",
            "PodTemplate",
            "ReplicationController",
            "ResourceQuota",
            "Secret",
            "Service",
            "ServiceAccount",
        ],
        cluster: &["ComponentStatus", "Namespace", "Node", "PersistentVolume"],
    },
    Group {
        name: "admissionregistration.k8s.io",
        versions: V1,
        namespaced: &[],
        cluster: &[
            "MutatingWebhookConfiguration",
            "ValidatingAdmissionPolicy",
            "ValidatingAdmissionPolicyBinding",
            "ValidatingWebhookConfiguration",
        ],
    },
    Group {
        name: "apiextensions.k8s.io",
        versions: V1,
        namespaced: &[],
        cluster: &["CustomResourceDefinition"],
    },
    Group {
        name: "apiregistration.k8s.io",
        versions: V1,
        namespaced: &[],
        cluster: &["APIService"],
    },
    Group {
        name: "apps",
        versions: V1,
        namespaced: &[
            "ControllerRevision",
            "DaemonSet",
            "Deployment",
            "ReplicaSet",
            "StatefulSet",
        ],
        cluster: &[],
    },
    Group {
        name: "authentication.k8s.io",
        versions: V1,
        namespaced: &[],
        cluster: &["SelfSubjectReview", "TokenReview"],
    },
    Group {
        name: "authorization.k8s.io",
        versions: V1,
        namespaced: &["LocalSubjectAccessReview"],
        cluster: &[
            "SelfSubjectAccessReview",
            "SelfSubjectRulesReview",
            "SubjectAccessReview",
        ],
    },
    Group {
        name: "autoscaling",
        versions: &["v2", "v1"],
        namespaced: &["HorizontalPodAutoscaler"],
        cluster: &[],
    },
    Group {
        name: "batch",
        versions: V1,
        namespaced: &["CronJob", "Job"],
        cluster: &[],
    },
    Group {
        name: "certificates.k8s.io",
        versions: V1,
        namespaced: &[],
        cluster: &["CertificateSigningRequest"],
    },
    Group {
        name: "coordination.k8s.io",
        versions: V1,
        namespaced: &["Lease"],
        cluster: &[],
    },
    Group {
        name: "discovery.k8s.io",
        versions: V1,
        namespaced: &["EndpointSlice"],
        cluster: &[],
    },
    Group {
        name: "events.k8s.io",
        versions: V1,
        namespaced: &["Event"],
        cluster: &[],
    },
    Group {
        name: "flowcontrol.apiserver.k8s.io",
        versions: V1,
        namespaced: &[],
        cluster: &["FlowSchema", "PriorityLevelConfiguration"],
    },
    Group {
        name: "networking.k8s.io",
        versions: V1,
        namespaced: &["Ingress", "NetworkPolicy"],
        cluster: &["IPAddress", "IngressClass", "ServiceCIDR"],
    },
    Group {
        name: "node.k8s.io",
        versions: V1,
        namespaced: &[],
        cluster: &["RuntimeClass"],
    },
    Group {
        name: "policy",
        versions: V1,
        namespaced: &["PodDisruptionBudget"],
        cluster: &[],
    },
    Group {
        name: "rbac.authorization.k8s.io",
        versions: V1,
        namespaced: &["Role", "RoleBinding"],
        cluster: &["ClusterRole", "ClusterRoleBinding"],
    },
    Group {
        name: "resource.k8s.io",
        versions: V1,
        namespaced: &["ResourceClaim", "ResourceClaimTemplate"],
        cluster: &["DeviceClass", "ResourceSlice"],
    },
    Group {
        name: "scheduling.k8s.io",
        versions: V1,
        namespaced: &[],
        cluster: &["PriorityClass"],
    },
    Group {
        name: "storage.k8s.io",
        versions: V1,
        namespaced: &["CSIStorageCapacity"],
        cluster: &[
            "CSIDriver",
            "CSINode",
            "StorageClass",
            "VolumeAttachment",
            "VolumeAttributesClass",
        ],
    },
];

/// All built-in kinds, by group.
pub fn built_in() -> impl Iterator<Item = BuiltInKind> {
    GROUPS.iter().flat_map(|group| {
        let of = |kinds: &'static [&'static str], scope| {
            kinds.iter().map(move |kind| BuiltInKind {
                group: group.name,
                versions: group.versions,
                kind,
                scope,
            })
        };
        let namespaced = of(group.namespaced, Scope::Namespaced);
        namespaced.chain(of(group.cluster, Scope::Cluster))
    })
}

/// The built-in kind of a group, whatever its version.
pub fn find(group: &str, kind: &str) -> Option<BuiltInKind> {
    built_in().find(|known| known.group == group && known.kind == kind)
}

/// Group, kind and subresources of the built-in kinds that have any, as served by a
/// Kubernetes 1.34 API server.
const SUBRESOURCES: &[(&str, &str, &[&str])] = &[
    ("", "Namespace", &["finalize", "status"]),
    ("", "Node", &["proxy", "status"]),
    ("", "PersistentVolume", &["status"]),
    ("", "PersistentVolumeClaim", &["status"]),
    (
        "",
        "Pod",
        &[
            "attach",
            "binding",
            "ephemeralcontainers",
            "eviction",
            "exec",
            "log",
            "portforward",
            "proxy",
            "resize",
            "status",
        ],
    ),
    ("", "ReplicationController", &["scale", "status"]),
    ("", "ResourceQuota", &["status"]),
    ("", "Service", &["proxy", "status"]),
    ("", "ServiceAccount", &["token"]),
    (
        "admissionregistration.k8s.io",
        "ValidatingAdmissionPolicy",
        &["status"],
    ),
    (
        "apiextensions.k8s.io",
        "CustomResourceDefinition",
        &["status"],
    ),
    ("apiregistration.k8s.io", "APIService", &["status"]),
    ("apps", "DaemonSet", &["status"]),
    ("apps", "Deployment", &["scale", "status"]),
    ("apps", "ReplicaSet", &["scale", "status"]),
    ("apps", "StatefulSet", &["scale", "status"]),
    ("autoscaling", "HorizontalPodAutoscaler", &["status"]),
    ("batch", "CronJob", &["status"]),
    ("batch", "Job", &["status"]),
    (
        "certificates.k8s.io",
        "CertificateSigningRequest",
        &["approval", "status"],
    ),
    ("flowcontrol.apiserver.k8s.io", "FlowSchema", &["status"]),
    (
        "flowcontrol.apiserver.k8s.io",
        "PriorityLevelConfiguration",
        &["status"],
    ),
    ("networking.k8s.io", "Ingress", &["status"]),
    ("networking.k8s.io", "ServiceCIDR", &["status"]),
    ("policy", "PodDisruptionBudget", &["status"]),
    ("resource.k8s.io", "ResourceClaim", &["status"]),
    ("storage.k8s.io", "VolumeAttachment", &["status"]),
];

/// The subresources of a built-in kind, sorted.
pub fn subresources(group: &str, kind: &str) -> &'static [&'static str] {
    let of_kind = |(known, name, _): &&(&str, &str, &[&str])| *known == group && *name == kind;
    let found = SUBRESOURCES.iter().find(of_kind);
    found.map_or(&[], |(_, _, subresources)| subresources)
}

/// Plural name of a kind as guessed by Kubernetes; right for every built-in kind.
pub fn plural(kind: &str) -> String {
    let mut name = String::with_capacity(kind.len() + 2);
    name.push_str(kind);
    make_plural(&mut name, 0);
    name
}

/// Pluralises the kind at the end of the text, from `start` on.
pub fn make_plural(text: &mut String, start: usize) {
    let Some(kind) = text.get_mut(start..) else {
        return;
    };
    kind.make_ascii_lowercase();
    if kind.is_empty() || kind.ends_with("endpoints") {
    } else if kind.ends_with('s') {
        text.push_str("es");
    } else if kind.ends_with('y') {
        text.pop();
        text.push_str("ies");
    } else {
        text.push('s');
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Resource names as served by a Kubernetes 1.34 API server.
    #[test]
    fn resources_of_built_in_kinds() {
        let all: Vec<String> = built_in().map(|kind| kind.resource()).collect();
        for name in [
            "apiservices",
            "bindings",
            "certificatesigningrequests",
            "clusterroles",
            "componentstatuses",
            "configmaps",
            "csistoragecapacities",
            "endpoints",
            "endpointslices",
            "ingressclasses",
            "ingresses",
            "ipaddresses",
            "leases",
            "namespaces",
            "networkpolicies",
            "poddisruptionbudgets",
            "pods",
            "priorityclasses",
            "replicasets",
            "resourcequotas",
            "runtimeclasses",
            "selfsubjectrulesreviews",
            "servicecidrs",
            "storageclasses",
            "validatingadmissionpolicies",
        ] {
            assert!(all.iter().any(|known| known == name), "{name}");
        }
        assert_eq!(plural("Goose"), "gooses");
        assert_eq!(plural(""), "");
    }

    #[test]
    fn kinds_are_found_by_group() {
        let scope = |group, kind| find(group, kind).map(|found| found.scope);
        assert_eq!(scope("", "Pod"), Some(Scope::Namespaced));
        assert_eq!(scope("", "Node"), Some(Scope::Cluster));
        assert_eq!(scope("example.com", "Node"), None);
        assert_eq!(
            find("autoscaling", "HorizontalPodAutoscaler").map(|found| found.versions),
            Some(&["v2", "v1"][..])
        );
    }
}
