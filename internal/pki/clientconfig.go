package pki

import (
	"errors"
	"fmt"
	"time"

	talosx509 "github.com/siderolabs/crypto/x509"
	clientconfig "github.com/siderolabs/talos/pkg/machinery/client/config"
	"go.yaml.in/yaml/v4"
)

// TalosconfigInput says whom a talosconfig is for and where it connects to.
type TalosconfigInput struct {
	// Context names the only context of the file; usually the name of the cluster.
	Context string
	// Endpoints are the Talos API addresses talosctl connects to: control-plane machines or a load balancer.
	Endpoints []string
	// Nodes are the machines commands act on when they name none. May be empty.
	Nodes []string
	// Roles and TTL are those of TalosClient.
	Roles []string
	TTL   time.Duration
}

// Talosconfig mints a client certificate and writes the configuration file of talosctl with it.
func (b *Bundle) Talosconfig(in TalosconfigInput) ([]byte, error) {
	if in.Context == "" {
		return nil, errors.New("write talosconfig: a context name is needed")
	}

	credentials, err := b.TalosClient(in.Roles, in.TTL)
	if err != nil {
		return nil, fmt.Errorf("write talosconfig: %w", err)
	}

	return credentials.Talosconfig(in.Context, in.Endpoints, in.Nodes)
}

// Talosconfig writes the configuration file of talosctl for credentials of the Talos API.
func (c Credentials) Talosconfig(context string, endpoints, nodes []string) ([]byte, error) {
	pair := &talosx509.PEMEncodedCertificateAndKey{Crt: c.Certificate, Key: c.Key}
	file := clientconfig.NewConfig(context, endpoints, c.CA, pair)
	file.Contexts[context].Nodes = nodes

	encoded, err := file.Bytes()
	if err != nil {
		return nil, fmt.Errorf("write talosconfig: %w", err)
	}

	return encoded, nil
}

// KubeconfigInput says whom a kubeconfig is for and where it connects to.
type KubeconfigInput struct {
	// Cluster names the cluster in the file.
	Cluster string
	// Server is the URL of the Kubernetes API, usually the endpoint of the cluster.
	Server string
	// User, Groups and TTL are those of KubernetesClient.
	User   string
	Groups []string
	TTL    time.Duration
}

// Kubeconfig mints a client certificate and writes a kubeconfig with it. User and context are called
// <user>@<cluster>, as in the files Talos itself hands out.
func (b *Bundle) Kubeconfig(in KubeconfigInput) ([]byte, error) {
	if in.Cluster == "" || in.Server == "" {
		return nil, errors.New("write kubeconfig: the name of the cluster and the URL of its API are needed")
	}

	credentials, err := b.KubernetesClient(in.User, in.Groups, in.TTL)
	if err != nil {
		return nil, fmt.Errorf("write kubeconfig: %w", err)
	}

	return credentials.Kubeconfig(in.Cluster, in.Server, in.User)
}

// Kubeconfig writes a kubeconfig for credentials of the Kubernetes API; see Bundle.Kubeconfig.
func (c Credentials) Kubeconfig(cluster, server, user string) ([]byte, error) {
	return c.KubeconfigFor(cluster, server, "", user)
}

// KubeconfigFor is Kubeconfig for a server whose certificate has another name than its URL; with an
// empty serverName it is the same.
func (c Credentials) KubeconfigFor(cluster, server, serverName, user string) ([]byte, error) {
	name := user + "@" + cluster

	file := kubeconfig{
		APIVersion: "v1",
		Kind:       "Config",
		Clusters:   []kubeconfigCluster{{Name: cluster, Cluster: kubeconfigServer{CA: c.CA, Server: server, ServerName: serverName}}},
		Contexts: []kubeconfigContext{{
			Name:    name,
			Context: kubeconfigBinding{Cluster: cluster, Namespace: "default", User: name},
		}},
		CurrentContext: name,
		Users:          []kubeconfigUser{{Name: name, User: kubeconfigIdentity{Certificate: c.Certificate, Key: c.Key}}},
	}

	encoded, err := yaml.Marshal(file)
	if err != nil {
		return nil, fmt.Errorf("write kubeconfig: %w", err)
	}

	return encoded, nil
}
