//! Which built-in kinds live outside of namespaces (sheet 08, section 8.6, step 3).

/// Group and kind of every kind that Kyverno's command line knows to be
/// cluster-scoped; versions do not matter.
const CLUSTER_SCOPED: &[(&str, &[&str])] = &[
    (
        "",
        &["ComponentStatus", "Namespace", "Node", "PersistentVolume"],
    ),
    (
        "admissionregistration.k8s.io",
        &[
            "MutatingWebhookConfiguration",
            "ValidatingAdmissionPolicy",
            "ValidatingAdmissionPolicyBinding",
            "ValidatingWebhookConfiguration",
        ],
    ),
    ("apiextensions.k8s.io", &["CustomResourceDefinition"]),
    ("apiregistration.k8s.io", &["APIService"]),
    (
        "authentication.k8s.io",
        &["SelfSubjectReview", "TokenReview"],
    ),
    (
        "authorization.k8s.io",
        &[
            "SelfSubjectAccessReview",
            "SelfSubjectRulesReview",
            "SubjectAccessReview",
        ],
    ),
    ("certificates.k8s.io", &["CertificateSigningRequest"]),
    (
        "flowcontrol.apiserver.k8s.io",
        &["FlowSchema", "PriorityLevelConfiguration"],
    ),
    (
        "networking.k8s.io",
        &["IPAddress", "IngressClass", "ServiceCIDR"],
    ),
    ("node.k8s.io", &["RuntimeClass"]),
    (
        "rbac.authorization.k8s.io",
        &["ClusterRole", "ClusterRoleBinding"],
    ),
    ("resource.k8s.io", &["DeviceClass", "ResourceSlice"]),
    ("scheduling.k8s.io", &["PriorityClass"]),
    (
        "storage.k8s.io",
        &[
            "CSIDriver",
            "CSINode",
            "StorageClass",
            "VolumeAttachment",
            "VolumeAttributesClass",
        ],
    ),
];

/// Whether the kind is known to be cluster-scoped. Every unknown kind counts as
/// namespaced, custom ones included.
pub fn is_cluster_scoped(api_version: &str, kind: &str) -> bool {
    let group = api_version.split_once('/').map_or("", |(group, _)| group);
    CLUSTER_SCOPED
        .iter()
        .any(|&(known, kinds)| known == group && kinds.contains(&kind))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Sheet 08, section 8.6, step 3.
    #[test]
    fn kinds_and_groups_are_compared_and_versions_are_not() {
        for (api_version, kind, expected) in [
            ("v1", "Namespace", true),
            ("v1", "Pod", false),
            ("rbac.authorization.k8s.io/v1", "ClusterRole", true),
            ("rbac.authorization.k8s.io/v9", "ClusterRole", true),
            ("rbac.authorization.k8s.io/v1", "Role", false),
            (
                "admissionregistration.k8s.io/v1",
                "MutatingAdmissionPolicy",
                false,
            ),
            ("example.com/v1", "Node", false),
            ("", "Node", true),
            ("authorization.k8s.io/v1", "LocalSubjectAccessReview", false),
        ] {
            assert_eq!(
                is_cluster_scoped(api_version, kind),
                expected,
                "{api_version} {kind}"
            );
        }
    }
}
