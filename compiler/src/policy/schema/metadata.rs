//! `metadata`, and `status`, which a controller writes.

use super::{Field, RULE, Shape, TEXT, field};

pub(super) static METADATA: &[Field] = &[
    field("name", TEXT),
    field("namespace", TEXT),
    field("annotations", Shape::TextMap),
    field("labels", Shape::TextMap),
    field("generateName", TEXT),
    field("creationTimestamp", TEXT),
    field("deletionTimestamp", TEXT),
    field("deletionGracePeriodSeconds", Shape::Int64),
    field("finalizers", Shape::List(&TEXT)),
    field("generation", Shape::Int64),
    field("managedFields", Shape::OpaqueList),
    field("ownerReferences", Shape::List(&OWNER)),
    field("resourceVersion", TEXT),
    field("selfLink", TEXT),
    field("uid", TEXT),
];

static OWNER: Shape = Shape::Object(&[
    field("apiVersion", TEXT),
    field("kind", TEXT),
    field("name", TEXT),
    field("uid", TEXT),
    field("controller", Shape::Bool),
    field("blockOwnerDeletion", Shape::Bool),
]);

/// Of a `ClusterPolicy` or `Policy`.
pub(super) static STATUS: &[Field] = &[
    field(
        "autogen",
        Shape::Object(&[field("rules", Shape::List(&RULE))]),
    ),
    field("conditions", Shape::List(&CONDITION)),
    field("ready", Shape::Bool),
    field(
        "rulecount",
        Shape::Object(&[
            field("generate", Shape::Int32),
            field("mutate", Shape::Int32),
            field("validate", Shape::Int32),
            field("verifyimages", Shape::Int32),
        ]),
    ),
    field(
        "validatingadmissionpolicy",
        Shape::Object(&[field("generated", Shape::Bool), field("message", TEXT)]),
    ),
];

/// Of a `ValidatingPolicy` or `NamespacedValidatingPolicy`.
pub(super) static VALIDATING_STATUS: &[Field] = &[
    field(
        "autogen",
        Shape::Object(&[field("configs", Shape::OpaqueMap)]),
    ),
    field(
        "conditionStatus",
        Shape::Object(&[
            field("conditions", Shape::List(&CONDITION)),
            field("message", TEXT),
            field("ready", Shape::Bool),
        ]),
    ),
    field("generated", Shape::Bool),
];

/// Of a `ValidatingAdmissionPolicy`.
pub(super) static ADMISSION_STATUS: &[Field] = &[
    field("conditions", Shape::List(&CONDITION)),
    field("observedGeneration", Shape::Int64),
    field(
        "typeChecking",
        Shape::Object(&[field(
            "expressionWarnings",
            Shape::List(&Shape::Object(&[
                field("fieldRef", TEXT),
                field("warning", TEXT),
            ])),
        )]),
    ),
];

static CONDITION: Shape = Shape::Object(&[
    field("lastTransitionTime", TEXT),
    field("message", TEXT),
    field("observedGeneration", Shape::Int64),
    field("reason", TEXT),
    field("status", TEXT),
    field("type", TEXT),
]);
