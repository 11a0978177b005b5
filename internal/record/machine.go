package record

import (
	"encoding/json"
	"fmt"
	"maps"
	"time"

	"github.com/talosop/terraform-provider-talosop/internal/cluster/step"
	"github.com/talosop/terraform-provider-talosop/internal/kubenames"
	"github.com/talosop/terraform-provider-talosop/internal/rotation"
)

// Machine is the recorded state of one machine. An empty field was not observed yet.
type Machine struct {
	// Address is where the machine was reachable.
	Address string `json:"address,omitempty"`
	// Stage is the stage that Talos reports, or StageGone.
	Stage step.Stage `json:"stage,omitempty"`
	// Ready is whether Talos reports it ready.
	Ready bool `json:"ready,omitempty"`
	// UUID is that of the hardware (SMBIOS), and BootID that of the current boot.
	UUID   string `json:"uuid,omitempty"`
	BootID string `json:"boot_id,omitempty"`
	// Platform is the platform that Talos reports, such as metal.
	Platform     string `json:"platform,omitempty"`
	TalosVersion string `json:"talos_version,omitempty"`
	// Schematic and Extensions are those of the running image. Installer is the image that talosop installed last.
	Schematic  string   `json:"schematic,omitempty"`
	Extensions []string `json:"extensions,omitempty"`
	Installer  string   `json:"installer,omitempty"`
	// ConfigDigest is the digest of the active configuration, and StagedDigest that of the configuration for the next
	// boot.
	ConfigDigest string `json:"config_digest,omitempty"`
	StagedDigest string `json:"staged_config_digest,omitempty"`
	// Keys are those in the active configuration, and Images the Kubernetes images by component.
	Keys   rotation.Keys    `json:"keys,omitzero"`
	Images kubenames.Images `json:"images,omitzero"`
	// HostnameUnset is true where an import found no hostname in the configuration.
	HostnameUnset bool `json:"hostname_unset,omitempty"`
	// NodeName is the name of the Kubernetes node, KubeletVersion the version that it reports, and Running the
	// Kubernetes versions that run on it, by component.
	NodeName       string                         `json:"node_name,omitempty"`
	KubeletVersion string                         `json:"kubelet_version,omitempty"`
	Running        map[kubenames.Component]string `json:"running,omitzero"`
	// Soaks is true for a canary machine whose soak has not ended.
	Soaks bool `json:"soaks,omitempty"`
	// MemberID is the machine's etcd member, and RestoredAt the time when its etcd was restored from a snapshot.
	MemberID   string    `json:"member_id,omitempty"`
	RestoredAt time.Time `json:"etcd_restored_at,omitzero"`
	// PodDigest identifies the specification of a container's pod, while the pod is as wanted. PeerAddress is where
	// other control planes reach its etcd.
	PodDigest   string `json:"pod_digest,omitempty"`
	PeerAddress string `json:"peer_address,omitempty"`
	// Link is the link with the address of a control plane.
	Link string `json:"link,omitempty"`
	// Drift is how the machine differs from what was applied last.
	Drift Drift `json:"drift,omitempty"`
}

// StageGone is the stage of a container that no longer exists on its host cluster.
const StageGone = "gone"

// Machines are recorded machines by name.
type Machines map[string]Machine

// Change changes the recorded state of a machine, if there is one.
func (m Machines) Change(name string, change func(*Machine)) {
	if machine, known := m[name]; known {
		change(&machine)
		m[name] = machine
	}
}

// Rename moves the recorded state of a machine to another name.
func (m Machines) Rename(from, to string) {
	if machine, known := m[from]; known {
		delete(m, from)
		m[to] = machine
	}
}

// Clone copies the map. The copy shares what the machines point to.
func (m Machines) Clone() Machines {
	if m == nil {
		return Machines{}
	}

	return maps.Clone(m)
}

// stored is the form in state.
type stored struct {
	Machines Machines `json:"machines,omitempty"`
}

// Encode writes machines for state. It is deterministic.
func (m Machines) Encode() string {
	text, err := json.Marshal(stored{m})
	if err != nil {
		panic("record: " + err.Error()) // every value of a machine has a JSON form
	}

	return string(text)
}

// Decode reads what Encode wrote. An empty text has no machines.
func Decode(text string) (Machines, error) {
	if text == "" {
		return Machines{}, nil
	}

	var read stored
	if err := json.Unmarshal([]byte(text), &read); err != nil {
		return nil, fmt.Errorf("read the record of machines: %w", err)
	}

	return read.Machines.Clone(), nil
}
