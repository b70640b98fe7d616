//! Every function of CEL that compiled code can call, numbered: operators, the standard
//! functions, and the libraries of cel-go, Kubernetes and Kyverno (docs/spec/cel.md §3.8,
//! §3.9 and §6.7).
//!
//! This is the only table of names and overloads: the type checker reads the overloads, the
//! runtime dispatches on the number and on the types of the arguments. An overload is
//! written as cel-go prints it, `string.(int) -> string` for a call on a receiver and
//! `(string) -> int` for one without; single capitals are type parameters.

/// The library that a function belongs to.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[repr(u8)]
pub enum Library {
    /// The language itself.
    Standard,
    /// Optional values.
    Optional,
    /// `ext.Strings`, version 2.
    Strings,
    /// The functions added in version 3 of `ext.Strings`.
    StringsLater,
    /// `ext.Lists`, version 3.
    Lists,
    /// `ext.Sets`.
    Sets,
    /// `ext.TwoVarComprehensions`.
    TwoVariables,
    /// `ext.Math`.
    Math,
    /// `ext.Encoders`.
    Encoders,
    /// `ext.Regex`.
    Regex,
    /// `ext.Bindings`.
    Bindings,
    /// The libraries of Kubernetes.
    Kubernetes,
    /// The libraries of Kyverno.
    Kyverno,
    /// Those of Kyverno's functions that only cluster-wide policies have.
    KyvernoCluster,
    /// Those that only namespaced policies have: they take no namespace.
    KyvernoNamespaced,
    /// `jsonpatch`, for policies that change resources.
    JsonPatch,
    /// `cel.block`, which optimisers generate.
    Block,
    /// Kyverno's version of `orValue` (docs/spec/cel.md §3.1).
    OrValue,
}

/// A value that the machine provides to an expression.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[repr(u8)]
pub enum Root {
    /// The object, null if there is none; for a payload all of it.
    Object,
    /// The old object, null if there is none.
    OldObject,
    /// `request` of a ClusterPolicy, without its resource.
    Request,
    /// `namespaceObject` of a ClusterPolicy.
    Namespace,
    /// `params`
    Params,
    /// `authorizer`
    Authorizer,
    /// `authorizer.requestResource`
    AuthorizerRequestResource,
    /// The object, an empty map if there is none (docs/spec/cel.md §6.2).
    ObjectOrEmpty,
    /// The old object, likewise.
    OldObjectOrEmpty,
    /// `request` of a ValidatingPolicy, with its resource and its objects.
    FullRequest,
    /// `namespaceObject` of a ValidatingPolicy: the namespace as given, or null.
    GivenNamespace,
    /// `exceptions`: what the applicable exceptions allow.
    Exceptions,
    /// `request` of a ValidatingAdmissionPolicy, with its resource.
    ResourceRequest,
    /// `namespaceObject` of a ValidatingAdmissionPolicy: name and labels, never null.
    LabelledNamespace,
}

impl Root {
    /// Every root in the order of its number.
    pub const ALL: [Root; 14] = [
        Root::Object,
        Root::OldObject,
        Root::Request,
        Root::Namespace,
        Root::Params,
        Root::Authorizer,
        Root::AuthorizerRequestResource,
        Root::ObjectOrEmpty,
        Root::OldObjectOrEmpty,
        Root::FullRequest,
        Root::GivenNamespace,
        Root::Exceptions,
        Root::ResourceRequest,
        Root::LabelledNamespace,
    ];

    /// The root with that number.
    pub fn decode(number: u32) -> Option<Root> {
        Root::ALL.get(number as usize).copied()
    }
}

macro_rules! functions {
    ($($variant:ident = $library:ident $name:literal: $($overload:literal),+;)*) => {
        /// One function. The number is part of the bundle format.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
        #[repr(u16)]
        #[expect(missing_docs, reason = "the table says name and overloads of each")]
        pub enum Function {
            $($variant,)*
        }

        impl Function {
            /// All of them, in the order of their numbers.
            pub const ALL: &'static [Function] = &[$(Function::$variant,)*];

            /// The name in expressions; for an operator, cel-go's.
            pub const fn name(self) -> &'static str {
                match self {
                    $(Function::$variant => $name,)*
                }
            }

            /// The library that it belongs to.
            pub const fn library(self) -> Library {
                match self {
                    $(Function::$variant => Library::$library,)*
                }
            }

            /// Its overloads.
            pub const fn overloads(self) -> &'static [&'static str] {
                match self {
                    $(Function::$variant => &[$($overload),+],)*
                }
            }
        }
    };
}

