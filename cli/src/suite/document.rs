//! The Test document: what a suite loads and expects (docs/spec/cli.md §1.5 and §2).

use kpvm::engine::Operation;
use kpvm_compiler::source::SourceId;
use kpvm_syntax::tree::{Span, Tree};

use crate::strict::{Decoder, Fields, Text};

/// One Test with every field read; the files it names are not opened yet.
#[derive(Debug, Clone)]
pub struct Document {
    /// `metadata.name`.
    pub name: String,
    /// Files, directories and URLs of policies.
    pub policies: Vec<Text>,
    /// Files of resources, or a directory.
    pub resources: Vec<Text>,
    /// Files of the targets of rules that mutate existing objects.
    pub target_resources: Vec<Text>,
    /// Files of parameters of admission policies.
    pub param_resources: Vec<Text>,
    /// File of values; ignored if `values` is present.
    pub variables: Option<Text>,
    /// Values in the document itself.
    pub values: Option<Tree>,
    /// File with the user.
    pub user_info: Option<Text>,
    /// Files of exceptions.
    pub exceptions: Vec<Text>,
    /// File with data for CEL.
    pub context: Option<Text>,
    /// Files of kind ClusterResource.
    pub cluster_resources: Vec<Text>,
    /// Files of JSON payloads.
    pub json_payloads: Vec<Text>,
    /// Files of HTTP requests.
    pub http_payloads: Vec<Text>,
    /// Files of Envoy requests.
    pub envoy_payloads: Vec<Text>,
    /// Answers to calls, see [`crate::calls`].
    pub api_call_responses: Option<Tree>,
    /// Global context entries, see [`crate::global_entries`].
    pub global_context_entries: Option<Tree>,
    /// Expected results.
    pub results: Vec<Expectation>,
    /// The whole document.
    pub span: Span,
}

/// One entry of `results`.
#[derive(Debug, Clone)]
pub struct Expectation {
    /// Name of the policy as written, perhaps with a namespace.
    pub policy: Text,
    /// Name of the rule; empty for all.
    pub rule: Text,
    /// Expected result as written; not validated.
    pub result: Text,
    /// A kind; it is not compared with anything.
    pub kind: Text,
    /// Names of resources; `None` if absent.
    pub resources: Option<Vec<Text>>,
    /// Resources by more than their names; they count only if `resources` is present.
    pub resource_specs: Vec<ResourceSpec>,
    /// Operation on the resources.
    pub operation: Option<Operation>,
    /// File with the expected mutated objects.
    pub patched_resources: Option<Text>,
    /// Files with the expected generated objects.
    pub generated_resources: Vec<Text>,
    /// Whether [`Self::generated_resources`] is a single file given by the singular field.
    pub is_singular: bool,
    /// File with the source of a clone rule.
    pub clone_source_resource: Option<Text>,
    /// Whether an object missing from the expected file is a failure.
    pub fail_on_missing_resources: bool,
    /// The whole entry.
    pub span: Span,
}

/// A resource by apiVersion, namespace and name.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ResourceSpec {
    /// `group/version`, or `version` for core.
    pub api_version: String,
    /// Namespace; empty for none.
    pub namespace: String,
    /// Name.
    pub name: String,
    /// Location.
    pub span: Span,
}

const TEST_FIELDS: &[&str] = &[
    "apiVersion",
    "kind",
    "metadata",
    "name",
    "policies",
    "resources",
    "targetResources",
    "paramResources",
    "variables",
    "values",
    "userinfo",
    "exceptions",
    "context",
    "clusterResources",
    "jsonPayload",
    "jsonPayloads",
    "httpPayloads",
    "envoyPayloads",
    "apiCallResponses",
    "globalContextEntries",
    "results",
];

const RESULT_FIELDS: &[&str] = &[
    "policy",
    "rule",
    "result",
    "kind",
    "resources",
    "resourceSpecs",
    "operation",
    "isValidatingAdmissionPolicy",
    "isMutatingAdmissionPolicy",
    "isValidatingPolicy",
    "isMutatingPolicy",
    "isGeneratingPolicy",
    "isDeletingPolicy",
    "isImageValidatingPolicy",
    "patchedResources",
    "generatedResource",
    "generatedResources",
    "cloneSourceResource",
    "failOnMissingResources",
];

const SPEC_FIELDS: &[&str] = &[
    "group",
    "version",
    "kind",
    "namespace",
    "subresource",
    "name",
];

