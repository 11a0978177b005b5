package api

import (
	"errors"
	"fmt"
	"net/http"
	"regexp"
	"slices"
	"strings"
)

// Limit is what a client sends in addition to reads. Any other request is [ErrBeyondLimit] and reaches no server.
// A Kubernetes group cannot replace it, because a new cluster has none that may read but not write.
type Limit struct {
	// Writes are the resources that may be written, such as leases.
	Writes []string
	// Secrets allows reads of Secrets.
	Secrets bool
	// DryRuns allows dry runs of writes.
	DryRuns bool
}

// ErrBeyondLimit is a request that the limit of a client does not let pass.
var ErrBeyondLimit = errors.New("this operation may not send this request to Kubernetes")

// requested finds the resource of a request, and what it is about besides the object itself.
var requested = regexp.MustCompile(
	`^/(?:api/[^/]+|apis/[^/]+/[^/]+)/(?:watch/)?(?:namespaces/[^/]+/)?([^/]+)(?:/[^/]+(?:/([^/]+))?)?`)

// connections are reads by their method that give access to what is at their other end.
var connections = []string{"exec", "attach", "portforward", "proxy"}

// refuse is why a request may not be sent, nil where it may.
func (l *Limit) refuse(r *http.Request) error {
	if l == nil || l.allows(r) {
		return nil
	}

	return fmt.Errorf("%w: %s %s", ErrBeyondLimit, r.Method, r.URL.Path)
}

func (l *Limit) allows(r *http.Request) bool {
	var resource, sub string
	if found := requested.FindStringSubmatch(r.URL.Path); found != nil {
		resource, sub = found[1], found[2]
	}

	switch {
	case resource == "secrets" && !l.Secrets, slices.Contains(connections, sub):
		return false
	case r.Method == http.MethodGet, r.Method == http.MethodHead, r.Method == http.MethodOptions:
		return true
	case slices.Equal(r.URL.Query()["dryRun"], []string{"All"}):
		return l.DryRuns
	case r.Method == http.MethodPost && strings.HasPrefix(r.URL.Path, "/apis/authorization.k8s.io/"):
		return true // questions about rights are written, and not stored
	default:
		return slices.Contains(l.Writes, resource)
	}
}
