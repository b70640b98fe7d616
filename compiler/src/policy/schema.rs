//! Which fields a policy may have at each level, as one table, and the two walks
//! over it: checking a document, and dropping what Kyverno's own re-encoding of a
//! rule drops.
//!
//! Types follow Kyverno's decoder: a wrong type is an error. The narrower parts of the
//! published schema are in [`super::constraints`].
//!
//! Both walks recurse along the table; documents have a bounded depth by the time
//! they are trees ([`kpvm_semantics::limits::Limits::document_depth`]).

mod metadata;

use kpvm_syntax::tree::{Member, Span, Tree, TreeValue};

use self::metadata::{ADMISSION_STATUS, METADATA, STATUS, VALIDATING_STATUS};
use super::condition::{AnyAll, Conditions};
use super::spelling::nearest;
use crate::diagnostic::Diagnostic;
use crate::source::{Location, SourceId};

/// Allowed content of a field, which may always be null: it is absent then.
pub(super) enum Shape {
    /// Any JSON, unchanged.
    Raw,
    /// A boolean.
    Bool,
    /// A whole number of 32 bits.
    Int32,
    /// A whole number of 64 bits.
    Int64,
    /// Text; the list is the schema's enum, empty if unrestricted.
    Text(&'static [&'static str]),
    /// A map from text to text.
    TextMap,
    /// A list.
    List(&'static Shape),
    /// A map with known fields.
    Object(&'static [Field]),
    /// `{any, all}` or the legacy list of conditions.
    Conditions,
    /// `{any, all}` only.
    AnyAll,
    /// A map that is not inspected (rule types that are not compiled).
    OpaqueMap,
    /// A list that is not inspected.
    OpaqueList,
}

/// One known field.
pub(super) struct Field {
    name: &'static str,
    shape: Shape,
    /// Whether `kyverno.io/v2beta1` lacks it (docs/spec/policies.md §1.1).
    v1_only: bool,
}

const fn field(name: &'static str, shape: Shape) -> Field {
    Field {
        name,
        shape,
        v1_only: false,
    }
}

const fn v1_field(name: &'static str, shape: Shape) -> Field {
    Field {
        name,
        shape,
        v1_only: true,
    }
}

const TEXT: Shape = Shape::Text(&[]);

/// A `ClusterPolicy` or `Policy`.
pub(super) static POLICY: Shape = Shape::Object(&[
    field("apiVersion", TEXT),
    field("kind", TEXT),
    field("metadata", Shape::Object(METADATA)),
    field("spec", Shape::Object(SPEC)),
    field("status", Shape::Object(STATUS)),
]);

static SPEC: &[Field] = &[
    field("rules", Shape::List(&RULE)),
    field("applyRules", TEXT),
    field("validationFailureAction", TEXT),
    field("validationFailureActionOverrides", Shape::List(&OVERRIDE)),
    field("emitWarning", Shape::Bool),
    field("admission", Shape::Bool),
    field("background", Shape::Bool),
    field("failurePolicy", TEXT),
    field("webhookTimeoutSeconds", Shape::Int32),
    field("webhookConfiguration", Shape::Object(WEBHOOK)),
    field("schemaValidation", Shape::Bool),
    field("useServerSideApply", Shape::Bool),
    field("generateExisting", Shape::Bool),
    field("generateExistingOnPolicyUpdate", Shape::Bool),
    field("mutateExistingOnPolicyUpdate", Shape::Bool),
];

static WEBHOOK: &[Field] = &[
    field("failurePolicy", TEXT),
    field("timeoutSeconds", Shape::Int32),
    field("matchConditions", Shape::List(&NAMED_EXPRESSION)),
];

static NAMED_EXPRESSION: Shape = Shape::Object(&[field("name", TEXT), field("expression", TEXT)]);

static OVERRIDE: Shape = Shape::Object(&[
    field("action", TEXT),
    field("namespaces", Shape::List(&TEXT)),
    field("namespaceSelector", Shape::Object(SELECTOR)),
]);

/// One rule.
pub(super) static RULE: Shape = Shape::Object(&[
    field("name", TEXT),
    field("match", Shape::Object(MATCH)),
    field("exclude", Shape::Object(MATCH)),
    field("context", Shape::List(&CONTEXT_ENTRY)),
    field("preconditions", Shape::Conditions),
    field("celPreconditions", Shape::List(&NAMED_EXPRESSION)),
    field("reportProperties", Shape::TextMap),
    field("skipBackgroundRequests", Shape::Bool),
    field("imageExtractors", Shape::OpaqueMap),
    field("validate", Shape::Object(VALIDATE)),
    field("mutate", Shape::OpaqueMap),
    field("generate", Shape::OpaqueMap),
    field("verifyImages", Shape::OpaqueList),
]);

static MATCH: &[Field] = &[
    field("any", Shape::List(&FILTER)),
    field("all", Shape::List(&FILTER)),
    v1_field("resources", Shape::Object(RESOURCES)),
    v1_field("roles", Shape::List(&TEXT)),
    v1_field("clusterRoles", Shape::List(&TEXT)),
    v1_field("subjects", Shape::List(&SUBJECT)),
];

static FILTER: Shape = Shape::Object(&[
    field("resources", Shape::Object(RESOURCES)),
    field("roles", Shape::List(&TEXT)),
    field("clusterRoles", Shape::List(&TEXT)),
    field("subjects", Shape::List(&SUBJECT)),
]);

static RESOURCES: &[Field] = &[
    field("kinds", Shape::List(&TEXT)),
    v1_field("name", TEXT),
    field("names", Shape::List(&TEXT)),
    field("namespaces", Shape::List(&TEXT)),
    field("annotations", Shape::TextMap),
    field("selector", Shape::Object(SELECTOR)),
    field("namespaceSelector", Shape::Object(SELECTOR)),
    field("operations", Shape::List(&TEXT)),
];

static SUBJECT: Shape = Shape::Object(&[
    field("kind", TEXT),
    field("name", TEXT),
    field("namespace", TEXT),
    field("apiGroup", TEXT),
]);

static SELECTOR: &[Field] = &[
    field("matchLabels", Shape::TextMap),
    field("matchExpressions", Shape::List(&LABEL_REQUIREMENT)),
];

static LABEL_REQUIREMENT: Shape = Shape::Object(&[
    field("key", TEXT),
    field("operator", TEXT),
    field("values", Shape::List(&TEXT)),
]);

static CONTEXT_ENTRY: Shape = Shape::Object(&[
    field("name", TEXT),
    field(
        "configMap",
        Shape::Object(&[field("name", TEXT), field("namespace", TEXT)]),
    ),
    field("apiCall", Shape::Object(API_CALL)),
    field("imageRegistry", Shape::Object(IMAGE_REGISTRY)),
    field(
        "variable",
        Shape::Object(&[
            field("value", Shape::Raw),
            field("jmesPath", TEXT),
            field("default", Shape::Raw),
        ]),
    ),
    field(
        "globalReference",
        Shape::Object(&[field("name", TEXT), field("jmesPath", TEXT)]),
    ),
]);

static API_CALL: &[Field] = &[
    field("urlPath", TEXT),
    field("method", TEXT),
    field(
        "data",
        Shape::List(&Shape::Object(&[
            field("key", TEXT),
            field("value", Shape::Raw),
        ])),
    ),
    field(
        "service",
        Shape::Object(&[
            field("url", TEXT),
            field("caBundle", TEXT),
            field("headers", Shape::List(&HEADER)),
        ]),
    ),
    field("jmesPath", TEXT),
    field("default", Shape::Raw),
];

static HEADER: Shape = Shape::Object(&[field("key", TEXT), field("value", TEXT)]);

static IMAGE_REGISTRY: &[Field] = &[
    field("reference", TEXT),
    field("jmesPath", TEXT),
    field("imageRegistryCredentials", Shape::OpaqueMap),
];

static VALIDATE: &[Field] = &[
    field("message", TEXT),
    field("failureAction", TEXT),
    field("failureActionOverrides", Shape::List(&OVERRIDE)),
    v1_field("allowExistingViolations", Shape::Bool),
    field("pattern", Shape::Raw),
    field("anyPattern", Shape::Raw),
    field("deny", Shape::Object(DENY)),
    field("foreach", Shape::List(&FOREACH)),
    field("podSecurity", Shape::Object(POD_SECURITY)),
    field("cel", Shape::Object(CEL)),
    field("manifests", Shape::OpaqueMap),
    field("assert", Shape::Raw),
];

static DENY: &[Field] = &[field("conditions", Shape::Conditions)];

static FOREACH: Shape = Shape::Object(&[
    field("list", TEXT),
    field("elementScope", Shape::Bool),
    field("context", Shape::List(&CONTEXT_ENTRY)),
    field("preconditions", Shape::AnyAll),
    field("pattern", Shape::Raw),
    field("anyPattern", Shape::Raw),
    field("deny", Shape::Object(DENY)),
    field("foreach", Shape::List(&FOREACH)),
]);

static POD_SECURITY: &[Field] = &[
    // Their values are checked in `validate/pod_security.rs`.
    field("level", TEXT),
    field("version", TEXT),
    field("exclude", Shape::List(&POD_SECURITY_EXCLUDE)),
];

static POD_SECURITY_EXCLUDE: Shape = Shape::Object(&[
    field("controlName", TEXT),
    field("images", Shape::List(&TEXT)),
    field("restrictedField", TEXT),
    field("values", Shape::List(&TEXT)),
]);

static PARAM_KIND: &[Field] = &[field("apiVersion", TEXT), field("kind", TEXT)];

static PARAM_REF: &[Field] = &[
    field("name", TEXT),
    field("namespace", TEXT),
    field("selector", Shape::Object(SELECTOR)),
    field("parameterNotFoundAction", TEXT),
];

static CEL: &[Field] = &[
    field("generate", Shape::Bool),
    field("expressions", Shape::List(&CEL_VALIDATION)),
    field("paramKind", Shape::Object(PARAM_KIND)),
    field("paramRef", Shape::Object(PARAM_REF)),
    field(
        "auditAnnotations",
        Shape::List(&Shape::Object(&[
            field("key", TEXT),
            field("valueExpression", TEXT),
        ])),
    ),
    field("variables", Shape::List(&NAMED_EXPRESSION)),
];

static CEL_VALIDATION: Shape = Shape::Object(&[
    field("expression", TEXT),
    field("message", TEXT),
    field("messageExpression", TEXT),
    field("reason", TEXT),
]);

/// A `PolicyException` of kyverno.io (docs/spec/policies.md §9).
pub(super) static EXCEPTION: Shape = Shape::Object(&[
    field("apiVersion", TEXT),
    field("kind", TEXT),
    field("metadata", Shape::Object(METADATA)),
    field(
        "spec",
        Shape::Object(&[
            field("background", Shape::Bool),
            field(
                "match",
                Shape::Object(&[
                    field("any", Shape::List(&FILTER)),
                    field("all", Shape::List(&FILTER)),
                ]),
            ),
            field("conditions", Shape::Object(ANY_ALL)),
            field(
                "exceptions",
                Shape::List(&Shape::Object(&[
                    field("policyName", TEXT),
                    field("ruleNames", Shape::List(&TEXT)),
                ])),
            ),
            field("podSecurity", Shape::List(&POD_SECURITY_EXCLUDE)),
        ]),
    ),
]);

/// `MatchResources` of admission policies (docs/spec/cel.md §6.1).
pub(super) static MATCH_RESOURCES: &[Field] = &[
    field("resourceRules", Shape::List(&RESOURCE_RULE)),
    field("excludeResourceRules", Shape::List(&RESOURCE_RULE)),
    field("namespaceSelector", Shape::Object(SELECTOR)),
    field("objectSelector", Shape::Object(SELECTOR)),
    field("matchPolicy", Shape::Text(&["Exact", "Equivalent"])),
];

static RESOURCE_RULE: Shape = Shape::Object(&[
    field("apiGroups", Shape::List(&TEXT)),
    field("apiVersions", Shape::List(&TEXT)),
    field("operations", Shape::List(&TEXT)),
    field("resources", Shape::List(&TEXT)),
    field("resourceNames", Shape::List(&TEXT)),
    field("scope", Shape::Text(&["Namespaced", "Cluster", "*"])),
]);

static SWITCH: &[Field] = &[field("enabled", Shape::Bool)];

/// A `ValidatingPolicy` or `NamespacedValidatingPolicy` (docs/spec/cel.md §6.1).
pub(super) static VALIDATING_POLICY: Shape = Shape::Object(&[
    field("apiVersion", TEXT),
    field("kind", TEXT),
    field("metadata", Shape::Object(METADATA)),
    field("spec", Shape::Object(VALIDATING_SPEC)),
    field("status", Shape::Object(VALIDATING_STATUS)),
]);

static VALIDATING_SPEC: &[Field] = &[
    field("matchConstraints", Shape::Object(MATCH_RESOURCES)),
    field("matchConditions", Shape::List(&NAMED_EXPRESSION)),
    field("variables", Shape::List(&NAMED_EXPRESSION)),
    field("validations", Shape::List(&CEL_VALIDATION)),
    field("auditAnnotations", Shape::List(&AUDIT_ANNOTATION)),
    field("validationActions", Shape::List(&TEXT)),
    field("failurePolicy", TEXT),
    field(
        "autogen",
        Shape::Object(&[
            field(
                "podControllers",
                Shape::Object(&[field("controllers", Shape::List(&TEXT))]),
            ),
            field("validatingAdmissionPolicy", Shape::Object(SWITCH)),
        ]),
    ),
    field(
        "evaluation",
        Shape::Object(&[
            field(
                "mode",
                Shape::Text(&["Kubernetes", "JSON", "Envoy", "HTTP"]),
            ),
            field("admission", Shape::Object(SWITCH)),
            field("background", Shape::Object(SWITCH)),
        ]),
    ),
    field(
        "webhookConfiguration",
        Shape::Object(&[field("timeoutSeconds", Shape::Int32)]),
    ),
];

static AUDIT_ANNOTATION: Shape =
    Shape::Object(&[field("key", TEXT), field("valueExpression", TEXT)]);

/// A `ValidatingAdmissionPolicy` of Kubernetes (docs/spec/cel.md §5).
pub(super) static ADMISSION_POLICY: Shape = Shape::Object(&[
    field("apiVersion", TEXT),
    field("kind", TEXT),
    field("metadata", Shape::Object(METADATA)),
    field(
        "spec",
        Shape::Object(&[
            field("paramKind", Shape::Object(PARAM_KIND)),
            field("matchConstraints", Shape::Object(MATCH_RESOURCES)),
            field("matchConditions", Shape::List(&NAMED_EXPRESSION)),
            field("variables", Shape::List(&NAMED_EXPRESSION)),
            field("validations", Shape::List(&CEL_VALIDATION)),
            field("auditAnnotations", Shape::List(&AUDIT_ANNOTATION)),
            field("failurePolicy", TEXT),
        ]),
    ),
    field("status", Shape::Object(ADMISSION_STATUS)),
]);

/// A `ValidatingAdmissionPolicyBinding`.
pub(super) static ADMISSION_BINDING: Shape = Shape::Object(&[
    field("apiVersion", TEXT),
    field("kind", TEXT),
    field("metadata", Shape::Object(METADATA)),
    field(
        "spec",
        Shape::Object(&[
            field("policyName", TEXT),
            field("paramRef", Shape::Object(PARAM_REF)),
            field("matchResources", Shape::Object(MATCH_RESOURCES)),
            field("validationActions", Shape::List(&TEXT)),
        ]),
    ),
]);

/// A `PolicyException` of policies.kyverno.io (docs/spec/cel.md §6.5).
pub(super) static CEL_EXCEPTION: Shape = Shape::Object(&[
    field("apiVersion", TEXT),
    field("kind", TEXT),
    field("metadata", Shape::Object(METADATA)),
    field(
        "spec",
        Shape::Object(&[
            field(
                "policyRefs",
                Shape::List(&Shape::Object(&[field("name", TEXT), field("kind", TEXT)])),
            ),
            field("matchConditions", Shape::List(&NAMED_EXPRESSION)),
            field("images", Shape::List(&TEXT)),
            field("allowedValues", Shape::List(&TEXT)),
            field("reportResult", TEXT),
            field("expiresAt", TEXT),
        ]),
    ),
]);

/// Checks a whole document against a shape and reports every violation.
pub(super) fn check(
    tree: &Tree,
    shape: &Shape,
    source: SourceId,
    v2beta1: bool,
    diagnostics: &mut Vec<Diagnostic>,
) {
    let mut checker = Checker {
        source,
        v2beta1,
        path: String::new(),
        diagnostics,
    };
    checker.check(tree, shape);
}

struct Checker<'a> {
    source: SourceId,
    v2beta1: bool,
    path: String,
    diagnostics: &'a mut Vec<Diagnostic>,
}

