package providerdata

import (
	"context"
	"net"
	"net/http"
	"time"

	"github.com/siderolabs/talos/pkg/machinery/resources/block"

	"github.com/talosop/terraform-provider-talosop/internal/cluster"
	"github.com/talosop/terraform-provider-talosop/internal/containers"
	"github.com/talosop/terraform-provider-talosop/internal/image/factory"
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
	// Dial makes the connections to machines and Kubernetes APIs that are not pods of a host cluster; nil connects
	// directly.
	Dial func(ctx context.Context, network, address string) (net.Conn, error)
	// Gateway describes what Dial goes through, in words that are the same in a plan and its apply; empty for a direct
	// connection.
	Gateway string
	// OutOfReach are the Kubernetes endpoints that the computer of the provider cannot reach.
	OutOfReach Endpoints
	// Stores are the provider's credentials for buckets.
	Stores store.Credentials
	// Host is the provider's connection to host clusters.
	Host machineset.HostConnection
	// Clusters are the clusters whose secrets are in the provider's configuration.
	Clusters Clusters
	// StaticKubeconfigs refuses kubeconfigs that run commands or read files for their credentials.
	StaticKubeconfigs bool
	// Hosts are the shared connections to host clusters, and tunnels what leads through them while ephemeral resources
	// are open.
	Hosts   *hosts
	tunnels *containers.Tunnels
	// Progress follows the runs of the process.
	Progress progress.Follower
	// KubernetesTimeout is how long a Kubernetes API may take to answer before snapshots are taken without it: a
	// backup matters most when the API is down.
	KubernetesTimeout time.Duration
	// PlanTimeout is how long a plan may read a store.
	PlanTimeout time.Duration
	// ledger is what the resources of the process share.
	ledger *ledger.Ledger
	// Addons is what the addons of a process share.
	Addons *Addons
	// Factory is the URL of the Image Factory with the content of schematics; empty for the registry of their images.
	Factory string
	// Schematics reads that content at plan time; nil asks no factory.
	Schematics *factory.Schematics
	// Removals asks a cluster at plan time what an upgrade of Kubernetes removes; nil asks no cluster.
	Removals func(ctx context.Context, m *ProviderData, p machineset.Set, u machineset.UpgradeOf) (UpgradeObstacles, error)
}

// schematicTimeout is how long a plan waits for an Image Factory.
const schematicTimeout = 3 * time.Second

// NewProviderData is the provider data of a process before its configuration is known.
func NewProviderData() *ProviderData {
	return &ProviderData{
		Policy: cluster.DefaultPolicy(),
		Talos: talos.Options{Digest: machineconfig.Digest, Images: machineconfig.Images,
			Keys: machineconfig.Keys},
		Removals:          askForRemovals,
		Schematics:        factory.NewSchematics(http.DefaultClient, schematicTimeout),
		KubernetesTimeout: 10 * time.Second,
		PlanTimeout:       LookLimit,
		ledger:            ledger.New(),
		Addons:            newAddons(),
		Hosts:             NewHosts(),
		tunnels:           &containers.Tunnels{},
	}
}

// Ledger is what the resources of the process share. Before the provider is configured it is an empty one.
func (m *ProviderData) Ledger() *ledger.Ledger {
	if m == nil {
		return ledger.New()
	}

	return m.ledger
}

// WithNewWalk is provider data for a new walk: the CLIs configure the provider once for a plan and once for its
// apply.
func (m ProviderData) WithNewWalk() ProviderData {
	m.ledger = m.ledger.NewWalk()

	return m
}

// Fleet adapts one package to the port of another.
type Fleet struct{ *talos.Fleet }

// Machine implements lifecycle.Fleet.
func (f Fleet) Machine(m cluster.Machine) lifecycle.Machine { return f.Fleet.Machine(m) }

// FindingLinks is provider data that asks control planes which links have their addresses, if any has to be asked.
func (m *ProviderData) FindingLinks(unlinked []string) *ProviderData {
	if len(unlinked) == 0 {
		return m
	}

	asking := *m
	asking.Talos.Links = true

	return &asking
}

// WithConfigurations is provider data that knows which changes of rendered configurations need a reboot of a
// machine, and which machines cannot install theirs.
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
		return machineset.RebootFor(active, files.Configs[machine], version)
	}

	return &informed
}

// LookingFor is provider data that observes restores when one is wanted.
func (m *ProviderData) LookingFor(want cluster.Spec) *ProviderData {
	if want.RestoreFrom == "" {
		return m
	}

	looking := *m
	looking.Talos.Restores = true

	return &looking
}

// LookLimit limits a read of the store that no operation waits for.
const LookLimit = 20 * time.Second
