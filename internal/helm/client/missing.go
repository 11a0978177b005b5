package client

import (
	"net/http"
	"slices"
	"strings"
)

// lookups see what templates look up. What is not there may be brought by another release before the apply of this
// one: it is remembered ([Session.Missing]).
type lookups struct {
	http.RoundTripper

	s *Session
}

// RoundTrip implements http.RoundTripper.
func (t *lookups) RoundTrip(request *http.Request) (*http.Response, error) {
	response, err := t.RoundTripper.RoundTrip(request)
	if err != nil || request.Method != http.MethodGet {
		return response, err
	}

	at, is := lookupOf(request.URL.Path)
	all := response.StatusCode == http.StatusOK && at.resource != "" && at.name == ""

	if is && (all || response.StatusCode == http.StatusNotFound) {
		t.s.looked(at.String())
	}

	return response, nil
}

// lookup is a lookup of a template: of the kinds of a version where resource is empty, of all objects where name
// is empty.
type lookup struct{ version, resource, namespace, name string }

// lookupOf reads the path of a request, such as /apis/apps/v1/namespaces/default/deployments/web.
func lookupOf(path string) (at lookup, is bool) {
	parts := strings.Split(strings.Trim(path, "/"), "/")

	switch {
	case len(parts) >= 2 && parts[0] == "api":
		at.version, parts = parts[1], parts[2:]
	case len(parts) >= 3 && parts[0] == "apis":
		at.version, parts = parts[1]+"/"+parts[2], parts[3:]
	default:
		return lookup{}, false
	}

	if len(parts) > 2 && parts[0] == "namespaces" {
		at.namespace, parts = parts[1], parts[2:]
	}

	if len(parts) > 0 {
		at.resource = parts[0]
	}

	if len(parts) > 1 {
		at.name = parts[1]
	}

	return at, true
}

// String returns a text such as "configmaps default/web", or the version of the API whose kinds are looked up.
func (l lookup) String() string {
	switch {
	case l.resource == "":
		return l.version
	case l.name == "" && l.namespace == "":
		return l.resource
	case l.name == "":
		return l.resource + " in " + l.namespace
	default:
		return l.resource + " " + strings.TrimPrefix(l.namespace+"/"+l.name, "/")
	}
}

// looked remembers a lookup, once.
func (s *Session) looked(what string) {
	s.mu.Lock()
	defer s.mu.Unlock()

	if !slices.Contains(s.missing, what) {
		s.missing = append(s.missing, what)
	}
}

// Missing returns what templates looked up that another release may create, with [Options.WithholdSecrets]. These
// are API versions, such as example.com/v1, and objects, such as "configmaps default/web", that do not exist. They
// are also kinds, such as storageclasses, whose objects the templates listed, since which object they need is
// unknown.
func (s *Session) Missing() []string {
	s.mu.Lock()
	defer s.mu.Unlock()

	return slices.Clone(s.missing)
}
