package sitetest

import (
	"context"
	"fmt"
	"maps"
	"path/filepath"
	"testing"
	"time"

	"filippo.io/age"

	"github.com/talosop/terraform-provider-talosop/internal/cluster"
	"github.com/talosop/terraform-provider-talosop/internal/cluster/step"
	"github.com/talosop/terraform-provider-talosop/internal/kubernetes"
	"github.com/talosop/terraform-provider-talosop/internal/kubernetes/api"
	"github.com/talosop/terraform-provider-talosop/internal/machineconfig"
	"github.com/talosop/terraform-provider-talosop/internal/machineset"
	"github.com/talosop/terraform-provider-talosop/internal/pki"
	"github.com/talosop/terraform-provider-talosop/internal/provider/providerdata"
	"github.com/talosop/terraform-provider-talosop/internal/provider/tftest"
	"github.com/talosop/terraform-provider-talosop/internal/sim"
	"github.com/talosop/terraform-provider-talosop/internal/wait"
)

// Living is a running cluster with three control planes, and its handle.
type Living struct {
	*Site

	Handle map[string]any
	Bundle string
}

// NewLiving creates the cluster as a CLI would.
func NewLiving(t *testing.T, opts sim.Options) *Living {
	t.Helper()

	b := &Living{Site: NewWith(t, opts, 3, 0), Bundle: tftest.Bundle()}

	machines := tftest.Config{}
	for _, m := range b.ControlPlane {
		machines[m.Name()] = tftest.Config{"address": m.Address().String()}
	}

	config := tftest.BaseControlPlane()
	config["name"], config["endpoint"], config["kubernetes_version"], config["machines"] = "test", b.URL, "v1.36.2",
		machines
	config["deletion_protection"] = false

	plane := tftest.Drive(t, "talosop_control_plane", nil)
	if phase := tftest.Text(t, plane.Apply(t, config).Must(t).Value, "phase"); phase != "Ready" {
		t.Fatalf("the cluster is %s", phase)
	}

	b.Handle = tftest.Config{
		"name": "test", "endpoint": b.URL, "secrets": b.Bundle, "kubernetes_version": "v1.36.2",
		"talos_endpoints": []any{b.ControlPlane[0].Address().String(), b.ControlPlane[1].Address().String(),
			b.ControlPlane[2].Address().String()},
	}

	return b
}

// KubernetesAt is the Kubernetes API at an endpoint of the cluster with these secrets. The caller closes it.
func KubernetesAt(t *testing.T, endpoint string, secrets *pki.Bundle) *kubernetes.Client {
	t.Helper()

	api, err := providerdata.KubernetesOf(t.Context(), pki.Changing,
		machineset.Set{Settings: machineconfig.Cluster{Endpoint: endpoint}}, secrets, api.Options{})
	tftest.Must(t, err)

	return api
}

// Kubernetes is the Kubernetes API of the cluster with these secrets, until the test ends.
func (s *Site) Kubernetes(t *testing.T, bundle string) *kubernetes.Client {
	t.Helper()

	api := KubernetesAt(t, s.URL, tftest.ParsedBundle(t, bundle))
	t.Cleanup(api.Close)

	return api
}

// UnmarkNodes removes the marks of talosop from the nodes, as in a cluster of another tool.
func (s *Site) UnmarkNodes(t *testing.T, bundle string) {
	t.Helper()

	api := s.Kubernetes(t, bundle)
	for _, node := range api.Nodes.Observe(t.Context()).Nodes {
		tftest.Must(t, api.Own(t.Context(), node.Name, ""))
	}
}

