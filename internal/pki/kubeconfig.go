package pki

import (
	"encoding/base64"
	"errors"
	"fmt"
	"time"

	"go.yaml.in/yaml/v4"
)

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
		return nil, errors.New("write kubeconfig: the name of the cluster and the URL of its API are required")
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
		Clusters: []kubeconfigCluster{
			{Name: cluster, Cluster: kubeconfigServer{CA: c.CA, Server: server, ServerName: serverName}}},
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

// The part of the kubeconfig format (client.config.k8s.io/v1) that is needed to write one. Using the types
// of client-go would pull the Kubernetes API machinery into a package that signs certificates.
type kubeconfig struct {
	APIVersion     string              `yaml:"apiVersion"`
	Kind           string              `yaml:"kind"`
	Clusters       []kubeconfigCluster `yaml:"clusters"`
	Contexts       []kubeconfigContext `yaml:"contexts"`
	CurrentContext string              `yaml:"current-context"`
	Users          []kubeconfigUser    `yaml:"users"`
}

type kubeconfigCluster struct {
	Name    string           `yaml:"name"`
	Cluster kubeconfigServer `yaml:"cluster"`
}

type kubeconfigServer struct {
	CA     base64Data `yaml:"certificate-authority-data"`
	Server string     `yaml:"server"`
	// ServerName is the one that the server's certificate has, where it is not the host of the URL.
	ServerName string `yaml:"tls-server-name,omitempty"`
}

type kubeconfigContext struct {
	Name    string            `yaml:"name"`
	Context kubeconfigBinding `yaml:"context"`
}

type kubeconfigBinding struct {
	Cluster   string `yaml:"cluster"`
	Namespace string `yaml:"namespace"`
	User      string `yaml:"user"`
}

type kubeconfigUser struct {
	Name string             `yaml:"name"`
	User kubeconfigIdentity `yaml:"user"`
}

type kubeconfigIdentity struct {
	Certificate base64Data `yaml:"client-certificate-data"`
	Key         base64Data `yaml:"client-key-data"`
}

type base64Data []byte

// MarshalYAML encodes as kubectl expects binary data.
func (d base64Data) MarshalYAML() (any, error) {
	return base64.StdEncoding.EncodeToString(d), nil
}
