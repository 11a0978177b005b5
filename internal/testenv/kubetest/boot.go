package kubetest

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"github.com/talosop/terraform-provider-talosop/internal/clitest"
	"github.com/talosop/terraform-provider-talosop/internal/cluster"
	"github.com/talosop/terraform-provider-talosop/internal/cluster/step"
	"github.com/talosop/terraform-provider-talosop/internal/machineconfig"
	"github.com/talosop/terraform-provider-talosop/internal/sim"
	"github.com/talosop/terraform-provider-talosop/internal/talos"
	"github.com/talosop/terraform-provider-talosop/internal/testenv/secretstest"
	"github.com/talosop/terraform-provider-talosop/internal/wait"
)

// version of the cluster's Kubernetes; the one of the real programs but for the patch release.
const version = "v1.36.3"

// NewCluster starts a cluster of one machine, whose Node cp-1 is ready and takes all pods. It takes
// some three seconds and 500 MB, and ends with the test. The test is skipped when the real
// programs are missing, or fails when they must not be (clitest.Asset).
func NewCluster(t testing.TB) *Cluster {
	t.Helper()

	Require(t)

	c, end, err := Start(t.Context(), t.TempDir(), t.Logf, Options{})

	t.Cleanup(func() {
		if err := end(); err != nil {
			t.Error(err)
		}
	})

	if err != nil {
		t.Fatal(err)
	}

	return c
}

// Require skips or fails a test when the real programs that a cluster needs are missing (clitest.Asset).
func Require(t testing.TB) {
	t.Helper()

	for _, name := range []string{"etcd", "kube-apiserver", managerName, schedulerName} {
		clitest.Asset(t, name)
	}
}

var shared Share[*Cluster]

// Shared returns a cluster that all tests of a package share: each works in separate namespaces
// ([Cluster.Namespace]). The package has to run its tests with [Run].
func Shared(t testing.TB) *Cluster {
	t.Helper()

	return shared.Get(t, func(ctx context.Context, dir string, log func(string, ...any)) (*Cluster, func() error, error) {
		return Start(ctx, dir, log, Options{})
	})
}

// Run runs the tests of a package and ends the cluster that they shared, if any; it panics when that
// cannot be ended:
//
//	func TestMain(m *testing.M) { kubetest.Run(m) }
func Run(m *testing.M) {
	m.Run() // its code is the process's when TestMain returns

	if err := shared.End(); err != nil {
		panic(fmt.Errorf("end the shared cluster: %w", err))
	}
}

// Options of a cluster; the zero value is what NewCluster makes.
type Options struct {
	// Reserved keeps pods without a toleration off the node of the cluster's machine: the caller adds its own
	// nodes, with kubelets for them.
	Reserved bool
}

// Start starts a site with one machine, and what makes charts ready, with its files in a folder. The function
// it returns is never nil and ends all of it. Tests use NewCluster or Shared; this is for packages that share a cluster
// for something else, whose tests call Require first.
func Start(ctx context.Context, dir string, log func(string, ...any), o Options) (*Cluster, func() error, error) {
	ctx, cancel := context.WithTimeout(ctx, upTime)
	defer cancel()

	nothing := func() error { return nil }

	simulator, err := sim.New(context.WithoutCancel(ctx), sim.Options{Assets: os.Getenv("TALOSOP_TEST_ASSETS")})
	if err != nil {
		return nil, nothing, err
	}

	c := attach(context.WithoutCancel(ctx), simulator, dir, log)
	end := func() error { c.close(); return simulator.Close() }

	m, err := bootMachine(ctx, simulator, o)
	if err != nil {
		return nil, end, err
	}

	m.InstallCNI()

	if err := m.AwaitReady(ctx); err != nil {
		return nil, end, err
	}

	return c, end, c.await(ctx)
}

// bootMachine starts a control plane that has been configured and lets its etcd begin. It has no pod
// network.
func bootMachine(ctx context.Context, simulator *sim.Simulator, o Options) (*sim.Machine, error) {
	bundle, err := secretstest.Generate()
	if err != nil {
		return nil, err
	}

	endpoint, err := simulator.Endpoint()
	if err != nil {
		return nil, err
	}

	config, err := machineconfig.Generate(
		machineconfig.Cluster{
			Name: "addons", Endpoint: endpoint, KubernetesVersion: version, Contract: "v1.13",
			CNI: machineconfig.CNI{Name: machineconfig.CNINone}, KubeProxy: new(false),
			AllowSchedulingOnControlPlanes: !o.Reserved,
			Patches:                        []string{"cluster:\n  coreDNS:\n    disabled: true\n"},
		},
		machineconfig.Machine{
			Role: machineconfig.ControlPlane, Mode: machineconfig.Metal, Hostname: "cp-1",
			Install: machineconfig.Install{Disk: "/dev/sda", Image: "ghcr.io/siderolabs/installer:" + sim.DefaultTalosVersion},
		}, bundle)
	if err != nil {
		return nil, err
	}

	m, err := simulator.AddMachine(ctx, sim.MachineOptions{Name: "cp-1", Config: config.Bytes})
	if err != nil {
		return nil, err
	}

	admin, err := bundle.TalosClient([]string{"os:admin"}, lifetime)
	if err != nil {
		return nil, err
	}

	fleet, err := talos.NewFleet(talos.Options{
		Credentials: talos.Credentials{CA: admin.CA, Cert: admin.Certificate, Key: admin.Key}})
	if err != nil {
		return nil, err
	}

	defer fleet.Close()

	api := fleet.Machine(cluster.Machine{Name: m.Name(), Role: step.ControlPlane,
		Wanted: cluster.Wanted{Address: m.Address().String(), UUID: m.UUID()}})

	return m, wait.Until(ctx, pollPeriod, api.Bootstrap)
}

// file of the cluster's own folder.
func (c *Cluster) file(name string) string { return filepath.Join(c.dir, name) }
