//! Evaluates one resource against one bundle, with everything else that rules see: values,
//! user, namespaces, operation, and the host.
//!
//! Returns the engine's responses in the order of the rules. Usually one run of the engine
//! per resource is enough; if the values differ between policies or rules, there is one run
//! for each difference, and only the responses of the rules concerned are kept.

use std::borrow::Cow;
use std::collections::BTreeMap;

use kpvm::document::Numbers;
use kpvm::engine::observer::{Event, Observer};
use kpvm::engine::{
    Engine, EvaluateError, GroupVersionKind, Input, Operation, Request, RuleResponse, Session,
    UserInfo, merge,
};
use kpvm::host::Host;
use kpvm_format::table::BodyKind;
use serde_json::{Map, Value};

use crate::resources::Resource;
use crate::user_info::{BorrowedUser, User, or_background};
use crate::values::{Labels, Subresource, Values, Variables};

/// Inputs of an evaluation besides policies and resources.
#[derive(Debug, Clone, Default)]
pub struct Circumstances {
    /// Operation on resources for which the values define none.
    pub operation: Operation,
    /// Variables by policy, resource and rule.
    pub values: Values,
    /// Labels of namespaces.
    pub namespaces: BTreeMap<String, Labels>,
    /// Namespaces as objects, as far as given.
    pub namespace_objects: BTreeMap<String, Value>,
    /// Names of resources by group and kind, from CustomResourceDefinitions.
    pub plurals: BTreeMap<(String, String), String>,
    /// Kinds that represent subresources.
    pub subresources: Vec<Subresource>,
    /// The user, if given.
    pub user: Option<User>,
}

/// Reason why a resource cannot be evaluated.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
pub enum EvaluationError {
    /// The engine rejects it as an object.
    #[error(transparent)]
    Request(#[from] EvaluateError),
    /// The values replace it by something that is not an object (docs/spec/cli.md §7.2).
    #[error(
        "the object retrieved from the json context is not valid: expected the values to have a map under request.{0}"
    )]
    NotAnObject(String),
}

/// Message as reported: the rule's `reportProperties` may override it, by status or always
/// (docs/spec/cli.md §10.2).
pub fn report_message<'r>(response: &RuleResponse<'r>) -> Cow<'r, str> {
    let own = format!("{}Message", response.status().as_str());
    let of = |name: &str| {
        let mut all = response.properties();
        let found = all.find(|(key, _)| *key == name);
        found
            .map(|(_, value)| value)
            .filter(|text| !text.is_empty())
    };
    match of("message").or_else(|| of(&own)) {
        Some(message) => message.into(),
        None => response.message(),
    }
}

/// Evaluates resources one after another.
pub struct Evaluator<'b> {
    engine: &'b Engine,
    circumstances: &'b Circumstances,
    user: Option<BorrowedUser<'b>>,
    /// Names of the policies.
    policies: Vec<&'b str>,
    rules: Vec<RuleScope<'b>>,
    /// Variables used if the values have none for the resource.
    general: Variables,
    /// One session per run that a resource needs, created on first use.
    sessions: Vec<Session<'b>>,
}

/// Values of a rule.
#[derive(Debug, Clone, Copy)]
struct RuleScope<'b> {
    policy: usize,
    addition: Option<&'b Value>,
    /// Whether it belongs to a ValidatingAdmissionPolicy.
    is_admission: bool,
}

/// Distinguishes the runs of the engine for the same resource.
#[derive(Debug, Clone, Copy)]
struct RunKey<'b> {
    /// The policy with its own variables for the resource.
    policy: Option<usize>,
    /// Additions of the rule's variables to its context.
    addition: Option<&'b Value>,
    /// Whether it is the run for ValidatingAdmissionPolicies.
    is_admission: bool,
}

impl PartialEq for RunKey<'_> {
    fn eq(&self, other: &Self) -> bool {
        let additions = match (self.addition, other.addition) {
            (Some(left), Some(right)) => std::ptr::eq(left, right),
            (left, right) => left.is_none() && right.is_none(),
        };
        self.policy == other.policy && self.is_admission == other.is_admission && additions
    }
}

