package credentials

import (
	"slices"
	"time"

	"github.com/hashicorp/terraform-plugin-framework/types"

	"github.com/talosop/terraform-provider-talosop/internal/pki"
	"github.com/talosop/terraform-provider-talosop/internal/provider/clusterhandle"
	"github.com/talosop/terraform-provider-talosop/internal/provider/providerdata"
	"github.com/talosop/terraform-provider-talosop/internal/provider/tf"
)

// issued is a client certificate, and the file for programs. It prints without its contents.
type issued struct {
	pki.Credentials

	// file is a kubeconfig or a talosconfig.
	file []byte
	// server is the URL of a Kubernetes API; serverName the name in its certificate, if different.
	server, serverName string
}

// kubernetesIdentity is the user of a kubeconfig.
type kubernetesIdentity struct {
	user   string
	groups []string
}

// kubernetesIdentityOf fills in the defaults.
func kubernetesIdentityOf(r *tf.Reader, user types.String, groups types.List) kubernetesIdentity {
	who := kubernetesIdentity{user: r.Text(user), groups: r.Texts(groups)}
	if user.IsNull() {
		who.user = providerdata.ClientName
	}

	if groups.IsNull() {
		who.groups = []string{pki.GroupAdmin}
	}

	return who
}

// issueKubeconfig signs a certificate for the Kubernetes API. It does no I/O. way is the route to the API, nil for
// the endpoint of the handle.
func issueKubeconfig(
	bundle *pki.Bundle, handle clusterhandle.AccessModel, local *providerdata.LocalEndpoint, who kubernetesIdentity,
	lifetime time.Duration,
) (issued, error) {
	credentials, err := bundle.KubernetesClient(who.user, who.groups, lifetime)
	if err != nil {
		return issued{}, err
	}

	out := issued{Credentials: credentials, server: handle.Endpoint.ValueString()}
	if local != nil {
		out.server, out.serverName = "https://"+local.Address, local.Name
	}

	out.file, err = credentials.KubeconfigFor(handle.Name.ValueString(), out.server, out.serverName, who.user)

	return out, err
}

// rolesOf fills in the defaults.
func rolesOf(r *tf.Reader, roles types.List) []string {
	if roles.IsNull() {
		return []string{pki.RoleReader}
	}

	return r.Texts(roles)
}

// issueTalosconfig signs a certificate for the Talos API. It does no I/O.
func issueTalosconfig(
	bundle *pki.Bundle, handle clusterhandle.AccessModel, endpoints, nodes, roles []string, lifetime time.Duration,
) (issued, error) {
	credentials, err := bundle.TalosClient(roles, lifetime)
	if err != nil {
		return issued{}, err
	}

	file, err := credentials.Talosconfig(handle.Name.ValueString(), endpoints, slices.Clone(nodes))

	return issued{Credentials: credentials, file: file}, err
}
