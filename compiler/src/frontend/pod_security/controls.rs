//! The table of the Pod Security Standards as applied by Kyverno (docs/spec/pod-security.md
//! §4 to §6): every control with its level, its revisions by Kubernetes version, the fields
//! it checks and the values it allows. All other code looks controls up here.

/// Level of a control; the restricted level includes the baseline one.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Level {
    /// `baseline`
    Baseline,
    /// `restricted`; any value but `baseline` is treated as this (docs/spec/pod-security.md
    /// §3).
    Restricted,
}

/// Whether an exclusion of a control needs images (docs/spec/pod-security.md §1).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Scope {
    /// It must not have images.
    Pod,
    /// It must have images.
    Container,
    /// It may have images.
    Mixed,
}

/// One control.
#[derive(Debug)]
pub struct Control {
    /// Id of the check.
    pub id: &'static str,
    /// Name by which policies exclude it; may be shared; empty if it cannot be excluded.
    pub name: &'static str,
    /// Its level.
    pub level: Level,
    /// Whether an exclusion needs images.
    pub scope: Scope,
    /// The reason in messages.
    pub reason: &'static str,
    /// The reason if the number of bad values is not one; empty if the same.
    pub reasons: &'static str,
    /// Whether reports name the images of the containers concerned
    /// (docs/spec/pod-security.md §11).
    pub names_images: bool,
    /// Demands by version, ascending. The first also applies to earlier versions.
    pub revisions: &'static [Revision],
    /// Fields that Kyverno associates with it although no error has that path, so an
    /// exclusion of them never applies (docs/spec/pod-security.md §11).
    pub idle_fields: &'static [&'static str],
}

impl Control {
    /// Whether any revision checks annotations.
    pub fn looks_at_annotations(&self) -> bool {
        let mut tests = self.revisions.iter().flat_map(|revision| revision.tests);
        tests.any(|test| matches!(test.of, Of::Annotations(_) | Of::ContainerAnnotations(_)))
    }
}

/// Demands of a control from a version on.
#[derive(Debug)]
pub struct Revision {
    /// Kubernetes minor version.
    pub since: u32,
    /// Whether it ignores pods that declare Windows (docs/spec/pod-security.md §6.19).
    pub spares_windows: bool,
    /// Tests; those with a smaller place come first in messages.
    pub tests: &'static [Test],
}

/// A single test.
#[derive(Debug)]
pub struct Test {
    /// Position of its errors among the control's, below 4.
    pub place: u8,
    /// The tested values.
    pub of: Of,
    /// The demand.
    pub demand: Demand,
}

/// Values that a test applies to. Paths are dotted keys; `[*]` stands for every item.
#[derive(Debug)]
pub enum Of {
    /// A field of the pod spec.
    Pod(&'static str),
    /// A field of every container, init containers first, ephemeral ones last.
    Containers(&'static str),
    /// Annotations whose key matches a wildcard.
    Annotations(&'static str),
    /// For every container, the annotation whose key is this text followed by its name.
    ContainerAnnotations(&'static str),
}

/// Demand on a value.
#[derive(Debug)]
pub enum Demand {
    /// A boolean must not be true.
    NotTrue,
    /// A boolean must not be false.
    NotFalse,
    /// A boolean must be false; a missing value is also an error, of another kind if the
    /// whole security context is missing (docs/spec/pod-security.md §6.15).
    False,
    /// A number must not be 0.
    NotZero,
    /// A number must be 0 or absent.
    Zero,
    /// A text must match one of the wildcards. If its object exists, a missing text counts
    /// as empty; without the object everything is allowed.
    OneOf(&'static [&'static str]),
    /// The same, but a missing value is allowed.
    OneOfIfSet(&'static [&'static str]),
    /// Every text of a list must be one of these; the others are the bad values.
    EachOneOf(&'static [&'static str]),
    /// A list must contain this text.
    Holds(&'static str),
    /// The value must exist, unless the same field of the pod spec satisfies the demand.
    Set {
        /// Path below the field at which its error is located; may be empty.
        below: &'static str,
        /// Required value of the pod's field, or of the path below it.
        inherits: Inherited,
        /// Whether the error counts only if the control has no other.
        is_fallback: bool,
    },
    /// An object must be absent; the bad value is one of its members.
    Absent(&'static str),
    /// An object must have one of the first keys; otherwise the error names the first of
    /// the second ones it has, or `unknown` (docs/spec/pod-security.md §6.14).
    Sourced {
        /// One of these is enough.
        allowed: &'static [&'static str],
        /// Forbidden keys, in this order.
        forbidden: &'static [&'static str],
    },
    /// A text must be empty; the control lists no errors (docs/spec/pod-security.md §6.18).
    EmptyUnlisted,
}

impl Demand {
    /// Whether everything is allowed if the object of the field is missing.
    pub fn allows_nothing(&self) -> bool {
        match self {
            Demand::False | Demand::Holds(_) | Demand::Set { .. } | Demand::Sourced { .. } => false,
            Demand::NotTrue
            | Demand::NotFalse
            | Demand::NotZero
            | Demand::Zero
            | Demand::OneOf(_)
            | Demand::OneOfIfSet(_)
            | Demand::EachOneOf(_)
            | Demand::Absent(_)
            | Demand::EmptyUnlisted => true,
        }
    }
}

/// Pod-level value that substitutes for a container's missing value.
#[derive(Debug)]
pub enum Inherited {
    /// `true`
    True,
    /// One of these texts.
    OneOf(&'static [&'static str]),
}

