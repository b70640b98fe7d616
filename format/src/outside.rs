//! What rules ask of the program that runs them: data from outside, the time, randomness,
//! names of hosts, facts about the request, and expressions read at run time.
//!
//! The compiler derives the list from the code; it is for people and for hosts that want to
//! know before the first request. A request's fields are known as far as they are constant.

use zerocopy::little_endian::U32;

use crate::table::{Range, Text, record};

record! {
    /// One thing that a rule asks for.
    OutsideDemand {
        /// The rule.
        rule: U32,
        /// An [`OutsideKind`].
        kind: u8,
        /// Range of `outside_fields`.
        fields: Range,
    }
}

record! {
    /// A field of a request for data.
    OutsideField {
        /// Its path, e.g. `service.url`, in `outside_text`.
        name: Text,
        /// Its value as JSON, in `outside_text`.
        value: Text,
        /// 1 if the value or a part of it is known only when the rule runs.
        computed: u8,
    }
}

macro_rules! kinds {
    ($( $(#[doc = $doc:literal])+ $variant:ident = $name:literal; )+) => {
        /// What a rule can ask for.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
        #[repr(u8)]
        pub enum OutsideKind { $( $(#[doc = $doc])+ $variant, )+ }

        impl OutsideKind {
            /// Every kind in the order of its number.
            pub const ALL: &'static [OutsideKind] = &[$(OutsideKind::$variant,)+];

            /// Its name in reports.
            pub fn name(self) -> &'static str {
                match self { $(OutsideKind::$variant => $name,)+ }
            }
        }
    };
}

kinds! {
    /// A ConfigMap.
    ConfigMap = "configMap";
    /// A call to an API server or a service.
    ApiCall = "apiCall";
    /// An entry of the global context.
    GlobalReference = "globalReference";
    /// Metadata of an image, for a context entry.
    ImageRegistry = "imageRegistry";
    /// Parameters of an admission policy.
    Params = "params";
    /// Whether a user may do something.
    AccessReview = "accessReview";
    /// `resource.Get` of CEL.
    ResourceGet = "resource.Get";
    /// `resource.List` of CEL.
    ResourceList = "resource.List";
    /// `resource.Post` of CEL.
    ResourcePost = "resource.Post";
    /// `globalContext.Get` of CEL.
    GlobalContextGet = "globalContext.Get";
    /// `image.GetMetadata` of CEL.
    ImageMetadata = "image.GetMetadata";
    /// `http.Get` of CEL.
    HttpGet = "http.Get";
    /// `http.Post` of CEL.
    HttpPost = "http.Post";
    /// The time.
    Time = "time";
    /// Random numbers.
    Randomness = "randomness";
    /// Addresses of hosts.
    HostAddresses = "hostAddresses";
    /// Parsing an expression that is made at run time.
    RuntimeExpressions = "runtimeExpressions";
    /// The labels of namespaces.
    NamespaceLabels = "namespaceLabels";
    /// Who makes the request.
    UserInfo = "userInfo";
}

impl OutsideDemand {
    /// What is asked for.
    pub fn kind(&self) -> Option<OutsideKind> {
        OutsideKind::ALL.get(usize::from(self.kind)).copied()
    }
}