/// Other names of functions, with the names used in the table (docs/spec/cel.md §6.7).
pub const ALIASES: [(&str, &str); 8] = [
    ("resource.get", "resource.Get"),
    ("resource.list", "resource.List"),
    ("resource.post", "resource.Post"),
    ("resource.toGVR", "resource.ToGVR"),
    ("globalContext.get", "globalContext.Get"),
    ("image.getMetadata", "image.GetMetadata"),
    ("http.get", "http.Get"),
    ("http.post", "http.Post"),
];

impl Function {
    /// Whether it asks the host for data.
    pub fn is_outside(self) -> bool {
        matches!(
            self,
            Function::ResourceGet
                | Function::ResourceList
                | Function::ResourcePost
                | Function::GlobalContextGet
                | Function::ImageMetadata
                | Function::HttpGet
                | Function::HttpPost
        )
    }

    /// Whether its value depends on the host: data, the time or randomness. Functions on an
    /// authorizer are not listed: the authorizer itself comes from the host.
    pub fn asks_host(self) -> bool {
        self.is_outside()
            || matches!(
                self,
                Function::ToGvr | Function::TimeNow | Function::Random | Function::RandomRandom
            )
    }

    /// Whether it converts its argument to another type.
    pub fn is_conversion(self) -> bool {
        matches!(
            self,
            Function::ToBool
                | Function::ToBytes
                | Function::ToDouble
                | Function::ToDuration
                | Function::ToInt
                | Function::ToString
                | Function::ToTimestamp
                | Function::ToUint
        )
    }

    /// The function with that number.
    pub fn decode(number: u32) -> Option<Function> {
        Function::ALL.get(number as usize).copied()
    }
}

