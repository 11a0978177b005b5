package machines_test

import (
	"cmp"
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/hashicorp/terraform-plugin-go/tftypes"

	"github.com/talosop/terraform-provider-talosop/internal/pki"
	"github.com/talosop/terraform-provider-talosop/internal/provider/sitetest"
	"github.com/talosop/terraform-provider-talosop/internal/provider/tftest"
	"github.com/talosop/terraform-provider-talosop/internal/sim"
)

// lifeLayout is the set of resources for a cluster.
type lifeLayout string

const (
	wholeLayout    lifeLayout = "talosop_cluster"
	pairLayout     lifeLayout = "talosop_control_plane and talosop_worker"
	singlesLayout  lifeLayout = "talosop_control_plane and talosop_machine"
	machinesLayout lifeLayout = "talosop_machine"
	mixedLayout    lifeLayout = "control planes in talosop_control_plane and talosop_machine, and talosop_worker"
)

var lifeLayouts = []lifeLayout{wholeLayout, pairLayout, singlesLayout, machinesLayout, mixedLayout}

// lifeConfig is a configuration of one cluster.
type lifeConfig struct {
	Layout lifeLayout
	// Label is that of every resource with machines, and Prefix that of the machine names.
	Label, Prefix string
	// Planes and Workers are indexes of machines of the site; without both it is a configuration without machines.
	Planes, Workers []int
	// PlaneSpare and WorkerSpare are one more than the index of the machine that the spare one, the last of its role,
	// replaces. Hardware sets the hardware of every machine, which a replacement needs.
	PlaneSpare, WorkerSpare int
	Hardware                bool
	Protected               bool
	SecretsUnlocked         bool
	Preserve                bool
	CreateFirst             bool
	NoSecrets               bool
	// Consent allows a bootstrap with existing secrets.
	Consent bool
	Rack    string
	// Kubernetes is the version of Kubernetes; empty for v1.36.2. Of has the versions of single machines, by name.
	Kubernetes string
	Of         map[string]string
	// Chained makes every control plane of machinesLayout depend on the previous one.
	Chained bool
	// Turn is the texts of the rotation triggers; empty for none.
	Turn lifeTurn
	// Change is a final edit of talosop_cluster; nil for none.
	Change func(tftest.Config)
}

// lifeTurn is the texts of triggers, in the order of lifeTriggers.
type lifeTurn [5]string

var lifeTriggers = [5]string{"talos_ca", "kubernetes_ca", "cluster_token", "aggregator_ca", "service_account_key"}

// turnOf gives the same text to the keys that machines of both roles have.
func turnOf(text string) lifeTurn { return lifeTurn{text, text, text} }

// rotate is the argument of secrets; none without a text.
func (t lifeTurn) rotate(into tftest.Config) tftest.Config {
	triggers := tftest.Config{}

	for i, text := range t {
		if text != "" {
			triggers[lifeTriggers[i]] = text
		}
	}

	if len(triggers) > 0 {
		into["rotate"] = triggers
	}

	return into
}

func (c lifeConfig) String() string {
	flags := ""
	for name, set := range map[string]bool{
		"protected": c.Protected, "secrets unlocked": c.SecretsUnlocked, "preserve": c.Preserve,
		"consent": c.Consent, "create_before_destroy": c.CreateFirst, "no secrets": c.NoSecrets, "hardware given": c.Hardware,
		"a spare control plane": c.PlaneSpare > 0, "a spare worker": c.WorkerSpare > 0,
	} {
		if set {
			flags += ", " + name
		}
	}

	return fmt.Sprintf("%s as %q, names %q, control planes %v, workers %v, rack %q, keys %q%s",
		c.Layout, c.Label, c.Prefix, c.Planes, c.Workers, c.Rack, c.Turn, flags)
}

const lifeSecrets = "talosop_secrets.this"

// lifeSite is a site for sequences on one cluster.
type lifeSite struct {
	*sitetest.Site

	folder string
}

const (
	lifePlane  = "cp"
	lifeWorker = "w"
)

// machineOf is the machine at a position of a configuration.
func (s *lifeSite) machineOf(c lifeConfig, role string, i int) *sim.Machine {
	machines, spare := s.ControlPlane, c.PlaneSpare
	if role == lifeWorker {
		machines, spare = s.Workers, c.WorkerSpare
	}

	if i+1 == spare {
		i = len(machines) - 1
	}

	return machines[i]
}

// named are the names of machines in a configuration.
func (s *lifeSite) named(c lifeConfig, role string, indexes []int) tftest.Config {
	out := tftest.Config{}

	for _, i := range indexes {
		// The name of a node stays when its machine gets another key, pool, resource or hardware.
		machine := s.machineOf(c, role, i)
		place := fmt.Sprintf("%s-%d", role, i+1)
		one := tftest.Config{"address": machine.Address().String(), "hostname": place}

		if c.Hardware {
			one["uuid"] = machine.UUID()
		}

		out[c.Prefix+place] = one
	}

	return out
}

