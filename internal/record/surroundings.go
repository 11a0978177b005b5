package record

import "github.com/talosop/terraform-provider-talosop/internal/rotation"

// Surroundings is what state remembers beside the machines of a resource. A run changes what it could tell, and the
// rest keeps its value.
type Surroundings struct {
	// Secrets are those with which the machines were last read.
	Secrets Secrets `json:"secrets,omitzero"`
	// Host has the machines that are containers.
	Host Host `json:"host,omitzero"`
	// Unseen are the machines that did not answer as themselves when machines were read last. A plan refuses addresses of
	// other machines by it. Where it is nil nobody looked, and the plan refuses none: the apply does.
	Unseen []string `json:"unseen,omitzero"`
	// OtherControlPlanes are the addresses of control planes of other resources. Only Kubernetes tells them, and a machine
	// that lost its disk is repaired, and no second etcd begins, also while it is down.
	OtherControlPlanes []string `json:"other_control_planes,omitempty"`
	// OtherKeys are those of the machines of other resources: what a plan can do while keys are turned over depends on
	// them.
	OtherKeys rotation.Cluster `json:"other_keys,omitempty"`
	// NeedsConsent is true where the create had no consent to bootstrap etcd: it found one to join.
	NeedsConsent bool `json:"needs_consent,omitempty"`
}

// Secrets tells the secrets of a cluster from others, also where state has none that they could be compared with: by
// their digest (pki.Bundle.CurrentDigest), empty where private state was lost, and by that of what stays while keys are
// turned over (pki.Bundle.Identity), empty where there is no state.
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
