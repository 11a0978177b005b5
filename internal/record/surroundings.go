package record

import "github.com/talosop/terraform-provider-talosop/internal/rotation"

// Surroundings is the recorded state beside the machines of a resource. A run changes what it observed, and the rest
// keeps its value.
type Surroundings struct {
	// Secrets are those with which the machines were read last.
	Secrets Secrets `json:"secrets,omitzero"`
	// Host is the host cluster of machines that are containers.
	Host Host `json:"host,omitzero"`
	// Unseen are the machines that did not identify themselves in the last read. For them a plan refuses addresses of
	// other machines. If it is nil, no read happened, and only the apply refuses such addresses.
	Unseen []string `json:"unseen,omitzero"`
	// OtherControlPlanes are the addresses of control planes of other resources. Only Kubernetes knows them. A machine
	// that lost its disk is repaired without a second etcd, even while Kubernetes is down.
	OtherControlPlanes []string `json:"other_control_planes,omitempty"`
	// OtherKeys are the keys of machines of other resources, on which a plan depends during a key rotation.
	OtherKeys rotation.Cluster `json:"other_keys,omitempty"`
	// NeedsConsent is true where the create had no consent to bootstrap etcd: it found an etcd to join.
	NeedsConsent bool `json:"needs_consent,omitempty"`
	// Hooks are the names of the hooks that an apply began and none ended.
	Hooks []string `json:"hooks,omitempty"`
}

// Secrets identifies the secrets of a cluster by digests. The first covers the current secrets
// (pki.Bundle.CurrentDigest); it is empty where private state was lost. The second covers what stays during a key
// rotation (pki.Bundle.Identity); it is empty where there is no state.
type Secrets struct {
	Digest   string `json:"digest,omitempty"`
	Identity string `json:"identity,omitempty"`
}

// Host is a host cluster, as in workload.Identity.
type Host struct {
	UID        string `json:"uid,omitempty"`
	Connection string `json:"connection,omitempty"`
	Server     string `json:"server,omitempty"`
}
