package providerdata

import (
	"context"
	"errors"
	"net"
	"time"

	"github.com/siderolabs/talos/pkg/machinery/resources/block"

	"github.com/talosop/terraform-provider-talosop/internal/cluster"
	"github.com/talosop/terraform-provider-talosop/internal/containers"
	"github.com/talosop/terraform-provider-talosop/internal/lifecycle"
	"github.com/talosop/terraform-provider-talosop/internal/machineconfig"
	"github.com/talosop/terraform-provider-talosop/internal/machineset"
	"github.com/talosop/terraform-provider-talosop/internal/progress"
	"github.com/talosop/terraform-provider-talosop/internal/provider/ledger"
	"github.com/talosop/terraform-provider-talosop/internal/provider/store"
	"github.com/talosop/terraform-provider-talosop/internal/talos"
)

// ProviderData assembles what an operation on machines needs. It is the one place
// where the provider meets the adapters.
type ProviderData struct {
	Policy   cluster.Policy
	Interval time.Duration
	Talos    talos.Options
	// Dial makes the connections to machines and Kubernetes APIs that are not pods of a host cluster; nil is directly.
	Dial func(ctx context.Context, network, address string) (net.Conn, error)
	// Gateway is what Dial goes through, in words that do not change between a plan and its apply; empty when nothing.
	Gateway string
	// OutOfReach are the endpoints of Kubernetes that the computer that runs the provider cannot reach.
	OutOfReach Endpoints
	// Stores are the provider's credentials for buckets.
	Stores store.Credentials
	// Host is the provider's connection to host clusters.
	Host machineset.HostConnection
	// Clusters are the clusters whose secrets the provider was given.
	Clusters Clusters
	// StaticKubeconfigs refuses kubeconfigs that run commands or read files for their credentials.
	StaticKubeconfigs bool
	// Hosts are the connections to host clusters that operations share, and tunnels what leads
	// through them while ephemeral resources are open.
	Hosts   *hosts
	tunnels *containers.Tunnels
	// Progress is who follows the runs of the process.
	Progress progress.Follower
	// KubernetesTimeout is how long a Kubernetes API may take to answer before snapshots are taken
	// without it: a backup matters most when it does not.
	KubernetesTimeout time.Duration
	// PlanTimeout is how long a plan may look at a store.
	PlanTimeout time.Duration
	// ledger is what the resources of the process tell each other.
	ledger *ledger.Ledger
	// Addons is what the addons of a process share.
	Addons *Addons
	// Removals asks a cluster at plan time what an upgrade of Kubernetes removes; nil asks
	// nobody.
	Removals func(ctx context.Context, m *ProviderData, p machineset.Set, u machineset.UpgradeOf) (Impediments, error)
}

// NewProviderData is the provider data of a process before its configuration is known.
func NewProviderData() *ProviderData {
	return &ProviderData{
		Policy: cluster.DefaultPolicy(),
		Talos: talos.Options{Digest: machineconfig.Digest, Images: machineconfig.Images,
			Keys: machineconfig.Keys},
		Removals:          askForRemovals,
		KubernetesTimeout: 10 * time.Second,
		PlanTimeout:       LookLimit,
		ledger:            ledger.New(),
		Addons:            newAddons(),
		Hosts:             NewHosts(),
		tunnels:           &containers.Tunnels{},
	}
}

// Ledger is what the resources of the process tell each other. Before the provider is configured it is an empty one.
func (m *ProviderData) Ledger() *ledger.Ledger {
	if m == nil {
		return ledger.New()
	}

	return m.ledger
}

// WithNewWalk is provider data for a walk of its own: the CLIs configure a plan and its apply once each.
func (m ProviderData) WithNewWalk() ProviderData {
	m.ledger = m.ledger.NewWalk()

	return m
}

// Fleet makes the adapter of one package fit the port of another.
type Fleet struct{ *talos.Fleet }

// Machine implements lifecycle.Fleet.
func (f Fleet) Machine(m cluster.Machine) lifecycle.Machine { return f.Fleet.Machine(m) }

// FindingLinks is provider data that asks control planes which links have their addresses, where any is to be asked.
func (m *ProviderData) FindingLinks(unlinked []string) *ProviderData {
	if len(unlinked) == 0 {
		return m
	}

	asking := *m
	asking.Talos.Links = true

	return &asking
}

// WithConfigurations is provider data that knows what machines have to reboot for to get the
// configurations that were rendered, and on which machines these cannot be installed.
func (m *ProviderData) WithConfigurations(files machineset.Rendered) *ProviderData {
	if files.Configs == nil {
		return m
	}

	informed := *m
	informed.Talos.Takes = machineset.TakesVolumes
	informed.Talos.DiskProblem = func(machine string, disks []*block.Disk) (string, error) {
		return files.Disks[machine].Problem(disks)
	}
	informed.Talos.RebootFor = func(machine, version string, active []byte) ([]string, error) {
		_, fields, err := machineconfig.NeedsReboot(active, files.Configs[machine], version)
		if errors.Is(err, machineconfig.ErrUnknownForm) {
			// It is then applied without a reboot, which Talos refuses where it takes one
			// (ApplyConfiguration in mode NO_REBOOT, up to Talos 1.13).
			return nil, nil
		}

		return fields, err
	}

	return &informed
}

// LookingFor is provider data that sees restores where one is wanted.
func (m *ProviderData) LookingFor(want cluster.Spec) *ProviderData {
	if want.RestoreFrom == "" {
		return m
	}

	looking := *m
	looking.Talos.Restores = true

	return &looking
}

// LookLimit bounds a look at the store that nothing waits for.
const LookLimit = 20 * time.Second
