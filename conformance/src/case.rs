//! One case: a policy, a request and outside data for context entries, evaluated by kpvm.
//! The form is that of the golden answers (`conformance/data/README.md`) and of
//! the peer in `benches/peers/kyverno`, which adds `mocks`.

use std::collections::BTreeMap;

use kpvm::engine::{
    Bundle, Config, Engine, GroupVersionKind, Input, Operation, Request, Session, UserInfo,
};
use kpvm::host::{ExternalKind, ExternalQuery, Host, Timestamp};
use kpvm_compiler::compile::{self, Options};
use kpvm_compiler::diagnostic::Severity;
use kpvm_compiler::source::{SourceId, Sources};
use kpvm_syntax::tree::Tree;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use serde_json::value::RawValue;

/// A policy on a request.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Case<'c> {
    /// Unique name.
    pub id: String,
    /// The whole policy.
    pub policy: Value,
    /// The new object, spelled as the engine gets it.
    #[serde(borrow)]
    pub resource: Option<&'c RawValue>,
    /// The old object.
    #[serde(borrow)]
    pub old: Option<&'c RawValue>,
    pub(crate) operation: Option<String>,
    pub(crate) user: Option<User>,
    #[serde(default)]
    pub(crate) namespace_labels: BTreeMap<String, String>,
    #[serde(default)]
    pub(crate) subresource: String,
    pub(crate) gvk: Option<[String; 3]>,
    pub(crate) exceptions: Option<Vec<Value>>,
    #[serde(default)]
    pub(crate) mocks: Mocks,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct User {
    #[serde(default)]
    pub(crate) roles: Vec<String>,
    #[serde(default)]
    pub(crate) cluster_roles: Vec<String>,
    #[serde(default)]
    pub(crate) user_info: UserNames,
}

#[derive(Debug, Default, Deserialize)]
pub(crate) struct UserNames {
    #[serde(default)]
    pub(crate) username: String,
    #[serde(default)]
    pub(crate) groups: Vec<String>,
}

/// Outside data for context entries. The host does not provide kinds that are absent.
#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Mocks {
    /// Context values by name.
    pub(crate) values: Option<Value>,
    /// By `namespace/name`.
    pub(crate) config_maps: Option<BTreeMap<String, Value>>,
    /// Bodies by `METHOD path`.
    pub(crate) api_calls: Option<BTreeMap<String, Value>>,
    pub(crate) global_entries: Option<BTreeMap<String, Value>>,
}

/// One rule response.
#[derive(Debug, Deserialize, Serialize, PartialEq, Eq, Clone)]
pub struct RuleAnswer {
    /// The computed rule.
    pub rule: String,
    /// Status as Kyverno writes it.
    pub status: String,
    /// Message.
    #[serde(default)]
    pub message: String,
    /// Report properties.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub properties: BTreeMap<String, String>,
}

/// Outcome of a case.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Answer {
    /// Rule responses in order.
    Rules(Vec<RuleAnswer>),
    /// The policy or the request was refused, for this reason.
    Refused(String),
    /// The case needs something that is not supported yet.
    Unsupported(String),
}

/// Compiles and evaluates a case, without the load checks of the policy.
pub fn answer(case: &Case<'_>) -> Answer {
    answer_in_modes(
        case,
        &[(true, true), (false, false), (false, true), (true, false)],
    )
}

/// The same, without comparing the answers with and without projection and plan.
pub fn quick_answer(case: &Case<'_>) -> Answer {
    answer_in_modes(case, &[(true, true)])
}

/// Each mode is whether projection and plan are on; the answer must be the same in all.
fn answer_in_modes(case: &Case<'_>, modes: &[(bool, bool)]) -> Answer {
    let options = Options {
        check: false,
        ignore_assert: true,
        ..Options::default()
    };
    let documents = [(SourceId(0), Tree::from(&case.policy))];
    let exceptions: Vec<(SourceId, Tree)> = case
        .exceptions
        .iter()
        .flatten()
        .map(|exception| (SourceId(0), Tree::from(exception)))
        .collect();
    let compilation =
        compile::compile_with_exceptions(&documents, &exceptions, &sources(), &options, Vec::new());
    if let Some(bytes) = compilation.bundle {
        return evaluate(case, bytes, modes).unwrap_or_else(Answer::Refused);
    }
    let first = compilation
        .diagnostics
        .iter()
        .find(|diagnostic| diagnostic.severity == Severity::Error);
    match first {
        Some(first) if first.code == "unsupported" => Answer::Unsupported(first.message.clone()),
        Some(first) => Answer::Refused(first.message.clone()),
        None => Answer::Refused("without a reason".into()),
    }
}

fn sources() -> Sources {
    let mut sources = Sources::new();
    sources.add("policy.json", "");
    sources
}

