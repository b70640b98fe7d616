//! The constraints of the published schemas (`cmd/cli/kubectl-kyverno/data/crds` of Kyverno
//! 1.19.1, and Kubernetes' own OpenAPI for ValidatingAdmissionPolicies), by path.
//!
//! A path is a sequence of keys, `[]`, which stands for every item of a list, and `{}`, which
//! stands for every value of a map. Parts of rules that
//! mutate, generate or verify images are not listed: they are not compiled.

/// What is demanded of a value.
pub(super) enum Constraint {
    /// A map has these fields.
    Required(&'static [&'static str]),
    /// A map has exactly one of these fields.
    ExactlyOne(&'static [&'static str]),
    /// A map does not have both fields.
    NotBoth(&'static str, &'static str),
    /// A text is one of these.
    OneOf(&'static [&'static str]),
    /// A text has at most so many characters.
    AtMost(usize),
    /// A text is not empty.
    NotEmpty,
    /// A number is not below this.
    AtLeast(i64),
    /// A text is RFC 3339.
    Timestamp,
    /// A text is a label key, as the type of a condition of a status is one.
    QualifiedName,
    /// A text is a word of letters, digits and `_,:`.
    Reason,
    /// No two items of a list are equal.
    Distinct,
    /// No two items of a list have the same name.
    DistinctNames,
}

use Constraint::{
    AtLeast, AtMost, Distinct, DistinctNames, ExactlyOne, NotBoth, NotEmpty, OneOf, QualifiedName,
    Reason, Required, Timestamp,
};

/// Constraints on a value and on what is below it.
pub(super) struct Schema {
    pub(super) rows: &'static [(&'static str, Constraint)],
    /// Schemas of values at these paths.
    pub(super) parts: &'static [(&'static [&'static str], &'static Schema)],
}

pub(super) static METADATA: Schema = Schema {
    rows: &[
        ("creationTimestamp", Timestamp),
        ("deletionTimestamp", Timestamp),
        ("managedFields[]", Required(&["operation"])),
        ("managedFields[].operation", OneOf(&["Apply", "Update"])),
    ],
    parts: &[],
};

const ACTIONS: &[&str] = &["audit", "enforce", "Audit", "Enforce"];
const FAILURE_POLICIES: &[&str] = &["Ignore", "Fail"];
const CONTROLS: &[&str] = &[
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
];
const OPERATORS: &[&str] = &[
    "Equals",
    "NotEquals",
    "AnyIn",
    "AllIn",
    "AnyNotIn",
    "AllNotIn",
    "GreaterThanOrEquals",
    "GreaterThan",
    "LessThanOrEquals",
    "LessThan",
    "DurationGreaterThanOrEquals",
    "DurationGreaterThan",
    "DurationLessThanOrEquals",
    "DurationLessThan",
];
/// Those of the preconditions of a `foreach`, which have a schema of their own.
const FOREACH_OPERATORS: &[&str] = &[
    "Equals",
    "NotEquals",
    "In",
    "AnyIn",
    "AllIn",
    "NotIn",
    "AnyNotIn",
    "AllNotIn",
    "GreaterThanOrEquals",
    "GreaterThan",
    "LessThanOrEquals",
    "LessThan",
    "DurationGreaterThanOrEquals",
    "DurationGreaterThan",
    "DurationLessThanOrEquals",
    "DurationLessThan",
];

static SELECTOR: Schema = Schema {
    rows: &[("matchExpressions[]", Required(&["key", "operator"]))],
    parts: &[],
};

static FILTER: Schema = Schema {
    rows: &[
        ("resources", NotBoth("name", "names")),
        (
            "resources.operations[]",
            OneOf(&["CREATE", "CONNECT", "UPDATE", "DELETE"]),
        ),
        ("subjects[]", Required(&["kind", "name"])),
    ],
    parts: &[(
        &["resources.selector", "resources.namespaceSelector"],
        &SELECTOR,
    )],
};

static MATCH: Schema = Schema {
    rows: &[("", NotBoth("any", "all"))],
    parts: &[(&["", "any[]", "all[]"], &FILTER)],
};

