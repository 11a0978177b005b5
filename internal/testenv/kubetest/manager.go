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

const managerName = "kube-controller-manager"

// controllers that charts need. Those of nodes are not among them: the simulator tells how its
// machines are, and renews nothing that the node controllers look at.
var controllers = []string{
	"clusterrole-aggregation-controller", "cronjob-controller", "daemonset-controller", "deployment-controller",
	"disruption-controller",
	"endpoints-controller", "endpointslice-controller", "garbage-collector-controller",
	"horizontal-pod-autoscaler-controller", "job-controller",
	"namespace-controller", "persistentvolume-binder-controller", "persistentvolume-protection-controller",
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

		return c.prepare(bundle, parsed.Cluster().Name(), parsed.Cluster().Endpoint().String())
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

// runManager keeps the kube-controller-manager running until ctx ends. It says that the
// cluster is up when it works for the first time.
func (c *Cluster) runManager(ctx context.Context, path string) {
	_ = wait.Until(ctx, glance, func(ctx context.Context) error { // until ctx ends
		err := c.manage(ctx, path)
		if ctx.Err() == nil {
			c.log("%v", err)
		}

		return c.because(err)
	})
}

func (c *Cluster) manage(ctx context.Context, path string) error {
	program, err := c.sim.StartGuest(managerName, path,
		"--kubeconfig="+c.kubeconfig, "--leader-elect=false", "--secure-port=0",
		"--controllers="+strings.Join(controllers, ","),
		"--service-account-private-key-file="+c.file("service-account.key"), "--root-ca-file="+c.file("ca.crt"),
		"--kube-api-qps=500", "--kube-api-burst=1000", "--concurrent-gc-syncs=4", "--v=0",
	)
	if err != nil {
		return err
	}

	defer program.Stop()

	work, cancel := context.WithCancel(ctx)
	defer cancel()

	c.work.Go(func() {
		if wait.Until(work, glance, c.serves) == nil {
			c.once.Do(func() { close(c.up) })
		}
	})

	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-program.Gone():
		said, err := os.ReadFile(program.Log())

		return errors.Join(fmt.Errorf("%s ended: %s", managerName, lastLines(string(said))), err)
	}
}

func lastLines(text string) string {
	lines := strings.Split(strings.TrimSpace(text), "\n")

	return strings.Join(lines[max(0, len(lines)-10):], "\n")
}
