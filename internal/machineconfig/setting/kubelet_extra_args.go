package setting

import (
	"maps"
	"regexp"
	"slices"
	"strings"

	"github.com/siderolabs/talos/pkg/machinery/config/types/meta"
	"go.yaml.in/yaml/v4"

	"github.com/talosop/terraform-provider-talosop/internal/machineconfig/places"
)

// KubeletExtraArgs are arguments of the kubelet by their names, without dashes.
var KubeletExtraArgs = define(definition[map[string]string]{
	name:   "kubelet_extra_args",
	empty:  isEmptyMap,
	levels: byKey{},

	put: func(c *Config, value map[string]string) { c.addArguments(places.KubeletExtraArgs, value) },

	read: func(c Config) map[string]string {
		texts, arguments := map[string]string{}, places.Value[meta.Args](c.Documents, places.KubeletExtraArgs)
		if arguments == nil {
			return nil
		}

		for name, argument := range *arguments {
			// The library shows in the encoding alone whether it is one value or a list.
			encoded, err := argument.MarshalYAML()
			if node, ok := encoded.(*yaml.Node); err == nil && ok && node.Kind == yaml.ScalarNode {
				texts[name] = node.Value
			}
		}

		return texts
	},

	check: func(value map[string]string, found *problems, t Target) {
		for _, name := range slices.Sorted(maps.Keys(value)) {
			field := under("kubelet_extra_args", name)

			switch {
			case !argumentName.MatchString(name):
				found.add(field, quoted(name), "an argument name in lower case, such as feature-gates",
					"remove the leading dashes")
			case slices.Contains(ownKubeletArguments, name):
				found.add(field, "an argument that Talos sets itself", "any other than "+strings.Join(ownKubeletArguments, ", "),
					"remove it: with it, Talos does not start the kubelet, or the node gets another name")
			case value[name] == "" && !t.Partial:
				found.add(field, "an empty value", "a value, such as true", "write the value, or remove the argument")
			}
		}
	},
})

// ownKubeletArguments are those that Talos refuses, so that its kubelet does not start (Talos 1.14,
// k8s/kubelet_spec.go, MergeDenied), and the one that would make the node's name differ from the machine's.
var ownKubeletArguments = []string{"bootstrap-kubeconfig", "cert-dir", "config", "container-runtime",
	"container-runtime-endpoint", "hostname-override", "kubeconfig"}

var argumentName = regexp.MustCompile(`^[a-z0-9][a-z0-9.-]*$`)
