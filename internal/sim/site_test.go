package sim_test

import (
	"context"
	"crypto/tls"
	"path/filepath"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/siderolabs/talos/pkg/machinery/api/machine"
	"github.com/siderolabs/talos/pkg/machinery/client"
	clientconfig "github.com/siderolabs/talos/pkg/machinery/client/config"
	"github.com/siderolabs/talos/pkg/machinery/config"
	"github.com/siderolabs/talos/pkg/machinery/config/encoder"
	"github.com/siderolabs/talos/pkg/machinery/config/generate"
	"github.com/siderolabs/talos/pkg/machinery/config/generate/secrets"
	machinetype "github.com/siderolabs/talos/pkg/machinery/config/machine"
	"github.com/siderolabs/talos/pkg/machinery/config/types/v1alpha1"
	"github.com/siderolabs/talos/pkg/machinery/constants"
	"github.com/siderolabs/talos/pkg/machinery/role"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/talosop/terraform-provider-talosop/internal/sim"
	"github.com/talosop/terraform-provider-talosop/internal/testenv/secretstest"
)

// testCluster is the owner's side of a cluster on simulated machines: its secrets,
// its configurations, and clients made as a provider makes them.
type testCluster struct {
	t      *testing.T
	sim    *sim.Simulator
	bundle *secrets.Bundle
	input  *generate.Input
	cni    string // that the main document names; flannel when empty
}

// Keys take a second to make, so the first clusters of all sites share theirs.
var (
	sharedSecrets = sync.OnceValues(newSecrets)
	withCluster   sync.Map // sites that have a cluster
)

func newSecrets() (*secrets.Bundle, error) {
	return secretstest.Secrets(time.Now().Add(-time.Minute))
}

// secretsFor are the secrets of another cluster of the site, which the test may change.
func secretsFor(t *testing.T, simulator *sim.Simulator) *secrets.Bundle {
	t.Helper()

	if _, second := withCluster.LoadOrStore(simulator, true); second {
		bundle, err := newSecrets()
		check(t, err)

		return bundle
	}

	t.Cleanup(func() { withCluster.Delete(simulator) })

	shared, err := sharedSecrets()
	check(t, err)

	bundle, cluster, tokens, trustd, certs := *shared, *shared.Cluster, *shared.Secrets, *shared.TrustdInfo, *shared.Certs
	bundle.Cluster, bundle.Secrets, bundle.TrustdInfo, bundle.Certs = &cluster, &tokens, &trustd, &certs

	return &bundle
}

func newTestCluster(t *testing.T, simulator *sim.Simulator, opts ...generate.Option) *testCluster {
	t.Helper()

	endpoint, err := simulator.Endpoint()
	check(t, err)

	contract := config.TalosVersion1_13
	bundle := secretsFor(t, simulator)

	opts = append([]generate.Option{
		generate.WithVersionContract(contract), generate.WithSecretsBundle(bundle), generate.WithInstallDisk("/dev/sda"),
	}, opts...)

	input, err := generate.NewInput("sim", endpoint, "1.35.2", opts...)
	check(t, err)

	return &testCluster{t: t, sim: simulator, bundle: bundle, input: input}
}

func (c *testCluster) config(kind machinetype.Type) []byte {
	c.t.Helper()

	provider, err := c.input.Config(kind)
	check(c.t, err)

	if c.cni != "" {
		provider.RawV1Alpha1().ClusterConfig.ClusterNetwork.CNI = &v1alpha1.CNIConfig{CNIName: c.cni}
	}

	data, err := provider.EncodeBytes(encoder.WithComments(encoder.CommentsDisabled))
	check(c.t, err)

	return data
}

// insecure is a client of a machine in maintenance mode.
func insecure(t *testing.T, m *sim.Machine) *client.Client {
	t.Helper()

	c, err := client.New(t.Context(),
		client.WithEndpoints(m.Endpoint()), client.WithTLSConfig(&tls.Config{InsecureSkipVerify: true})) //nolint:gosec // maintenance
	check(t, err)
	t.Cleanup(func() { check(t, c.Close()) })

	return c
}

// secure is a client with a certificate of the cluster for the roles.
func (c *testCluster) secure(m *sim.Machine, roles ...role.Role) *client.Client {
	c.t.Helper()

	if len(roles) == 0 {
		roles = []role.Role{role.Admin}
	}

	talos, err := client.New(c.t.Context(), client.WithConfig(c.clientConfig([]string{m.Endpoint()}, roles...)))
	check(c.t, err)
	c.t.Cleanup(func() { check(c.t, talos.Close()) })

	return talos
}

func (c *testCluster) clientConfig(endpoints []string, roles ...role.Role) *clientconfig.Config {
	c.t.Helper()

	cert, err := c.bundle.GenerateTalosAPIClientCertificate(role.MakeSet(roles...))
	check(c.t, err)

	return clientconfig.NewConfig("sim", endpoints, c.bundle.Certs.OS.Crt, cert)
}

// talosconfig writes an administrator's talosconfig into a folder.
func (c *testCluster) talosconfig(dir string) string {
	c.t.Helper()

	file := filepath.Join(dir, "talosconfig")
	check(c.t, c.clientConfig(nil, role.Admin).Save(file))

	return file
}

func (c *testCluster) apply(m *sim.Machine, kind machinetype.Type) {
	c.t.Helper()

	_, err := insecure(c.t, m).ApplyConfiguration(c.t.Context(), &machine.ApplyConfigurationRequest{
		Data: c.config(kind), Mode: machine.ApplyConfigurationRequest_AUTO,
	})
	check(c.t, err)
}