impl Checker<'_> {
    fn check(&mut self, tree: &Tree, shape: &Shape) {
        match (shape, &tree.value) {
            (_, TreeValue::Null)
            | (Shape::Raw, _)
            | (Shape::Bool, TreeValue::Bool(_))
            | (Shape::OpaqueMap, TreeValue::Map(_))
            | (Shape::OpaqueList, TreeValue::List(_)) => {}
            (Shape::Text(values), TreeValue::String(text)) => self.check_enum(tree, text, values),
            (Shape::Int32, TreeValue::Int(value)) if i32::try_from(*value).is_ok() => {}
            (Shape::Int64, TreeValue::Int(_)) => {}
            (Shape::List(item), TreeValue::List(items)) => {
                for (index, tree) in items.iter().enumerate() {
                    self.inside(&format!("[{index}]"), |checker| {
                        if tree.is_null() {
                            // Only a field that is null is absent.
                            checker.wrong_type(expected(item), tree.describe(), tree.span);
                        }
                        checker.check(tree, item);
                    });
                }
            }
            (Shape::TextMap, TreeValue::Map(members)) => {
                for member in members {
                    self.inside(&format!(".{}", member.key), |checker| {
                        checker.check(&member.value, &TEXT);
                    });
                }
            }
            (Shape::Object(fields), TreeValue::Map(members)) => {
                self.check_members(members, fields);
            }
            (Shape::Conditions, _) => self.check_conditions(tree),
            (Shape::AnyAll, _) => {
                let read = AnyAll::read(tree).map(Conditions::AnyAll);
                self.check_block(tree, read);
            }
            (
                Shape::Bool
                | Shape::Int32
                | Shape::Int64
                | Shape::Text(_)
                | Shape::TextMap
                | Shape::List(_)
                | Shape::Object(_)
                | Shape::OpaqueMap
                | Shape::OpaqueList,
                _,
            ) => self.wrong_type(expected(shape), tree.describe(), tree.span),
        }
    }

    fn check_members(&mut self, members: &[Member], fields: &'static [Field]) {
        for member in members {
            match fields.iter().find(|field| field.name == &*member.key) {
                None => self.unknown_field(member, fields.iter().map(|field| field.name), false),
                Some(field) => {
                    if field.v1_only && self.v2beta1 {
                        self.not_in_v2beta1(&format!("`{}`", field.name), member.key_span);
                    }
                    self.inside(&format!(".{}", field.name), |checker| {
                        checker.check(&member.value, &field.shape);
                    });
                }
            }
        }
    }

    fn check_conditions(&mut self, tree: &Tree) {
        let read = Conditions::read(tree);
        if self.v2beta1 && matches!(read, Ok(Conditions::List(_))) {
            self.not_in_v2beta1("a plain list of conditions", tree.span);
        }
        self.check_block(tree, read);
    }

    /// Unknown names inside a block are only warnings: the schema preserves them and the
    /// decoder ignores them, but they are probably typing mistakes.
    fn check_block(
        &mut self,
        tree: &Tree,
        read: Result<Conditions, super::condition::ConditionsError>,
    ) {
        if let Err(error) = read {
            return self.wrong_type(error.expected, error.found, error.span);
        }
        for member in tree.as_map().unwrap_or_default() {
            if !["any", "all"].contains(&&*member.key) {
                self.unknown_field(member, ["any", "all"], true);
            }
        }
        let lists = [Some(tree), tree.get("any"), tree.get("all")];
        for condition in lists.into_iter().flatten().flat_map(list_items) {
            for member in condition.as_map().unwrap_or_default() {
                const KNOWN: [&str; 4] = ["key", "operator", "value", "message"];
                if !KNOWN.contains(&&*member.key) {
                    self.unknown_field(member, KNOWN, true);
                }
            }
        }
    }

    fn check_enum(&mut self, tree: &Tree, text: &str, values: &[&'static str]) {
        if values.is_empty() || values.contains(&text) {
            return;
        }
        let message = format!(
            "`{}` is {text:?}, which the schema does not list: an API server refuses the policy",
            self.shown_path()
        );
        let diagnostic = Diagnostic::warning("not-in-schema-enum", message, self.at(tree.span))
            .label("not one of the schema's values")
            .hint(format!("use one of: {}", values.join(", ")));
        self.diagnostics.push(diagnostic);
    }

    fn wrong_type(&mut self, expected: &str, found: &str, span: Span) {
        let message = format!(
            "expected {expected} at `{}`, found {found}",
            self.shown_path()
        );
        let diagnostic = Diagnostic::error("wrong-type", message, self.at(span))
            .label(format!("this is {found}"))
            .hint(format!("write {expected} here"));
        self.diagnostics.push(diagnostic);
    }

    fn unknown_field(
        &mut self,
        member: &Member,
        known: impl IntoIterator<Item = &'static str>,
        ignored: bool,
    ) {
        let message = match self.path.as_str() {
            "" => format!("unknown field `{}`", member.key),
            _ => format!("unknown field `{}` in `{}`", member.key, self.shown_path()),
        };
        let location = self.at(member.key_span);
        let diagnostic = if ignored {
            Diagnostic::warning("unknown-field", message, location)
        } else {
            Diagnostic::error("unknown-field", message, location)
        };
        let names: Vec<&str> = known.into_iter().collect();
        let hint = match nearest(&member.key, &names) {
            Some(name) => format!("did you mean `{name}`?"),
            None => format!("known fields here: {}", names.join(", ")),
        };
        self.diagnostics
            .push(diagnostic.label("no such field").hint(hint));
    }

    fn not_in_v2beta1(&mut self, what: &str, span: Span) {
        let message = format!(
            "{what} at `{}` is not part of kyverno.io/v2beta1",
            self.shown_path()
        );
        let diagnostic = Diagnostic::error("not-in-v2beta1", message, self.at(span))
            .label("only in kyverno.io/v1")
            .hint("use apiVersion kyverno.io/v1, or the any/all form");
        self.diagnostics.push(diagnostic);
    }

    fn inside(&mut self, step: &str, check: impl FnOnce(&mut Self)) {
        let length = self.path.len();
        self.path.push_str(step);
        check(self);
        self.path.truncate(length);
    }

    fn shown_path(&self) -> &str {
        self.path.trim_start_matches('.')
    }

    fn at(&self, span: Span) -> Location {
        Location {
            source: self.source,
            span,
        }
    }
}