const PROFILES: &[&str] = &["RuntimeDefault", "Localhost"];

const fn pod(path: &'static str, demand: Demand) -> Test {
    Test {
        place: 0,
        of: Of::Pod(path),
        demand,
    }
}

const fn containers(place: u8, path: &'static str, demand: Demand) -> Test {
    Test {
        place,
        of: Of::Containers(path),
        demand,
    }
}

const fn always(tests: &'static [Test]) -> Revision {
    since(0, tests)
}

const fn since(since: u32, tests: &'static [Test]) -> Revision {
    Revision {
        since,
        spares_windows: false,
        tests,
    }
}

const fn sparing_windows_since(since: u32, tests: &'static [Test]) -> Revision {
    Revision {
        since,
        spares_windows: true,
        tests,
    }
}

const ALLOW_PRIVILEGE_ESCALATION: &[Test] = &[containers(
    0,
    "securityContext.allowPrivilegeEscalation",
    Demand::False,
)];

const CAPABILITIES_RESTRICTED: &[Test] = &[
    containers(0, "securityContext.capabilities.drop", Demand::Holds("ALL")),
    containers(
        1,
        "securityContext.capabilities.add",
        Demand::EachOneOf(&["NET_BIND_SERVICE"]),
    ),
];

const SECCOMP_PROFILES: &[Test] = &[
    pod(
        "securityContext.seccompProfile.type",
        Demand::OneOf(PROFILES),
    ),
    containers(
        1,
        "securityContext.seccompProfile.type",
        Demand::OneOf(PROFILES),
    ),
];

const SECCOMP_RESTRICTED: &[Test] = &[
    pod(
        "securityContext.seccompProfile.type",
        Demand::OneOf(PROFILES),
    ),
    containers(
        1,
        "securityContext.seccompProfile.type",
        Demand::OneOf(PROFILES),
    ),
    containers(
        2,
        "securityContext.seccompProfile",
        Demand::Set {
            below: "type",
            inherits: Inherited::OneOf(PROFILES),
            is_fallback: true,
        },
    ),
];

const SECCOMP_ANNOTATIONS: &[&str] = &["runtime/default", "docker/default", "localhost/*"];

macro_rules! selinux {
    ($types:expr) => {
        &[
            pod("securityContext.seLinuxOptions.type", Demand::OneOf($types)),
            pod("securityContext.seLinuxOptions.user", Demand::OneOf(&[""])),
            pod("securityContext.seLinuxOptions.role", Demand::OneOf(&[""])),
            containers(
                1,
                "securityContext.seLinuxOptions.type",
                Demand::OneOf($types),
            ),
            containers(
                1,
                "securityContext.seLinuxOptions.user",
                Demand::OneOf(&[""]),
            ),
            containers(
                1,
                "securityContext.seLinuxOptions.role",
                Demand::OneOf(&[""]),
            ),
        ]
    };
}

