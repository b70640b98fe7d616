# The eighteen checks of corpus/pod-security, as Rego.
package pods

import rego.v1

spec := input.spec

containers := array.concat(
	array.concat(object.get(spec, "containers", []), object.get(spec, "initContainers", [])),
	object.get(spec, "ephemeralContainers", []),
)

# The security contexts of the pod and of its containers.
contexts contains spec.securityContext

contexts contains container.securityContext if some container in containers

profiles := {"RuntimeDefault", "Localhost"}

capabilities := {
	"AUDIT_WRITE", "CHOWN", "DAC_OVERRIDE", "FOWNER", "FSETID", "KILL", "MKNOD",
	"NET_BIND_SERVICE", "SETFCAP", "SETGID", "SETPCAP", "SETUID", "SYS_CHROOT",
}

selinux_types := {"container_t", "container_init_t", "container_kvm_t", "container_engine_t", ""}

sysctls := {
	"kernel.shm_rmid_forced", "net.ipv4.ip_local_port_range",
	"net.ipv4.ip_local_reserved_ports", "net.ipv4.ip_unprivileged_port_start",
	"net.ipv4.ping_group_range", "net.ipv4.tcp_fin_timeout", "net.ipv4.tcp_keepalive_intvl",
	"net.ipv4.tcp_keepalive_probes", "net.ipv4.tcp_keepalive_time", "net.ipv4.tcp_rmem",
	"net.ipv4.tcp_syncookies", "net.ipv4.tcp_wmem",
}

node_volumes := {
	"hostPath", "gcePersistentDisk", "awsElasticBlockStore", "gitRepo", "nfs", "iscsi",
	"glusterfs", "rbd", "flexVolume", "cinder", "cephfs", "flocker", "fc", "azureFile",
	"vsphereVolume", "quobyte", "azureDisk", "photonPersistentDisk", "portworxVolume", "scaleIO",
	"storageos",
}

deny contains "apparmor-fields" if {
	some context in contexts
	not context.appArmorProfile.type in profiles
	context.appArmorProfile
}

deny contains "apparmor-annotations" if {
	some key, value in input.metadata.annotations
	startswith(key, "container.apparmor.security.beta.kubernetes.io/")
	not value in {"runtime/default", ""}
	not startswith(value, "localhost/")
}

deny contains "only-default-capabilities" if {
	some container in containers
	some added in container.securityContext.capabilities.add
	not added in capabilities
}

deny contains "no-host-namespaces" if spec.hostPID

deny contains "no-host-namespaces" if spec.hostIPC

deny contains "no-host-namespaces" if spec.hostNetwork

deny contains "no-host-path-volumes" if {
	some volume in spec.volumes
	volume.hostPath
}

deny contains "no-host-ports" if {
	some container in containers
	some port in container.ports
	port.hostPort != 0
}

deny contains "no-host-process" if {
	some context in contexts
	context.windowsOptions.hostProcess
}

deny contains "no-privilege-escalation" if {
	some container in containers
	not container.securityContext.allowPrivilegeEscalation == false
}

deny contains "not-privileged" if {
	some container in containers
	container.securityContext.privileged
}

deny contains "default-proc-mount" if {
	some container in containers
	container.securityContext.procMount != "Default"
}

deny contains "seccomp-not-off" if {
	some context in contexts
	context.seccompProfile
	not context.seccompProfile.type in profiles
}

deny contains "selinux-options-are-safe" if {
	some context in contexts
	not context.seLinuxOptions.type in selinux_types
	context.seLinuxOptions.type
}

deny contains "selinux-options-are-safe" if {
	some context in contexts
	context.seLinuxOptions.user != ""
}

deny contains "selinux-options-are-safe" if {
	some context in contexts
	context.seLinuxOptions.role != ""
}

deny contains "drop-all" if {
	some container in containers
	not drops_all(container)
}

deny contains "drop-all" if {
	some container in containers
	some added in container.securityContext.capabilities.add
	added != "NET_BIND_SERVICE"
}

drops_all(container) if {
	every dropped in container.securityContext.capabilities.drop {
		dropped == "ALL"
	}
}

deny contains "user-is-not-zero" if {
	some context in contexts
	context.runAsUser == 0
}

deny contains "non-root-everywhere" if {
	not pod_is_non_root
	not containers_are_non_root
}

pod_is_non_root if {
	spec.securityContext.runAsNonRoot == true
	not root_container
}

root_container if {
	some container in containers
	container.securityContext.runAsNonRoot == false
}

containers_are_non_root if {
	not spec.securityContext.runAsNonRoot == false
	every container in containers {
		container.securityContext.runAsNonRoot == true
	}
}

deny contains "seccomp-chosen" if {
	not spec.securityContext.seccompProfile.type in profiles
	some container in containers
	not container.securityContext.seccompProfile.type in profiles
}

deny contains "only-safe-sysctls" if {
	some sysctl in spec.securityContext.sysctls
	not sysctl.name in sysctls
}

deny contains "only-cluster-volumes" if {
	some volume in spec.volumes
	some type, _ in volume
	type in node_volumes
}
