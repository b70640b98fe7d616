//! Outside data for rules: the time, randomness, and data from the cluster, a registry or the
//! network, requested from the program that embeds the runtime.
//!
//! A program implements the methods of [`Host`] that its policies need. All others answer that
//! such data is not available, which makes the rule's status `error`, never a pass. Only what a
//! policy asks for is requested, and no answer is kept beyond one evaluation.

use std::net::IpAddr;

pub use kpvm_format::instruction::immediate::Provision as ExternalKind;
use serde_json::Value;

/// A point in time.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Timestamp {
    /// Whole seconds since 1970-01-01T00:00:00Z.
    pub seconds: i64,
    /// Nanoseconds beyond the whole seconds, below 1,000,000,000.
    pub nanoseconds: u32,
    /// Seconds east of UTC of the host's local time zone; only `time_now()` shows it
    /// (docs/spec/jmespath.md §11).
    pub offset_seconds: i32,
}

/// Request to the API server or to a service, as a context entry makes it.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct ApiCall<'q> {
    /// Path on the API server; empty for a service.
    pub url_path: &'q str,
    /// `GET` or `POST`.
    pub method: &'q str,
    /// Body of a `POST`.
    pub data: Option<&'q Value>,
    /// URL of the service; `None` for the API server.
    pub service_url: Option<&'q str>,
    /// Headers to send, in order.
    pub headers: &'q [(&'q str, &'q str)],
    /// Certificates to trust, in PEM.
    pub ca_bundle: Option<&'q str>,
}

/// Every question that a rule can ask, as one value, for hosts that forward or record them.
/// Later versions may have more; [`Host`] has a method for each.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum ExternalQuery<'q> {
    /// A ConfigMap, as the object that the API server returns.
    ConfigMap {
        /// Its namespace.
        namespace: &'q str,
        /// Its name.
        name: &'q str,
    },
    /// The answer to a request to the API server or to a service.
    ApiCall {
        /// The path on the API server; empty for a service.
        url_path: &'q str,
        /// `GET` or `POST`.
        method: &'q str,
        /// The body of a `POST`.
        data: Option<&'q Value>,
        /// The service's URL; `None` for the API server.
        service_url: Option<&'q str>,
        /// Headers to send, in order.
        headers: &'q [(&'q str, &'q str)],
        /// The certificates to trust, in PEM.
        ca_bundle: Option<&'q str>,
    },
    /// The data of a global context entry.
    GlobalReference {
        /// Its name.
        name: &'q str,
    },
    /// The manifest and configuration of an image.
    ImageRegistry {
        /// The image.
        reference: &'q str,
    },
    /// An object of the API server, as CEL's `resource.Get` asks for it; null if no object
    /// has the name.
    ResourceGet {
        /// `group/version`, or `version` for core.
        api_version: &'q str,
        /// The plural name of its kind.
        resource: &'q str,
        /// Its namespace; empty if it has none.
        namespace: &'q str,
        /// Its name.
        name: &'q str,
    },
    /// Whether objects of a kind are namespaced: `true` or `false`.
    KindScope {
        /// Group and version, such as `apps/v1`.
        api_version: &'q str,
        /// The kind.
        kind: &'q str,
    },
    /// An object of a cluster.
    Object {
        /// Group and version, such as `apps/v1`.
        api_version: &'q str,
        /// The kind.
        kind: &'q str,
        /// Its namespace; empty for a cluster-wide object.
        namespace: &'q str,
        /// Its name.
        name: &'q str,
    },
    /// The objects of a resource in a namespace, as CEL's `resource.List` asks for them: a
    /// map with `items`.
    ResourceList {
        /// `group/version`, or `version` for core.
        api_version: &'q str,
        /// The plural name of the kind.
        resource: &'q str,
        /// The namespace; empty for none.
        namespace: &'q str,
    },
    /// A global context entry, as CEL asks for it; null if no entry has the name.
    GlobalContext {
        /// Its name.
        name: &'q str,
        /// The projection; empty for the whole entry.
        projection: &'q str,
    },
    /// The metadata of an image, as CEL's `image.GetMetadata` asks for it.
    ImageData {
        /// The image as written.
        reference: &'q str,
    },
    /// A request to a service, as CEL makes it: the answer is a map with the status code,
    /// and the body under `body`.
    Http {
        /// `GET` or `POST`.
        method: &'q str,
        /// The URL.
        url: &'q str,
        /// The body of a `POST`.
        data: Option<&'q Value>,
        /// Headers to send, in order.
        headers: &'q [(&'q str, &'q str)],
    },
    /// The objects of a cluster that match a label selector, as a list.
    Objects {
        /// Group and version, such as `apps/v1`.
        api_version: &'q str,
        /// The kind.
        kind: &'q str,
        /// Their namespace; empty for cluster-wide objects.
        namespace: &'q str,
        /// `matchLabels` and `matchExpressions`.
        selector: &'q Value,
    },
    /// The parameters of a binding of a ValidatingAdmissionPolicy: a list of values, with
    /// each of which the policy is evaluated. `None` leaves it to the other queries to find
    /// them as an API server does.
    BoundParameters {
        /// `paramRef` of the binding.
        reference: &'q Value,
    },
    /// Whether a user may do something: the `status` of a SubjectAccessReview.
    AccessReview {
        /// Its `spec`.
        spec: &'q Value,
    },
    /// The addresses of a host name: a list of texts, such as `["10.0.0.1", "::1"]`.
    HostAddresses {
        /// The host name.
        host: &'q str,
    },
}

