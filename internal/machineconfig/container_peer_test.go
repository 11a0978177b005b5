package machineconfig

import (
	"net/netip"
	"slices"
	"strings"
	"testing"
)

// TestContainerPeerAddress_andPatches refuses patches that let etcd be announced at an address that the machine does
// not have.
func TestContainerPeerAddress_andPatches(t *testing.T) {
	const harmless = "machine: {sysctls: {a: b}}"

	for name, test := range map[string]struct {
		patches []string
		field   string
	}{
		"nothing": {},
		"interfaces that are added to": {patches: []string{
			`[{"op":"add","path":"/machine/network/interfaces/-","value":{"interface":"dummy0","addresses":["192.0.2.1/32"]}}]`,
		}},
		"the network replaced": {
			patches: []string{harmless, `[{"op":"add","path":"/machine/network","value":{"nameservers":["192.0.2.53"]}}]`},
			field:   "machine.patches[1]",
		},
		"its interfaces replaced": {
			patches: []string{`[{"op":"replace","path":"/machine/network/interfaces","value":[{"interface":"lo","addresses":["192.0.2.1/32"]}]}]`, harmless},
			field:   "machine.patches[0]",
		},
		"no network": {patches: []string{"machine: {network: {$patch: delete}}"}, field: "machine.patches[0]"},
		"no network, and the address in its own document": {patches: []string{
			"machine: {network: {$patch: delete}}",
			"apiVersion: v1alpha1\nkind: LinkConfig\nname: lo\naddresses: [{address: 10.96.1.2/32}]\n",
		}},
		"the network replaced, with the address": {patches: []string{
			`[{"op":"add","path":"/machine/network","value":{"interfaces":[{"interface":"dummy0","addresses":["10.96.1.2/32"]}]}}]`,
		}},
		"the network replaced, and the address in its own document": {patches: []string{
			`[{"op":"add","path":"/machine/network","value":{}}]`,
			"apiVersion: v1alpha1\nkind: LinkConfig\nname: lo\naddresses: [{address: 10.96.1.2/32}]\n",
		}},
		"the network replaced, and etcd elsewhere": {patches: []string{
			`[{"op":"add","path":"/machine/network","value":{}}]`,
			`[{"op":"replace","path":"/cluster/etcd/advertisedSubnets","value":["10.0.0.0/8"]}]`,
		}},
	} {
		operations := slices.ContainsFunc(test.patches, func(patch string) bool { return strings.HasPrefix(patch, "[") })

		for _, contract := range contracts {
			if operations && contract >= "v1.12" {
				continue // several documents, to which no operations apply
			}

			t.Run(name+" "+contract, func(t *testing.T) {
				m := containerMachine(ControlPlane)
				m.PeerAddress, m.Patches = netip.MustParseAddr("10.96.1.2"), test.patches

				_, err := Generate(containerCluster(contract), m, testBundle(t))
				if test.field == "" {
					if err != nil {
						t.Fatal(err)
					}

					return
				}

				mistakes := FieldErrors(err)
				if len(mistakes) != 1 || mistakes[0].Field != test.field ||
					!strings.Contains(err.Error(), "advertisedSubnets is 10.96.1.2/32") {
					t.Fatalf("the mistakes are %v", err)
				}

				// Without an address there is nothing to lose.
				m.PeerAddress = netip.Addr{}
				if _, err := Generate(containerCluster(contract), m, testBundle(t)); err != nil &&
					strings.Contains(err.Error(), "advertisedSubnets") {
					t.Error(err)
				}
			})
		}
	}
}