fn list_items(tree: &Tree) -> &[Tree] {
    tree.as_list().unwrap_or_default()
}

fn expected(shape: &Shape) -> &'static str {
    match shape {
        Shape::Raw => "anything",
        Shape::Bool => "`true` or `false`",
        Shape::Int32 | Shape::Int64 => "a whole number",
        Shape::Text(_) => "text",
        Shape::TextMap | Shape::Object(_) | Shape::OpaqueMap => "a map",
        Shape::List(_) | Shape::OpaqueList => "a list",
        Shape::Conditions => "a map with `any` and `all`, or a list of conditions",
        Shape::AnyAll => "a map with `any` and `all`",
    }
}

/// Empty lists that are kept: Kyverno decodes an encoded rule into the rule itself, which
/// still has them, and a filter with one is not empty (docs/spec/policies.md §5.2).
const KEPT_EMPTY: [&str; 3] = ["roles", "clusterRoles", "subjects"];

/// Removes what Kyverno omits when it re-encodes a typed object: nulls, and empty texts,
/// lists and text maps (docs/spec/policies.md §12.5). Raw JSON is unchanged.
pub(super) fn without_omitted(tree: &Tree, shape: &Shape) -> Tree {
    let value = match (shape, &tree.value) {
        (Shape::Object(fields), TreeValue::Map(members)) => {
            TreeValue::Map(kept_members(members, fields))
        }
        (Shape::List(item), TreeValue::List(items)) => TreeValue::List(
            items
                .iter()
                .map(|tree| without_omitted(tree, item))
                .collect(),
        ),
        (Shape::Conditions | Shape::AnyAll, TreeValue::Map(members)) => {
            TreeValue::Map(kept_members(members, ANY_ALL))
        }
        (Shape::Conditions, TreeValue::List(_)) => {
            return without_omitted(tree, &CONDITION_LIST);
        }
        (
            Shape::Raw
            | Shape::Bool
            | Shape::Int32
            | Shape::Int64
            | Shape::Text(_)
            | Shape::TextMap
            | Shape::List(_)
            | Shape::Object(_)
            | Shape::Conditions
            | Shape::AnyAll
            | Shape::OpaqueMap
            | Shape::OpaqueList,
            value,
        ) => value.clone(),
    };
    Tree::new(value, tree.span)
}

