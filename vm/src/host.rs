//! What a rule needs from outside, asked of the program that embeds the runtime: the
//! time, randomness, and data from the cluster, a registry or the network.
//!
//! A question goes out, an answer or the lack of one comes in. Nothing is asked that
//! no policy asks for, and the runtime keeps no answer. A host that has nothing is
//! [`NoHost`]; whatever it does not have makes a rule's status `error`, never a pass.

pub use kpvm_format::instruction::immediate::Provision as ExternalKind;
use serde_json::Value;

/// A point in time.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Timestamp {
    /// Whole seconds since 1970-01-01T00:00:00Z.
    pub seconds: i64,
    /// Nanoseconds on top, below 1,000,000,000.
    pub nanoseconds: u32,
    /// Seconds east of UTC of the host's local time zone; only `time_now()` shows it
    /// (docs/spec/jmespath.md §11).
    pub offset_seconds: i32,
}

/// What a rule wants to know from outside.
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
    /// An object of the API server, as `resource.Get` of CEL asks for it; null if there is
    /// none of the name.
    ResourceGet {
        /// `group/version`, or `version` for core.
        api_version: &'q str,
        /// The plural name of its kind.
        resource: &'q str,
        /// Its namespace; empty for none.
        namespace: &'q str,
        /// Its name.
        name: &'q str,
    },
    /// Whether the objects of a kind live in namespaces: `true` or `false`.
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
        /// Its namespace; empty for an object that is in none.
        namespace: &'q str,
        /// Its name.
        name: &'q str,
    },
    /// The objects of a resource in a namespace, as `resource.List` of CEL asks for them: a
    /// map with `items`.
    ResourceList {
        /// `group/version`, or `version` for core.
        api_version: &'q str,
        /// The plural name of the kind.
        resource: &'q str,
        /// The namespace; empty for none.
        namespace: &'q str,
    },
    /// A global context entry, as CEL asks for it; null if there is none of the name.
    GlobalContext {
        /// Its name.
        name: &'q str,
        /// The projection; empty for the whole entry.
        projection: &'q str,
    },
    /// What is known of an image, as `image.GetMetadata` of CEL asks for it.
    ImageData {
        /// The image as it is written.
        reference: &'q str,
    },
    /// A request to a service, as CEL makes it: a map with the status code, and the body
    /// under `body`.
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
    /// The objects of a cluster that a label selector selects, as a list.
    Objects {
        /// Group and version, such as `apps/v1`.
        api_version: &'q str,
        /// The kind.
        kind: &'q str,
        /// Their namespace; empty for objects that are in none.
        namespace: &'q str,
        /// `matchLabels` and `matchExpressions`.
        selector: &'q Value,
    },
    /// The parameters of a binding of a ValidatingAdmissionPolicy: a list of values, each of
    /// which the policy is evaluated with. `None` leaves it to the other queries to find
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

/// Answers what a rule wants to know from outside.
pub trait Host {
    /// The current time; `None` if rules shall not know it.
    fn now(&mut self) -> Option<Timestamp>;

    /// 64 random bits; `None` if rules shall not have any.
    fn random(&mut self) -> Option<u64>;

    /// Whether this host has such data at all. Where it has not, a context entry that
    /// asks for it is as if it were not written (docs/spec/conditions.md §8.1), so that a value
    /// given under its name holds.
    fn provides(&self, kind: ExternalKind) -> bool {
        let _ = kind;
        false
    }

    /// An answer; `None` if this host does not have such data at all.
    ///
    /// # Errors
    /// Why the data could not be had although the host tried, in the words that the
    /// rule's message shall show.
    fn fetch(&mut self, query: &ExternalQuery<'_>) -> Result<Option<Value>, String>;
}

/// A host without time, randomness and data.
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
