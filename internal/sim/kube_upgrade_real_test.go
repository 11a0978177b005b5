package sim_test

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	machinetype "github.com/siderolabs/talos/pkg/machinery/config/machine"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"

	"github.com/talosop/terraform-provider-talosop/internal/sim"
	"github.com/talosop/terraform-provider-talosop/internal/testenv"
)

// The versions of Kubernetes that tools/testbed builds.
const (
	previousKubernetes = "v1.35.4"
	currentKubernetes  = "v1.36.3"
)

// kubernetesAssets is the folder of real programs, for tests that need two versions.
func kubernetesAssets(t *testing.T) string {
	t.Helper()
	asset(t, filepath.Join("kube-previous", "kube-apiserver"))

	return filepath.Dir(asset(t, "kube-apiserver"))
}

// siteLog collects what a site logs.
type siteLog struct {
	t *testing.T

	mu    sync.Mutex
	lines []string
}

func (l *siteLog) logf(format string, args ...any) {
	l.t.Logf(format, args...)

	l.mu.Lock()
	defer l.mu.Unlock()

	l.lines = append(l.lines, fmt.Sprintf(format, args...))
}

func (l *siteLog) has(text string) bool {
	l.mu.Lock()
	defer l.mu.Unlock()

	return slices.ContainsFunc(l.lines, func(line string) bool { return strings.Contains(line, text) })
}

// apiOf is a client of one machine's own API server.
func (c *testCluster) apiOf(m *sim.Machine) *kubernetes.Clientset {
	c.t.Helper()

	config := c.restConfig(m)
	config.Host = "https://" + m.Address().String() + ":6443"
	config.QPS = -1

	client, err := kubernetes.NewForConfig(config)
	check(c.t, err)

	return client
}

func serves(client kubernetes.Interface, version string) error {
	info, err := client.Discovery().ServerVersion()
	if err != nil {
		return err
	}

	if info.GitVersion != version {
		return fmt.Errorf("it is still %s", info.GitVersion)
	}

	return nil
}

// poller reads an object over and over, from the first API server that answers.
type poller struct {
	servers []*kubernetes.Clientset
	pace    time.Duration
	reads   int
	lost    error // of the first read that no server answered
}

func (p *poller) run(ctx context.Context, namespace, name string) {
	ticker := time.NewTicker(p.pace)
	defer ticker.Stop()

	for ctx.Err() == nil && p.lost == nil {
		<-ticker.C

		var errs []error

		for i, server := range p.servers {
			if _, err := server.CoreV1().ConfigMaps(namespace).Get(ctx, name, metav1.GetOptions{}); err != nil {
				errs = append(errs, err)

				continue
			}

			p.reads++
			p.servers = slices.Concat(p.servers[i:], p.servers[:i]) // stay where it works
			errs = nil

			break
		}

		if ctx.Err() == nil {
			p.lost = errors.Join(errs...)
		}
	}
}

// An upgrade replaces the API server of one machine after the other. In between, two
// versions work on the same objects. A client that knows all machines is always served,
// and so is one behind a load balancer.
func TestRealAPIServer_isReplacedOneByOne(t *testing.T) {
	t.Parallel()
	testenv.BeforeRelease(t, "TestCluster_withRealEtcdAndKubernetes", "TestKubernetesUpgrade_inTwoHops")

	log := &siteLog{t: t}
	simulator := sim.ForTest(t, sim.Options{Assets: kubernetesAssets(t), Log: log.logf})
	cps := addMachines(t, simulator, "cp", 3)

	balanced, err := simulator.LoadBalancer()
	check(t, err)

	cluster := newTestCluster(t, simulator)
	cluster.input.ControlPlaneEndpoint = balanced
	cluster.input.KubernetesVersion = strings.TrimPrefix(previousKubernetes, "v")
	cluster.create(cps, nil)

	servers := make([]*kubernetes.Clientset, len(cps))
	for i, m := range cps {
		servers[i] = cluster.apiOf(m)
		eventually(t, "the previous version", func(context.Context) error { return serves(servers[i], previousKubernetes) })
	}

	ctx := within(t, 2*time.Minute)
	write := func(server *kubernetes.Clientset, name string) {
		check(t, second(server.CoreV1().ConfigMaps("default").Create(ctx, &corev1.ConfigMap{
			ObjectMeta: metav1.ObjectMeta{Name: name},
		}, metav1.CreateOptions{})))
	}
	read := func(server *kubernetes.Clientset, name string) {
		check(t, second(server.CoreV1().ConfigMaps("default").Get(ctx, name, metav1.GetOptions{})))
	}

	write(servers[0], "before")

	polling, stop := context.WithCancel(ctx)
	defer stop()

	// The second one is slow enough to be between two requests once in a while.
	clients := []*poller{
		{servers: slices.Clone(servers), pace: time.Millisecond},
		{servers: []*kubernetes.Clientset{cluster.kubernetes(cps[0])}, pace: 500 * time.Millisecond},
	}

	var work sync.WaitGroup
	for _, client := range clients {
		work.Go(func() { client.run(polling, "default", "before") })
	}

	for i, m := range cps {
		cluster.setImage(m, apiServerImage, currentKubernetes)
		eventually(t, "the current version", func(context.Context) error { return serves(servers[i], currentKubernetes) })

		if i == 0 {
			check(t, serves(servers[2], previousKubernetes))
			write(servers[0], "by-the-new")
			write(servers[2], "by-the-old")
			read(servers[2], "by-the-new")
			read(servers[0], "by-the-old")
		}
	}

	stop()
	work.Wait()

	for _, client := range clients {
		if client.lost != nil || client.reads == 0 {
			t.Errorf("a client of %d addresses was refused after %d reads: %v", len(client.servers), client.reads, client.lost)
		}
	}

	read(servers[1], "before")
	eventually(t, "the end of the previous version's process", func(context.Context) error {
		if !log.has("kube-apiserver " + previousKubernetes + " stopped") {
			return errors.New("it was not stopped")
		}

		return nil
	})
	check(t, serves(servers[2], currentKubernetes))

	for _, m := range cps {
		check(t, m.AwaitReady(within(t, time.Minute)))
	}
}

// Real parts run what was built; any other version is an API server that never starts.
func TestRealAPIServer_ofAVersionThatWasNotBuilt(t *testing.T) {
	t.Parallel()
	testenv.BeforeRelease(t, "TestCluster_withRealEtcdAndKubernetes")

	log := &siteLog{t: t}
	simulator := sim.ForTest(t, sim.Options{Assets: kubernetesAssets(t), Log: log.logf})
	cps := addMachines(t, simulator, "cp", 1)

	cluster := newTestCluster(t, simulator)
	cluster.input.KubernetesVersion = "1.34.5"
	cluster.apply(cps[0], machinetype.TypeControlPlane)
	cluster.bootstrap(cps[0])

	eventually(t, "the reason", func(context.Context) error {
		if !log.has("no kube-apiserver for Kubernetes v1.34.5") {
			return errors.New("it is not logged")
		}

		return nil
	})

	if ready, unmet := cps[0].Ready(); ready {
		t.Errorf("the machine is ready without an API server (unmet: %v)", unmet)
	}

	cluster.setImage(cps[0], apiServerImage, currentKubernetes)
	check(t, cps[0].AwaitReady(within(t, time.Minute)))
}