/// Answer of a host; `None` if it has no such data at all.
///
/// The error says why the data could not be had although the host tried. The rule's message
/// shows it.
pub type Answer<T> = Result<Option<T>, String>;

/// Source of outside data.
///
/// Every method has a default: no time, no randomness, no data. [`Host::fetch`] is for hosts that
/// treat all questions alike, such as one that forwards them; the other methods call it unless
/// they are implemented. For every method that returns an [`Answer`], `None` means that there is
/// no such data here, and an error why it could not be had.
#[allow(clippy::missing_errors_doc)] // said once, above
pub trait Host {
    /// The current time; `None` if rules must not know it.
    fn now(&mut self) -> Option<Timestamp> {
        None
    }

    /// 64 random bits; `None` if rules must not have any.
    fn random(&mut self) -> Option<u64> {
        None
    }

    /// Whether this host has data of a kind at all. If not, a context entry of this kind counts
    /// as absent (docs/spec/conditions.md §8.1), so that a value with its name is used.
    fn provides(&self, kind: ExternalKind) -> bool {
        let _ = kind;
        false
    }

    /// A ConfigMap, as the object that the API server returns.
    fn config_map(&mut self, namespace: &str, name: &str) -> Answer<Value> {
        self.fetch(&ExternalQuery::ConfigMap { namespace, name })
    }

    /// The answer to a request to the API server or a service.
    fn api_call(&mut self, call: &ApiCall<'_>) -> Answer<Value> {
        self.fetch(&ExternalQuery::ApiCall {
            url_path: call.url_path,
            method: call.method,
            data: call.data,
            service_url: call.service_url,
            headers: call.headers,
            ca_bundle: call.ca_bundle,
        })
    }

    /// The data of a global context entry: `entry` or `entry.projection`.
    fn global_reference(&mut self, name: &str) -> Answer<Value> {
        self.fetch(&ExternalQuery::GlobalReference { name })
    }

    /// Manifest and configuration of an image, for a context entry.
    fn image_registry(&mut self, reference: &str) -> Answer<Value> {
        self.fetch(&ExternalQuery::ImageRegistry { reference })
    }

    /// `resource.Get` of CEL: an object by the plural name of its kind (`pods`); null if there
    /// is none with the name.
    fn resource(
        &mut self,
        api_version: &str,
        resource: &str,
        namespace: &str,
        name: &str,
    ) -> Answer<Value> {
        self.fetch(&ExternalQuery::ResourceGet {
            api_version,
            resource,
            namespace,
            name,
        })
    }

