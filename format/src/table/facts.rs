//! Facts for people: never read while rules are evaluated. [`crate::meta`] shows them.

use super::{Range, Text};

record! {
    /// Facts about the bundle itself.
    BundleFacts {
        /// Version of the compiler that wrote the bundle.
        compiler: Text,
    }
}

record! {
    /// Facts about one policy.
    PolicyFacts {
        /// `ClusterPolicy`, `Policy`, …
        kind: Text,
        /// `apiVersion` as written.
        api_version: Text,
        /// Annotations as written: range of `pairs`.
        annotations: Range,
        /// 1 if the policy takes part in background scans; if not, in admission only.
        background: u8,
    }
}

record! {
    /// A rule that the compiler left out on request.
    OmittedFacts {
        /// The policy's name.
        policy: Text,
        /// The rule's name.
        rule: Text,
        /// What is not supported.
        reason: Text,
        /// Where: `file:line:column`.
        place: Text,
    }
}
