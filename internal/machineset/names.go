package machineset

import (
	"fmt"
	"strings"

	"github.com/talosop/terraform-provider-talosop/internal/machineconfig"
)

// installTarget describes the disk.
func installTarget(i machineconfig.Install) string {
	if i.DiskSelector == nil {
		return i.Disk
	}

	var parts []string

	for _, property := range []struct{ Name, Value string }{
		{"size", i.DiskSelector.Size}, {"type", i.DiskSelector.Type}, {"model", i.DiskSelector.Model},
		{"serial", i.DiskSelector.Serial}, {"modalias", i.DiskSelector.Modalias}, {"uuid", i.DiskSelector.UUID},
		{"wwid", i.DiskSelector.WWID}, {"bus path", i.DiskSelector.BusPath},
	} {
		if property.Value != "" {
			parts = append(parts, fmt.Sprintf("%s %s", property.Name, property.Value))
		}
	}

	return "the disk with " + strings.Join(parts, ", ")
}
