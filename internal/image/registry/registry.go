// Package registry asks registries whether an image is there, the way a Talos machine would look for it: with the
// mirrors, credentials and certificates of its configuration.
//
// Whoever asks may stand elsewhere in the network than the machines do, so the answer is made for advice at plan time: it
// is yes or no only when a registry said so, and an error whenever nobody did.
package registry

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/google/go-containerregistry/pkg/authn"
	"github.com/google/go-containerregistry/pkg/name"
	"github.com/google/go-containerregistry/pkg/v1/remote"
	"github.com/google/go-containerregistry/pkg/v1/remote/transport"

	"github.com/talosop/terraform-provider-talosop/internal/image"
	"github.com/talosop/terraform-provider-talosop/internal/machineconfig"
)

// DefaultTimeout is how long one registry may take to answer.
const DefaultTimeout = 3 * time.Second

// Options say how registries are reached.
type Options struct {
	// Registries are those of the machines.
	Registries machineconfig.Registries
	// Timeout is for each registry or mirror that is asked, one after the other. Zero means DefaultTimeout.
	Timeout time.Duration
}

// Exists asks for an image, by tag or digest, and downloads nothing but its manifest at most. The mirrors of its registry
// are asked in their order, and then the registry itself unless they exclude it; the first that has the image decides.
//
// exists is false without an error when all of them know that they have no such image. An error means that nobody has it
// as far as is known, and that some did not say: they could not be reached, want other credentials, limit the rate, or
// answered as no registry does. Errors contain no credentials.
func Exists(ctx context.Context, reference string, o Options) (exists bool, err error) {
	parsed, err := image.ParseReference(reference)
	if err != nil {
		return false, err
	}

	endpoints, err := endpointsOf(parsed.Registry, o.Registries)
	if err != nil {
		return false, fmt.Errorf("look for image %s: %w", reference, err)
	}

	var silent []error

	for _, e := range endpoints {
		found, err := e.ask(ctx, parsed, o)
		if found {
			return true, nil
		}

		if err != nil {
			silent = append(silent, fmt.Errorf("%s: %w", e.url.Host, err))
		}
	}

	if len(silent) > 0 {
		return false, fmt.Errorf("look for image %s: %w", reference, errors.Join(silent...))
	}

	return false, nil
}

// endpoint is where the images of a registry may be.
type endpoint struct {
	// url has the path under which the API is, such as /v2.
	url *url.URL
	// overridden says that the path is the user's own, and nothing but images is known to be below it.
	overridden bool
	// namespace is the registry that a mirror stands for; empty for the registry itself.
	namespace string
}

const (
	dockerHub     = "docker.io"
	dockerHubHost = "registry-1.docker.io"
)

// endpointsOf follows Talos (1.13, pkg/containers/image/resolver.go, RegistryEndpoints and RegistryHosts).
func endpointsOf(registry string, registries machineconfig.Registries) ([]endpoint, error) {
	host := registry
	if registry == dockerHub {
		host = dockerHubHost
	}

	itself := endpoint{url: &url.URL{Scheme: "https", Host: host, Path: "/v2"}}

	mirror, ok := registries.Mirrors[registry]
	if !ok {
		mirror, ok = registries.Mirrors["*"]
	}

	if !ok {
		return []endpoint{itself}, nil
	}

	var endpoints []endpoint

	for _, e := range mirror.Endpoints {
		parsed, err := url.Parse(e.URL)
		if err != nil || parsed.Host == "" {
			return nil, fmt.Errorf("a mirror of %s is no URL", registry)
		}

		path := strings.TrimRight(parsed.Path, "/")
		if !e.OverridePath && !strings.HasSuffix(path, "/v2") {
			path += "/v2"
		}

		at := endpoint{url: &url.URL{Scheme: parsed.Scheme, Host: parsed.Host, Path: path}, overridden: e.OverridePath}
		if parsed.Host != host {
			at.namespace = registry
		}

		endpoints = append(endpoints, at)
	}

	if !mirror.SkipFallback {
		endpoints = append(endpoints, itself)
	}

	if len(endpoints) == 0 {
		return nil, fmt.Errorf("%s has neither mirrors nor a fallback", registry)
	}

	return endpoints, nil
}