/// Replacement for a field of earlier releases, which Kyverno now rejects.
fn instead(field: &str) -> Option<String> {
    let advice = match field {
        "resource" => "write `resources: [NAME]` instead",
        "status" => "write `result` instead",
        "namespace" => "write `resources: [NAMESPACE/NAME]` instead",
        "patchedResource" => "write `patchedResources` instead",
        "checks" => "write `results` instead: there are no checks any more",
        _ => return None,
    };
    Some(advice.to_owned())
}

/// Reads every Test of a text. Invalid ones are reported, the others returned.
pub fn read_documents(text: &str, source: SourceId, decoder: &mut Decoder) -> Vec<Document> {
    let mut documents = Vec::new();
    for tree in decoder.documents(text) {
        let mut own = Decoder::new("test-document", source);
        let document = Document::read(&tree, &mut own);
        if own.diagnostics.is_empty() {
            documents.push(document);
        } else {
            decoder.diagnostics.append(&mut own.diagnostics);
        }
    }
    // Text that is not YAML was found first.
    decoder
        .diagnostics
        .sort_by_key(|one| one.location.span.start);
    documents
}

impl Document {
    fn read(tree: &Tree, decoder: &mut Decoder) -> Self {
        let fields = decoder.fields_with(tree, TEST_FIELDS, instead);
        refuse_legacy(tree, &fields, decoder);
        let metadata = fields.get("metadata");
        let name = metadata.and_then(|metadata| metadata.get("name"));
        let file = |field: &str, decoder: &mut Decoder| {
            let text = decoder.spanned(fields.get(field));
            Some(text).filter(|text| !text.text.is_empty())
        };
        let files = |field: &str, decoder: &mut Decoder| {
            without_repetition(decoder.texts(fields.get(field)))
        };
        let mut json_payloads: Vec<Text> = files("jsonPayloads", decoder)
            .into_iter()
            .filter(|payload| !payload.text.trim().is_empty())
            .collect();
        let single = file("jsonPayload", decoder);
        if json_payloads.is_empty() {
            json_payloads.extend(single);
        }
        let results = decoder.items(fields.get("results"));
        Self {
            name: decoder.text(name),
            policies: files("policies", decoder),
            resources: files("resources", decoder),
            target_resources: files("targetResources", decoder),
            param_resources: files("paramResources", decoder),
            variables: file("variables", decoder),
            values: fields.get("values").cloned(),
            user_info: file("userinfo", decoder),
            exceptions: files("exceptions", decoder),
            context: file("context", decoder),
            cluster_resources: files("clusterResources", decoder),
            json_payloads,
            http_payloads: files("httpPayloads", decoder),
            envoy_payloads: files("envoyPayloads", decoder),
            api_call_responses: fields.get("apiCallResponses").cloned(),
            global_context_entries: fields.get("globalContextEntries").cloned(),
            results: results
                .iter()
                .map(|result| Expectation::read(result, decoder))
                .collect(),
            span: tree.span,
        }
    }
}

/// Rejects fields of earlier releases (docs/spec/cli.md §1.5).
fn refuse_legacy(tree: &Tree, fields: &Fields<'_>, decoder: &mut Decoder) {
    if tree.as_map().is_none() {
        // A non-map has already been reported, except for null.
        if tree.is_null() {
            decoder.refuse(tree.span, "expected a Test, found nothing", None);
        }
        return;
    }
    let is_empty = |field: &str, decoder: &mut Decoder| decoder.text(fields.get(field)).is_empty();
    let (has_version, has_kind) = (!is_empty("apiVersion", decoder), !is_empty("kind", decoder));
    let hint =
        "write `apiVersion: cli.kyverno.io/v1alpha1`, `kind: Test` and `metadata: {name: …}`";
    if !has_version || !has_kind {
        let message = "the test has the form without apiVersion and kind, which is no longer read";
        decoder.refuse(tree.span, message, Some(hint.to_owned()));
    }
    if let Some(name) = fields.get("name").filter(|_| !is_empty("name", decoder)) {
        let message = "the test has a `name` of its own, a form that is no longer read";
        let hint = "write the name under `metadata`".to_owned();
        decoder.refuse(name.span, message, Some(hint));
    }
}

/// Removes duplicates, keeping the first.
fn without_repetition(texts: Vec<Text>) -> Vec<Text> {
    let mut kept: Vec<Text> = Vec::new();
    for text in texts {
        if !kept.iter().any(|known| known.text == text.text) {
            kept.push(text);
        }
    }
    kept
}

