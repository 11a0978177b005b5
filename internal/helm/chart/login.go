package chart

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"os"
	"strings"

	"helm.sh/helm/v3/pkg/helmpath"
	"helm.sh/helm/v3/pkg/registry"
	"oras.land/oras-go/v2/errdef"
	"oras.land/oras-go/v2/registry/remote"
	"oras.land/oras-go/v2/registry/remote/auth"
	"oras.land/oras-go/v2/registry/remote/credentials"
	"oras.land/oras-go/v2/registry/remote/errcode"

	"github.com/talosop/terraform-provider-talosop/internal/redirect"
)

// openRegistry makes a reader. Helm's own client does not take a context, reads the content of a chart
// with its manifest, and trusts any size that a manifest claims; this is the library below it.
func (s *Store) openRegistry(from Source) (*registryReader, error) {
	ref := from.reference()
	repository, err := remote.NewRepository(ref.repository)
	if err != nil {
		return nil, newError(ociScheme+ref.repository+" is not a valid chart reference", err, ErrNoChart)
	}
	transport, closeIdle, err := from.access().transport(s.options.Stall, nil)
	if err != nil {
		return nil, err
	}
	credential, err := s.credential(from, repository.Reference.Registry)
	if err != nil {
		closeIdle()
		return nil, err
	}
	login := &auth.Client{
		// The library compares a redirect only with the request before it. So the second redirect of a foreign
		// server got the credentials again (oras-go 2.6, registry/remote/auth/client.go, send).
		Client:     &http.Client{Transport: transport, CheckRedirect: withoutCredentials},
		Credential: credential,
		Cache:      auth.NewCache(),
	}
	login.SetUserAgent(userAgent)
	repository.PlainHTTP = from.PlainHTTP
	repository.Client = login
	return &registryReader{from: from, ref: ref, remote: repository, close: closeIdle}, nil
}

// withoutCredentials follows a redirect to another origin without the credentials of the registry.
func withoutCredentials(next *http.Request, via []*http.Request) error {
	if redirect.Left(next, via) {
		next.Header.Del("Authorization")
	}
	return limitRedirects(next, via)
}

// credential returns the given credentials, or those of helm's and docker's files, in helm's order
// (registry/client.go, NewClient; cli/environment.go for HELM_REGISTRY_CONFIG).
func (s *Store) credential(from Source, host string) (auth.CredentialFunc, error) {
	if from.access().hasCredentials() {
		return auth.StaticCredential(host, auth.Credential{Username: from.Username, Password: from.Password}), nil
	}
	file := s.options.RegistryConfig
	if file == "" {
		file = os.Getenv("HELM_REGISTRY_CONFIG")
	}
	if file == "" {
		file = helmpath.ConfigPath(registry.CredentialsFileBasename)
	}
	options := credentials.StoreOptions{DetectDefaultNativeStore: true}
	if content, err := os.Stat(file); err == nil && content.Size() == 0 {
		file = "" // As helm does: an empty file is none.
	}
	store, err := credentials.NewStore(file, options)
	if err != nil {
		return nil, fmt.Errorf("read the registry credentials of Helm in %s: %w", file, err)
	}
	docker, err := credentials.NewStoreFromDocker(options)
	found := credentials.Credential(store)
	if err == nil { // Helm goes on without docker's file too.
		found = credentials.Credential(credentials.NewStoreWithFallbacks(store, docker))
	}
	return func(ctx context.Context, host string) (auth.Credential, error) {
		credential, err := found(ctx, host)
		if err != nil {
			// A credential helper of helm or docker may fail.
			return credential, newError("read the stored credentials of Helm or Docker for "+host, err,
				ErrCredentials)
		}
		return credential, nil
	}, nil
}

// shown is the reference without tag and digest; name and host are parts of it.
func (r *registryReader) displayURL() string { return ociScheme + r.ref.repository }

func (r *registryReader) name() string {
	return r.ref.repository[strings.LastIndex(r.ref.repository, "/")+1:]
}

func (r *registryReader) host() string {
	return ociScheme + strings.TrimSuffix(r.ref.repository, "/"+r.name())
}

// classify sorts an error of the registry library.
func (r *registryReader) classify(ctx context.Context, err error) error {
	if err == nil {
		return nil
	}
	var answer *errcode.ErrorResponse
	var sent *url.Error
	var connection net.Error
	switch {
	case ctx.Err() != nil:
		return fmt.Errorf("%s: %w", r.displayURL(), ctx.Err())
	case errors.Is(err, ErrCredentials), errors.Is(err, ErrTooLarge):
		return newError(r.displayURL(), err)
	case errors.As(err, &answer):
		return statusError(r.displayURL(), answer.StatusCode, r.from.access().hasCredentials())
	case errors.Is(err, errdef.ErrNotFound):
		return newError(r.displayURL()+": 404 Not Found", nil, errGone)
	case errors.Is(err, auth.ErrBasicCredentialNotFound):
		text := r.displayURL() + ": the registry requires credentials; none are given, and the files of Helm and Docker " +
			"contain none for it"
		return newError(text, nil, ErrCredentials)
	case errors.As(err, &sent), errors.As(err, &connection):
		return connectionError(ctx, r.displayURL(), err)
	}
	return newError(r.displayURL()+": invalid response of the registry", err, ErrDamaged)
}
