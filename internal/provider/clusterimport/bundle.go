package clusterimport

import (
	"encoding/base64"
	"errors"
	"fmt"
	"os"

	"go.yaml.in/yaml/v4"

	"github.com/talosop/terraform-provider-talosop/internal/expansion"
	"github.com/talosop/terraform-provider-talosop/internal/pki"
)

// ReadBundleFile reads the secrets of a cluster from one of three files: one of `talosctl gen secrets`, the
// configuration of a control-plane machine, or the Secret in which talos-operator or Cluster API keeps them.
func ReadBundleFile(name string) (*pki.Bundle, error) {
	content, err := os.ReadFile(name)
	if err != nil {
		return nil, fmt.Errorf("read secrets: %w", err)
	}

	kept, asSecret := secretOfTool(content)
	if asSecret == nil {
		content = kept
	} else if !errors.Is(asSecret, errNoSecret) {
		return nil, fmt.Errorf("read %s as a Secret: %w", name, asSecret)
	}

	bundle, asBundle := pki.Parse(content)
	if asBundle == nil {
		return bundle, nil
	}

	bundle, asConfig := pki.FromMachineConfig(content)
	if asConfig == nil {
		return bundle, nil
	}

	return nil, errors.Join(
		fmt.Errorf("read %s as a file of `talosctl gen secrets`: %w", name, asBundle),
		fmt.Errorf("read %s as the configuration of a control-plane machine: %w", name, asConfig),
	)
}

var errNoSecret = errors.New("no Secret of Kubernetes")

// secretKeys are where tools keep the secrets of a cluster in a Secret: talos-operator in <control plane>-state (0.1,
// taloscontrolplane_controller.go, ensureStateSecret), and the bootstrap provider for Talos of Cluster API in
// <cluster>-talos (0.7, secrets.go, writeSecretsBundleSecret).
var secretKeys = []string{"secretBundle", "bundle"}

// secretOfTool is the secrets in a Secret as `kubectl get secret -o yaml` prints it. Errors do not quote the Secret.
func secretOfTool(content []byte) ([]byte, error) {
	var secret struct {
		Kind       string            `yaml:"kind"`
		Data       map[string]string `yaml:"data"`
		StringData map[string]string `yaml:"stringData"`
	}

	if expansion.CheckYAML(content) != nil || yaml.Unmarshal(content, &secret) != nil || secret.Kind != "Secret" {
		return nil, errNoSecret
	}

	for _, key := range secretKeys {
		if text := secret.StringData[key]; text != "" {
			return []byte(text), nil
		}

		if text, err := base64.StdEncoding.DecodeString(secret.Data[key]); err == nil && len(text) > 0 {
			return text, nil
		}
	}

	return nil, errors.New("the Secret has no secretBundle and no bundle; talos-operator writes <control plane>-state, " +
		"and Cluster API <cluster>-talos")
}
