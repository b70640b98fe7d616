//! Answers to calls: the `apiCallResponses` of a suite (docs/spec/cli.md §7.6).
//!
//! A mocked call is answered when a rule first uses it. Kyverno answers it while the
//! context loads, so a failing mock also fails rules that never use it, and rules whose
//! entry has a default; no known suite depends on that.

use std::collections::BTreeMap;

use kpvm_syntax::tree::Tree;
use serde_json::{Value, json};

use crate::strict::Decoder;

/// The responses of a suite.
#[derive(Debug, Clone, Default)]
pub struct Calls {
    /// By `METHOD:url`, or only `url` if a mock names no method.
    responses: BTreeMap<String, Response>,
}

#[derive(Debug, Clone)]
struct Response {
    status: i64,
    body: Value,
}

impl Calls {
    /// Reads `apiCallResponses` (docs/spec/cli.md §7.6).
    pub fn read(&mut self, tree: Option<&Tree>, decoder: &mut Decoder) {
        for item in decoder.items(tree) {
            if let Some((key, response)) = read_response(item, decoder)
                && self.responses.insert(key.clone(), response).is_some()
            {
                decoder.refuse(item.span, format!("a second response for {key}"), None);
            }
        }
    }

    /// Whether there are no responses.
    pub fn is_empty(&self) -> bool {
        self.responses.is_empty()
    }

    /// A mock with the method takes precedence over one without.
    fn find(&self, method: &str, url: &str) -> Option<&Response> {
        let keyed = self.responses.get(&format!("{method}:{url}"));
        keyed.or_else(|| self.responses.get(url))
    }

    /// Answer to a call of a context entry; `None` if there is no mock.
    ///
    /// # Errors
    /// The status of a failed call.
    pub fn answer(&self, method: &str, url: &str) -> Result<Option<Value>, String> {
        match self.find(method, url) {
            None => Ok(None),
            Some(Response { status, body }) if (200..=299).contains(status) => {
                Ok(Some(body.clone()))
            }
            Some(Response { status, .. }) => Err(format!("HTTP {status} from apiCall mock")),
        }
    }

    /// Answer to an HTTP request of CEL.
    ///
    /// # Errors
    /// Error for a call without a mock.
    pub fn http(&self, method: &str, url: &str) -> Result<Value, String> {
        match self.find(method, url) {
            Some(Response { status, body }) => Ok(json!({ "body": body, "statusCode": status })),
            None => Err(format!("no mock for {method} {url}")),
        }
    }
}

/// One of `apiCallResponses`, checked as in docs/spec/cli.md §7.6.
fn read_response(tree: &Tree, decoder: &mut Decoder) -> Option<(String, Response)> {
    let fields = decoder.fields(tree, &["url", "urlPath", "method", "response"]);
    let (url, path) = (
        decoder.text(fields.get("url")),
        decoder.text(fields.get("urlPath")),
    );
    let mut wrong = |tree: &Tree, what: &str| {
        decoder.refuse(tree.span, format!("apiCallResponses: {what}"), None);
    };
    if url.is_empty() == path.is_empty() {
        wrong(tree, "expected one of url and urlPath");
        return None;
    }
    let host = url.split_once("://").filter(|(scheme, host)| {
        ["http", "https"].contains(scheme) && !host.is_empty() && !host.starts_with('/')
    });
    if (path.is_empty() && host.is_none()) || (url.is_empty() && !path.starts_with('/')) {
        let message = format!("expected an http(s) URL or a path from the root, found {url}{path}");
        wrong(tree, &message);
        return None;
    }
    let method = decoder.text(fields.get("method")).trim().to_uppercase();
    let key = match method.as_str() {
        "" => format!("{url}{path}"),
        "GET" | "POST" => format!("{method}:{url}{path}"),
        _ => {
            let message =
                format!("apiCallResponses: expected the method GET or POST, found {method}");
            decoder.refuse(tree.span, message, None);
            return None;
        }
    };
    let Some(response) = fields.get("response") else {
        decoder.refuse(tree.span, "apiCallResponses: expected a response", None);
        return None;
    };
    let response = decoder.fields(response, &["statusCode", "body"]);
    // Without a status the call succeeded.
    let status = match decoder.integer(response.get("statusCode")) {
        0 => 200,
        status @ 100..=599 => status,
        status => {
            let message =
                format!("apiCallResponses: expected a status code from 100 to 599, found {status}");
            decoder.refuse(tree.span, message, None);
            return None;
        }
    };
    match response.get("body").map(Tree::to_json) {
        Some(body @ Value::Object(_)) => Some((key, Response { status, body })),
        _ => {
            let message = "apiCallResponses: expected the response to have a body that is a map";
            decoder.refuse(tree.span, message, None);
            None
        }
    }
}