// ask asks one registry, within its time.
func (e endpoint) ask(ctx context.Context, r image.Reference, o Options) (bool, error) {
	ctx, cancel := context.WithTimeout(ctx, cmp.Or(o.Timeout, DefaultTimeout))
	defer cancel()

	reference, err := e.reference(r)
	if err != nil {
		return false, err
	}

	secured, err := transportFor(e.url, o.Registries)
	if err != nil {
		return false, err
	}
	defer secured.CloseIdleConnections()

	puller, err := remote.NewPuller(
		remote.WithTransport(&wire{endpoint: e, reference: reference, inner: secured}),
		remote.WithAuth(authFor(o.Registries.Auth, e.url.Host)),
		// Whoever waits for a plan is better served by an early warning.
		remote.WithRetryBackoff(remote.Backoff{Steps: 1}),
	)
	if err != nil {
		return false, err
	}

	// Registries count a GET against the limit of pulls, but not a HEAD.
	if _, err = puller.Head(ctx, reference); err == nil {
		return true, nil
	}

	if !worthAsking(err) {
		return false, withoutBody(err)
	}

	// Only a body says why there is nothing, and the HEAD has none.
	if _, err = puller.Get(ctx, reference); err == nil {
		return true, nil
	}

	if isUnknown(err) {
		return false, nil
	}

	return false, withoutBody(err)
}

// reference is the image as this endpoint calls it.
func (e endpoint) reference(r image.Reference) (name.Reference, error) {
	registry, err := name.NewRegistry(e.url.Host)
	if err != nil {
		return nil, err
	}

	repository := r.Repository
	if r.Registry == dockerHub && !strings.Contains(repository, "/") {
		repository = "library/" + repository
	}

	if r.Digest != "" {
		return registry.Repo(repository).Digest(r.Digest), nil
	}

	return registry.Repo(repository).Tag(cmp.Or(r.Tag, "latest")), nil
}

func authFor(auths map[string]machineconfig.RegistryAuth, host string) authn.Authenticator {
	auth, ok := auths[host]

	switch {
	case !ok:
		return authn.Anonymous
	case auth.Username != "":
		return &authn.Basic{Username: auth.Username, Password: auth.Password}
	case auth.IdentityToken != "":
		return authn.FromConfig(authn.AuthConfig{IdentityToken: auth.IdentityToken})
	default:
		return authn.FromConfig(authn.AuthConfig{Auth: auth.Auth})
	}
}

// worthAsking reports whether the answer to a HEAD leaves open what a GET would say: nothing there, a method that is not
// supported, or headers that are not as they should be.
func worthAsking(err error) bool {
	var (
		refusal *transport.Error
		network *url.Error
	)

	switch {
	case errors.As(err, &refusal):
		return refusal.StatusCode == http.StatusNotFound || refusal.StatusCode == http.StatusMethodNotAllowed
	case errors.As(err, &network):
		return false
	default:
		return !errors.Is(err, context.Canceled) && !errors.Is(err, context.DeadlineExceeded)
	}
}

// isUnknown reports whether a registry said that there is no such image: a 404 alone may come from anything that speaks
// HTTP.
func isUnknown(err error) bool {
	var refusal *transport.Error
	if !errors.As(err, &refusal) || refusal.StatusCode != http.StatusNotFound {
		return false
	}

	return slices.ContainsFunc(refusal.Errors, func(d transport.Diagnostic) bool {
		return d.Code == transport.ManifestUnknownErrorCode || d.Code == transport.NameUnknownErrorCode
	})
}

// withoutBody is an error that says what a registry answered in one line, where the library would quote a page.
func withoutBody(err error) error {
	var refusal *transport.Error
	if !errors.As(err, &refusal) {
		return err
	}

	text := fmt.Sprintf("it answered %d %s", refusal.StatusCode, http.StatusText(refusal.StatusCode))

	for _, d := range refusal.Errors {
		text += fmt.Sprintf(" (%.40s: %.200s)", d.Code, d.Message)
	}

	return errors.New(text)
}
