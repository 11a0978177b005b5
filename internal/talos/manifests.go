package talos

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/cosi-project/runtime/pkg/resource"
	"github.com/siderolabs/talos/pkg/machinery/config/configloader"
	"github.com/siderolabs/talos/pkg/machinery/resources/k8s"

	"github.com/talosop/terraform-provider-talosop/internal/kubenames"
	configured "github.com/talosop/terraform-provider-talosop/internal/machineconfig/manifests"
)

// Manifests are the objects of the bootstrap manifests of a control plane, in the order of the manifests' IDs,
// which begin with a priority. They are those that Talos renders, and the extra ones of the configuration, which
// Talos downloads (cni.urls, externalCloudProvider, extraManifests) or takes from it (inlineManifests). The
// objects are decoded JSON, with all numbers as float64.
//
// A missing manifest may be pruned from the cluster, so the error is ErrInProgress until Talos is done. Talos is
// not done when nothing is rendered, when kube-proxy is enabled and not rendered, or rendered with another image
// than kubeProxy where that is not empty. Nor is it done when the configuration differs from the given one, or an
// extra manifest is missing. A missing extra manifest may last, if its URL no longer answers: Talos keeps
// downloads in memory, and downloads again after each boot (Talos 1.13, ExtraManifestController).
func (m *Machine) Manifests(ctx context.Context, kubeProxy string, configuration []byte) ([]map[string]any, error) {
	var objects []map[string]any

	err := m.readMember(ctx, func(ctx context.Context, s *session) (err error) {
		objects, err = m.manifests(ctx, s, kubeProxy, configuration)

		return err
	})
	if err != nil {
		return nil, fmt.Errorf("read the bootstrap manifests of %s: %w", m.address, err)
	}

	return objects, nil
}

func (m *Machine) manifests(
	ctx context.Context, s *session, kubeProxy string, configuration []byte,
) ([]map[string]any, error) {
	manifests, err := bounded(ctx, m, s.manifests)
	if err != nil {
		return nil, err
	}

	// The wanted state is read after the present one, so that a change in between is waited for.
	rendered, err := bounded(ctx, m, s.renderedManifests)
	if err != nil {
		return nil, err
	}

	extra, err := bounded(ctx, m, s.extraManifests)
	if err != nil {
		return nil, err
	}

	if err := complete(manifests, extra); err != nil {
		return nil, err
	}

	if err := takenOver(configuration, rendered, extra); err != nil {
		return nil, err
	}

	var objects []map[string]any

	for _, manifest := range manifests {
		for _, item := range manifest.TypedSpec().Items {
			objects = append(objects, item.Object)
		}
	}

	if rendered.ProxyEnabled {
		if err := proxyRendered(objects, kubeProxy); err != nil {
			return nil, err
		}
	}

	return objects, nil
}

// renderedManifests reads what Talos renders manifests from.
func (s *session) renderedManifests(ctx context.Context) (*k8s.BootstrapManifestsConfigSpec, error) {
	res, err := get[*k8s.BootstrapManifestsConfig](ctx, s,
		k8s.ControlPlaneNamespaceName, k8s.BootstrapManifestsConfigType, k8s.BootstrapManifestsConfigID)

	switch {
	case errors.Is(err, ErrGone):
		return nil, fmt.Errorf("%w: only control planes render bootstrap manifests", ErrInProgress)
	case err != nil:
		return nil, err
	default:
		return res.TypedSpec(), nil
	}
}

// extraManifests reads which manifests the configuration adds to those that are rendered;
// none where Talos has no such list.
func (s *session) extraManifests(ctx context.Context) ([]k8s.ExtraManifest, error) {
	res, err := get[*k8s.ExtraManifestsConfig](ctx, s, k8s.ControlPlaneNamespaceName, k8s.ExtraManifestsConfigType,
		k8s.ExtraManifestsConfigID)
	if err != nil {
		return nil, optional(err)
	}

	return res.TypedSpec().ExtraManifests, nil
}

// manifests lists the manifests, ordered by their IDs.
func (s *session) manifests(ctx context.Context) ([]*k8s.Manifest, error) {
	items, err := list[*k8s.Manifest](ctx, s)
	if err != nil {
		return nil, fmt.Errorf("list %s: %w", k8s.ManifestType, err)
	}

	return slices.SortedFunc(items.All(), func(a, b *k8s.Manifest) int {
		return cmp.Compare(a.Metadata().ID(), b.Metadata().ID())
	}), nil
}