impl Expectation {
    fn read(tree: &Tree, decoder: &mut Decoder) -> Self {
        let fields = decoder.fields_with(tree, RESULT_FIELDS, instead);
        if tree.as_map().is_none() && tree.is_null() {
            decoder.refuse(tree.span, "expected a result, found null", None);
        }
        let file = |field: &str, decoder: &mut Decoder| {
            let text = decoder.spanned(fields.get(field));
            Some(text).filter(|text| !text.text.is_empty())
        };
        for flag in RESULT_FIELDS.iter().filter(|field| field.starts_with("is")) {
            decoder.boolean(fields.get(flag));
        }
        let policy = decoder.spanned(fields.get("policy"));
        let operation = read_operation(&policy, &fields, decoder);
        let specs = decoder.items(fields.get("resourceSpecs"));
        let generated = decoder.texts(fields.get("generatedResources"));
        let single = file("generatedResource", decoder);
        let is_singular = generated.is_empty();
        Self {
            policy,
            rule: decoder.spanned(fields.get("rule")),
            result: decoder.spanned(fields.get("result")),
            kind: decoder.spanned(fields.get("kind")),
            resources: fields
                .get("resources")
                .map(|names| decoder.texts(Some(names))),
            resource_specs: specs
                .iter()
                .map(|spec| ResourceSpec::read(spec, decoder))
                .collect(),
            operation,
            patched_resources: file("patchedResources", decoder),
            generated_resources: match is_singular {
                true => single.into_iter().collect(),
                false => generated,
            },
            is_singular,
            clone_source_resource: file("cloneSourceResource", decoder),
            fail_on_missing_resources: decoder.boolean(fields.get("failOnMissingResources")),
            span: tree.span,
        }
    }

    /// The policy's name without a namespace.
    pub fn policy_name(&self) -> &str {
        let name = &self.policy.text;
        name.rsplit('/').next().unwrap_or(name)
    }
}

fn read_operation(policy: &Text, fields: &Fields<'_>, decoder: &mut Decoder) -> Option<Operation> {
    let text = decoder.spanned(fields.get("operation"));
    let of_deleting = decoder.boolean(fields.get("isDeletingPolicy"));
    match text.text.as_str() {
        "" => None,
        _ if of_deleting => {
            let message = format!(
                "invalid test result for policy {}: a deleting policy has no operation",
                policy.text
            );
            decoder.refuse(text.span, message, None);
            None
        }
        "CREATE" => Some(Operation::Create),
        "UPDATE" => Some(Operation::Update),
        "DELETE" => Some(Operation::Delete),
        other => {
            let message = format!(
                "invalid test result for policy {}: invalid operation \"{other}\", must be one of CREATE, UPDATE, DELETE",
                policy.text
            );
            decoder.refuse(text.span, message, None);
            None
        }
    }
}

impl ResourceSpec {
    fn read(tree: &Tree, decoder: &mut Decoder) -> Self {
        let fields = decoder.fields(tree, SPEC_FIELDS);
        let (group, version) = (
            decoder.text(fields.get("group")),
            decoder.text(fields.get("version")),
        );
        Self {
            api_version: match group.as_str() {
                "" => version,
                group => format!("{group}/{version}"),
            },
            namespace: decoder.text(fields.get("namespace")),
            name: decoder.text(fields.get("name")),
            span: tree.span,
        }
    }
}

/// Whether a path of a suite is a URL; URLs are not fetched.
pub fn is_url(path: &str) -> bool {
    path.starts_with("http://") || path.starts_with("https://")
}

#[cfg(test)]
mod tests {
    use super::*;

    const HEAD: &str = "apiVersion: cli.kyverno.io/v1alpha1\nkind: Test\nmetadata: {name: t}\n";

    /// The documents, and every error with its line.
    fn read(text: &str) -> (Vec<Document>, Vec<String>) {
        let mut sources = kpvm_compiler::source::Sources::new();
        let source = sources.add("kyverno-test.yaml", text);
        let mut decoder = Decoder::new("test-document", source);
        let documents = read_documents(text, source, &mut decoder);
        let shown = decoder.diagnostics.iter().map(|diagnostic| {
            let line = sources.line_column(diagnostic.location).line;
            let hint = diagnostic.hint.as_deref().unwrap_or("");
            format!("{line}: {} ({hint})", diagnostic.message)
        });
        (documents, shown.collect())
    }