// blocks are the resources of a configuration.
func (s *lifeSite) blocks(c lifeConfig) []lifeBlock {
	var blocks []lifeBlock

	if !c.NoSecrets {
		blocks = append(blocks, lifeBlock{
			Address: lifeSecrets, Kind: "talosop_secrets",
			Config: func(func(string, string) tftypes.Value) tftest.Config {
				return c.Turn.rotate(tftest.Config{"deletion_protection": !c.SecretsUnlocked})
			},
		})
	}

	if len(c.Planes) == 0 {
		return blocks
	}

	planes, workers := s.named(c, lifePlane, c.Planes), s.named(c, lifeWorker, c.Workers)

	switch c.Layout {
	case wholeLayout:
		return append(blocks, s.clusterBlock(c, planes, workers))
	case pairLayout:
		return append(blocks, s.planeBlock(c, planes), s.workerBlock(c, workers))
	case singlesLayout:
		blocks = append(blocks, s.planeBlock(c, planes))
		handle := s.handleOf(c)

		return append(blocks, s.machineBlocks(c, "worker", workers, handle)...)
	case mixedLayout:
		first, others := s.named(c, lifePlane, c.Planes[:1]), s.named(c, lifePlane, c.Planes[1:])
		blocks = append(blocks, s.planeBlock(c, first), s.workerBlock(c, workers))

		return append(blocks, s.machineBlocks(c, "controlplane", others, s.handleWritten(c))...)
	default:
		blocks = append(blocks, s.machineBlocks(c, "controlplane", planes, s.handleWritten(c))...)

		return append(blocks, s.machineBlocks(c, "worker", workers, s.handleWritten(c))...)
	}
}

// lifeHandle is how a resource refers to its cluster.
type lifeHandle struct {
	Needs []string
	Of    func(ref func(string, string) tftypes.Value) any
}

func (s *lifeSite) handleOf(c lifeConfig) lifeHandle {
	at := "talosop_control_plane." + c.Label

	return lifeHandle{[]string{at}, func(ref func(string, string) tftypes.Value) any { return ref(at, "cluster") }}
}

func (s *lifeSite) handleWritten(c lifeConfig) lifeHandle {
	endpoints := []any{}
	for _, i := range c.Planes {
		endpoints = append(endpoints, s.machineOf(c, lifePlane, i).Address().String())
	}

	return lifeHandle{[]string{lifeSecrets}, func(ref func(string, string) tftypes.Value) any {
		return tftest.Config{
			"name": "test", "endpoint": s.URL, "secrets": ref(lifeSecrets, "bundle"), "talos_endpoints": endpoints,
			"kubernetes_version": c.kubernetes(), "version_contract": "v1.13",
		}
	}}
}

// common are the arguments of every resource with machines.
func (c lifeConfig) common(into tftest.Config) tftest.Config {
	into["talos_version"] = "v1.13.0"
	into["deletion_protection"] = c.Protected
	limit := "1m"
	if c.Kubernetes != "" {
		limit = "5m" // an upgrade of Kubernetes takes longer, on busy machines
	}

	into["timeouts"] = tftest.Config{"create": limit, "update": limit, "delete": limit}

	if c.Preserve {
		into["on_destroy"] = "preserve"
	}

	return into
}

// patches put the label of nodes into configurations.
func (c lifeConfig) patches(into tftest.Config) tftest.Config {
	into["install"] = tftest.Config{"disk": "/dev/sda"}
	if c.Rack != "" {
		into["config_patches"] = []any{"machine:\n  nodeLabels:\n    rack: " + c.Rack + "\n"}
	}

	return into
}

func (c lifeConfig) settings(s *lifeSite, ref func(string, string) tftypes.Value) tftest.Config {
	return c.common(c.consenting(tftest.Config{
		"mode": "metal", "name": "test", "endpoint": s.URL, "secrets": ref(lifeSecrets, "bundle"),
		"kubernetes_version": c.kubernetes(),
	}))
}

// consenting are the arguments of a resource that bootstraps.
func (c lifeConfig) consenting(into tftest.Config) tftest.Config {
	if c.Consent {
		into["allow_bootstrap"] = true
	}

	return into
}

func (c lifeConfig) kubernetes() string { return cmp.Or(c.Kubernetes, "v1.36.2") }

func (s *lifeSite) clusterBlock(c lifeConfig, planes, workers tftest.Config) lifeBlock {
	return lifeBlock{
		Address: "talosop_cluster." + c.Label, Kind: "talosop_cluster", Needs: []string{lifeSecrets},
		CreateFirst: c.CreateFirst,
		Config: func(ref func(string, string) tftypes.Value) tftest.Config {
			config := c.settings(s, ref)
			config["control_plane"] = c.patches(tftest.Config{"machines": planes})

			if len(workers) > 0 {
				config["workers"] = tftest.Config{"worker": c.patches(tftest.Config{"machines": workers})}
			}

			if c.Change != nil {
				c.Change(config)
			}

			return config
		},
	}
}