impl<'b> Evaluator<'b> {
    /// An evaluator with an engine.
    pub fn new(engine: &'b Engine, circumstances: &'b Circumstances) -> Self {
        let tables = engine.bundle().tables();
        let names = tables.policies.iter();
        let policies: Vec<&str> = names.map(|policy| tables.text(policy.name)).collect();
        let values = &circumstances.values;
        let scope = |rule: &kpvm_format::table::Rule| {
            let policy = rule.policy.get() as usize;
            let name = policies.get(policy).copied().unwrap_or_default();
            RuleScope {
                policy,
                addition: values.of_rule(name, tables.text(rule.name)),
                is_admission: rule.body == BodyKind::AdmissionPolicy as u8,
            }
        };
        Self {
            engine,
            circumstances,
            user: circumstances.user.as_ref().map(User::borrow),
            rules: tables.rules.iter().map(scope).collect(),
            policies,
            general: values.general_variables(),
            sessions: Vec::new(),
        }
    }

    /// All responses for one resource, in the order of the rules. The given operation takes
    /// precedence over that of the values (docs/spec/cli.md §3.2).
    ///
    /// # Errors
    /// If the resource cannot be evaluated. Errors inside a rule are that rule's status.
    pub fn evaluate(
        &mut self,
        resource: &Resource,
        operation: Option<Operation>,
        host: &mut dyn Host,
    ) -> Result<Vec<RuleResponse<'_>>, EvaluationError> {
        self.evaluate_observed(resource, operation, host, None)
    }

    /// Like [`Evaluator::evaluate`]; the observer receives the events of each rule from the
    /// run that its response is taken from.
    ///
    /// # Errors
    /// Like [`Evaluator::evaluate`].
    pub fn evaluate_observed(
        &mut self,
        resource: &Resource,
        operation: Option<Operation>,
        host: &mut dyn Host,
        mut observer: Option<&mut dyn Observer>,
    ) -> Result<Vec<RuleResponse<'_>>, EvaluationError> {
        let keys = self.keys(resource);
        let mut runs: Vec<RunKey<'_>> = Vec::new();
        for key in &keys {
            if !runs.contains(key) {
                runs.push(*key);
            }
        }
        while self.sessions.len() < runs.len() {
            self.sessions.push(Session::new(self.engine));
        }
        let user = self.user.as_ref().map(BorrowedUser::info);
        let mut responses = Vec::new();
        for (key, session) in runs.iter().zip(&mut self.sessions) {
            let policy = key.policy.and_then(|policy| self.policies.get(policy));
            let own = policy.map(|policy| {
                let values = &self.circumstances.values;
                values.variables(policy, resource.metadata("name"))
            });
            let variables = own.as_ref().unwrap_or(&self.general);
            let run = match key.is_admission {
                true => Run::creation(resource, self.circumstances),
                false => Run::new(
                    resource,
                    self.circumstances,
                    operation,
                    variables,
                    key.addition,
                )?,
            };
            let user = match key.is_admission {
                true => Some(or_background(user.unwrap_or_default())),
                false => user,
            };
            let is_own = |rule: usize| keys.get(rule) == Some(key);
            let request = run.request(user);
            let evaluation = match &mut observer {
                None => session.evaluate_with(&request, host)?,
                Some(observer) => {
                    let mut own = OwnRules {
                        observer: *observer,
                        is_own,
                        hears: false,
                    };
                    session.evaluate_observed(&request, host, &mut own)?
                }
            };
            let own = |response: &RuleResponse<'_>| is_own(response.rule_index());
            responses.extend(evaluation.responses().filter(own));
        }
        responses.sort_by_key(RuleResponse::rule_index);
        Ok(responses)
    }

    /// The run that each rule needs.
    fn keys(&self, resource: &Resource) -> Vec<RunKey<'b>> {
        let name = resource.metadata("name");
        let has_own = |policy: &&str| self.circumstances.values.has_resource(policy, name);
        let own: Vec<bool> = self.policies.iter().map(has_own).collect();
        let key = |scope: &RuleScope<'b>| match scope.is_admission {
            true => RunKey {
                policy: None,
                addition: None,
                is_admission: true,
            },
            false => RunKey {
                policy: own
                    .get(scope.policy)
                    .is_some_and(|own| *own)
                    .then_some(scope.policy),
                addition: scope.addition,
                is_admission: false,
            },
        };
        self.rules.iter().map(key).collect()
    }
}

