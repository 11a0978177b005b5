package api

import (
	"fmt"

	"k8s.io/client-go/rest"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
)

// KubeconfigFacts are what a kubeconfig contains, without a request.
type KubeconfigFacts struct {
	// Server is the URL of the cluster's API.
	Server string
	// CA that the server's certificate is of, in PEM; empty for those of the system.
	CA []byte
	// Secrets are the texts of all its users that must not be shown.
	Secrets []string
}

// Facts reads a kubeconfig as [NewFromKubeconfig] does, with the same errors.
func (k Kubeconfig) Facts() (KubeconfigFacts, error) {
	facts, err := k.facts()
	if err != nil {
		return KubeconfigFacts{}, fmt.Errorf("read %s: %w", k, err)
	}

	return facts, nil
}

func (k Kubeconfig) facts() (KubeconfigFacts, error) {
	file, err := k.load()
	if err != nil {
		return KubeconfigFacts{}, err
	}

	config, err := k.choose(file)
	if err != nil {
		return KubeconfigFacts{}, err
	}

	if err := rest.LoadTLSFiles(config); err != nil {
		return KubeconfigFacts{}, err
	}

	facts := KubeconfigFacts{Server: config.Host, CA: config.CAData}
	for _, user := range file.AuthInfos {
		facts.Secrets = append(facts.Secrets, credentialsOfUser(user)...)
	}

	return facts, nil
}

func credentialsOfUser(user *clientcmdapi.AuthInfo) []string {
	secrets := []string{user.Token, user.Password, string(user.ClientKeyData)}

	if user.Exec != nil {
		for _, variable := range user.Exec.Env {
			secrets = append(secrets, variable.Value)
		}
	}

	if user.AuthProvider != nil {
		for _, value := range user.AuthProvider.Config {
			secrets = append(secrets, value)
		}
	}

	return secrets
}
