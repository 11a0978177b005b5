package kubelet

import (
	"fmt"

	talosconfig "github.com/siderolabs/talos/pkg/machinery/config"
)

// admissionRefused is why a kube-apiserver does not start with the admission plugins of a configuration: PodSecurity
// takes no exemption twice (k8s.io/pod-security-admission 0.36, admission/api/validation). Talos itself passes the
// configuration of plugins on unread.
func admissionRefused(cfg talosconfig.Config) error {
	for _, plugin := range cfg.K8sAdmissionControlPluginConfigs() {
		if plugin.Name() != "PodSecurity" {
			continue
		}

		exemptions, _ := plugin.Configuration()["exemptions"].(map[string]any)

		for kind, list := range exemptions {
			seen := map[any]bool{}

			exempt, _ := list.([]any)
			for i, name := range exempt {
				if seen[name] {
					return fmt.Errorf("exemptions.%s[%d]: Duplicate value: %q", kind, i, name)
				}

				seen[name] = true
			}
		}
	}

	return nil
}