static CONTEXT_ENTRY: Schema = Schema {
    rows: &[
        ("", Required(&["name"])),
        (
            "",
            ExactlyOne(&[
                "configMap",
                "apiCall",
                "imageRegistry",
                "variable",
                "globalReference",
            ]),
        ),
        ("apiCall.data[]", Required(&["key", "value"])),
        ("apiCall.method", OneOf(&["GET", "POST"])),
        ("apiCall.service", Required(&["url"])),
        ("apiCall.service.headers[]", Required(&["key", "value"])),
        ("configMap", Required(&["name"])),
        ("globalReference", Required(&["name"])),
        ("imageRegistry", Required(&["reference"])),
        (
            "imageRegistry.imageRegistryCredentials.providers[]",
            OneOf(&["default", "amazon", "azure", "google", "github"]),
        ),
    ],
    parts: &[],
};

static OVERRIDE: Schema = Schema {
    rows: &[("action", OneOf(ACTIONS))],
    parts: &[(&["namespaceSelector"], &SELECTOR)],
};

static NAMED_EXPRESSION: Schema = Schema {
    rows: &[("", Required(&["name", "expression"]))],
    parts: &[],
};

static EXCLUDE_OF_POD_SECURITY: Schema = Schema {
    rows: &[
        ("", Required(&["controlName"])),
        ("controlName", OneOf(CONTROLS)),
    ],
    parts: &[],
};

static RULE: Schema = Schema {
    rows: &[
        ("", Required(&["name", "match"])),
        ("name", AtMost(63)),
        ("validate.failureAction", OneOf(&["Audit", "Enforce"])),
        (
            "validate.cel.auditAnnotations[]",
            Required(&["key", "valueExpression"]),
        ),
        ("validate.cel.expressions[]", Required(&["expression"])),
        (
            "validate.foreach[].preconditions.any[].operator",
            OneOf(FOREACH_OPERATORS),
        ),
        (
            "validate.foreach[].preconditions.all[].operator",
            OneOf(FOREACH_OPERATORS),
        ),
        (
            "validate.podSecurity.level",
            OneOf(&["privileged", "baseline", "restricted"]),
        ),
        (
            "validate.podSecurity.version",
            OneOf(&[
                "v1.19", "v1.20", "v1.21", "v1.22", "v1.23", "v1.24", "v1.25", "v1.26", "v1.27",
                "v1.28", "v1.29", "v1.30", "v1.31", "v1.32", "latest",
            ]),
        ),
        ("validate.manifests.attestors[].count", AtLeast(1)),
        (
            "validate.manifests.attestors[].entries[].keys.secret",
            Required(&["name", "namespace"]),
        ),
    ],
    parts: &[
        (&["match", "exclude"], &MATCH),
        (
            &["context[]", "validate.foreach[].context[]"],
            &CONTEXT_ENTRY,
        ),
        (
            &["celPreconditions[]", "validate.cel.variables[]"],
            &NAMED_EXPRESSION,
        ),
        (&["validate.failureActionOverrides[]"], &OVERRIDE),
        (&["validate.cel.paramRef.selector"], &SELECTOR),
        (
            &["validate.podSecurity.exclude[]"],
            &EXCLUDE_OF_POD_SECURITY,
        ),
    ],
};

/// A `ClusterPolicy` or `Policy`.
pub(super) static POLICY: Schema = Schema {
    rows: &[
        ("", Required(&["spec"])),
        ("spec.applyRules", OneOf(&["All", "One"])),
        ("spec.failurePolicy", OneOf(FAILURE_POLICIES)),
        ("spec.validationFailureAction", OneOf(ACTIONS)),
        (
            "spec.webhookConfiguration.failurePolicy",
            OneOf(FAILURE_POLICIES),
        ),
        (
            "status.rulecount",
            Required(&["generate", "mutate", "validate", "verifyimages"]),
        ),
        (
            "status.validatingadmissionpolicy",
            Required(&["generated", "message"]),
        ),
    ],
    parts: &[
        (&["spec.rules[]", "status.autogen.rules[]"], &RULE),
        (&["spec.validationFailureActionOverrides[]"], &OVERRIDE),
        (
            &["spec.webhookConfiguration.matchConditions[]"],
            &NAMED_EXPRESSION,
        ),
        (&["status.conditions[]"], &STATUS_CONDITION),
    ],
};

