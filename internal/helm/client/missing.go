package client

import (
	"bytes"
	"encoding/json"
	"io"
	"net/http"
	"slices"
	"strings"
)

// lookups see what templates look up. What is not there may be brought by another release before the apply of this
// one: it is remembered, and supposed to be there where that is asked for ([Options.SupposeLookups]).
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

	switch {
	case !is:
	case response.StatusCode == http.StatusOK && at.resource != "" && at.name == "":
		t.s.looked(&t.s.listed, at.String())
	case response.StatusCode == http.StatusNotFound:
		t.s.looked(&t.s.missing, at.String())

		if t.s.o.SupposeLookups {
			return at.supposed(request, response)
		}
	}

	return response, nil
}

// lookup is what a template asks for: the kinds of a version where resource is empty, all objects where name is.
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

// String is such as "configmaps default/web", or the version of the API whose kinds are asked for.
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

// supposed is the answer as if it were there, with nothing in it.
func (l lookup) supposed(request *http.Request, response *http.Response) (*http.Response, error) {
	answer := map[string]any{
		"kind": "Supposed", "apiVersion": l.version,
		"metadata": map[string]any{"name": l.name, "namespace": l.namespace},
		"data":     map[string]any{}, "spec": map[string]any{}, "status": map[string]any{},
	}
	if l.resource == "" {
		answer = map[string]any{
			"kind": "APIResourceList", "apiVersion": "v1", "groupVersion": l.version, "resources": []any{},
		}
	}

	body, err := json.Marshal(answer)
	if err != nil {
		return nil, err
	}

	if err := response.Body.Close(); err != nil {
		return nil, err
	}

	return &http.Response{
		Status: "200 OK", StatusCode: http.StatusOK, Proto: response.Proto, ProtoMajor: response.ProtoMajor,
		ProtoMinor: response.ProtoMinor, Header: http.Header{"Content-Type": {"application/json"}},
		Body: io.NopCloser(bytes.NewReader(body)), ContentLength: int64(len(body)), Request: request,
	}, nil
}

// looked remembers a lookup, once.
func (s *Session) looked(at *[]string, what string) {
	s.mu.Lock()
	defer s.mu.Unlock()

	if !slices.Contains(*at, what) {
		*at = append(*at, what)
	}
}

// Missing is what templates looked up that is not there, with [Options.WithholdSecrets]: versions of APIs, such as
// example.com/v1, and objects, such as "configmaps default/web".
func (s *Session) Missing() []string {
	s.mu.Lock()
	defer s.mu.Unlock()

	return slices.Clone(s.missing)
}

// Listed is what templates looked up all of, with [Options.WithholdSecrets], such as storageclasses.
func (s *Session) Listed() []string {
	s.mu.Lock()
	defer s.mu.Unlock()

	return slices.Clone(s.listed)
}