macro_rules! sysctls {
    ($($name:literal),+) => {
        &[pod(
            "securityContext.sysctls[*].name",
            Demand::OneOf(&[
                "kernel.shm_rmid_forced",
                "net.ipv4.ip_local_port_range",
                "net.ipv4.tcp_syncookies",
                "net.ipv4.ping_group_range",
                "net.ipv4.ip_unprivileged_port_start",
                $($name),+
            ]),
        )]
    };
    () => { sysctls!("net.ipv4.ip_unprivileged_port_start") };
}

/// All controls, in the order in which messages list them.
pub const CONTROLS: &[Control] = &[
    Control {
        id: "allowPrivilegeEscalation",
        name: "Privilege Escalation",
        level: Level::Restricted,
        scope: Scope::Container,
        reason: "allowPrivilegeEscalation != false",
        reasons: "",
        names_images: true,
        revisions: &[
            since(8, ALLOW_PRIVILEGE_ESCALATION),
            sparing_windows_since(25, ALLOW_PRIVILEGE_ESCALATION),
        ],
        idle_fields: &[],
    },
    Control {
        id: "appArmorProfile",
        name: "AppArmor",
        level: Level::Baseline,
        scope: Scope::Mixed,
        reason: "forbidden AppArmor profile",
        reasons: "forbidden AppArmor profiles",
        names_images: true,
        revisions: &[always(&[
            pod(
                "securityContext.appArmorProfile.type",
                Demand::OneOf(PROFILES),
            ),
            containers(
                1,
                "securityContext.appArmorProfile.type",
                Demand::OneOf(PROFILES),
            ),
            Test {
                place: 2,
                of: Of::Annotations("container.apparmor.security.beta.kubernetes.io/*"),
                demand: Demand::OneOf(&["", "runtime/default", "localhost/*"]),
            },
        ])],
        idle_fields: &["metadata.annotations"],
    },
    Control {
        id: "capabilities_baseline",
        name: "Capabilities",
        level: Level::Baseline,
        scope: Scope::Container,
        reason: "non-default capabilities",
        reasons: "",
        names_images: true,
        revisions: &[always(&[containers(
            0,
            "securityContext.capabilities.add",
            Demand::EachOneOf(&[
                "AUDIT_WRITE",
                "CHOWN",
                "DAC_OVERRIDE",
                "FOWNER",
                "FSETID",
                "KILL",
                "MKNOD",
                "NET_BIND_SERVICE",
                "SETFCAP",
                "SETGID",
                "SETPCAP",
                "SETUID",
                "SYS_CHROOT",
            ]),
        )])],
        idle_fields: &[],
    },
    Control {
        id: "capabilities_restricted",
        name: "Capabilities",
        level: Level::Restricted,
        scope: Scope::Container,
        reason: "unrestricted capabilities",
        reasons: "",
        names_images: true,
        revisions: &[
            since(22, CAPABILITIES_RESTRICTED),
            sparing_windows_since(25, CAPABILITIES_RESTRICTED),
        ],
        idle_fields: &[],
    },
    Control {
        id: "hostNamespaces",
        name: "Host Namespaces",
        level: Level::Baseline,
        scope: Scope::Pod,
        reason: "host namespaces",
        reasons: "",
        names_images: false,
        revisions: &[always(&[
            pod("hostNetwork", Demand::NotTrue),
            pod("hostPID", Demand::NotTrue),
            pod("hostIPC", Demand::NotTrue),
        ])],
        idle_fields: &[],
    },
    Control {
        id: "hostPathVolumes",
        name: "HostPath Volumes",
        level: Level::Baseline,
        scope: Scope::Pod,
        reason: "hostPath volumes",
        reasons: "",
        names_images: false,
        revisions: &[always(&[pod(
            "volumes[*].hostPath",
            Demand::Absent("path"),
        )])],
        idle_fields: &[],
    },
    Control {
        id: "hostPorts",
        name: "Host Ports",
        level: Level::Baseline,
        scope: Scope::Container,
        reason: "hostPort",
        reasons: "",
        names_images: false,
        revisions: &[always(&[containers(0, "ports[*].hostPort", Demand::Zero)])],
        idle_fields: &[],
    },
    Control {
        id: "hostProbesAndHostLifecycle",
        name: "",
        level: Level::Baseline,
        scope: Scope::Container,
        reason: "probe or lifecycle host",
        reasons: "",
        names_images: false,
        revisions: &[since(
            34,
            &[
                containers(0, "livenessProbe.httpGet.host", Demand::EmptyUnlisted),
                containers(0, "livenessProbe.tcpSocket.host", Demand::EmptyUnlisted),
                containers(0, "readinessProbe.httpGet.host", Demand::EmptyUnlisted),
                containers(0, "readinessProbe.tcpSocket.host", Demand::EmptyUnlisted),
                containers(0, "startupProbe.httpGet.host", Demand::EmptyUnlisted),
                containers(0, "startupProbe.tcpSocket.host", Demand::EmptyUnlisted),
                containers(0, "lifecycle.postStart.httpGet.host", Demand::EmptyUnlisted),
                containers(
                    0,
                    "lifecycle.postStart.tcpSocket.host",
                    Demand::EmptyUnlisted,
                ),
                containers(0, "lifecycle.preStop.httpGet.host", Demand::EmptyUnlisted),
                containers(0, "lifecycle.preStop.tcpSocket.host", Demand::EmptyUnlisted),
            ],
        )],
        idle_fields: &[],
    },
    Control {
        id: "privileged",
        name: "Privileged Containers",
        level: Level::Baseline,
        scope: Scope::Container,
        reason: "privileged",
        reasons: "",
        names_images: true,
        revisions: &[always(&[containers(
            0,
            "securityContext.privileged",
            Demand::NotTrue,
        )])],
        idle_fields: &[],
    },
    Control {
        id: "procMount",
        name: "/proc Mount Type",
        level: Level::Baseline,
        scope: Scope::Container,
        reason: "procMount",
        reasons: "",
        names_images: true,
        revisions: &[always(&[containers(
            0,
            "securityContext.procMount",
            Demand::OneOfIfSet(&["Default"]),
        )])],
        idle_fields: &[],
    },
    Control {
        id: "restrictedVolumes",
        name: "Volume Types",
        level: Level::Restricted,
        scope: Scope::Pod,
        reason: "restricted volume types",
        reasons: "",
        names_images: false,
        revisions: &[always(&[pod(
            "volumes[*]",
            Demand::Sourced {
                allowed: &[
                    "configMap",
                    "csi",
                    "downwardAPI",
                    "emptyDir",
                    "ephemeral",
                    "image",
                    "persistentVolumeClaim",
                    "projected",
                    "secret",
                ],
                forbidden: &[
                    "hostPath",
                    "gcePersistentDisk",
                    "awsElasticBlockStore",
                    "gitRepo",
                    "nfs",
                    "iscsi",
                    "glusterfs",
                    "rbd",
                    "flexVolume",
                    "cinder",
                    "cephfs",
                    "flocker",
                    "fc",
                    "azureFile",
                    "vsphereVolume",
                    "quobyte",
                    "azureDisk",
                    "photonPersistentDisk",
                    "portworxVolume",
                    "scaleIO",
                    "storageos",
                ],
            },
        )])],
        idle_fields: &["spec.volumes[*]"],
    },
    Control {
        id: "runAsNonRoot",
        name: "Running as Non-root",
        level: Level::Restricted,
        scope: Scope::Mixed,
        reason: "runAsNonRoot != true",
        reasons: "",
        names_images: true,
        revisions: &[always(&[
            pod("securityContext.runAsNonRoot", Demand::NotFalse),
            containers(1, "securityContext.runAsNonRoot", Demand::NotFalse),
            containers(
                2,
                "securityContext.runAsNonRoot",
                Demand::Set {
                    below: "",
                    inherits: Inherited::True,
                    is_fallback: false,
                },
            ),
        ])],
        idle_fields: &[],
    },
    Control {
        id: "runAsUser",
        name: "Running as Non-root user",
        level: Level::Restricted,
        scope: Scope::Mixed,
        reason: "runAsUser=0",
        reasons: "",
        names_images: true,
        revisions: &[since(
            23,
            &[
                pod("securityContext.runAsUser", Demand::NotZero),
                containers(1, "securityContext.runAsUser", Demand::NotZero),
            ],
        )],
        idle_fields: &[],
    },
    Control {
        id: "seLinuxOptions",
        name: "SELinux",
        level: Level::Baseline,
        scope: Scope::Mixed,
        reason: "seLinuxOptions",
        reasons: "",
        names_images: false,
        revisions: &[
            always(selinux!(&[
                "",
                "container_t",
                "container_init_t",
                "container_kvm_t"
            ])),
            since(
                31,
                selinux!(&[
                    "",
                    "container_t",
                    "container_init_t",
                    "container_kvm_t",
                    "container_engine_t"
                ]),
            ),
        ],
        idle_fields: &[
            "spec.ephemeralContainers[*].seLinuxOptions.user",
            "spec.ephemeralContainers[*].seLinuxOptions.role",
        ],
    },
    Control {
        id: "seccompProfile_baseline",
        name: "Seccomp",
        level: Level::Baseline,
        scope: Scope::Mixed,
        reason: "seccompProfile",
        reasons: "",
        names_images: true,
        revisions: &[
            always(&[
                Test {
                    place: 0,
                    of: Of::Annotations("seccomp.security.alpha.kubernetes.io/pod"),
                    demand: Demand::OneOf(SECCOMP_ANNOTATIONS),
                },
                Test {
                    place: 0,
                    of: Of::ContainerAnnotations("container.seccomp.security.alpha.kubernetes.io/"),
                    demand: Demand::OneOf(SECCOMP_ANNOTATIONS),
                },
            ]),
            since(19, SECCOMP_PROFILES),
        ],
        idle_fields: &[],
    },
    Control {
        id: "seccompProfile_restricted",
        name: "Seccomp",
        level: Level::Restricted,
        scope: Scope::Mixed,
        reason: "seccompProfile",
        reasons: "",
        names_images: true,
        revisions: &[
            since(19, SECCOMP_RESTRICTED),
            sparing_windows_since(25, SECCOMP_RESTRICTED),
        ],
        idle_fields: &[],
    },
    Control {
        id: "sysctls",
        name: "Sysctls",
        level: Level::Baseline,
        scope: Scope::Pod,
        reason: "forbidden sysctls",
        reasons: "",
        names_images: false,
        revisions: &[
            always(sysctls!()),
            since(27, sysctls!("net.ipv4.ip_local_reserved_ports")),
            since(
                29,
                sysctls!(
                    "net.ipv4.ip_local_reserved_ports",
                    "net.ipv4.tcp_keepalive_time",
                    "net.ipv4.tcp_fin_timeout",
                    "net.ipv4.tcp_keepalive_intvl",
                    "net.ipv4.tcp_keepalive_probes"
                ),
            ),
            since(
                32,
                sysctls!(
                    "net.ipv4.ip_local_reserved_ports",
                    "net.ipv4.tcp_keepalive_time",
                    "net.ipv4.tcp_fin_timeout",
                    "net.ipv4.tcp_keepalive_intvl",
                    "net.ipv4.tcp_keepalive_probes",
                    "net.ipv4.tcp_rmem",
                    "net.ipv4.tcp_wmem"
                ),
            ),
        ],
        idle_fields: &[],
    },
    Control {
        id: "windowsHostProcess",
        name: "HostProcess",
        level: Level::Baseline,
        scope: Scope::Mixed,
        reason: "hostProcess",
        reasons: "",
        names_images: true,
        revisions: &[always(&[
            pod(
                "securityContext.windowsOptions.hostProcess",
                Demand::NotTrue,
            ),
            containers(
                1,
                "securityContext.windowsOptions.hostProcess",
                Demand::NotTrue,
            ),
        ])],
        idle_fields: &[],
    },
];
