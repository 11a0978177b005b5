package addon

import (
	"cmp"
	"context"
	"encoding/pem"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"

	"github.com/hashicorp/terraform-plugin-framework/diag"
	"github.com/hashicorp/terraform-plugin-framework/types"
	"github.com/hashicorp/terraform-plugin-log/tflog"

	"github.com/talosop/terraform-provider-talosop/internal/finding"
	"github.com/talosop/terraform-provider-talosop/internal/helm/release"
	"github.com/talosop/terraform-provider-talosop/internal/kubernetes"
	"github.com/talosop/terraform-provider-talosop/internal/kubernetes/api"
	"github.com/talosop/terraform-provider-talosop/internal/machineset"
	"github.com/talosop/terraform-provider-talosop/internal/pki"
	"github.com/talosop/terraform-provider-talosop/internal/provider/providerdata"
	"github.com/talosop/terraform-provider-talosop/internal/provider/tf"
)

// reached is a cluster that an operation works on, and its route.
type reached struct {
	providerdata.ReleaseKeeper
	Route
}

// reach opens the cluster of an addon for an operation, whose log lines hide the secrets of the cluster. It does no
// I/O, and its errors are errNoRoute.
func (m addonModel) reach(
	ctx context.Context, data *providerdata.ProviderData, access pki.Access,
) (context.Context, reached, error) {
	to, err := m.route(ctx, data)
	if err != nil {
		return ctx, reached{}, err
	}

	ctx = to.mask(ctx)
	cluster, err := addonsOn(ctx, data, access, to)

	return ctx, reached{cluster, to}, err
}

// addonsOn is the cluster that a route leads to, for an operation. It does no I/O. Its client lives as long as the
// process, or as long as its credentials last.
func addonsOn(
	ctx context.Context, m *providerdata.ProviderData, access pki.Access, to Route,
) (providerdata.ReleaseKeeper, error) {
	a := m.Addons

	a.Mu.Lock()
	defer a.Mu.Unlock()

	key := access.Operation + " " + to.key
	api := a.Clients[key]

	if api == nil || !providerdata.Lasts(ctx, api) {
		var err error
		if api, err = to.client(ctx, m, access); err != nil {
			return nil, fmt.Errorf("%w: %w", errNoRoute, err)
		}

		a.Clients[key] = api
	}

	return a.Open(ctx, api), nil
}

// errNoRoute says that the configuration does not lead to a cluster, such as a kubeconfig that is gone.
var errNoRoute = errors.New("the cluster cannot be reached with what is configured")

// Route is the route to a cluster.
type Route struct {
	// key identifies a route; it holds no secret.
	key string
	// Mark is that of a cluster with a handle. Authority is the certificate of a cluster's CA in DER, and Server its
	// URL.
	Mark, Authority, Server string
	// version of Kubernetes, empty when it is not known.
	version string
	Secrets []string
	client  func(ctx context.Context, m *providerdata.ProviderData, access pki.Access) (*kubernetes.Client, error)
}

// route reads the route to the cluster, which has to be known. Its errors are errNoRoute.
func (m addonModel) route(ctx context.Context, data *providerdata.ProviderData) (Route, error) {
	if m.Cluster.IsNull() {
		return m.routeOfKubeconfig(data)
	}

	handle, bundle, diags := data.ClusterOf(ctx, m.Cluster)
	p := providerdata.OfHandle(handle, addonObject, &diags)

	if diags.HasError() {
		return Route{}, fmt.Errorf("%w: %s", errNoRoute, causesOf(diags))
	}

	endpoints := slices.Sorted(slices.Values(p.Endpoints))

	return Route{
		key: tf.DigestOf(append([]string{"handle", p.Settings.Endpoint, handle.Secrets.ValueString()},
			endpoints...)...),
		Mark:      bundle.Mark(),
		Authority: derOf(bundle.Secrets().Certs.K8s.Crt), Server: p.Settings.Endpoint,
		version: handle.KubernetesVersion.ValueString(), Secrets: tf.MasksOf(handle.Secrets.ValueString()),
		client: func(ctx context.Context, m *providerdata.ProviderData, access pki.Access) (*kubernetes.Client, error) {
			c, err := m.ClientsOf(ctx, access, p, machineset.PriorState{}, bundle, api.Options{})

			return c.API, err
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

// routeOfKubeconfig reads the kubeconfig.
func (m addonModel) routeOfKubeconfig(data *providerdata.ProviderData) (Route, error) {
	given := tf.Fields{Reader: &tf.Reader{}, Attributes: m.Kubeconfig}
	path, content := fromHome(given.Text("path")), []byte(given.Text("content"))

	if name := given.Text("cluster"); name != "" {
		if content = []byte(data.KubeconfigOf(types.StringValue(name)).ValueString()); len(content) == 0 {
			return Route{}, fmt.Errorf("%w: clusters of the provider has no kubeconfig of %s", errNoRoute, finding.Quote(name))
		}
	}

	access := api.Kubeconfig{Content: content, Context: given.Text("context")}

	if path != "" {
		access = api.Kubeconfig{Path: path, Context: access.Context}

		var err error
		if content, err = os.ReadFile(path); err != nil {
			return Route{}, fmt.Errorf("%w: read the kubeconfig: %w", errNoRoute, err)
		}
	}

	found := Route{
		key: tf.DigestOf("kubeconfig", path, access.Context, string(content)),
		client: func(
			_ context.Context, data *providerdata.ProviderData, allowed pki.Access,
		) (*kubernetes.Client, error) {
			access := access
			access.Static = data.StaticKubeconfigs

			return kubernetes.NewFromKubeconfig(access, api.Options{
				Limit: providerdata.LimitOf(allowed.Kubernetes), Dial: data.Dial,
			})
		},
	}

	facts, err := access.Facts()
	if err != nil {
		return Route{}, fmt.Errorf("%w: %w", errNoRoute, err)
	}

	found.Server, found.Authority, found.Secrets = facts.Server, derOf(facts.CA), facts.Secrets

	return found, nil
}

// mask returns a context whose log lines hide the secrets of a route.
func (r Route) mask(ctx context.Context) context.Context {
	return maskTexts(tflog.MaskLogRegexes(ctx, tf.PrivateKey), r.Secrets)
}

// Another reports whether two routes are known to lead to different clusters. The authority of a cluster may be
// rotated and its server may move. Without a mark, both have to differ.
func (r Route) Another(than Route) bool {
	if r.Mark != "" && than.Mark != "" {
		return r.Mark != than.Mark
	}

	switch unread := r.Server == "" || than.Server == ""; {
	case unread, (r.Authority == "") != (than.Authority == ""):
		return false
	default:
		return r.Server != than.Server && (r.Authority != than.Authority || r.Authority == "")
	}
}

// Claim names a release of the cluster, the same for all routes to it.
func (r Route) Claim(name release.Name) string {
	return tf.DigestOf(cmp.Or(r.Authority, r.Server)) + "/" + name.String()
}
