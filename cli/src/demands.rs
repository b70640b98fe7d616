//! What rules ask of the program that runs them, as reports show it.

use kpvm_format::Tables;
use kpvm_format::outside::{OutsideField, OutsideKind};
use serde::Serialize;
use serde_json::Value;

/// What a rule asks for.
#[derive(Debug, Default, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Demands {
    /// Data from outside, each request once.
    pub external_data: Vec<Request>,
    /// Whether a text becomes an expression only when the rule runs.
    pub runtime_expressions: bool,
    /// Whether it reads the clock.
    pub time: bool,
    /// Whether it draws random numbers.
    pub randomness: bool,
    /// Whether it asks for the addresses of hosts.
    pub host_addresses: bool,
    /// Whether it asks for the labels of namespaces.
    pub namespace_labels: bool,
    /// Whether it asks who makes the request.
    pub user_info: bool,
}

/// A request for data from outside.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Request {
    /// Name of its [`OutsideKind`].
    pub kind: &'static str,
    /// What is asked for, field by field.
    pub fields: Vec<RequestField>,
}

/// A field of a request.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct RequestField {
    /// Its path, e.g. `service.url`.
    pub name: String,
    /// Its value; `<computed>` stands for what is not known.
    pub value: Value,
    /// Whether the value or a part of it is known only when the rule runs.
    pub computed: bool,
}

/// What a rule asks for.
pub fn of_rule(tables: &Tables<'_>, rule: u32) -> Demands {
    let mut demands = Demands::default();
    for demand in tables.demands_of_rule(rule) {
        let Some(kind) = demand.kind() else { continue };
        let flag = match kind {
            OutsideKind::Time => &mut demands.time,
            OutsideKind::Randomness => &mut demands.randomness,
            OutsideKind::HostAddresses => &mut demands.host_addresses,
            OutsideKind::RuntimeExpressions => &mut demands.runtime_expressions,
            OutsideKind::NamespaceLabels => &mut demands.namespace_labels,
            OutsideKind::UserInfo => &mut demands.user_info,
            OutsideKind::ConfigMap
            | OutsideKind::ApiCall
            | OutsideKind::GlobalReference
            | OutsideKind::ImageRegistry
            | OutsideKind::Params
            | OutsideKind::AccessReview
            | OutsideKind::ResourceGet
            | OutsideKind::ResourceList
            | OutsideKind::ResourcePost
            | OutsideKind::GlobalContextGet
            | OutsideKind::ImageMetadata
            | OutsideKind::HttpGet
            | OutsideKind::HttpPost => {
                let fields = Tables::range(tables.outside_fields, demand.fields).iter();
                demands.external_data.push(Request {
                    kind: kind.name(),
                    fields: fields.map(|field| shown(tables, field)).collect(),
                });
                continue;
            }
        };
        *flag = true;
    }
    demands
}

fn shown(tables: &Tables<'_>, field: &OutsideField) -> RequestField {
    let value = tables.outside_text(field.value);
    RequestField {
        name: tables.outside_text(field.name).to_owned(),
        // A forged bundle may have anything here.
        value: serde_json::from_str(value).unwrap_or_else(|_| Value::from(value)),
        computed: field.computed != 0,
    }
}
