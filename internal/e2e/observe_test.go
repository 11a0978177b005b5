package e2e

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/cosi-project/runtime/pkg/safe"
	"github.com/siderolabs/talos/pkg/machinery/api/machine"
	"github.com/siderolabs/talos/pkg/machinery/client"
	clientconfig "github.com/siderolabs/talos/pkg/machinery/client/config"
	"github.com/siderolabs/talos/pkg/machinery/resources/runtime"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/talosop/terraform-provider-talosop/internal/clitest"
	"github.com/talosop/terraform-provider-talosop/internal/pki"
)

// asStranger connects to a machine in maintenance mode, whose certificate is self-signed; it sends nothing.
func asStranger(ctx context.Context, address string) (*client.Client, error) {
	c, err := client.New(ctx, client.WithTLSConfig(&tls.Config{InsecureSkipVerify: true}), client.WithEndpoints(address))
	if err != nil {
		return nil, fmt.Errorf("connect to %s: %w", address, err)
	}

	return c, nil
}

// waitsInMaintenance asks a machine without credentials. It returns nil when the machine waits in maintenance mode,
// and otherwise the reason why that is unknown.
func waitsInMaintenance(ctx context.Context, address string) (err error) {
	ctx, cancel := context.WithTimeout(ctx, 5*time.Second)
	defer cancel()

	c, err := asStranger(ctx, address)
	if err != nil {
		return err
	}

	defer func() { err = errors.Join(err, c.Close()) }()

	status, err := safe.StateGetByID[*runtime.MachineStatus](ctx, c.COSI, runtime.MachineStatusID)
	if err != nil {
		return fmt.Errorf("ask %s for its stage: %w", address, err)
	}

	if stage := status.TypedSpec().Stage; stage != runtime.MachineStageMaintenance {
		return fmt.Errorf("%s is in stage %s", address, stage)
	}

	return nil
}

// allInMaintenance asks every machine at once and joins the reasons of those that are not in maintenance mode.
func allInMaintenance(ctx context.Context, machines []string) error {
	errs := make([]error, len(machines))

	var wg sync.WaitGroup
	for i, address := range machines {
		wg.Go(func() { errs[i] = waitsInMaintenance(ctx, address) })
	}

	wg.Wait()

	return errors.Join(errs...)
}

// eventually waits until ask returns nil. After limit it fails the test with the last error.
func eventually(t *testing.T, limit time.Duration, what string, ask func(ctx context.Context) error) {
	t.Helper()

	ctx, cancel := context.WithTimeout(t.Context(), limit)
	defer cancel()

	ticker := time.NewTicker(200 * time.Millisecond)
	defer ticker.Stop()

	for {
		err := ask(ctx)
		if err == nil {
			return
		}

		select {
		case <-ctx.Done():
		case <-ticker.C:
		}

		if ctx.Err() != nil { // both may be due after a slow answer
			t.Fatalf("%s: not after %s: %v", what, limit, err)
		}
	}
}

// bundle returns the secrets in the workspace's state.
func bundle(t *testing.T, w *clitest.Workspace) *pki.Bundle {
	t.Helper()

	text, ok := w.Attribute("talosop_secrets.this", "bundle").(string)
	if !ok {
		t.Fatal("the state holds no secrets bundle")
	}

	b, err := pki.Parse([]byte(text))
	if err != nil {
		t.Fatal(err)
	}

	return b
}

// members returns the voting etcd members as a control plane sees them, and an error while one is a learner.
func (s site) members(ctx context.Context, b *pki.Bundle) (names []string, err error) {
	config, err := b.Talosconfig(pki.TalosconfigInput{
		Context: "e2e", Endpoints: s.controlPlanes[:1], Roles: []string{"os:admin"}, TTL: time.Hour,
	})
	if err != nil {
		return nil, err
	}

	parsed, err := clientconfig.FromBytes(config)
	if err != nil {
		return nil, err
	}

	c, err := client.New(ctx, client.WithConfig(parsed))
	if err != nil {
		return nil, err
	}

	defer func() { err = errors.Join(err, c.Close()) }()

	list, err := c.EtcdMemberList(ctx, &machine.EtcdMemberListRequest{})
	if err != nil {
		return nil, err
	}

	for _, m := range list.GetMessages()[0].GetMembers() {
		if m.GetIsLearner() {
			return nil, fmt.Errorf("etcd member %s is still a learner", m.GetHostname())
		}

		names = append(names, m.GetHostname())
	}

	return names, nil
}

// nodes returns the names of the Kubernetes nodes, and an error while one is not Ready.
func (s site) nodes(ctx context.Context, b *pki.Bundle) ([]string, error) {
	clientset, err := s.clientset(b)
	if err != nil {
		return nil, err
	}

	list, err := clientset.CoreV1().Nodes().List(ctx, metav1.ListOptions{})
	if err != nil {
		return nil, err
	}

	var names, waiting []string

	for _, node := range list.Items {
		names = append(names, node.Name)

		if !ready(node) {
			waiting = append(waiting, node.Name)
		}
	}

	if len(waiting) > 0 {
		return names, fmt.Errorf("not Ready: %s", strings.Join(waiting, ", "))
	}

	return names, nil
}

// clientset is the Kubernetes API through the cluster's endpoint, with administrator rights.
func (s site) clientset(b *pki.Bundle) (*kubernetes.Clientset, error) {
	config, err := b.Kubeconfig(pki.KubeconfigInput{
		Cluster: "e2e", Server: s.endpoint, User: "e2e", Groups: []string{"system:masters"}, TTL: time.Hour,
	})
	if err != nil {
		return nil, err
	}

	rest, err := clientcmd.RESTConfigFromKubeConfig(config)
	if err != nil {
		return nil, err
	}

	return kubernetes.NewForConfig(rest)
}

func ready(node corev1.Node) bool {
	for _, c := range node.Status.Conditions {
		if c.Type == corev1.NodeReady {
			return c.Status == corev1.ConditionTrue
		}
	}

	return false
}
