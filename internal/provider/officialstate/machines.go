package officialstate

import (
	"cmp"
	"encoding/json"
	"errors"
	"slices"

	"github.com/talosop/terraform-provider-talosop/internal/machineconfig/documents"
	"github.com/talosop/terraform-provider-talosop/internal/machineconfig/places"
)

// MachineTypes are the types that have a machine each, with its whole configuration (siderolabs/talos 0.3 to 0.12,
// talos_machine_configuration_apply_resource.go and talos_machine_resource.go).
var MachineTypes = []string{"talos_machine_configuration_apply", "talos_machine"}

// IsMachine reports whether a type has a machine.
func IsMachine(typeName string) bool { return slices.Contains(MachineTypes, typeName) }

// Machine is the machine in the state of such a resource.
type Machine struct {
	// Address is where its Talos API is.
	Address string
	// Cluster is the name of its cluster, Hostname its own, empty without one, and Role its type.
	Cluster, Hostname, Role string
}

// MachineOf reads the state of a machine. Errors do not quote it.
func MachineOf(state []byte) (Machine, error) {
	var has struct {
		Node          string `json:"node"`
		Configuration string `json:"machine_configuration"`
	}

	switch {
	case json.Unmarshal(state, &has) != nil || has.Node == "":
		return Machine{}, errState
	case has.Configuration == "":
		return Machine{}, errors.New("it has no configuration, as where that was write-only; import the machine instead")
	}

	parsed, err := documents.Parse(has.Configuration)
	if err != nil {
		return Machine{}, errors.New("its configuration is not one of Talos; import the machine instead")
	}

	return Machine{
		Address: has.Node, Cluster: textOf(parsed, places.ClusterName), Hostname: textOf(parsed, places.Hostname),
		Role: textAt(parsed, places.MachineType.Main),
	}, nil
}

// textOf is a fact in documents of either form; empty when they lack it.
func textOf(documents map[string]any, f places.Fact) string {
	return cmp.Or(textAt(documents, f.Document), textAt(documents, f.Main))
}

func textAt(documents map[string]any, at places.Spot) string {
	value := documents[cmp.Or(at.Kind, "v1alpha1")]

	for _, key := range at.Path {
		inner, _ := value.(map[string]any)
		value = inner[key]
	}

	text, _ := value.(string)

	return text
}