/// Forwards the events of the rules of one run.
struct OwnRules<'o, F> {
    observer: &'o mut dyn Observer,
    is_own: F,
    /// Whether the current rule is one of them.
    hears: bool,
}

impl<F: Fn(usize) -> bool> Observer for OwnRules<'_, F> {
    fn observe(&mut self, event: &Event<'_>) {
        if let Event::Tried { rule, .. } | Event::NotTried { rule, .. } = *event {
            self.hears = (self.is_own)(rule as usize);
        }
        if self.hears {
            self.observer.observe(event);
        }
    }
}

/// One run of the engine.
struct Run<'r> {
    resource: &'r Resource,
    circumstances: &'r Circumstances,
    operation: Operation,
    /// The objects, if variables modify them.
    object: Option<Value>,
    old_object: Option<Value>,
    /// Additions to the context alone.
    variables: Option<Cow<'r, Value>>,
    labels: Vec<(&'r str, &'r str)>,
}

impl<'r> Run<'r> {
    /// Request as seen by ValidatingAdmissionPolicies without a cluster: always a creation
    /// (docs/spec/cli.md §3.2).
    fn creation(resource: &'r Resource, circumstances: &'r Circumstances) -> Self {
        Self {
            resource,
            circumstances,
            operation: Operation::Create,
            object: None,
            old_object: None,
            variables: None,
            labels: labels(circumstances, resource),
        }
    }

    fn new(
        resource: &'r Resource,
        circumstances: &'r Circumstances,
        operation: Option<Operation>,
        variables: &'r Variables,
        addition: Option<&'r Value>,
    ) -> Result<Self, EvaluationError> {
        let named = |name: &String| match name.as_str() {
            "UPDATE" => Operation::Update,
            "DELETE" => Operation::Delete,
            _ => Operation::Create,
        };
        let of_values = variables.operation.as_ref().map(named);
        let is_empty = variables.values.as_object().is_none_or(Map::is_empty);
        let mut run = Self {
            resource,
            circumstances,
            operation: operation.or(of_values).unwrap_or(circumstances.operation),
            object: None,
            old_object: None,
            variables: (!is_empty).then_some(Cow::Borrowed(&variables.values)),
            labels: labels(circumstances, resource),
        };
        if variables.values.get("request").is_some() {
            let mut context = variables.values.clone();
            if let Some(Value::Object(request)) = context.get_mut("request") {
                run.take_request(request, operation.is_some())?;
            }
            run.variables = Some(Cow::Owned(context));
        }
        if let Some(addition) = addition {
            let mut context = run.variables.map_or_else(Value::default, Cow::into_owned);
            merge(&mut context, addition);
            run.variables = Some(Cow::Owned(context));
        }
        Ok(run)
    }

    /// Takes the members of the variable `request` that modify the request itself.
    fn take_request(
        &mut self,
        request: &mut Map<String, Value>,
        is_given: bool,
    ) -> Result<(), EvaluationError> {
        // Rules see any other text although a different operation is performed
        // (docs/spec/cli.md §3.2).
        let name = self.operation.name();
        if is_given || request.get("operation").and_then(Value::as_str) == Some(name) {
            request.remove("operation");
        }
        if self.operation != Operation::Delete {
            self.object = self.rewritten(request, "object")?;
        }
        if self.operation != Operation::Create {
            self.old_object = self.rewritten(request, "oldObject")?;
        }
        Ok(())
    }

