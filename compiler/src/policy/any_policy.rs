//! A policy of any kind.

use kpvm_format::meta::PolicyMeta;

use super::admission_policy::AdmissionPolicy;
use super::model::{Policy, PolicyKind, Spanned};
use super::validating_policy::ValidatingPolicy;
use crate::source::SourceId;

/// A policy of any kind that is compiled.
#[allow(clippy::large_enum_variant)] // few, and all of them live as long
pub(crate) enum AnyPolicy {
    /// One of kyverno.io.
    Classic(Policy),
    /// One of policies.kyverno.io.
    Validating(ValidatingPolicy),
    /// One of Kubernetes.
    Admission(AdmissionPolicy),
}

impl AnyPolicy {
    pub(crate) fn name(&self) -> &Spanned<String> {
        match self {
            AnyPolicy::Classic(policy) => &policy.name,
            AnyPolicy::Validating(policy) => &policy.name,
            AnyPolicy::Admission(policy) => &policy.name,
        }
    }

    pub(crate) fn source(&self) -> SourceId {
        match self {
            AnyPolicy::Classic(policy) => policy.source,
            AnyPolicy::Validating(policy) => policy.source,
            AnyPolicy::Admission(policy) => policy.source,
        }
    }

    pub(crate) fn kind(&self) -> &'static str {
        match self {
            AnyPolicy::Classic(policy) => match policy.kind {
                PolicyKind::ClusterPolicy => "ClusterPolicy",
                PolicyKind::Policy => "Policy",
            },
            AnyPolicy::Validating(policy) if policy.is_namespaced => "NamespacedValidatingPolicy",
            AnyPolicy::Validating(_) => "ValidatingPolicy",
            AnyPolicy::Admission(_) => "ValidatingAdmissionPolicy",
        }
    }

    /// What identifies the policy: kind, namespace and name.
    pub(crate) fn identity(&self) -> (&'static str, Option<String>, String) {
        let namespace = match self {
            AnyPolicy::Classic(policy) => policy.namespace.clone(),
            AnyPolicy::Validating(policy) if policy.is_namespaced => Some(policy.namespace.clone()),
            AnyPolicy::Validating(_) | AnyPolicy::Admission(_) => None,
        };
        (self.kind(), namespace, self.name().value.clone())
    }

    pub(crate) fn meta(&self) -> PolicyMeta {
        let (api_version, annotations, background) = match self {
            AnyPolicy::Classic(policy) => {
                (&policy.api_version, &policy.annotations, policy.background)
            }
            AnyPolicy::Validating(policy) => {
                (&policy.api_version, &policy.annotations, policy.background)
            }
            AnyPolicy::Admission(policy) => (&policy.api_version, &policy.annotations, true),
        };
        PolicyMeta {
            kind: self.kind().into(),
            api_version: api_version.clone(),
            annotations: annotations.clone(),
            background,
        }
    }
}