// complete is an error when an extra manifest is not among the manifests, or nothing else is. Talos adds an extra
// one once it has its content, as <priority>-<name>. It removes all rendered ones while it has no secrets to
// render with (Talos 1.13, extra_manifest.go/process and manifest.go/Run).
func complete(manifests []*k8s.Manifest, extra []k8s.ExtraManifest) error {
	there := map[resource.ID]bool{}
	for _, manifest := range manifests {
		there[manifest.Metadata().ID()] = true
	}

	rendered := maps.Clone(there)

	var missing []string

	for _, e := range extra {
		id := e.Priority + "-" + e.Name
		delete(rendered, id)

		if !there[id] {
			missing = append(missing, manifestName(e))
		}
	}

	switch {
	case len(missing) > 0:
		return fmt.Errorf("%w: Talos has not loaded %s yet", ErrInProgress, strings.Join(missing, ", "))
	case len(rendered) == 0:
		return fmt.Errorf("%w: Talos has not rendered any manifests yet", ErrInProgress)
	default:
		return nil
	}
}

// takenOver is an error while what Talos renders manifests from is not what a configuration says, which it follows a
// moment later.
func takenOver(configuration []byte, rendered *k8s.BootstrapManifestsConfigSpec, extra []k8s.ExtraManifest) error {
	if configuration == nil {
		return nil
	}

	provider, err := configloader.NewFromBytes(configuration)
	if err != nil {
		return fmt.Errorf("read the wanted configuration: %w", err)
	}

	wanted, there := map[string]string{}, map[string]string{}
	for _, inline := range provider.K8sInlineManifestConfigs() {
		wanted[inline.Name()] = inline.Contents()
	}

	for _, e := range extra {
		if e.URL == "" {
			there[e.Name] = e.InlineManifest
		}
	}

	proxy, dns := provider.K8sProxyConfig(), provider.K8sCoreDNSConfig()

	if !maps.Equal(wanted, there) || rendered.ProxyEnabled != (proxy != nil && proxy.Enabled()) ||
		rendered.CoreDNSEnabled != (dns != nil && dns.Enabled()) ||
		rendered.FlannelEnabled != (provider.K8sFlannelCNIConfig() != nil) {
		return fmt.Errorf("%w: Talos has not updated the manifests to its configuration yet", ErrInProgress)
	}

	return nil
}

// manifestName is the name of an extra manifest without what may be secret in a URL.
func manifestName(e k8s.ExtraManifest) string {
	if e.URL == "" {
		return e.Name
	}

	return configured.WithoutSecrets(e.URL)
}

// proxyRendered is an error unless the objects contain a DaemonSet kube-proxy with the image; an empty image
// matches any.
func proxyRendered(objects []map[string]any, image string) error {
	var images []string

	for _, object := range objects {
		found, err := proxyImages(object)
		if err != nil {
			return err
		}

		images = append(images, found...)
	}

	switch {
	case len(images) == 0:
		return fmt.Errorf("%w: Talos has not rendered kube-proxy yet", ErrInProgress)
	case image != "" && !slices.Contains(images, image):
		return fmt.Errorf("%w: Talos has not rendered kube-proxy with %s yet, it is %s", ErrInProgress, image,
			strings.Join(images, ", "))
	default:
		return nil
	}
}

// proxyImages are the images of an object that is the DaemonSet kube-proxy, which has one
// container (Talos 1.13, k8stemplates/kube-proxy.go).
func proxyImages(object map[string]any) ([]string, error) {
	if object["kind"] != "DaemonSet" {
		return nil, nil
	}

	var daemonSet struct {
		Metadata struct {
			Name      string `json:"name"`
			Namespace string `json:"namespace"`
		} `json:"metadata"`
		Spec struct {
			Template struct {
				Spec struct {
					Containers []struct {
						Image string `json:"image"`
					} `json:"containers"`
				} `json:"spec"`
			} `json:"template"`
		} `json:"spec"`
	}

	encoded, err := json.Marshal(object)
	if err == nil {
		err = json.Unmarshal(encoded, &daemonSet)
	}

	if err != nil {
		return nil, fmt.Errorf("read a DaemonSet: %w", err)
	}

	if daemonSet.Metadata.Name != string(kubenames.KubeProxy) || daemonSet.Metadata.Namespace != "kube-system" {
		return nil, nil
	}

	var images []string
	for _, container := range daemonSet.Spec.Template.Spec.Containers {
		images = append(images, container.Image)
	}

	return images, nil
}