    /// The object modified by the variables (docs/spec/cli.md §7.2); `None` if unchanged.
    fn rewritten(
        &self,
        request: &mut Map<String, Value>,
        side: &str,
    ) -> Result<Option<Value>, EvaluationError> {
        match request.remove(side) {
            None => Ok(None),
            Some(additions @ Value::Object(_)) => {
                let mut object = self.resource.tree.to_json();
                merge(&mut object, &additions);
                Ok(Some(object))
            }
            Some(_) => Err(EvaluationError::NotAnObject(side.to_owned())),
        }
    }

    /// Name of the kind's resource, if a definition states it.
    fn plural(&self) -> &str {
        let plurals = &self.circumstances.plurals;
        if plurals.is_empty() {
            return "";
        }
        let [group, _, kind] = self.resource.group_version_kind().map(str::to_owned);
        plurals.get(&(group, kind)).map_or("", String::as_str)
    }

    fn request<'q>(&'q self, user: Option<UserInfo<'q>>) -> Request<'q> {
        let side = |rewritten: &'q Option<Value>| match rewritten {
            Some(value) => Input::Value(value),
            None => Input::Tree(&self.resource.tree),
        };
        let own = self.resource.group_version_kind();
        let listed = self.circumstances.subresources.iter();
        // If several match, the last one wins.
        let subresource = listed.rev().find(|entry| entry.child == own);
        let [group, version, kind] = match subresource {
            Some(entry) => entry.parent.each_ref().map(String::as_str),
            None => own,
        };
        Request {
            object: (self.operation != Operation::Delete).then(|| side(&self.object)),
            old_object: (self.operation != Operation::Create).then(|| side(&self.old_object)),
            operation: self.operation,
            // A modified object keeps its kind.
            kind: (subresource.is_some() || self.object.is_some()).then_some(GroupVersionKind {
                group,
                version,
                kind,
            }),
            resource: self.plural(),
            subresource: subresource.map_or("", |entry| &entry.name),
            user,
            namespace_labels: &self.labels,
            namespace_object: self
                .circumstances
                .namespace_objects
                .get(self.resource.metadata("namespace")),
            variables: self.variables.as_deref(),
            is_payload: self.resource.payload.is_some(),
            every_namespace: true,
            numbers: match &self.resource.payload {
                Some(payload) => payload.numbers,
                None => Numbers::Float,
            },
        }
    }
}

/// Labels of the namespace of a resource; none for a Namespace itself.
fn labels<'r>(circumstances: &'r Circumstances, resource: &'r Resource) -> Vec<(&'r str, &'r str)> {
    let namespace = match resource.text("kind") {
        "Namespace" => "",
        _ => resource.metadata("namespace"),
    };
    let labels = circumstances.namespaces.get(namespace);
    let labels = labels.map_or(&[][..], Vec::as_slice);
    labels
        .iter()
        .map(|(key, value)| (key.as_str(), value.as_str()))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::host::ProcessHost;
    use crate::resources::Resources;
    use crate::strict::Decoder;
    use kpvm_compiler::compile::{Options, compile};
    use kpvm_compiler::source::{SourceId, Sources};

    /// Three ways to read the label `a`: as text of the context, as a pattern, and by a
    /// selector.
    const POLICY: &str = r#"
apiVersion: kyverno.io/v1
kind: ClusterPolicy
metadata: {name: p}
spec:
  rules:
  - name: context
    match: {any: [{resources: {kinds: [Pod]}}]}
    context: [{name: extra, apiCall: {urlPath: /api/v1/namespaces}}]
    validate:
      message: "{{ request.operation }} {{ request.object.metadata.labels.a || 'none' }} {{ request.oldObject.metadata.labels.a || 'none' }} {{ extra.k || 'none' }}"
      deny: {conditions: {all: [{key: a, operator: Equals, value: a}]}}
  - name: pattern
    match: {any: [{resources: {kinds: [Pod]}}]}
    validate: {message: x, pattern: {metadata: {labels: {a: rewritten}}}}
  - name: selector
    match: {any: [{resources: {kinds: [Pod], selector: {matchLabels: {a: rewritten}}}}]}
    validate: {message: x, pattern: {kind: Pod}}