static ANY_ALL: &[Field] = &[
    field("any", Shape::List(&CONDITION)),
    field("all", Shape::List(&CONDITION)),
];
static CONDITION_LIST: Shape = Shape::List(&CONDITION);
static CONDITION: Shape = Shape::Object(&[
    field("key", Shape::Raw),
    field("operator", TEXT),
    field("value", Shape::Raw),
    field("message", TEXT),
]);

fn kept_members(members: &[Member], fields: &'static [Field]) -> Vec<Member> {
    members
        .iter()
        .filter_map(|member| {
            let field = fields.iter().find(|field| field.name == &*member.key)?;
            if is_omitted(&member.value, &field.shape)
                && (member.value.is_null() || !KEPT_EMPTY.contains(&field.name))
            {
                return None;
            }
            Some(Member {
                value: without_omitted(&member.value, &field.shape),
                ..member.clone()
            })
        })
        .collect()
}

fn is_omitted(tree: &Tree, shape: &Shape) -> bool {
    match (shape, &tree.value) {
        (_, TreeValue::Null) => true,
        (Shape::Text(_), TreeValue::String(text)) => text.is_empty(),
        (Shape::List(_) | Shape::OpaqueList, TreeValue::List(items)) => items.is_empty(),
        (Shape::TextMap, TreeValue::Map(members)) => members.is_empty(),
        _ => false,
    }
}
