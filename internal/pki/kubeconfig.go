package pki

import "encoding/base64"

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