"#;

    fn responses(
        values: &str,
        operation: Option<Operation>,
    ) -> Result<Vec<String>, EvaluationError> {
        let mut sources = Sources::new();
        sources.add("p.yaml", POLICY);
        let compilation = compile(&sources, &Options::default());
        assert_eq!(compilation.diagnostics, []);
        let engine = Engine::load(compilation.bundle.unwrap()).unwrap();
        let mut decoder = Decoder::new("values", SourceId(0));
        let tree = decoder.documents(values);
        let values = Values::read_inline(&tree[0], SourceId(0), &mut decoder);
        assert_eq!(decoder.diagnostics, []);
        let circumstances = Circumstances {
            values,
            ..Circumstances::default()
        };
        let text = "{apiVersion: v1, kind: Pod, metadata: {name: r, labels: {a: own}}}";
        let resources = Resources::from_text("r.yaml", text);
        let mut evaluator = Evaluator::new(&engine, &circumstances);
        let found = evaluator.evaluate(&resources.list[0], operation, &mut ProcessHost)?;
        let shown = |response: &RuleResponse<'_>| match response.rule() {
            "context" => format!("context: {}", response.message()),
            rule => format!("{rule}: {}", response.status()),
        };
        Ok(found.iter().map(shown).collect())
    }

    /// docs/spec/cli.md §3.2, §7.2, §7.4 and §14, cases 35, 36 and 38.
    #[test]
    fn values_reach_what_they_should() {
        let of_resource = |values: &str| {
            format!("{{policies: [{{name: p, resources: [{{name: r, values: {values}}}]}}]}}")
        };
        let of_rule = |rule: &str, values: &str| {
            format!("{{policies: [{{name: p, rules: [{{name: {rule}, values: {values}}}]}}]}}")
        };
        let rewrite = "{request.object.metadata.labels.a: rewritten, extra.k: 1}";
        for (values, expected) in [
            ("{}".to_owned(), vec!["context: CREATE own none none", "pattern: fail"]),
            // Values of a resource modify it, also for patterns and match blocks.
            (
                of_resource(rewrite),
                vec!["context: CREATE rewritten none 1", "pattern: pass", "selector: pass"],
            ),
            (
                format!("{{globalValues: {rewrite}}}"),
                vec!["context: CREATE rewritten none 1", "pattern: pass", "selector: pass"],
            ),
            // Values of a rule reach the context of that rule only.
            (of_rule("context", rewrite), vec!["context: CREATE rewritten none 1", "pattern: fail"]),
            (of_rule("pattern", rewrite), vec!["context: CREATE own none none", "pattern: fail"]),
            // An update has both objects, which are modified separately.
            (
                "{globalValues: {request.operation: UPDATE}}".to_owned(),
                vec!["context: UPDATE own own none", "pattern: fail"],
            ),
            (
                "{globalValues: {request.operation: UPDATE, request.oldObject.metadata.labels.a: old}}".to_owned(),
                vec!["context: UPDATE own old none", "pattern: fail"],
            ),
            // Any other text than the four operations is a creation with another name.
            (
                of_resource("{request.operation: update}"),
                vec!["context: update own none none", "pattern: fail"],
            ),
            (
                "{globalValues: {request.operation: CONNECT}}".to_owned(),
                vec!["context: CONNECT own none none", "pattern: fail"],
            ),
        ] {
            assert_eq!(responses(&values, None).unwrap(), expected, "{values}");
        }
        let given = responses(
            "{globalValues: {request.operation: DELETE}}",
            Some(Operation::Update),
        );
        assert_eq!(given.unwrap()[0], "context: UPDATE own own none");
        let bad = responses("{globalValues: {request.object: 5}}", None);
        assert_eq!(bad, Err(EvaluationError::NotAnObject("object".into())));
    }
}
