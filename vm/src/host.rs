//! What a rule needs from outside, asked of the program that embeds the runtime: the time,
//! randomness, and data from the cluster, a registry or the network.
//!
//! Each query gets an answer or none. The runtime asks only what a policy asks for, and
//! keeps no answer. [`NoHost`] answers nothing; a query without an answer makes a rule's
//! status `error`, never a pass.

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

/// A question that a rule asks about the outside world.
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

/// Answers the questions that rules ask about the outside world.
pub trait Host {
    /// The current time; `None` if rules may not know it.
    fn now(&mut self) -> Option<Timestamp>;

    /// 64 random bits; `None` if rules may not have any.
    fn random(&mut self) -> Option<u64>;

    /// Whether this host has this kind of data at all. If not, a context entry that asks
    /// for it is treated as if it were not written (docs/spec/conditions.md §8.1), so that
    /// a value given under its name is used.
    fn provides(&self, kind: ExternalKind) -> bool {
        let _ = kind;
        false
    }

    /// The answer to a query; `None` if this host does not have this kind of data at all.
    ///
    /// # Errors
    /// Why the data could not be fetched, in the words that the rule's message is to show.
    fn fetch(&mut self, query: &ExternalQuery<'_>) -> Result<Option<Value>, String>;
}

/// A host without time, randomness or data.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct NoHost;

impl Host for NoHost {
    fn now(&mut self) -> Option<Timestamp> {
        None
    }

    fn random(&mut self) -> Option<u64> {
        None
    }

    fn fetch(&mut self, _query: &ExternalQuery<'_>) -> Result<Option<Value>, String> {
        Ok(None)
    }
}
