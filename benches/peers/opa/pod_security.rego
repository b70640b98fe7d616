# The 17 policies of corpus/pod-security as Rego: the same findings on the same Pods, one
# entry of `failed` for each policy that refuses. The input is the Pod.
package pod_security

spec := input.spec

containers := [container |
	some field in ["ephemeralContainers", "initContainers", "containers"]
	some container in spec[field]
]

# Where the Pod itself and each of its containers may say something.
security_contexts := array.concat(
	[spec.securityContext | spec.securityContext],
	[container.securityContext | some container in containers],
)

filters := {"RuntimeDefault", "Localhost"}

failed contains "disallow-apparmor-changes" if {
	some context in security_contexts
	profile := context.appArmorProfile
	not profile.type in filters
}

failed contains "disallow-apparmor-changes" if {
	some key, profile in input.metadata.annotations
	startswith(key, "container.apparmor.security.beta.kubernetes.io/")
	not known_apparmor(profile)
}

known_apparmor("runtime/default")

known_apparmor("")

known_apparmor(profile) if startswith(profile, "localhost/")

default_capabilities := {
	"AUDIT_WRITE", "CHOWN", "DAC_OVERRIDE", "FOWNER", "FSETID", "KILL", "MKNOD",
	"NET_BIND_SERVICE", "SETFCAP", "SETGID", "SETPCAP", "SETUID", "SYS_CHROOT",
}

failed contains "disallow-capabilities" if {
	some container in containers
	some capability in container.securityContext.capabilities.add
	not capability in default_capabilities
}

failed contains "disallow-host-namespaces" if {
	some field in ["hostPID", "hostIPC", "hostNetwork"]
	spec[field] != false
}

failed contains "disallow-host-path" if {
	some volume in spec.volumes
	"hostPath" in object.keys(volume)
}

failed contains "disallow-host-ports" if {
	some container in containers
	some port in container.ports
	port.hostPort != 0
}

failed contains "disallow-host-process" if {
	some context in security_contexts
	context.windowsOptions.hostProcess != false
}

failed contains "disallow-privilege-escalation" if {
	some container in containers
	not denies_escalation(container)
}

denies_escalation(container) if container.securityContext.allowPrivilegeEscalation == false

failed contains "disallow-privileged-containers" if {
	some container in containers
	container.securityContext.privileged != false
}

failed contains "disallow-proc-mount" if {
	some container in containers
	container.securityContext.procMount != "Default"
}

failed contains "disallow-seccomp-off" if {
	some context in security_contexts
	profile := context.seccompProfile
	not profile.type in filters
}

selinux_types := {"container_t", "container_init_t", "container_kvm_t", "container_engine_t", ""}

failed contains "disallow-selinux" if {
	some context in security_contexts
	not context.seLinuxOptions.type in selinux_types
	context.seLinuxOptions.type
}

failed contains "disallow-selinux" if {
	some context in security_contexts
	some field in ["user", "role"]
	context.seLinuxOptions[field] != ""
}

failed contains "drop-all-capabilities" if {
	some container in containers
	not drops_all(container)
}

drops_all(container) if {
	capabilities := container.securityContext.capabilities
	capabilities.drop[0] == "ALL"
	every capability in capabilities.drop { capability == "ALL" }
	every capability in object.get(capabilities, "add", []) { capability == "NET_BIND_SERVICE" }
}

failed contains "require-run-as-non-root-user" if {
	some context in security_contexts
	context.runAsUser == 0
}

failed contains "require-run-as-non-root" if {
	some context in security_contexts
	context.runAsNonRoot != true
}

failed contains "require-run-as-non-root" if {
	not spec.securityContext.runAsNonRoot == true
	some container in containers
	not container.securityContext.runAsNonRoot == true
}

failed contains "require-seccomp" if {
	some context in security_contexts
	profile := context.seccompProfile
	not profile.type in filters
}

failed contains "require-seccomp" if {
	not spec.securityContext.seccompProfile.type in filters
	some container in containers
	not container.securityContext.seccompProfile.type in filters
}

safe_sysctls := {
	"kernel.shm_rmid_forced", "net.ipv4.ip_local_port_range",
	"net.ipv4.ip_local_reserved_ports", "net.ipv4.ip_unprivileged_port_start",
	"net.ipv4.ping_group_range", "net.ipv4.tcp_fin_timeout",
	"net.ipv4.tcp_keepalive_intvl", "net.ipv4.tcp_keepalive_probes",
	"net.ipv4.tcp_keepalive_time", "net.ipv4.tcp_rmem", "net.ipv4.tcp_syncookies",
	"net.ipv4.tcp_wmem",
}

failed contains "restrict-sysctls" if {
	some sysctl in spec.securityContext.sysctls
	not sysctl.name in safe_sysctls
}

node_volumes := {
	"hostPath", "gcePersistentDisk", "awsElasticBlockStore", "gitRepo", "nfs", "iscsi",
	"glusterfs", "rbd", "flexVolume", "cinder", "cephfs", "flocker", "fc", "azureFile",
	"vsphereVolume", "quobyte", "azureDisk", "photonPersistentDisk", "portworxVolume",
	"scaleIO", "storageos",
}

failed contains "restrict-volume-types" if {
	some volume in spec.volumes
	some field, _ in volume
	field in node_volumes
}
