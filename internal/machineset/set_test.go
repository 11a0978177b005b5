package machineset

import (
	"cmp"
	"fmt"
	"maps"
	"os"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/talosop/terraform-provider-talosop/internal/cluster"
	"github.com/talosop/terraform-provider-talosop/internal/cluster/step"
	"github.com/talosop/terraform-provider-talosop/internal/finding"
	"github.com/talosop/terraform-provider-talosop/internal/hostcluster/workload"
	"github.com/talosop/terraform-provider-talosop/internal/machineconfig"
)

// Test sets are made only here.

// runsTalos and runsKubernetes are the versions of aSet's machines.
const (
	runsTalos      = "v1.14.1"
	runsKubernetes = "v1.35.2"
)

// option changes a test set.
type option func(p *Set)

// aSet is a set of cluster prod on metal, with secrets, whose configurations can be rendered.
func aSet(t *testing.T, options ...option) Set {
	t.Helper()

	p := Set{Object: "cluster", Machines: map[string]Machine{}, Secrets: testSecrets(t),
		Settings: machineconfig.Cluster{Name: "prod", Endpoint: "https://10.0.0.100:6443", KubernetesVersion: runsKubernetes,
			Contract: "v1.13"}}

	for _, change := range options {
		change(&p)
	}

	return p
}

func testSecrets(t *testing.T) string {
	t.Helper()

	file, err := os.ReadFile("../pki/testdata/test-only-secrets.yaml")
	if err != nil {
		t.Fatal(err)
	}

	return string(file)
}

// controlPlanes are cp-1, cp-2, … at 10.0.0.1, 10.0.0.2, ….
func controlPlanes(n int) option {
	return func(p *Set) {
		at := finding.Root("control_plane")
		p.add(&Group{Role: step.ControlPlane, At: at, TalosVersion: runsTalos, VersionAt: at.AtName("talos_version")},
			n, "cp-%d", "10.0.0.%d")
	}
}

// workers are POOL/w-1, POOL/w-2, … at 10.0.1.1, 10.0.1.2, ….
func workers(pool string, n int) option {
	return func(p *Set) {
		at := finding.Root("workers").AtMapKey(pool)
		p.add(&Group{Role: step.Worker, At: at, TalosVersion: runsTalos, VersionAt: at.AtName("talos_version"), Pool: pool,
			Prefix: pool + PoolSeparator}, n, "w-%d", fmt.Sprintf("10.0.%d.%%d", max(1, len(p.Groups))))
	}
}

func (p *Set) add(g *Group, n int, key, address string) {
	p.Groups = append(p.Groups, g)

	for i := range n {
		m := Machine{Group: g, Key: fmt.Sprintf(key, i+1), Wanted: cluster.Wanted{Address: fmt.Sprintf(address, i+1)}}
		m.Config = machineconfig.Machine{Role: machineconfig.Role(g.Role), TalosVersion: g.TalosVersion,
			Hostname: g.HostName(m.Key), Install: machineconfig.Install{Disk: "/dev/sda"}}
		p.Machines[g.Prefix+m.Key] = m
	}
}

// onlyMachine is a resource of one machine that joins the cluster of a handle with these control planes.
func onlyMachine(role step.Role, bootstraps bool, beside ...string) option {
	return func(p *Set) {
		p.add(&Group{Role: role, TalosVersion: runsTalos, VersionAt: finding.Root("talos_version")}, 1, "m-%d", "10.0.0.%d")

		p.InHandle, p.Single, p.Joins, p.Others = true, true, !bootstraps, []cluster.Machine{}
		for _, address := range beside {
			p.Others = append(p.Others, ControlPlanesAt(address))
		}
	}
}

// pods are machines in containers: control planes cp-0, …, and workers POOL/0, ….
func pods(planes, others int) option {
	return func(p *Set) {
		p.Host = &Host{Namespace: "talos", Domain: "cluster.local", Image: "ghcr.io/siderolabs/talos"}
		p.Settings.Container = true

		for _, g := range []struct {
			Group
			n int
		}{
			{Group{Role: step.ControlPlane, At: finding.Root("control_plane"), VersionAt: finding.Root("talos_version")}, planes},
			{Group{Role: step.Worker, At: finding.Root("workers").AtMapKey("batch"), VersionAt: finding.Root("talos_version"),
				Pool: "batch", Prefix: "batch/", OwnPod: true}, others},
		} {
			group := &g.Group
			group.TalosVersion = runsTalos
			p.Groups = append(p.Groups, group)

			for i := range g.n {
				of := workload.Machine{Pool: group.HostPool(), Ordinal: i}
				m := Machine{Group: group, Key: fmt.Sprint(i), Ordinal: i, Image: p.Host.Image + ":" + runsTalos,
					Wanted: cluster.Wanted{Address: p.Host.AddressOf("prod", of)}}
				m.Config = machineconfig.Machine{Role: machineconfig.Role(group.Role), Mode: machineconfig.Container,
					TalosVersion: runsTalos, Hostname: p.Host.NameOf("prod", of)}
				p.Machines[group.Replica(i)] = m
			}
		}
	}
}

// machine changes a machine of the set, or adds one.
func machine(name string, change func(m *Machine)) option {
	return func(p *Set) {
		m := p.Machines[name]
		change(&m)
		p.Machines[name] = m
	}
}