    /// `resource.List` of CEL: a map with `items`. The namespace is empty for none.
    fn resource_list(
        &mut self,
        api_version: &str,
        resource: &str,
        namespace: &str,
    ) -> Answer<Value> {
        self.fetch(&ExternalQuery::ResourceList {
            api_version,
            resource,
            namespace,
        })
    }

    /// A global context entry for CEL, null if there is none; an empty projection stands for the
    /// whole entry.
    fn global_context(&mut self, name: &str, projection: &str) -> Answer<Value> {
        self.fetch(&ExternalQuery::GlobalContext { name, projection })
    }

    /// `image.GetMetadata` of CEL.
    fn image_data(&mut self, reference: &str) -> Answer<Value> {
        self.fetch(&ExternalQuery::ImageData { reference })
    }

    /// `http.Get` and `http.Post` of CEL: a map with the status code, and the body under `body`.
    fn http(
        &mut self,
        method: &str,
        url: &str,
        data: Option<&Value>,
        headers: &[(&str, &str)],
    ) -> Answer<Value> {
        self.fetch(&ExternalQuery::Http {
            method,
            url,
            data,
            headers,
        })
    }

    /// Whether the objects of a kind belong to namespaces.
    fn is_namespaced(&mut self, api_version: &str, kind: &str) -> Answer<bool> {
        let answer = self.fetch(&ExternalQuery::KindScope { api_version, kind })?;
        Ok(answer.as_ref().and_then(Value::as_bool))
    }

    /// An object that is the parameter of a policy; the namespace is empty for an object in none.
    fn object(
        &mut self,
        api_version: &str,
        kind: &str,
        namespace: &str,
        name: &str,
    ) -> Answer<Value> {
        self.fetch(&ExternalQuery::Object {
            api_version,
            kind,
            namespace,
            name,
        })
    }

    /// Objects that are the parameters of a policy: those of a namespace that a label selector
    /// (`matchLabels` and `matchExpressions`) selects.
    fn objects(
        &mut self,
        api_version: &str,
        kind: &str,
        namespace: &str,
        selector: &Value,
    ) -> Answer<Vec<Value>> {
        let query = ExternalQuery::Objects {
            api_version,
            kind,
            namespace,
            selector,
        };
        Ok(self.fetch(&query)?.map(into_list))
    }

    /// The parameters for a `paramRef` of a binding. `None` leaves it to
    /// [`Host::is_namespaced`], [`Host::object`] and [`Host::objects`] to find them as an API
    /// server does.
    fn bound_parameters(&mut self, reference: &Value) -> Answer<Vec<Value>> {
        let answer = self.fetch(&ExternalQuery::BoundParameters { reference })?;
        Ok(answer.map(into_list))
    }

    /// Whether a user may do something: from the `spec` of a SubjectAccessReview its `status`.
    fn access_review(&mut self, spec: &Value) -> Answer<Value> {
        self.fetch(&ExternalQuery::AccessReview { spec })
    }

    /// The addresses of a host name; an empty list if there is no such name.
    fn host_addresses(&mut self, host: &str) -> Answer<Vec<IpAddr>> {
        let Some(answer) = self.fetch(&ExternalQuery::HostAddresses { host })? else {
            return Ok(None);
        };
        let addresses: Option<Vec<IpAddr>> = match &answer {
            Value::Array(items) => {
                let parse = |item: &Value| item.as_str()?.parse().ok();
                items.iter().map(parse).collect()
            }
            _ => None,
        };
        let addresses = addresses.ok_or("the host's answer is no list of addresses")?;
        Ok(Some(addresses))
    }

    /// Answers any question for which the host has no method of its own.
    fn fetch(&mut self, query: &ExternalQuery<'_>) -> Answer<Value> {
        let _ = query;
        Ok(None)
    }
}

fn into_list(answer: Value) -> Vec<Value> {
    match answer {
        Value::Array(items) => items,
        other => vec![other],
    }
}

/// A host without time, randomness or data.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct NoHost;

impl Host for NoHost {}
