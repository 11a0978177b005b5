package kubetest

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/siderolabs/talos/pkg/machinery/config/configloader"
	kubedynamic "k8s.io/client-go/dynamic"
	clientgo "k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"github.com/talosop/terraform-provider-talosop/internal/pki"
	"github.com/talosop/terraform-provider-talosop/internal/wait"
)

const (
	managerName   = "kube-controller-manager"
	schedulerName = "kube-scheduler"
)

// schedulerConfig makes the scheduler retry soon.
const schedulerConfig = `apiVersion: kubescheduler.config.k8s.io/v1
kind: KubeSchedulerConfiguration
leaderElection: {leaderElect: false}
clientConnection: {kubeconfig: %q, qps: 500, burst: 1000}
podInitialBackoffSeconds: 1
podMaxBackoffSeconds: 1
`

// controllers that charts need. That of nodes gives them the taints that follow from their conditions, and no more:
// the simulator tells how its machines are, and renews no leases.
var controllers = []string{
	"clusterrole-aggregation-controller", "cronjob-controller", "daemonset-controller", "deployment-controller",
	"disruption-controller",
	"endpoints-controller", "endpointslice-controller", "garbage-collector-controller",
	"horizontal-pod-autoscaler-controller", "job-controller",
	"namespace-controller", "node-lifecycle-controller", "persistentvolume-binder-controller",
	"persistentvolume-protection-controller",
	"persistentvolumeclaim-protection-controller", "pod-garbage-collector-controller", "replicaset-controller",
	"resourcequota-controller",
	"root-ca-certificate-publisher-controller", "serviceaccount-controller", "serviceaccount-token-controller",
	"statefulset-controller",
	"ttl-after-finished-controller",
}

var errNoControlPlane = errors.New("no control plane is configured")

// configure reads who the cluster is from a machine of it, and prepares the clients.
func (c *Cluster) configure() error {
	for _, m := range c.sim.Machines() {
		config := m.Config()
		if len(config) == 0 {
			continue
		}

		parsed, err := configloader.NewFromBytes(config)
		if err != nil {
			return fmt.Errorf("read the configuration of %s: %w", m.Name(), err)
		}

		if parsed.RawV1Alpha1() == nil || !parsed.Machine().Type().IsControlPlane() {
			continue
		}

		bundle, err := pki.FromMachineConfig(config)
		if err != nil {
			return fmt.Errorf("read the secrets of %s: %w", m.Name(), err)
		}

		of := parsed.K8sClusterConfig()

		return c.prepare(bundle, of.ClusterName(), of.ClusterEndpoint().String())
	}

	return errNoControlPlane
}

func (c *Cluster) prepare(bundle *pki.Bundle, name, endpoint string) error {
	admin, err := bundle.KubernetesClient("admin", []string{"system:masters"}, lifetime)
	if err != nil {
		return err
	}

	kubeconfig, err := admin.Kubeconfig(name, endpoint, "admin")
	if err != nil {
		return err
	}

	c.kubeconfig, c.endpoint = filepath.Join(c.dir, "kubeconfig"), endpoint

	if err := errors.Join(
		os.WriteFile(c.kubeconfig, kubeconfig, 0o600),
		os.WriteFile(c.file("scheduler.yaml"), fmt.Appendf(nil, schedulerConfig, c.kubeconfig), 0o600),
		os.WriteFile(c.file("ca.crt"), admin.CA, 0o600),
		os.WriteFile(c.file("service-account.key"), bundle.Secrets().Certs.K8sServiceAccount.Key, 0o600),
	); err != nil {
		return err
	}

	c.admin = &rest.Config{Host: endpoint, QPS: -1,
		TLSClientConfig: rest.TLSClientConfig{CAData: admin.CA, CertData: admin.Certificate, KeyData: admin.Key}}

	if c.api, err = clientgo.NewForConfig(c.admin); err != nil {
		return err
	}

	if c.dynamic, err = kubedynamic.NewForConfig(c.admin); err != nil {
		return err
	}

	c.bundle = bundle

	return nil
}

// runManager keeps the kube-controller-manager running until ctx ends.
func (c *Cluster) runManager(ctx context.Context) {
	c.keepRunning(ctx, managerName,
		"--kubeconfig="+c.kubeconfig, "--leader-elect=false", "--secure-port=0",
		"--controllers="+strings.Join(controllers, ","), "--node-monitor-grace-period=24h", "--node-startup-grace-period=24h",
		"--service-account-private-key-file="+c.file("service-account.key"), "--root-ca-file="+c.file("ca.crt"),
		"--kube-api-qps=500", "--kube-api-burst=1000", "--concurrent-gc-syncs=4", "--v=0",
	)
}

// runScheduler keeps the kube-scheduler running until ctx ends.
func (c *Cluster) runScheduler(ctx context.Context) {
	c.keepRunning(ctx, schedulerName, "--config="+c.file("scheduler.yaml"), "--secure-port=0", "--v=0")
}

func (c *Cluster) keepRunning(ctx context.Context, name string, args ...string) {
	_ = wait.Until(ctx, pollPeriod, func(ctx context.Context) error { // until ctx ends
		err := c.runProgram(ctx, name, args)
		if ctx.Err() == nil {
			c.log("%v", err)
		}

		return c.because(err)
	})
}

// runProgram runs a program until it or ctx ends.
func (c *Cluster) runProgram(ctx context.Context, name string, args []string) error {
	program, err := c.sim.StartGuest(name, filepath.Join(os.Getenv("TALOSOP_TEST_ASSETS"), name), args...)
	if err != nil {
		return err
	}

	defer program.Stop()

	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-program.Gone():
		output, err := os.ReadFile(program.Log())

		return errors.Join(fmt.Errorf("%s ended: %s", name, lastLines(string(output))), err)
	}
}

func lastLines(text string) string {
	lines := strings.Split(strings.TrimSpace(text), "\n")

	return strings.Join(lines[max(0, len(lines)-10):], "\n")
}