/// What `kyverno.io/v2beta1` demands beside.
pub(super) static POLICY_V2BETA1: Schema = Schema {
    rows: &[
        (
            "spec.rules[].preconditions.any[].operator",
            OneOf(OPERATORS),
        ),
        (
            "spec.rules[].preconditions.all[].operator",
            OneOf(OPERATORS),
        ),
        (
            "spec.rules[].validate.deny.conditions.any[].operator",
            OneOf(OPERATORS),
        ),
        (
            "spec.rules[].validate.deny.conditions.all[].operator",
            OneOf(OPERATORS),
        ),
    ],
    parts: &[],
};

/// A `metav1.Condition`.
static STATUS_CONDITION: Schema = Schema {
    rows: &[
        (
            "",
            Required(&["lastTransitionTime", "message", "reason", "status", "type"]),
        ),
        ("lastTransitionTime", Timestamp),
        ("message", AtMost(32_768)),
        ("observedGeneration", AtLeast(0)),
        ("reason", NotEmpty),
        ("reason", AtMost(1_024)),
        ("reason", Reason),
        ("status", OneOf(&["True", "False", "Unknown"])),
        ("type", AtMost(316)),
        ("type", QualifiedName),
    ],
    parts: &[],
};

/// A `PolicyException` of kyverno.io.
pub(super) static EXCEPTION: Schema = Schema {
    rows: &[
        ("", Required(&["spec"])),
        ("spec", Required(&["exceptions", "match"])),
        ("spec.conditions.any[].operator", OneOf(OPERATORS)),
        ("spec.conditions.all[].operator", OneOf(OPERATORS)),
        ("spec.exceptions[]", Required(&["policyName", "ruleNames"])),
    ],
    parts: &[
        (&["spec.match"], &MATCH),
        (&["spec.podSecurity[]"], &EXCLUDE_OF_POD_SECURITY),
    ],
};

static MATCH_CONSTRAINTS: Schema = Schema {
    rows: &[],
    parts: &[(&["namespaceSelector", "objectSelector"], &SELECTOR)],
};

/// A `ValidatingPolicy` or `NamespacedValidatingPolicy`.
pub(super) static VALIDATING_POLICY: Schema = Schema {
    rows: &[
        ("", Required(&["spec"])),
        ("status.autogen.configs{}", Required(&["spec", "targets"])),
        (
            "status.autogen.configs{}.targets[]",
            Required(&["kind", "resource", "version"]),
        ),
    ],
    parts: &[
        (&["spec", "status.autogen.configs{}.spec"], &VALIDATING_SPEC),
        (&["status.conditionStatus.conditions[]"], &STATUS_CONDITION),
    ],
};

static VALIDATING_SPEC: Schema = Schema {
    rows: &[
        ("auditAnnotations[]", Required(&["key", "valueExpression"])),
        ("failurePolicy", OneOf(FAILURE_POLICIES)),
        ("matchConditions", DistinctNames),
        ("variables", DistinctNames),
        ("validationActions", Distinct),
        ("validationActions[]", OneOf(&["Deny", "Audit", "Warn"])),
        ("validations[]", Required(&["expression"])),
    ],
    parts: &[
        (&["matchConditions[]", "variables[]"], &NAMED_EXPRESSION),
        (&["matchConstraints"], &MATCH_CONSTRAINTS),
    ],
};

/// A `PolicyException` of policies.kyverno.io.
pub(super) static CEL_EXCEPTION: Schema = Schema {
    rows: &[
        ("", Required(&["spec"])),
        ("spec", Required(&["policyRefs"])),
        ("spec.expiresAt", Timestamp),
        ("spec.policyRefs[]", Required(&["kind", "name"])),
        ("spec.reportResult", OneOf(&["skip", "pass"])),
    ],
    parts: &[(&["spec.matchConditions[]"], &NAMED_EXPRESSION)],
};

/// A `ValidatingAdmissionPolicy`: the loader does not demand the required fields of the types
/// of Kubernetes, except in a status.
pub(super) static ADMISSION_POLICY: Schema = Schema {
    rows: &[
        ("spec.matchConditions", DistinctNames),
        ("spec.variables", DistinctNames),
        ("status.conditions[]", Required(&["lastTransitionTime"])),
    ],
    parts: &[],
};

/// A `ValidatingAdmissionPolicyBinding`.
pub(super) static ADMISSION_BINDING: Schema = Schema {
    rows: &[("spec.validationActions", Distinct)],
    parts: &[],
};
