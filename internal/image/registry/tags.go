// Package registry lists the tags of repositories in container registries.
package registry

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strings"

	"oras.land/oras-go/v2/registry/remote"
	"oras.land/oras-go/v2/registry/remote/auth"
	"oras.land/oras-go/v2/registry/remote/credentials"
	"oras.land/oras-go/v2/registry/remote/errcode"

	"github.com/talosop/terraform-provider-talosop/internal/image"
	"github.com/talosop/terraform-provider-talosop/internal/redirect"
)

// Repository is a repository of images in a registry.
type Repository struct {
	// Registry is the host, with its port if it has one.
	Registry string
	// Name is the path in the registry.
	Name string
	// PlainHTTP is set for a registry without TLS.
	PlainHTTP bool
}

const plainHTTP = "http://"

// Parse reads a repository such as "ghcr.io/siderolabs/kubelet". The prefix http:// stands for a registry without TLS.
func Parse(text string) (Repository, error) {
	rest, plain := strings.CutPrefix(text, plainHTTP)

	reference, err := image.ParseReference(strings.TrimPrefix(rest, "https://"))
	if err != nil {
		return Repository{}, err
	}

	if reference.Tag != "" || reference.Digest != "" {
		return Repository{}, fmt.Errorf("%w %q: found a tag or digest, expected the repository alone",
			image.ErrInvalidReference, text)
	}

	return Repository{Registry: reference.Registry, Name: reference.Repository, PlainHTTP: plain}, nil
}

// URL is where the registry lists the tags.
func (r Repository) URL() string {
	scheme := "https"
	if r.PlainHTTP {
		scheme = "http"
	}

	return (&url.URL{Scheme: scheme, Host: r.Registry, Path: "/v2/" + r.Name + "/tags/list"}).String()
}

const (
	// pageSize is how many tags a registry is asked for at once. It may answer fewer.
	pageSize = 1000
	// mostPages and mostTags limit the answers of one registry. A page has at most 4 MiB (oras-go 2.6).
	mostPages, mostTags = 500, 100_000
	// mostRedirects limits the redirects of one request.
	mostRedirects = 10
	// longestReason limits the quoted text of an error.
	longestReason = 300
)

// errTooMany means that a registry lists without an end.
var errTooMany = fmt.Errorf("the registry lists more than %d tags or %d pages", mostTags, mostPages)

// Tags lists all tags of the repository. It logs in with the credentials of `docker login`, if there are any for the
// registry. Credentials do not follow redirects to other servers.
func (r Repository) Tags(ctx context.Context) ([]string, error) {
	repository, err := remote.NewRepository(r.Registry + "/" + r.Name)
	if err != nil {
		return nil, fmt.Errorf("read repository %s: %w", r.Name, err)
	}

	repository.PlainHTTP, repository.TagListPageSize = r.PlainHTTP, pageSize
	repository.Client = &auth.Client{
		Client:     &http.Client{Transport: http.DefaultTransport, CheckRedirect: withoutCredentials},
		Credential: credential,
		Cache:      auth.NewCache(),
	}

	var (
		tags  []string
		pages int
	)

	err = repository.Tags(ctx, "", func(page []string) error {
		tags, pages = append(tags, page...), pages+1
		if len(tags) > mostTags || pages > mostPages {
			return errTooMany
		}

		return nil
	})

	return tags, reasonOf(ctx, err)
}

// withoutCredentials follows a redirect to another origin without the credentials of the registry.
func withoutCredentials(next *http.Request, via []*http.Request) error {
	if redirect.Left(next, via) {
		next.Header.Del("Authorization")
	}

	if len(via) >= mostRedirects {
		return fmt.Errorf("more than %d redirects", mostRedirects)
	}

	return nil
}

// credential reads what `docker login` stored for a registry.
func credential(ctx context.Context, host string) (auth.Credential, error) {
	store, err := credentials.NewStoreFromDocker(credentials.StoreOptions{DetectDefaultNativeStore: true})
	if err != nil {
		return auth.EmptyCredential, fmt.Errorf("read the registry credentials of Docker: %w", err)
	}

	found, err := credentials.Credential(store)(ctx, host)
	if err != nil {
		return auth.EmptyCredential, fmt.Errorf("read the registry credentials of Docker for %s: %w", host, err)
	}

	return found, nil
}

// reasonOf shortens an error of the registry library to one line. A registry chooses part of its text.
func reasonOf(ctx context.Context, err error) error {
	var answer *errcode.ErrorResponse

	switch {
	case err == nil:
		return nil
	case ctx.Err() != nil:
		return context.Cause(ctx)
	case errors.Is(err, auth.ErrBasicCredentialNotFound):
		return errors.New("the registry requires credentials, and `docker login` stored none for it")
	case errors.As(err, &answer) && len(answer.Errors) == 0:
		return fmt.Errorf("%d %s", answer.StatusCode, http.StatusText(answer.StatusCode))
	case errors.As(err, &answer):
		return fmt.Errorf("%d %s: %s", answer.StatusCode, http.StatusText(answer.StatusCode),
			shortened(answer.Errors.Error()))
	default:
		return fmt.Errorf("%s", shortened(err.Error()))
	}
}

func shortened(text string) string {
	line := strings.Join(strings.Fields(text), " ")
	if runes := []rune(line); len(runes) > longestReason {
		return string(runes[:longestReason]) + "…"
	}

	return line
}
