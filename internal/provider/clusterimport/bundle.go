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
// configuration of a control-plane machine, or the Secret in which talos-operator keeps the state of a cluster.
func ReadBundleFile(name string) (*pki.Bundle, error) {
	content, err := os.ReadFile(name)
	if err != nil {
		return nil, fmt.Errorf("read secrets: %w", err)
	}

	kept, asState := operatorState(content)
	if asState == nil {
		content = kept
	} else if !errors.Is(asState, errNoState) {
		return nil, fmt.Errorf("read %s as the state of talos-operator: %w", name, asState)
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

var errNoState = errors.New("no Secret of Kubernetes")

// operatorKey is where talos-operator keeps the secrets of a cluster in the Secret <control plane>-state (0.1,
// taloscontrolplane_controller.go, ensureStateSecret).
const operatorKey = "secretBundle"

// operatorState is the secrets in a Secret as `kubectl get secret -o yaml` prints it. Errors do not quote the
// Secret.
func operatorState(content []byte) ([]byte, error) {
	var secret struct {
		Kind       string            `yaml:"kind"`
		Data       map[string]string `yaml:"data"`
		StringData map[string]string `yaml:"stringData"`
	}

	if expansion.CheckYAML(content) != nil || yaml.Unmarshal(content, &secret) != nil || secret.Kind != "Secret" {
		return nil, errNoState
	}

	if text := secret.StringData[operatorKey]; text != "" {
		return []byte(text), nil
	}

	text, err := base64.StdEncoding.DecodeString(secret.Data[operatorKey])
	if err != nil || len(text) == 0 {
		return nil, fmt.Errorf("the Secret has no %s; that of a control plane is called <name>-state", operatorKey)
	}

	return text, nil
}