fn evaluate(case: &Case<'_>, bytes: Vec<u8>, modes: &[(bool, bool)]) -> Result<Answer, String> {
    let bundle = Bundle::load(bytes).map_err(|error| error.to_string())?;
    let strs = |list: &'_ [String]| -> Vec<String> { list.to_vec() };
    let lists = case.user.as_ref().map(|user| {
        [&user.user_info.groups, &user.roles, &user.cluster_roles].map(|list| strs(list))
    });
    let lists = lists.unwrap_or_default();
    let [groups, roles, cluster_roles] =
        [0, 1, 2].map(|at: usize| -> Vec<&str> { lists[at].iter().map(String::as_str).collect() });
    let labels: Vec<(&str, &str)> = case
        .namespace_labels
        .iter()
        .map(|(key, value)| (key.as_str(), value.as_str()))
        .collect();
    let json = |raw: Option<&'_ RawValue>| raw.map(|raw| raw.get().to_owned());
    let (object, old_object) = (json(case.resource), json(case.old));
    let request = Request {
        object: object.as_ref().map(|text| Input::Json(text.as_bytes())),
        old_object: old_object.as_ref().map(|text| Input::Json(text.as_bytes())),
        operation: case
            .operation
            .as_deref()
            .and_then(Operation::parse)
            .unwrap_or_default(),
        kind: case
            .gvk
            .as_ref()
            .map(|[group, version, kind]| GroupVersionKind {
                group,
                version,
                kind,
            }),
        subresource: &case.subresource,
        user: case.user.as_ref().map(|user| UserInfo {
            username: &user.user_info.username,
            groups: &groups,
            roles: &roles,
            cluster_roles: &cluster_roles,
            ..UserInfo::default()
        }),
        namespace_labels: &labels,
        variables: case.mocks.values.as_ref(),
        ..Request::default()
    };
    let answer = |projection: bool, plans: bool| -> Result<Vec<RuleAnswer>, String> {
        let config = Config::new().with_projection(projection).with_plans(plans);
        let engine = Engine::with_config(bundle.clone(), config);
        let mut session = Session::new(&engine);
        let evaluation = session
            .evaluate_with(&request, &mut &case.mocks)
            .map_err(|error| error.to_string())?;
        let responses = evaluation.responses().map(|response| RuleAnswer {
            rule: response.rule().to_owned(),
            status: response.status().to_string(),
            message: response.message().into_owned(),
            properties: response
                .properties()
                .map(|(key, value)| (key.to_owned(), value.to_owned()))
                .collect(),
        });
        Ok(responses.collect())
    };
    // The answer must not depend on projection or plan.
    let expected = answer(true, true)?;
    for &(projection, plan) in modes.iter().skip(1) {
        let other = answer(projection, plan)?;
        if other != expected {
            return Err(format!(
                "with projection and plan {expected:#?}\nprojection {projection}, plan {plan}: {other:#?}"
            ));
        }
    }
    Ok(Answer::Rules(expected))
}

impl Host for &Mocks {
    fn now(&mut self) -> Option<Timestamp> {
        None
    }

    fn random(&mut self) -> Option<u64> {
        None
    }

    fn provides(&self, kind: ExternalKind) -> bool {
        match kind {
            ExternalKind::ConfigMap => self.config_maps.is_some(),
            ExternalKind::ApiCall => self.api_calls.is_some(),
            ExternalKind::GlobalReference => self.global_entries.is_some(),
            ExternalKind::ImageRegistry => false,
        }
    }

    /// Errors use the texts of Kyverno's clients and of the mocks in the peer.
    fn fetch(&mut self, query: &ExternalQuery<'_>) -> Result<Option<Value>, String> {
        match *query {
            ExternalQuery::ConfigMap { namespace, name } => {
                let all = self.config_maps.as_ref();
                let found = all.and_then(|all| all.get(&format!("{namespace}/{name}")));
                let missing = || format!("configmaps {name:?} not found");
                found.cloned().map(Some).ok_or_else(missing)
            }
            ExternalQuery::ApiCall {
                url_path, method, ..
            } => {
                let all = self.api_calls.as_ref();
                let found = all.and_then(|all| all.get(&format!("{method} {url_path}")));
                let missing = || {
                    format!(
                        "failed to {method} resource with raw url: {url_path}: \
                         no answer to {method} {url_path}"
                    )
                };
                found.cloned().map(Some).ok_or_else(missing)
            }
            ExternalQuery::GlobalReference { name } => self.global_entry(name).map(Some),
            // No case asks for anything else.
            _ => Ok(None),
        }
    }
}

impl Mocks {
    /// The part of a name after its second dot is ignored.
    fn global_entry(&self, name: &str) -> Result<Value, String> {
        let mut parts = name.split('.');
        let entry = parts.next().unwrap_or_default();
        let projection = parts.next().unwrap_or_default();
        let all = self.global_entries.as_ref();
        let value = all.and_then(|all| all.get(entry));
        let value = value.ok_or_else(|| format!("failed to fetch entry key={entry}"))?;
        if projection.is_empty() {
            return Ok(value.clone());
        }
        let no = || format!("no projection {projection:?}");
        let members = value
            .as_object()
            .ok_or_else(|| format!("{}: the value is not a map", no()))?;
        members.get(projection).cloned().ok_or_else(no)
    }
}