// create brings a cluster up the way a provider does and waits until it is ready.
func (c *testCluster) create(controlPlanes, workers []*sim.Machine) {
	c.t.Helper()

	for _, m := range controlPlanes {
		c.apply(m, machinetype.TypeControlPlane)
	}

	for _, m := range workers {
		c.apply(m, machinetype.TypeWorker)
	}

	c.bootstrap(controlPlanes[0])

	for _, m := range slices.Concat(controlPlanes, workers) {
		check(c.t, m.AwaitReady(within(c.t, time.Minute)))
	}
}

// bootstrap calls until the machine is far enough, with a new client for each attempt:
// one that was refused would wait a second.
func (c *testCluster) bootstrap(m *sim.Machine) {
	c.t.Helper()

	eventually(c.t, "bootstrap", func(ctx context.Context) error {
		return c.secure(m).Bootstrap(ctx, &machine.BootstrapRequest{})
	})
}

func (c *testCluster) kubernetes(m *sim.Machine) *kubernetes.Clientset {
	c.t.Helper()

	clientset, err := kubernetes.NewForConfig(c.restConfig(m))
	check(c.t, err)

	return clientset
}

// restConfig leads to the cluster's endpoint.
func (c *testCluster) restConfig(m *sim.Machine) *rest.Config {
	c.t.Helper()

	raw, err := c.secure(m).Kubeconfig(c.t.Context())
	check(c.t, err)

	config, err := clientcmd.RESTConfigFromKubeConfig(raw)
	check(c.t, err)

	return config
}

func addMachines(t *testing.T, simulator *sim.Simulator, prefix string, n int) []*sim.Machine {
	t.Helper()

	machines, err := simulator.AddMachines(within(t, time.Minute), prefix, n, sim.MachineOptions{})
	check(t, err)

	return machines
}

func check(t *testing.T, err error) {
	t.Helper()

	if err != nil {
		t.Fatal(err)
	}
}

// within bounds what takes d at most on a machine with nothing else to do, and several times that on a busy one.
func within(t *testing.T, d time.Duration) context.Context {
	t.Helper()

	ctx, cancel := context.WithTimeout(t.Context(), 5*d)
	t.Cleanup(cancel)

	return ctx
}

// eventually repeats f until it returns nil.
func eventually(t *testing.T, what string, f func(context.Context) error) {
	t.Helper()

	ctx := within(t, time.Minute)
	ticker := time.NewTicker(5 * time.Millisecond)
	defer ticker.Stop()

	for {
		err := f(ctx)
		if err == nil {
			return
		}

		select {
		case <-ctx.Done():
			t.Fatalf("%s: %v", what, err)
		case <-ticker.C:
		}
	}
}

func TestCluster_fromMaintenanceToReadyAndBack(t *testing.T) {
	simulator := sim.ForTest(t, sim.Options{Log: t.Logf})
	cps := addMachines(t, simulator, "cp", 3)
	workers := addMachines(t, simulator, "worker", 2)

	cluster := newTestCluster(t, simulator)
	cluster.create(cps, workers)

	members, err := simulator.EtcdMembers(t.Context())
	check(t, err)

	if len(members) != 3 || simulator.EtcdClusters() != 1 {
		t.Fatalf("etcd members %v in %d clusters, want 3 voters in one", members, simulator.EtcdClusters())
	}

	nodes, err := cluster.kubernetes(cps[0]).CoreV1().Nodes().List(t.Context(), metav1.ListOptions{})
	check(t, err)

	if len(nodes.Items) != 5 {
		t.Fatalf("got %d nodes, want 5", len(nodes.Items))
	}

	for _, node := range nodes.Items {
		if !nodeReady(&node) || node.Status.NodeInfo.KubeletVersion != "v1.35.2" {
			t.Errorf("node %s: ready %v, kubelet %s", node.Name, nodeReady(&node), node.Status.NodeInfo.KubeletVersion)
		}
	}

	// Away again: workers and two control planes leave, the last one cannot.
	for _, m := range slices.Concat(workers, cps[1:]) {
		cluster.reset(m, true)
		check(t, m.AwaitStage(within(t, time.Minute), sim.StageMaintenance))
	}

	// Talos cordons a machine that it resets, and leaves its objects.
	nodes, err = cluster.kubernetes(cps[0]).CoreV1().Nodes().List(t.Context(), metav1.ListOptions{})
	check(t, err)

	cordoned := slices.DeleteFunc(nodes.Items, func(n corev1.Node) bool { return !n.Spec.Unschedulable })
	if len(cordoned) != 4 {
		t.Errorf("%d nodes are cordoned after the reset of 4 machines", len(cordoned))
	}

	cluster.reset(cps[0], false)
	check(t, cps[0].AwaitStage(within(t, time.Minute), sim.StageMaintenance))

	for _, m := range simulator.Machines() {
		if m.Configured() || !m.Installed() {
			t.Errorf("%s: configured %v, installed %v after reset", m.Name(), m.Configured(), m.Installed())
		}
	}
}

func (c *testCluster) reset(m *sim.Machine, graceful bool) {
	c.t.Helper()

	_, err := c.secure(m).MachineClient.Reset(c.t.Context(), &machine.ResetRequest{
		Graceful: graceful, Reboot: true,
		SystemPartitionsToWipe: []*machine.ResetPartitionSpec{
			{Label: constants.StatePartitionLabel, Wipe: true}, {Label: constants.EphemeralPartitionLabel, Wipe: true},
		},
	})
	check(c.t, err)
}

func nodeReady(node *corev1.Node) bool {
	return slices.ContainsFunc(node.Status.Conditions, func(c corev1.NodeCondition) bool {
		return c.Type == corev1.NodeReady && c.Status == corev1.ConditionTrue
	})
}
