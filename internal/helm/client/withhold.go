package client

import (
	"cmp"
	"errors"
	"net/http"
	"regexp"

	"k8s.io/client-go/rest"
)

// secretsPath is the path of a request for a Secret or for several, also for those of a group with a kind of this name.
var secretsPath = regexp.MustCompile(
	`/(?:api/v1|apis/[^/]+/[^/]+)/(?:namespaces/([^/]+)/)?secrets(?:/([^/]+))?(?:/|$)`)

// onlyMetadata requests objects without their content.
const onlyMetadata = "application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1"

// withholding gives the templates of a chart a client that reads no Secrets. Helm renders with the configuration
// that it gets here, and with nothing else (Helm 3.21, action.renderResources: engine.New). Helm's client of
// objects uses the configuration of the session (client).
//
// A Kubernetes group cannot replace this. Rights only add up, so a group that reads everything but Secrets has to
// list what it reads, including custom kinds. And a kubeconfig from a user issues no certificates.
type withholding struct {
	*getter

	s *Session
}

// ToRESTConfig implements genericclioptions.RESTClientGetter.
func (w withholding) ToRESTConfig() (*rest.Config, error) {
	config, err := w.getter.ToRESTConfig()
	if err == nil {
		config.Transport = &lookups{&secretless{RoundTripper: config.Transport, s: w.s}, w.s}
	}

	return config, err
}

// secretless answers requests for Secrets as if there were none.
type secretless struct {
	http.RoundTripper

	s *Session
}

// RoundTrip implements http.RoundTripper. What exists is not passed on, not even its metadata: annotations hold what
// kubectl applied.
func (t *secretless) RoundTrip(request *http.Request) (*http.Response, error) {
	found := secretsPath.FindStringSubmatch(request.URL.Path)
	if found == nil {
		return t.RoundTripper.RoundTrip(request)
	}

	namespace, name := found[1], found[2]
	if name == "" {
		return nil, t.s.withhold("all of " + cmp.Or(namespace, "the cluster"))
	}

	request = request.Clone(request.Context())
	request.Header.Set("Accept", onlyMetadata)

	response, err := t.RoundTripper.RoundTrip(request)
	if err != nil || response.StatusCode != http.StatusOK {
		return response, err
	}

	_ = response.Body.Close()

	return nil, t.s.withhold(namespace + "/" + name)
}

// withhold records what was not read.
func (s *Session) withhold(what string) error {
	s.mu.Lock()
	defer s.mu.Unlock()

	s.withheld = cmp.Or(s.withheld, what)

	return errors.New("plans do not read Secrets")
}

// Withheld is the first Secret that a template looked up and was not given, with [Options.WithholdSecrets]: its
// namespace and name, or "all of" a namespace. It is empty for none.
func (s *Session) Withheld() string {
	s.mu.Lock()
	defer s.mu.Unlock()

	return s.withheld
}