func (s *lifeSite) planeBlock(c lifeConfig, planes tftest.Config) lifeBlock {
	return lifeBlock{
		Address: "talosop_control_plane." + c.Label, Kind: "talosop_control_plane", Needs: []string{lifeSecrets},
		CreateFirst: c.CreateFirst,
		Config: func(ref func(string, string) tftypes.Value) tftest.Config {
			config := c.patches(c.settings(s, ref))
			config["machines"] = planes

			return config
		},
	}
}

func (s *lifeSite) workerBlock(c lifeConfig, workers tftest.Config) lifeBlock {
	handle := s.handleOf(c)

	return lifeBlock{
		Address: "talosop_worker." + c.Label, Kind: "talosop_worker", Needs: handle.Needs,
		CreateFirst: c.CreateFirst,
		Config: func(ref func(string, string) tftypes.Value) tftest.Config {
			return c.patches(c.common(tftest.Config{"cluster": handle.Of(ref), "machines": workers}))
		},
	}
}

func (s *lifeSite) machineBlocks(c lifeConfig, role string, machines tftest.Config, handle lifeHandle) []lifeBlock {
	var blocks []lifeBlock

	for name, machine := range machines {
		address, _ := machine.(tftest.Config)
		founds := c.Layout == machinesLayout && address["address"] == s.machineOf(c, lifePlane, c.Planes[0]).Address().String()

		blocks = append(blocks, lifeBlock{
			Address: fmt.Sprintf("talosop_machine.%s[%q]", c.Label, name), Kind: "talosop_machine", Needs: handle.Needs,
			CreateFirst: c.CreateFirst,
			Config: func(ref func(string, string) tftypes.Value) tftest.Config {
				of := handle.Of(ref)
				if written, ok := of.(tftest.Config); ok && c.Of[name] != "" {
					written["kubernetes_version"] = c.Of[name]
				}

				config := c.patches(c.common(tftest.Config{
					"cluster": of, "name": name, "role": role, "address": address["address"],
					"hostname": address["hostname"],
				}))
				if c.Hardware {
					config["uuid"] = address["uuid"]
				}

				if founds {
					config["bootstrap"] = true
					c.consenting(config)
				}

				return config
			},
		})
	}

	slices.SortFunc(blocks, func(a, b lifeBlock) int { return cmp.Compare(a.Address, b.Address) })

	if c.Chained && role == "controlplane" {
		for i := range blocks[1:] {
			blocks[i+1].Needs = append(slices.Clone(blocks[i+1].Needs), blocks[i].Address)
		}
	}

	return blocks
}

// importID is the import ID of a resource of a configuration.
func (s *lifeSite) importID(t *testing.T, c lifeConfig, address, file string) string {
	t.Helper()

	flat := func(machines tftest.Config) map[string]string {
		out := map[string]string{}
		for name, machine := range machines {
			one, _ := machine.(tftest.Config)
			out[name], _ = one["address"].(string)
		}

		return out
	}

	planes, workers := flat(s.named(c, lifePlane, c.Planes)), flat(s.named(c, lifeWorker, c.Workers))
	id := map[string]any{"secrets": file}
	kind, rest, _ := strings.Cut(address, ".")

	switch kind {
	case "talosop_secrets":
		return file
	case "talosop_cluster":
		id["control_plane"] = planes
		if len(workers) > 0 {
			id["workers"] = map[string]any{"worker": workers}
		}
	case "talosop_control_plane":
		if c.Layout == mixedLayout {
			planes = flat(s.named(c, lifePlane, c.Planes[:1]))
		}

		id["machines"] = planes
	case "talosop_worker":
		id["machines"], id["control_plane"] = workers, planes
	default:
		_, name, _ := strings.Cut(rest, `["`)
		name = strings.TrimSuffix(name, `"]`)
		id["control_plane"] = planes
		id["machines"] = map[string]string{name: cmp.Or(planes[name], workers[name])}
	}

	return tftest.JSON(t, id)
}

// saved is a file with a bundle.
func (s *lifeSite) saved(t *testing.T, bundle string) string {
	t.Helper()

	file := filepath.Join(s.folder, "secrets.yaml")
	tftest.Must(t, os.WriteFile(file, []byte(bundle), 0o600))

	return file
}

// owners are the owner IDs of machines on their nodes, by address.
func (s *lifeSite) owners(ctx context.Context, t *testing.T, bundle string) map[string]string {
	t.Helper()

	secrets, err := pki.Parse([]byte(bundle))
	if err != nil {
		return nil
	}

	api := sitetest.KubernetesAt(t, s.URL, secrets)
	defer api.Close()

	ctx, cancel := context.WithTimeout(ctx, 2*time.Second)
	defer cancel()

	seen := api.Nodes.Observe(ctx)
	out := map[string]string{}

	for _, m := range s.Machines() {
		if owner := seen.Owners[m.Hostname()]; owner != "" {
			out[m.Address().String()] = owner
		}
	}

	return out
}
