package addon

import (
	"cmp"
	"errors"
	"os"
	"path/filepath"
	"strings"

	"github.com/talosop/terraform-provider-talosop/internal/provider/clusterimport"
)

// importOfAddon shows import IDs of addons.
const importOfAddon = `kube-system/metrics-server, with the kubeconfig of KUBECONFIG or ~/.kube/config, or a JSON object such as ` +
	`{"kubeconfig": {"path": "kubeconfig"}, "namespace": "kube-system", "name": "metrics-server", "chart": "metrics-server", ` +
	`"repository": "https://kubernetes-sigs.github.io/metrics-server", "version": "3.13.0"}, with "secrets" and "control_plane" in place of "kubeconfig" for a ` +
	`cluster with a handle, and "registry" as in the configuration, but without password_wo and client_key_wo`

// addonImport is an import ID: which release of which cluster, and the source of its chart, which no record of Helm
// contains.
type addonImport struct {
	Kubeconfig *struct {
		Path    string `json:"path"`
		Context string `json:"context"`
	} `json:"kubeconfig"`
	clusterimport.Source

	ControlPlane map[string]string `json:"control_plane"`
	Namespace    string            `json:"namespace"`
	Name         string            `json:"name"`
	Chart        string            `json:"chart"`
	Repository   string            `json:"repository"`
	Version      string            `json:"version"`
	Registry     *importedRegistry `json:"registry"`
}

// importedRegistry is how the server of the chart is reached, without secrets: plans show import IDs.
type importedRegistry struct {
	Username          string `json:"username"`
	PassCredentials   *bool  `json:"pass_credentials"`
	CA                string `json:"ca"`
	ClientCertificate string `json:"client_certificate"`
	Insecure          *bool  `json:"insecure_skip_tls_verify"`
	PlainHTTP         *bool  `json:"plain_http"`
	Password          string `json:"password_wo"`
	ClientKey         string `json:"client_key_wo"`
}

func readAddonImport(id string) (addonImport, error) {
	var request addonImport

	if !strings.HasPrefix(strings.TrimSpace(id), "{") {
		namespace, name, both := strings.Cut(id, "/")
		if !both || namespace == "" || name == "" || strings.Contains(name, "/") {
			return request, errors.New("the import id is neither <namespace>/<name> nor a JSON object")
		}

		request.Namespace, request.Name = namespace, name

		return request, nil
	}

	if err := clusterimport.DecodeImport(id, &request); err != nil {
		return request, err
	}

	switch {
	case request.Name == "":
		return request, errors.New("name is missing")
	case request.Registry != nil && request.Registry.Password+request.Registry.ClientKey != "":
		return request, errors.New("registry has password_wo or client_key_wo, and plans show import ids: leave it out, " +
			"the plan after the import takes it from the configuration")
	case request.Kubeconfig != nil && request.Given():
		return request, errors.New("allowed is one of kubeconfig and secrets")
	case request.Given() && request.Check() != nil:
		return request, request.Check()
	case request.Given() == (len(request.ControlPlane) == 0):
		return request, errors.New("secrets and control_plane are given together, or neither")
	case request.Kubeconfig != nil && request.Kubeconfig.Path == "":
		return request, errors.New("kubeconfig has no path")
	}

	return request, nil
}

// kubeconfigOfEnvironment is the file that kubectl would use.
func kubeconfigOfEnvironment() (string, error) {
	files := filepath.SplitList(os.Getenv("KUBECONFIG"))
	if len(files) > 1 {
		return "", errors.New("KUBECONFIG names several files; name the one that is meant in a JSON object")
	}

	return cmp.Or(append(files, "~/.kube/config")...), nil
}
