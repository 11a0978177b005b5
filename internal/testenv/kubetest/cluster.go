package kubetest

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	kubedynamic "k8s.io/client-go/dynamic"
	clientgo "k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"github.com/talosop/terraform-provider-talosop/internal/kubernetes"
	"github.com/talosop/terraform-provider-talosop/internal/kubernetes/api"
	"github.com/talosop/terraform-provider-talosop/internal/pki"
	"github.com/talosop/terraform-provider-talosop/internal/sim"
	"github.com/talosop/terraform-provider-talosop/internal/wait"
)

const (
	// upTime bounds the start of a cluster's parts on a busy machine.
	upTime = 10 * time.Minute
	// pollPeriod is the pause between two observations of something that is about to come.
	pollPeriod = 50 * time.Millisecond
	// lifetime of the certificates of clients, longer than any test.
	lifetime = 12 * time.Hour
)

// Cluster is a Kubernetes cluster in which charts get ready: a real kube-apiserver,
// kube-controller-manager and kube-scheduler, and this package as kubelets and provisioner.
// Its accessors may be used once [Cluster.Await] has returned.
type Cluster struct {
	sim *sim.Simulator
	dir string
	log func(format string, args ...any)

	// Set before up is closed.
	bundle     *pki.Bundle
	endpoint   string
	kubeconfig string
	admin      *rest.Config
	api        clientgo.Interface
	dynamic    kubedynamic.Interface

	up     chan struct{}
	cancel context.CancelFunc
	work   sync.WaitGroup

	mu  sync.Mutex
	why error // the reason why it is not up
}

// Attach makes charts get ready in the cluster of a simulated site with real parts (sim.Options.Assets), until the
// test ends. It returns at once, and begins as soon as a control plane is configured and its Kubernetes API
// answers. So it can be called before the cluster is made. The site has one cluster; the simulator itself reports
// no status of workloads any more.
func Attach(t testing.TB, simulator *sim.Simulator) *Cluster {
	t.Helper()

	Require(t)

	c := attach(context.WithoutCancel(t.Context()), simulator, t.TempDir(), t.Logf)
	t.Cleanup(c.close)

	return c
}

// attach begins in the background.
func attach(ctx context.Context, simulator *sim.Simulator, dir string, log func(string, ...any)) *Cluster {
	simulator.HandOverWorkloads()

	ctx, cancel := context.WithCancel(ctx)
	c := &Cluster{sim: simulator, dir: dir, log: log, up: make(chan struct{}), cancel: cancel,
		why: errors.New("it has not begun")}

	c.work.Go(func() {
		if err := wait.Until(ctx, pollPeriod, c.find); err != nil {
			return // the test is over
		}

		c.work.Go(func() { c.runManager(ctx) })
		c.work.Go(func() { c.runScheduler(ctx) })
		c.work.Go(func() {
			if wait.Until(ctx, pollPeriod, c.serves) == nil {
				close(c.up)
			}
		})
		c.runKubelets(ctx)
	})

	return c
}

func (c *Cluster) close() {
	c.cancel()
	c.work.Wait()
}

// find prepares the clients as soon as a control plane is configured, and returns nil when
// its API answers.
func (c *Cluster) find(ctx context.Context) error {
	if c.bundle == nil {
		if err := c.configure(); err != nil {
			return c.because(err)
		}
	}

	ctx, cancel := context.WithTimeout(ctx, 5*time.Second)
	defer cancel()

	_, err := c.api.Discovery().RESTClient().Get().AbsPath("/readyz").DoRaw(ctx)

	return c.because(err)
}

func (c *Cluster) because(err error) error {
	c.mu.Lock()
	defer c.mu.Unlock()

	c.why = err

	return err
}

// Await returns when pods can be made and get ready.
func (c *Cluster) Await(t testing.TB) {
	t.Helper()

	ctx, cancel := context.WithTimeout(t.Context(), upTime)
	defer cancel()

	if err := c.await(ctx); err != nil {
		t.Fatal(err)
	}
}

func (c *Cluster) await(ctx context.Context) error {
	select {
	case <-c.up:
		return nil
	case <-ctx.Done():
		c.mu.Lock()
		defer c.mu.Unlock()

		return fmt.Errorf("wait for the cluster to get up: %w: %w", ctx.Err(), c.why)
	}
}

// serves reports whether the controllers do: pods need the account that one of them makes.
func (c *Cluster) serves(ctx context.Context) error {
	_, err := c.api.CoreV1().ServiceAccounts(metav1.NamespaceDefault).Get(ctx, "default", metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		err = errors.New("no controller has made the service account of the namespace default")
	}

	return c.because(err)
}

// Endpoint is the URL of the Kubernetes API.
func (c *Cluster) Endpoint() string { return c.endpoint }

// Secrets is the cluster's secrets bundle, as talosop_cluster handles have it.
func (c *Cluster) Secrets(t testing.TB) string {
	t.Helper()

	content, err := c.bundle.YAML()
	if err != nil {
		t.Fatal(err)
	}

	return string(content)
}

// Kubeconfig is the path of an administrator's kubeconfig.
func (c *Cluster) Kubeconfig() string { return c.kubeconfig }

// API speaks to the cluster as an administrator.
func (c *Cluster) API() clientgo.Interface { return c.api }

// Dynamic speaks to the cluster as an administrator, about any kind.
func (c *Cluster) Dynamic() kubedynamic.Interface { return c.dynamic }

// Config is that of an administrator's client.
func (c *Cluster) Config() *rest.Config { return rest.CopyConfig(c.admin) }

// Client is talosop's own, as an administrator. The options are its own but for the endpoint
// and the credentials.
func (c *Cluster) Client(t testing.TB, o api.Options) *kubernetes.Client {
	t.Helper()

	o.Endpoint = cmp.Or(o.Endpoint, c.endpoint)

	o.CA, o.Cert, o.Key = c.admin.CAData, c.admin.CertData, c.admin.KeyData

	client, err := kubernetes.New(o)
	if err != nil {
		t.Fatal(err)
	}

	t.Cleanup(client.Close)

	return client
}

// Namespace makes a namespace for a test and deletes it with the test, without waiting.
func (c *Cluster) Namespace(t testing.TB) string {
	t.Helper()

	made, err := c.api.CoreV1().Namespaces().Create(t.Context(),
		&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{GenerateName: "test-"}}, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}

	t.Cleanup(func() {
		err := c.api.CoreV1().Namespaces().Delete(context.WithoutCancel(t.Context()), made.Name, metav1.DeleteOptions{})
		if err != nil && !apierrors.IsNotFound(err) {
			t.Error(err)
		}
	})

	return made.Name
}