// each changes every machine of the set.
func each(change func(m *Machine)) option {
	return func(p *Set) {
		for name := range p.Machines {
			machine(name, change)(p)
		}
	}
}

// without takes machines out of the set.
func without(names ...string) option {
	return func(p *Set) {
		for _, name := range names {
			delete(p.Machines, name)
		}
	}
}

// group changes the group of a machine.
func group(of string, change func(g *Group)) option {
	return func(p *Set) { change(p.Machines[of].Group) }
}

// talos is the wanted Talos version of all machines, and kubernetes that of Kubernetes.
func talos(version string) option {
	return func(p *Set) {
		for _, g := range p.Groups {
			g.TalosVersion = version
		}

		each(func(m *Machine) { m.Config.TalosVersion = version })(p)
	}
}

func kubernetes(version string) option {
	return func(p *Set) { p.Settings.KubernetesVersion = version }
}

// joins is a set whose cluster is described in a handle, with these control planes.
func joins(endpoints ...string) option {
	return func(p *Set) { p.InHandle, p.Endpoints = true, endpoints }
}

// valuesUnknown is a set with an unknown value that shapes configurations.
func valuesUnknown(p *Set) { p.Unknown.Note(UnknownConfiguration, true) }

// machinesUnknown is a set whose list of machines is unknown.
func machinesUnknown(p *Set) { p.Unknown.Note(UnknownMachines, true) }

// secretsUnknown is a set whose secrets are unknown.
func secretsUnknown(p *Set) {
	p.Unknown.Note(UnknownSecrets, true)

	p.Secrets = ""
}

// secretsNew is a set for which the plan generates secrets.
func secretsNew(p *Set) {
	secretsUnknown(p)

	p.Unknown.Note(UnknownNewSecrets, true)
}

// protected is a set with deletion protection.
func protected(p *Set) { p.Protected = true }

// provided is a set with the secrets of the provider configuration.
func provided(p *Set) { p.Provided = true }

// secrets sets other secrets than those of aSet.
func secrets(text string) option { return func(p *Set) { p.Secrets = text } }

// contract is the version contract of the cluster.
func contract(version string) option { return func(p *Set) { p.Settings.Contract = version } }

// beside adds control planes of other resources to a set that takes its cluster.
func beside(addresses ...string) option {
	return func(p *Set) {
		for _, address := range addresses {
			p.Others = append(p.Others, ControlPlanesAt(address))
		}
	}
}

// restores is a set whose etcd is restored from a snapshot.
func restores(from string) option {
	return func(p *Set) { p.Restore = Restoration{From: from, KeyAt: RestorePath().AtName("key")} }
}

// changing sets how running machines are changed.
func changing(change func(c *Changes)) option { return func(p *Set) { change(&p.Changes) } }

// member changes the record of a machine.
func (r Record) member(name string, change func(s *step.MachineState)) Record {
	s := r.Machines[name]
	change(&s)
	r.Machines[name] = s

	return r
}

// codes are findings without their sentences: severity, attribute, and the code of the message.
func codes(found finding.List) []string {
	var out []string
	for _, f := range found {
		out = append(out, strings.TrimSpace(fmt.Sprintf("%s %s", f.Severity, f.At))+": "+cmp.Or(f.Code, f.Summary))
	}

	return out
}

// once is findings without consecutive ones of the same code: groups share errors, and each is shown once.
func once(found finding.List) finding.List {
	return slices.CompactFunc(found, func(a, b finding.Finding) bool { return a.Summary == b.Summary && a.At.Equal(b.At) })
}

// args are the arguments of a finding's message: lines such as "machines: cp-1 | cp-2", after an empty one. A finding
// without a message has only its detail.
func args(f finding.Finding) string {
	if f.Code == "" {
		return f.Detail
	}

	text := "\n"

	for _, name := range slices.Sorted(maps.Keys(f.Args)) {
		value := fmt.Sprint(f.Args[name])
		if list, ok := f.Args[name].([]string); ok {
			value = strings.Join(list, " | ")
		}

		text += name + ": " + value + "\n"
	}

	return text
}

// expect compares findings by their codes, and checks what the arguments of each must have.
func expect(t *testing.T, name string, found finding.List, want []string, names ...string) {
	t.Helper()

	if got := codes(found); !slices.Equal(got, want) {
		t.Errorf("%s: found %q, want %q", name, got, want)

		return
	}

	for _, f := range found {
		for _, part := range names {
			if !strings.Contains(args(f), part) {
				t.Errorf("%s: %s\nwant %q in it", name, args(f), part)
			}
		}
	}
}

// same compares values.
func same[T any](t *testing.T, name string, got, want T) {
	t.Helper()

	if !reflect.DeepEqual(got, want) {
		t.Errorf("%s: got %+v, want %+v", name, got, want)
	}
}

// snapshotName is that of a snapshot of a cluster with other secrets.
const snapshotName = "file:/backups/etcd-snapshot-2026-01-02T03-04-05Z-0123456789abcdef-abcdef.db"

func contains(text, part string) bool { return strings.Contains(text, part) }

// lastLines counts the lines of a list that name one thing each.
func lastLines(text string) int {
	lines := strings.Split(text, "\n  - ")[1:]

	return len(slices.DeleteFunc(lines, func(line string) bool { return strings.HasSuffix(line, " more") || strings.Contains(line, " more\n") }))
}

// withFacts is a set as its validation sees it.
func withFacts(p *Set) { *p = p.WithFacts() }
