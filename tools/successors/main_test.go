package main

import (
	"strings"
	"testing"

	"github.com/talosop/terraform-provider-talosop/internal/machineconfig/places"
)

func TestWrite_hasARowForEachField(t *testing.T) {
	t.Parallel()

	var page strings.Builder
	if err := write(&page, places.All()); err != nil {
		t.Fatal(err)
	}

	for _, row := range []string{
		"| `cluster.proxy.disabled` | `KubeProxyConfig` | `enabled` | v1.14 | control planes | the opposite value |",
		"| `machine.network.nameservers` | `ResolverConfig` | `nameservers` | v1.12 | all | a list of addresses |",
		"| `machine.features.hostDNS` | `ResolverConfig` | `hostDNS` | v1.14 | all | enabled: false needs forwardKubeDNSToHost: false |",
		"| `machine.certSANs` |  |  |  | all | stays: only the main document has it |",
	} {
		if !strings.Contains(page.String(), row+"\n") {
			t.Errorf("the page has no row %s", row)
		}
	}

	for _, f := range places.All() {
		if got := strings.Contains(page.String(), "\n| `"+f.Main.String()+"` |"); f.Conversion != "" && !got {
			t.Errorf("the page has no row of %s", f.Main)
		}
	}
}