functions! {
    Not = Standard "!_": "(bool) -> bool";
    Negate = Standard "-_": "(int) -> int", "(double) -> double";
    Equal = Standard "_==_": "(A, A) -> bool";
    NotEqual = Standard "_!=_": "(A, A) -> bool";
    Less = Standard "_<_": "(bool, bool) -> bool", "(int, int) -> bool", "(int, double) -> bool", "(int, uint) -> bool", "(uint, uint) -> bool", "(uint, double) -> bool", "(uint, int) -> bool", "(double, double) -> bool", "(double, int) -> bool", "(double, uint) -> bool", "(string, string) -> bool", "(bytes, bytes) -> bool", "(timestamp, timestamp) -> bool", "(duration, duration) -> bool";
    LessOrEqual = Standard "_<=_": "(bool, bool) -> bool", "(int, int) -> bool", "(int, double) -> bool", "(int, uint) -> bool", "(uint, uint) -> bool", "(uint, double) -> bool", "(uint, int) -> bool", "(double, double) -> bool", "(double, int) -> bool", "(double, uint) -> bool", "(string, string) -> bool", "(bytes, bytes) -> bool", "(timestamp, timestamp) -> bool", "(duration, duration) -> bool";
    Greater = Standard "_>_": "(bool, bool) -> bool", "(int, int) -> bool", "(int, double) -> bool", "(int, uint) -> bool", "(uint, uint) -> bool", "(uint, double) -> bool", "(uint, int) -> bool", "(double, double) -> bool", "(double, int) -> bool", "(double, uint) -> bool", "(string, string) -> bool", "(bytes, bytes) -> bool", "(timestamp, timestamp) -> bool", "(duration, duration) -> bool";
    GreaterOrEqual = Standard "_>=_": "(bool, bool) -> bool", "(int, int) -> bool", "(int, double) -> bool", "(int, uint) -> bool", "(uint, uint) -> bool", "(uint, double) -> bool", "(uint, int) -> bool", "(double, double) -> bool", "(double, int) -> bool", "(double, uint) -> bool", "(string, string) -> bool", "(bytes, bytes) -> bool", "(timestamp, timestamp) -> bool", "(duration, duration) -> bool";
    Add = Standard "_+_": "(bytes, bytes) -> bytes", "(double, double) -> double", "(duration, duration) -> duration", "(duration, timestamp) -> timestamp", "(timestamp, duration) -> timestamp", "(int, int) -> int", "(list(A), list(A)) -> list(A)", "(string, string) -> string", "(uint, uint) -> uint";
    Subtract = Standard "_-_": "(double, double) -> double", "(duration, duration) -> duration", "(int, int) -> int", "(timestamp, duration) -> timestamp", "(timestamp, timestamp) -> duration", "(uint, uint) -> uint";
    Multiply = Standard "_*_": "(double, double) -> double", "(int, int) -> int", "(uint, uint) -> uint";
    Divide = Standard "_/_": "(double, double) -> double", "(int, int) -> int", "(uint, uint) -> uint";
    Modulo = Standard "_%_": "(int, int) -> int", "(uint, uint) -> uint";
    In = Standard "@in": "(A, list(A)) -> bool", "(A, map(A, B)) -> bool";
    Index = Standard "_[_]": "(list(A), int) -> A", "(map(A, B), A) -> B", "(optional(list(A)), int) -> optional(A)", "(optional(map(A, B)), A) -> optional(B)";
    Size = Standard "size": "(bytes) -> int", "bytes.() -> int", "(list(A)) -> int", "list(A).() -> int", "(map(A, B)) -> int", "map(A, B).() -> int", "(string) -> int", "string.() -> int";
    Contains = Standard "contains": "string.(string) -> bool";
    StartsWith = Standard "startsWith": "string.(string) -> bool";
    EndsWith = Standard "endsWith": "string.(string) -> bool";
    Matches = Standard "matches": "(string, string) -> bool", "string.(string) -> bool";
    ToBool = Standard "bool": "(bool) -> bool", "(string) -> bool";
    ToBytes = Standard "bytes": "(bytes) -> bytes", "(string) -> bytes";
    ToDouble = Standard "double": "(double) -> double", "(int) -> double", "(string) -> double", "(uint) -> double";
    ToDuration = Standard "duration": "(duration) -> duration", "(string) -> duration";
    ToDyn = Standard "dyn": "(A) -> dyn";
    ToInt = Standard "int": "(int) -> int", "(double) -> int", "(duration) -> int", "(string) -> int", "(timestamp) -> int", "(uint) -> int";
    ToString = Standard "string": "(string) -> string", "(bool) -> string", "(bytes) -> string", "(double) -> string", "(duration) -> string", "(int) -> string", "(timestamp) -> string", "(uint) -> string", "(net.IP) -> string", "(net.CIDR) -> string";
    ToTimestamp = Standard "timestamp": "(timestamp) -> timestamp", "(int) -> timestamp", "(string) -> timestamp";
    ToUint = Standard "uint": "(uint) -> uint", "(double) -> uint", "(int) -> uint", "(string) -> uint";
    TypeOf = Standard "type": "(A) -> type(A)";
    GetFullYear = Standard "getFullYear": "timestamp.() -> int", "timestamp.(string) -> int";
    GetMonth = Standard "getMonth": "timestamp.() -> int", "timestamp.(string) -> int";
    GetDayOfYear = Standard "getDayOfYear": "timestamp.() -> int", "timestamp.(string) -> int";
    GetDayOfMonth = Standard "getDayOfMonth": "timestamp.() -> int", "timestamp.(string) -> int";
    GetDate = Standard "getDate": "timestamp.() -> int", "timestamp.(string) -> int";
    GetDayOfWeek = Standard "getDayOfWeek": "timestamp.() -> int", "timestamp.(string) -> int";
    GetHours = Standard "getHours": "timestamp.() -> int", "timestamp.(string) -> int", "duration.() -> int";
    GetMinutes = Standard "getMinutes": "timestamp.() -> int", "timestamp.(string) -> int", "duration.() -> int";
    GetSeconds = Standard "getSeconds": "timestamp.() -> int", "timestamp.(string) -> int", "duration.() -> int";
    GetMilliseconds = Standard "getMilliseconds": "timestamp.() -> int", "timestamp.(string) -> int", "duration.() -> int";

    OptionalIndex = Optional "_[?_]": "(list(A), int) -> optional(A)", "(optional(list(A)), int) -> optional(A)", "(map(A, B), A) -> optional(B)", "(optional(map(A, B)), A) -> optional(B)";
    OptionalOf = Optional "optional.of": "(A) -> optional(A)";
    OptionalOfNonZero = Optional "optional.ofNonZeroValue": "(A) -> optional(A)";
    OptionalNone = Optional "optional.none": "() -> optional(A)";
    OptionalUnwrap = Optional "optional.unwrap": "(list(optional(A))) -> list(A)";
    UnwrapOptional = Optional "unwrapOpt": "list(optional(A)).() -> list(A)";
    OptionalValue = Optional "value": "optional(A).() -> A";
    HasValue = Optional "hasValue": "optional(A).() -> bool";
    OptionalOr = Optional "or": "optional(A).(optional(A)) -> optional(A)";
    OptionalOrValue = Optional "orValue": "optional(A).(A) -> A";
    OrValueCompat = OrValue "__orValueCompat__": "(dyn, dyn) -> dyn";
    First = Optional "first": "list(A).() -> optional(A)";
    Last = Optional "last": "list(A).() -> optional(A)";

    CharAt = Strings "charAt": "string.(int) -> string";
    IndexOf = Strings "indexOf": "string.(string) -> int", "string.(string, int) -> int", "list(A).(A) -> int";
    LastIndexOf = Strings "lastIndexOf": "string.(string) -> int", "string.(string, int) -> int", "list(A).(A) -> int";
    LowerAscii = Strings "lowerAscii": "string.() -> string";
    UpperAscii = Strings "upperAscii": "string.() -> string";
    Replace = Strings "replace": "string.(string, string) -> string", "string.(string, string, int) -> string";
    Split = Strings "split": "string.(string) -> list(string)", "string.(string, int) -> list(string)";
    Substring = Strings "substring": "string.(int) -> string", "string.(int, int) -> string";
    Trim = Strings "trim": "string.() -> string";
    Join = Strings "join": "list(string).() -> string", "list(string).(string) -> string";
    Quote = Strings "strings.quote": "(string) -> string";
    Format = Strings "format": "string.(list(dyn)) -> string";
    ReverseString = StringsLater "reverse": "string.() -> string";

    Slice = Lists "slice": "list(A).(int, int) -> list(A)";
    Flatten = Lists "flatten": "list(list(A)).() -> list(A)", "list(dyn).(int) -> list(dyn)";
    ListsRange = Lists "lists.range": "(int) -> list(int)";
    Reverse = Lists "reverse": "list(A).() -> list(A)";
    Sort = Lists "sort": "list(bool).() -> list(bool)", "list(bytes).() -> list(bytes)", "list(double).() -> list(double)", "list(duration).() -> list(duration)", "list(int).() -> list(int)", "list(string).() -> list(string)", "list(timestamp).() -> list(timestamp)", "list(uint).() -> list(uint)";
    SortByKeys = Lists "@sortByAssociatedKeys": "list(A).(list(bool)) -> list(A)", "list(A).(list(bytes)) -> list(A)", "list(A).(list(double)) -> list(A)", "list(A).(list(duration)) -> list(A)", "list(A).(list(int)) -> list(A)", "list(A).(list(string)) -> list(A)", "list(A).(list(timestamp)) -> list(A)", "list(A).(list(uint)) -> list(A)";
    Distinct = Lists "distinct": "list(A).() -> list(A)";

    SetsContains = Sets "sets.contains": "(list(A), list(A)) -> bool";
    SetsEquivalent = Sets "sets.equivalent": "(list(A), list(A)) -> bool";
    SetsIntersects = Sets "sets.intersects": "(list(A), list(A)) -> bool";

    MathMin = Math "math.@min": "(double) -> double", "(int) -> int", "(uint) -> uint", "(double, double) -> double", "(int, int) -> int", "(uint, uint) -> uint", "(int, double) -> dyn", "(int, uint) -> dyn", "(double, int) -> dyn", "(double, uint) -> dyn", "(uint, int) -> dyn", "(uint, double) -> dyn", "(list(double)) -> double", "(list(int)) -> int", "(list(uint)) -> uint";
    MathMax = Math "math.@max": "(double) -> double", "(int) -> int", "(uint) -> uint", "(double, double) -> double", "(int, int) -> int", "(uint, uint) -> uint", "(int, double) -> dyn", "(int, uint) -> dyn", "(double, int) -> dyn", "(double, uint) -> dyn", "(uint, int) -> dyn", "(uint, double) -> dyn", "(list(double)) -> double", "(list(int)) -> int", "(list(uint)) -> uint";
    MathCeil = Math "math.ceil": "(double) -> double";
    MathFloor = Math "math.floor": "(double) -> double";
    MathRound = Math "math.round": "(double) -> double", "(double, int) -> double";
    MathTrunc = Math "math.trunc": "(double) -> double";
    MathAbs = Math "math.abs": "(double) -> double", "(int) -> int", "(uint) -> uint";
    MathSign = Math "math.sign": "(double) -> double", "(int) -> int", "(uint) -> uint";
    MathSqrt = Math "math.sqrt": "(double) -> double", "(int) -> double", "(uint) -> double";
    MathIsInf = Math "math.isInf": "(double) -> bool";
    MathIsNaN = Math "math.isNaN": "(double) -> bool";
    MathIsFinite = Math "math.isFinite": "(double) -> bool";
    BitAnd = Math "math.bitAnd": "(int, int) -> int", "(uint, uint) -> uint";
    BitOr = Math "math.bitOr": "(int, int) -> int", "(uint, uint) -> uint";
    BitXor = Math "math.bitXor": "(int, int) -> int", "(uint, uint) -> uint";
    BitNot = Math "math.bitNot": "(int) -> int", "(uint) -> uint";
    BitShiftLeft = Math "math.bitShiftLeft": "(int, int) -> int", "(uint, int) -> uint";
    BitShiftRight = Math "math.bitShiftRight": "(int, int) -> int", "(uint, int) -> uint";

    Base64Encode = Encoders "base64.encode": "(bytes) -> string";
    Base64Decode = Encoders "base64.decode": "(string) -> bytes";

    RegexReplace = Regex "regex.replace": "(string, string, string) -> string", "(string, string, string, int) -> string";
    RegexExtract = Regex "regex.extract": "(string, string) -> optional(string)";
    RegexExtractAll = Regex "regex.extractAll": "(string, string) -> list(string)";

    IsSorted = Kubernetes "isSorted": "list(int).() -> bool", "list(uint).() -> bool", "list(double).() -> bool", "list(bool).() -> bool", "list(duration).() -> bool", "list(timestamp).() -> bool", "list(string).() -> bool", "list(bytes).() -> bool";
    Sum = Kubernetes "sum": "list(int).() -> int", "list(uint).() -> uint", "list(double).() -> double", "list(duration).() -> duration";
    Min = Kubernetes "min": "list(int).() -> int", "list(uint).() -> uint", "list(double).() -> double", "list(bool).() -> bool", "list(duration).() -> duration", "list(timestamp).() -> timestamp", "list(string).() -> string", "list(bytes).() -> bytes";
    Max = Kubernetes "max": "list(int).() -> int", "list(uint).() -> uint", "list(double).() -> double", "list(bool).() -> bool", "list(duration).() -> duration", "list(timestamp).() -> timestamp", "list(string).() -> string", "list(bytes).() -> bytes";
    Find = Kubernetes "find": "string.(string) -> string";
    FindAll = Kubernetes "findAll": "string.(string) -> list(string)", "string.(string, int) -> list(string)";
    ToUrl = Kubernetes "url": "(string) -> kubernetes.URL";
    IsUrl = Kubernetes "isURL": "(string) -> bool";
    GetScheme = Kubernetes "getScheme": "kubernetes.URL.() -> string";
    GetHost = Kubernetes "getHost": "kubernetes.URL.() -> string";
    GetHostname = Kubernetes "getHostname": "kubernetes.URL.() -> string";
    GetPort = Kubernetes "getPort": "kubernetes.URL.() -> string";
    GetEscapedPath = Kubernetes "getEscapedPath": "kubernetes.URL.() -> string";
    GetQuery = Kubernetes "getQuery": "kubernetes.URL.() -> map(string, list(string))";
    ToQuantity = Kubernetes "quantity": "(string) -> kubernetes.Quantity";
    IsQuantity = Kubernetes "isQuantity": "(string) -> bool";
    Sign = Kubernetes "sign": "(kubernetes.Quantity) -> int";
    IsGreaterThan = Kubernetes "isGreaterThan": "kubernetes.Quantity.(kubernetes.Quantity) -> bool", "kubernetes.Semver.(kubernetes.Semver) -> bool";
    IsLessThan = Kubernetes "isLessThan": "kubernetes.Quantity.(kubernetes.Quantity) -> bool", "kubernetes.Semver.(kubernetes.Semver) -> bool";
    CompareTo = Kubernetes "compareTo": "kubernetes.Quantity.(kubernetes.Quantity) -> int", "kubernetes.Semver.(kubernetes.Semver) -> int";
    AsApproximateFloat = Kubernetes "asApproximateFloat": "kubernetes.Quantity.() -> double";
    AsInteger = Kubernetes "asInteger": "kubernetes.Quantity.() -> int";
    IsInteger = Kubernetes "isInteger": "kubernetes.Quantity.() -> bool";
    QuantityAdd = Kubernetes "add": "kubernetes.Quantity.(kubernetes.Quantity) -> kubernetes.Quantity", "kubernetes.Quantity.(int) -> kubernetes.Quantity";
    QuantitySub = Kubernetes "sub": "kubernetes.Quantity.(kubernetes.Quantity) -> kubernetes.Quantity", "kubernetes.Quantity.(int) -> kubernetes.Quantity";
    ToIp = Kubernetes "ip": "(string) -> net.IP";
    CidrIp = Kubernetes "ip": "net.CIDR.() -> net.IP";
    IsIp = Kubernetes "isIP": "(string) -> bool";
    IsCanonical = Kubernetes "ip.isCanonical": "(string) -> bool";
    Family = Kubernetes "family": "net.IP.() -> int";
    IsUnspecified = Kubernetes "isUnspecified": "net.IP.() -> bool";
    IsLoopback = Kubernetes "isLoopback": "net.IP.() -> bool";
    IsLinkLocalMulticast = Kubernetes "isLinkLocalMulticast": "net.IP.() -> bool";
    IsLinkLocalUnicast = Kubernetes "isLinkLocalUnicast": "net.IP.() -> bool";
    IsGlobalUnicast = Kubernetes "isGlobalUnicast": "net.IP.() -> bool";
    ToCidr = Kubernetes "cidr": "(string) -> net.CIDR";
    IsCidr = Kubernetes "isCIDR": "(string) -> bool";
    ContainsIp = Kubernetes "containsIP": "net.CIDR.(net.IP) -> bool", "net.CIDR.(string) -> bool";
    ContainsCidr = Kubernetes "containsCIDR": "net.CIDR.(net.CIDR) -> bool", "net.CIDR.(string) -> bool";
    PrefixLength = Kubernetes "prefixLength": "net.CIDR.() -> int";
    Masked = Kubernetes "masked": "net.CIDR.() -> net.CIDR";
    FormatDns1123Label = Kubernetes "format.dns1123Label": "() -> kubernetes.NamedFormat";
    FormatDns1123Subdomain = Kubernetes "format.dns1123Subdomain": "() -> kubernetes.NamedFormat";
    FormatDns1035Label = Kubernetes "format.dns1035Label": "() -> kubernetes.NamedFormat";
    FormatQualifiedName = Kubernetes "format.qualifiedName": "() -> kubernetes.NamedFormat";
    FormatDns1123LabelPrefix = Kubernetes "format.dns1123LabelPrefix": "() -> kubernetes.NamedFormat";
    FormatDns1123SubdomainPrefix = Kubernetes "format.dns1123SubdomainPrefix": "() -> kubernetes.NamedFormat";
    FormatDns1035LabelPrefix = Kubernetes "format.dns1035LabelPrefix": "() -> kubernetes.NamedFormat";
    FormatLabelValue = Kubernetes "format.labelValue": "() -> kubernetes.NamedFormat";
    FormatUri = Kubernetes "format.uri": "() -> kubernetes.NamedFormat";
    FormatUuid = Kubernetes "format.uuid": "() -> kubernetes.NamedFormat";
    FormatByte = Kubernetes "format.byte": "() -> kubernetes.NamedFormat";
    FormatDate = Kubernetes "format.date": "() -> kubernetes.NamedFormat";
    FormatDatetime = Kubernetes "format.datetime": "() -> kubernetes.NamedFormat";
    FormatNamed = Kubernetes "format.named": "(string) -> optional(kubernetes.NamedFormat)";
    Validate = Kubernetes "validate": "kubernetes.NamedFormat.(string) -> optional(list(string))";
    ToSemver = Kubernetes "semver": "(string) -> kubernetes.Semver", "(string, bool) -> kubernetes.Semver";
    IsSemver = Kubernetes "isSemver": "(string) -> bool", "(string, bool) -> bool";
    Major = Kubernetes "major": "kubernetes.Semver.() -> int";
    Minor = Kubernetes "minor": "kubernetes.Semver.() -> int";
    Patch = Kubernetes "patch": "kubernetes.Semver.() -> int";
    AuthorizePath = Kubernetes "path": "kubernetes.authorization.Authorizer.(string) -> kubernetes.authorization.PathCheck";
    AuthorizeGroup = Kubernetes "group": "kubernetes.authorization.Authorizer.(string) -> kubernetes.authorization.GroupCheck";
    AuthorizeServiceAccount = Kubernetes "serviceAccount": "kubernetes.authorization.Authorizer.(string, string) -> kubernetes.authorization.Authorizer";
    AuthorizeResource = Kubernetes "resource": "kubernetes.authorization.GroupCheck.(string) -> kubernetes.authorization.ResourceCheck";
    AuthorizeSubresource = Kubernetes "subresource": "kubernetes.authorization.ResourceCheck.(string) -> kubernetes.authorization.ResourceCheck";
    AuthorizeNamespace = Kubernetes "namespace": "kubernetes.authorization.ResourceCheck.(string) -> kubernetes.authorization.ResourceCheck";
    AuthorizeName = Kubernetes "name": "kubernetes.authorization.ResourceCheck.(string) -> kubernetes.authorization.ResourceCheck";
    AuthorizeFieldSelector = Kubernetes "fieldSelector": "kubernetes.authorization.ResourceCheck.(string) -> kubernetes.authorization.ResourceCheck";
    AuthorizeLabelSelector = Kubernetes "labelSelector": "kubernetes.authorization.ResourceCheck.(string) -> kubernetes.authorization.ResourceCheck";
    AuthorizeCheck = Kubernetes "check": "kubernetes.authorization.PathCheck.(string) -> kubernetes.authorization.Decision", "kubernetes.authorization.ResourceCheck.(string) -> kubernetes.authorization.Decision";
    IsAllowed = Kubernetes "allowed": "kubernetes.authorization.Decision.() -> bool";
    DecisionReason = Kubernetes "reason": "kubernetes.authorization.Decision.() -> string";
    IsErrored = Kubernetes "errored": "kubernetes.authorization.Decision.() -> bool";
    DecisionError = Kubernetes "error": "kubernetes.authorization.Decision.() -> string";

    Md5 = Kyverno "md5": "(string) -> string";
    HashMd5 = Kyverno "hash.md5": "(string) -> string";
    Sha1 = Kyverno "sha1": "(string) -> string";
    HashSha1 = Kyverno "hash.sha1": "(string) -> string";
    Sha256 = Kyverno "sha256": "(string) -> string";
    HashSha256 = Kyverno "hash.sha256": "(string) -> string";
    JsonUnmarshal = Kyverno "json.unmarshal": "(dyn) -> dyn";
    JsonMarshal = Kyverno "json.marshal": "(dyn) -> string";
    YamlParse = Kyverno "yaml.parse": "(string) -> dyn";
    X509Decode = Kyverno "x509.decode": "(string) -> map(string, dyn)";
    TimeNow = Kyverno "time.now": "() -> timestamp";
    TimeTruncate = Kyverno "time.truncate": "(timestamp, duration) -> timestamp";
    TimeToCron = Kyverno "time.toCron": "(timestamp) -> string";
    ParseServiceAccount = Kyverno "parseServiceAccount": "(string) -> kyverno.ServiceAccount";
    UserParseServiceAccount = Kyverno "user.parseServiceAccount": "(string) -> kyverno.ServiceAccount";
    ListObjToMap = Kyverno "listObjToMap": "(list(map(string, dyn)), list(map(string, dyn)), string, string) -> map(string, dyn)";
    TransformListObjToMap = Kyverno "transform.listObjToMap": "(list(map(string, dyn)), list(map(string, dyn)), string, string) -> map(string, dyn)";
    ToImage = Kyverno "image": "(string) -> kyverno.ImageReference";
    ParseImageReference = Kyverno "parseImageReference": "(string) -> kyverno.ImageReference";
    IsImage = Kyverno "isImage": "(string) -> bool";
    ImageRegistry = Kyverno "registry": "kyverno.ImageReference.() -> string";
    ImageRepository = Kyverno "repository": "kyverno.ImageReference.() -> string";
    ImageIdentifier = Kyverno "identifier": "kyverno.ImageReference.() -> string";
    ImageTag = Kyverno "tag": "kyverno.ImageReference.() -> string";
    ImageDigest = Kyverno "digest": "kyverno.ImageReference.() -> string";
    ContainsDigest = Kyverno "containsDigest": "kyverno.ImageReference.() -> bool";
    ResourceGet = KyvernoCluster "resource.Get": "(string, string, string, string) -> map(string, dyn)", "(kyverno.GVR, string, string) -> map(string, dyn)";
    ResourceList = KyvernoCluster "resource.List": "(string, string, string) -> map(string, dyn)", "(string, string, string, map(string, string)) -> map(string, dyn)", "(kyverno.GVR, string) -> map(string, dyn)", "(kyverno.GVR, string, map(string, string)) -> map(string, dyn)";
    ResourcePost = KyvernoCluster "resource.Post": "(string, string, string, map(string, dyn)) -> map(string, dyn)", "(string, string, map(string, dyn)) -> map(string, dyn)";
    OwnResourceGet = KyvernoNamespaced "resource.Get": "(string, string, string) -> map(string, dyn)", "(kyverno.GVR, string) -> map(string, dyn)";
    OwnResourceList = KyvernoNamespaced "resource.List": "(string, string) -> map(string, dyn)", "(string, string, map(string, string)) -> map(string, dyn)", "(kyverno.GVR) -> map(string, dyn)", "(kyverno.GVR, map(string, string)) -> map(string, dyn)";
    OwnResourcePost = KyvernoNamespaced "resource.Post": "(string, string, map(string, dyn)) -> map(string, dyn)";
    ToGvr = Kyverno "resource.ToGVR": "(string, string) -> kyverno.GVR";
    GlobalContextGet = Kyverno "globalContext.Get": "(string) -> dyn", "(string, string) -> dyn";
    ImageMetadata = Kyverno "image.GetMetadata": "(string) -> dyn";
    HttpGet = Kyverno "http.Get": "(string) -> dyn", "(string, map(string, string)) -> dyn";
    HttpPost = Kyverno "http.Post": "(string, dyn) -> dyn", "(string, dyn, map(string, string)) -> dyn";
    Random = Kyverno "random": "() -> string", "(string) -> string";
    ImageIdentifierWithSeparator = Kyverno "identifierWithSeparator": "kyverno.ImageReference.() -> string";
    RandomRandom = Kyverno "random.random": "() -> string", "(string) -> string";
}