// MadeElsewhere makes a control plane of one machine with a patch, as another tool does. It returns a configuration
// without secrets and patches, and that of a provider that has them.
func (s *Site) MadeElsewhere(t *testing.T, patch string) (
	planes tftest.Config, provider func(patches ...any) tftest.Config,
) {
	t.Helper()

	bundle := tftest.Bundle()
	planes = tftest.Config{
		"mode": "metal", "name": "test", "endpoint": s.URL, "talos_version": "v1.13.0",
		"kubernetes_version": "v1.36.2", "install": tftest.Config{"disk": "/dev/sda"},
		"machines": tftest.Config{"cp-1": tftest.Config{"address": s.ControlPlane[0].Address().String()}},
	}
	given := maps.Clone(planes)
	given["secrets"], given["config_patches"] = bundle, []any{patch}

	tftest.Drive(t, "talosop_control_plane", nil).Apply(t, given).Must(t)
	s.UnmarkNodes(t, bundle)

	return planes, func(patches ...any) tftest.Config {
		return tftest.Config{"clusters": tftest.Config{"test": tftest.Config{"secrets": bundle, "config_patches": patches}}}
	}
}

// AwaitReboot waits for a reboot request to a machine.
func AwaitReboot(t *testing.T, s *Site, m *sim.Machine) {
	t.Helper()

	tftest.Must(t, wait.Until(t.Context(), 10*time.Millisecond, func(context.Context) error {
		for _, call := range s.CallsTo("Reboot") {
			if call.Machine == m.Name() && call.Done {
				return nil
			}
		}

		return fmt.Errorf("%s is not rebooted yet", m.Name())
	}))
}

// Boot gives the last worker a configuration, like the user data of a platform, and waits until it is a node.
func Boot(t *testing.T, s *Site, bundle *pki.Bundle, config string) {
	t.Helper()

	m := s.Workers[len(s.Workers)-1]

	fleet, err := providerdata.NewProviderData().FleetOf(t.Context(), pki.Changing, machineset.Set{}, bundle)
	tftest.Must(t, err)

	defer fleet.Close()

	tftest.Must(t, fleet.Machine(cluster.Machine{Name: m.Name(), Wanted: cluster.Wanted{Address: m.Address().String()}}).
		ApplyConfig(t.Context(), []byte(config), step.Maintenance, ""))
	tftest.Must(t, m.AwaitReady(t.Context()))

	text, err := bundle.YAML()
	tftest.Must(t, err)

	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	defer cancel()

	api := s.Kubernetes(t, string(text))
	tftest.Must(t, wait.Until(ctx, 50*time.Millisecond, func(ctx context.Context) error {
		if nodes := api.Nodes.Observe(ctx).Nodes; len(nodes) != len(s.Machines()) {
			return fmt.Errorf("%d nodes of %d machines", len(nodes), len(s.Machines()))
		}

		return nil
	}))
}

// NewIdentity is a key that opens encrypted snapshots.
func NewIdentity(t *testing.T) *age.X25519Identity {
	t.Helper()

	identity, err := age.GenerateX25519Identity()
	if err != nil {
		t.Fatal(err)
	}

	return identity
}

// OnMachines is a talosop_cluster on some machines.
func OnMachines(s *Site, endpoint string, planes, workers []*sim.Machine) tftest.Config {
	machines := func(all []*sim.Machine) tftest.Config {
		out := tftest.Config{}
		for i, m := range all {
			out["m-"+string(rune('1'+i))] = tftest.Config{"address": m.Address().String()}
		}

		return out
	}

	install := tftest.Config{"disk": "/dev/sda"}
	config := tftest.BaseCluster()
	config["name"], config["endpoint"], config["deletion_protection"] = "test", endpoint, false
	config["control_plane"] = tftest.Config{"install": install, "machines": machines(planes)}
	config["workers"] = tftest.Config{"all": tftest.Config{"install": install, "machines": machines(workers)}}

	return config
}

// BackedUp takes a snapshot of a cluster into a folder, and returns what restores it.
func BackedUp(t *testing.T, d *tftest.Driven, folder string) tftest.Config {
	t.Helper()

	backup := tftest.Drive(t, "talosop_etcd_backup", nil)
	backup.Server = d.Server

	taken := backup.Apply(t, tftest.Config{"cluster": tftest.AttributeOf(t, d.State, "cluster"),
		"file": tftest.Config{"path": folder}}).Must(t)

	return tftest.Config{"file": tftest.Config{"path": filepath.Join(folder, tftest.Text(t, taken.Value, "key"))}}
}
