package provider

import (
	"cmp"
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/pem"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/hashicorp/terraform-plugin-framework/diag"
	"github.com/hashicorp/terraform-plugin-log/tflog"

	"github.com/talosop/terraform-provider-talosop/internal/helm/chart"
	helmsession "github.com/talosop/terraform-provider-talosop/internal/helm/client"
	"github.com/talosop/terraform-provider-talosop/internal/helm/diff"
	"github.com/talosop/terraform-provider-talosop/internal/helm/release"
	"github.com/talosop/terraform-provider-talosop/internal/kubernetes"
)

// releaseKeeper is what the resource needs of a cluster.
type releaseKeeper interface {
	Render(ctx context.Context, spec release.Spec, chart *release.Package, have release.Observation) (release.Rendering, error)
	Observe(ctx context.Context, name release.Name) (release.Observation, error)
	Changes(ctx context.Context, spec release.Spec, rendering release.Rendering, have release.Observation) ([]diff.Change, error)
	Drift(ctx context.Context, revision release.Revision, o release.DriftOptions) ([]string, error)
	Apply(ctx context.Context, spec release.Spec, chart *release.Package, intent release.Intent) (release.Outcome, error)
	Remove(ctx context.Context, name release.Name, o release.RemoveOptions) error
}

// chartStore is where charts come from.
type chartStore interface {
	Resolve(ctx context.Context, from chart.Source) (chart.Pin, error)
	Fetch(ctx context.Context, from chart.Source) (*chart.Package, error)
}

// addons is what the addons of a process share.
type addons struct {
	charts chartStore
	// open makes a cluster of a client that all operations on it share.
	open func(ctx context.Context, api *kubernetes.Client) releaseKeeper
	// glance is how long a plan may look at the chart and the cluster of one addon, doubt how long a
	// cluster is asked that does not answer a destroy.
	glance, doubt time.Duration

	mu sync.Mutex
	// clients of clusters, which remember what these serve.
	clients map[string]*kubernetes.Client
	// seen are the releases that this process has refreshed.
	seen map[string]bool
	// claimed are the releases that resources of this process have made, with what tells these apart.
	claimed map[string]string
}

func newAddons() *addons {
	slots := helmsession.NewSlots(0)

	return &addons{
		charts: chart.NewStore(chart.Options{}),
		open: func(ctx context.Context, api *kubernetes.Client) releaseKeeper {
			return &release.Cluster{
				API: api, Slots: slots,
				Progress: func(message string, fields map[string]any) { tflog.Info(ctx, message, fields) },
				Log:      func(message string, fields map[string]any) { tflog.Debug(ctx, message, fields) },
			}
		},
		glance: previewLimit, doubt: addonDoubt, clients: map[string]*kubernetes.Client{}, claimed: map[string]string{}, seen: map[string]bool{},
	}
}

// claim takes a release for one resource, and returns what tells that from others; taken is whether another one
// has it.
func (a *addons) claim(release string) (claim string, taken bool) {
	a.mu.Lock()
	defer a.mu.Unlock()

	if _, taken := a.claimed[release]; taken {
		return "", true
	}

	a.claimed[release] = rand.Text()

	return a.claimed[release], false
}

// ofOther is whether a resource of this process has made a release that is not the one of a claim.
func (a *addons) ofOther(release, claim string) bool {
	a.mu.Lock()
	defer a.mu.Unlock()

	holder, taken := a.claimed[release]

	return taken && holder != claim
}

// saw takes note of a refresh of a release.
func (a *addons) saw(release string) {
	a.mu.Lock()
	defer a.mu.Unlock()

	a.seen[release] = true
}

// sawLately is whether this process has refreshed a release.
func (a *addons) sawLately(release string) bool {
	a.mu.Lock()
	defer a.mu.Unlock()

	return a.seen[release]
}

// release gives a claim back.
func (a *addons) release(release string) {
	a.mu.Lock()
	defer a.mu.Unlock()

	delete(a.claimed, release)
}

// addonsOn is the cluster that a way leads to. It does no I/O. Its client stays for the life of the process.
func (m *machinery) addonsOn(ctx context.Context, to way) (releaseKeeper, error) {
	a := m.addons

	a.mu.Lock()
	defer a.mu.Unlock()

	api := a.clients[to.key]

	if api == nil {
		var err error
		if api, err = to.client(ctx, m); err != nil {
			return nil, fmt.Errorf("%w: %w", errNoWay, err)
		}

		a.clients[to.key] = api
	}

	return a.open(ctx, api), nil
}