    /// docs/spec/cli.md §2, §8.3 and §8.4: field names in any case, numbers where a text is
    /// expected, the plural before the singular.
    #[test]
    fn fields_are_read_as_go_reads_them() {
        let (documents, refused) = read(&format!(
            "{HEAD}policies: [a.yaml, b.yaml, a.yaml]\njsonPayload: one.json\nResults:\n- policy: 123\n  Rule: r\n  \
             isMUtatingPolicy: true\n  result: pass\n  resources: [5, x]\n  generatedResource: g.yaml\n  \
             resourceSpecs: [{{group: apps, version: v1, name: d}}, {{version: v1, name: e}}]\n  operation: DELETE\n"
        ));
        assert_eq!(refused, [""; 0]);
        let document = &documents[0];
        assert_eq!(document.name, "t");
        assert_eq!(document.policies.len(), 2);
        assert_eq!(document.json_payloads[0].text, "one.json");
        let row = &document.results[0];
        assert_eq!(
            (row.policy.text.as_str(), row.rule.text.as_str()),
            ("123", "r")
        );
        assert_eq!(row.resources.as_ref().unwrap()[0].text, "5");
        assert_eq!(row.operation, Some(Operation::Delete));
        assert!(row.is_singular && row.generated_resources[0].text == "g.yaml");
        let specs: Vec<&str> = row
            .resource_specs
            .iter()
            .map(|spec| spec.api_version.as_str())
            .collect();
        assert_eq!(specs, ["apps/v1", "v1"]);
    }

    /// docs/spec/cli.md §1.5, §2.1 and §14, case 31.
    #[test]
    fn what_kyverno_refuses_is_refused_with_what_to_write_instead() {
        let row = |fields: &str| format!("{HEAD}results:\n- {{policy: p, {fields}}}\n");
        for (text, expected) in [
            (
                row("resource: x"),
                "5: unknown field `resource` (write `resources: [NAME]` instead)",
            ),
            (
                row("status: pass"),
                "5: unknown field `status` (write `result` instead)",
            ),
            (
                row("namespace: x"),
                "5: unknown field `namespace` (write `resources: [NAMESPACE/NAME]` instead)",
            ),
            (
                row("patchedResource: x"),
                "5: unknown field `patchedResource` (write `patchedResources` instead)",
            ),
            (
                row("rul: x"),
                "5: unknown field `rul` (did you mean `rule`?)",
            ),
            (row("resources: x"), "5: expected a list, found text ()"),
            (
                row("isValidatingPolicy: x"),
                "5: expected true or false, found text ()",
            ),
            (
                row("operation: delete"),
                "5: invalid test result for policy p: invalid operation \"delete\", must be one of CREATE, UPDATE, DELETE ()",
            ),
            (
                row("operation: DELETE, isDeletingPolicy: true"),
                "5: invalid test result for policy p: a deleting policy has no operation ()",
            ),
            (
                format!("{HEAD}checks: []\n"),
                "4: unknown field `checks` (write `results` instead: there are no checks any more)",
            ),
            (
                format!("{HEAD}name: x\n"),
                "4: the test has a `name` of its own, a form that is no longer read (write the name under `metadata`)",
            ),
            (
                "name: x\n".to_owned(),
                "1: the test has the form without apiVersion and kind, which is no longer read (write `apiVersion: \
                 cli.kyverno.io/v1alpha1`, `kind: Test` and `metadata: {name: …}`)",
            ),
            (
                format!("{HEAD}results: [null]\n"),
                "4: expected a result, found null ()",
            ),
            ("- a\n".to_owned(), "1: expected a map, found a list ()"),
        ] {
            let (documents, refused) = read(&text);
            assert_eq!(
                (documents.len(), refused.first().map(String::as_str)),
                (0, Some(expected)),
                "{text}"
            );
        }
    }

    /// The other documents of a file are still read; Kyverno stops at the first bad one.
    #[test]
    fn a_bad_document_stops_no_other() {
        let (documents, refused) = read(&format!("{HEAD}x: 1\n---\n{HEAD}---\n{HEAD}a: 1\na: 2\n"));
        assert_eq!(documents.len(), 1);
        assert_eq!(refused[0], "4: unknown field `x` ()");
        assert_eq!(refused.len(), 2);
    }
}