// errNoWay is that the configuration does not lead to a cluster, such as a kubeconfig that is gone.
var errNoWay = errors.New("the cluster cannot be reached with what is configured")

// way is how a cluster is reached.
type way struct {
	// key tells ways apart; it holds no secret.
	key string
	// mark is that of a cluster with a handle; authority the certificate of a cluster's CA in
	// DER, and server its URL.
	mark, authority, server string
	// version of Kubernetes, empty when it is not known.
	version string
	secrets []string
	client  func(ctx context.Context, m *machinery) (*kubernetes.Client, error)
}

// way reads how the cluster is reached, which has to be known. Its errors are errNoWay.
func (m addonModel) way(ctx context.Context) (way, error) {
	if m.Cluster.IsNull() {
		return m.wayOfKubeconfig()
	}

	handle, bundle, diags := clusterOf(ctx, m.Cluster)
	p := ofHandle(handle, addonObject, &diags)

	if diags.HasError() {
		return way{}, fmt.Errorf("%w: %s", errNoWay, causesOf(diags))
	}

	endpoints := slices.Sorted(slices.Values(p.endpoints))

	return way{
		key: digestOf(append([]string{"handle", p.settings.Endpoint, handle.Secrets.ValueString()}, endpoints...)...), mark: bundle.Mark(),
		authority: derOf(bundle.Secrets().Certs.K8s.Crt), server: p.settings.Endpoint, version: handle.KubernetesVersion.ValueString(), secrets: masksOf(handle.Secrets.ValueString()),
		client: func(ctx context.Context, m *machinery) (*kubernetes.Client, error) {
			c, err := m.clientsOf(ctx, p, recordedPool{}, bundle, kubernetes.Options{})

			return c.api, err
		},
	}, nil
}

func causesOf(diags diag.Diagnostics) string {
	var causes []string
	for _, d := range diags.Errors() {
		causes = append(causes, cmp.Or(d.Detail(), d.Summary()))
	}

	return strings.Join(causes, "; ")
}

// derOf is the first certificate of a PEM text.
func derOf(text []byte) string {
	block, _ := pem.Decode(text)
	if block == nil {
		return ""
	}

	return string(block.Bytes)
}

func digestOf(texts ...string) string {
	return fmt.Sprintf("%x", sha256.Sum256(fmt.Appendf(nil, "%q", texts)))
}

// wayOfKubeconfig reads the kubeconfig.
func (m addonModel) wayOfKubeconfig() (way, error) {
	given := fields{&reader{}, m.Kubeconfig}
	path, content := fromHome(given.text("path")), []byte(given.text("content"))
	access := kubernetes.Kubeconfig{Content: content, Context: given.text("context")}

	if path != "" {
		access = kubernetes.Kubeconfig{Path: path, Context: access.Context}

		var err error
		if content, err = os.ReadFile(path); err != nil {
			return way{}, fmt.Errorf("%w: read the kubeconfig: %w", errNoWay, err)
		}
	}

	found := way{
		key: digestOf("kubeconfig", path, access.Context, string(content)),
		client: func(context.Context, *machinery) (*kubernetes.Client, error) {
			return kubernetes.NewFromKubeconfig(access, kubernetes.Options{})
		},
	}

	facts, err := access.Facts()
	if err != nil {
		return way{}, fmt.Errorf("%w: %w", errNoWay, err)
	}

	found.server, found.authority, found.secrets = facts.Server, derOf(facts.CA), facts.Secrets

	return found, nil
}

// mask returns a context whose log lines hide what is secret of a way.
func (w way) mask(ctx context.Context) context.Context {
	return maskTexts(tflog.MaskLogRegexes(ctx, privateKey), w.secrets)
}

// another is whether two ways are known to lead to different clusters. The authority of a cluster
// may be rotated and its server may move, so that both have to differ where there is no mark.
func (w way) another(than way) bool {
	if w.mark != "" && than.mark != "" {
		return w.mark != than.mark
	}

	switch unread := w.server == "" || than.server == ""; {
	case unread, (w.authority == "") != (than.authority == ""):
		return false
	default:
		return w.server != than.server && (w.authority != than.authority || w.authority == "")
	}
}

// claim names a release of the cluster, for all ways that lead there.
func (w way) claim(name release.Name) string {
	return digestOf(cmp.Or(w.authority, w.server)) + "/" + name.String()
}
