package machineset

import (
	"testing"
	"time"

	"github.com/talosop/terraform-provider-talosop/internal/backup"
	"github.com/talosop/terraform-provider-talosop/internal/cluster"
	"github.com/talosop/terraform-provider-talosop/internal/cluster/step"
	"github.com/talosop/terraform-provider-talosop/internal/machineconfig"
)

func addressesOf(machines []cluster.Machine) []string {
	var addresses []string
	for _, m := range machines {
		addresses = append(addresses, m.Address)
	}

	return addresses
}

// A plan accounts for control planes of other resources, listed or not.
func TestOtherControlPlanes(t *testing.T) {
	t.Parallel()

	const some, another = "some other control plane", "yet another control plane"

	unknown := func(p *Set) { p.Others = nil }

	for name, test := range map[string]struct {
		options []option
		want    []string
	}{
		"a cluster":                 {options: []option{controlPlanes(1), beside("10.0.0.9")}},
		"workers":                   {options: []option{workers("batch", 1), joins("10.0.0.9", "10.0.0.8")}, want: []string{"10.0.0.9", "10.0.0.8"}},
		"workers, none listed":      {options: []option{workers("batch", 1), joins()}, want: []string{some}},
		"the only one":              {options: []option{onlyMachine(step.ControlPlane, true)}},
		"one beside one":            {options: []option{onlyMachine(step.ControlPlane, false, "10.0.0.9")}, want: []string{"10.0.0.9", some}},
		"one beside two":            {options: []option{onlyMachine(step.ControlPlane, false, "10.0.0.9", "10.0.0.8")}, want: []string{"10.0.0.9", "10.0.0.8"}},
		"one beside unknown others": {options: []option{onlyMachine(step.ControlPlane, false), unknown}, want: []string{some, another}},
	} {
		same(t, name, addressesOf(aSet(t, test.options...).OtherControlPlanes()), test.want)
	}

	p := aSet(t, controlPlanes(1), beside("10.0.0.9"))
	all := func(ends bool) func([]cluster.Machine) bool { return func([]cluster.Machine) bool { return ends } }
	same(t, "ends with others", p.EndsWith(all(true)), true)
	same(t, "others stay", p.EndsWith(all(false)), false)
	same(t, "alone", aSet(t, controlPlanes(1)).EndsWith(all(true)), false)
	same(t, "workers", aSet(t, workers("batch", 1), beside("10.0.0.9")).EndsWith(all(true)), false)
}

// A machine cannot be the endpoint that its own cluster waits for.
func TestRefuseEndpoint(t *testing.T) {
	t.Parallel()

	early := func(p *Set) { p.Unknown.Note(UnknownCluster, true) }
	endpoint := func(url string) option { return func(p *Set) { p.Settings.Endpoint = url } }

	for name, test := range map[string]struct {
		options []option
		refused bool
	}{
		"its own":            {options: []option{onlyMachine(step.ControlPlane, false), early, endpoint("https://10.0.0.1:6443")}, refused: true},
		"shared":             {options: []option{onlyMachine(step.ControlPlane, false), early}},
		"made before":        {options: []option{onlyMachine(step.ControlPlane, false), endpoint("https://10.0.0.1:6443")}},
		"it bootstraps":      {options: []option{onlyMachine(step.ControlPlane, true), early, endpoint("https://10.0.0.1:6443")}},
		"no endpoint":        {options: []option{onlyMachine(step.ControlPlane, false), early, endpoint("://")}},
		"no address":         {options: []option{onlyMachine(step.ControlPlane, false), early, endpoint(""), each(func(m *Machine) { m.Address = "" })}},
		"a list of machines": {options: []option{controlPlanes(1), endpoint("https://10.0.0.1:6443")}},
	} {
		var want []string
		if test.refused {
			want = []string{"Error cluster.endpoint: endpoint_of_machine"}
		}

		expect(t, name, aSet(t, test.options...).RefuseEndpoint(), want)
	}
}

// Another cluster, or other machines, replace those of state.
func TestReplaces(t *testing.T) {
	t.Parallel()

	named := func(name string) option { return func(p *Set) { p.Settings.Name = name } }
	networks := func(pods, services, domain string) option {
		return func(p *Set) {
			p.Settings.PodCIDRs, p.Settings.ServiceCIDRs, p.Settings.DNSDomain = []string{pods}, []string{services}, domain
		}
	}
	host := func(namespace, domain string) option {
		return func(p *Set) { p.Host.Namespace, p.Host.Domain = namespace, domain }
	}
	metal, inPods := controlPlanes(1), pods(1, 0)

	for name, test := range map[string]struct {
		p, prior []option
		want     bool
	}{
		"nothing":              {p: []option{metal}, prior: []option{metal}},
		"a name":               {p: []option{metal, named("other")}, prior: []option{metal}},
		"a name, provided":     {p: []option{metal, named("other"), provided, secretsUnknown}, prior: []option{metal}},
		"a name, new secrets":  {p: []option{metal, named("other"), secrets("cluster: {}")}, prior: []option{metal}, want: true},
		"a name of pods":       {p: []option{inPods, named("other")}, prior: []option{inPods}, want: true},
		"a name not known":     {p: []option{inPods, named("")}, prior: []option{inPods}},
		"a mode":               {p: []option{inPods}, prior: []option{metal}, want: true},
		"a mode not known":     {p: []option{inPods, func(p *Set) { p.Unknown.Note(UnknownMode, true) }}, prior: []option{metal}},
		"a role":               {p: []option{onlyMachine(step.Worker, false)}, prior: []option{onlyMachine(step.ControlPlane, false)}, want: true},
		"a role not known":     {p: []option{onlyMachine("", false)}, prior: []option{onlyMachine(step.ControlPlane, false)}},
		"a role of a list":     {p: []option{workers("batch", 1)}, prior: []option{metal}},
		"pod networks":         {p: []option{metal, networks("10.1.0.0/16", "10.96.0.0/12", "")}, prior: []option{metal}, want: true},
		"service networks":     {p: []option{metal, networks("10.244.0.0/16", "10.1.0.0/16", "")}, prior: []option{metal}, want: true},
		"the defaults":         {p: []option{metal, networks("10.244.0.0/16", "10.96.0.0/12", "cluster.local")}, prior: []option{metal}},
		"a domain":             {p: []option{metal, networks("10.244.0.0/16", "10.96.0.0/12", "other.local")}, prior: []option{metal}, want: true},
		"networks not known":   {p: []option{metal, valuesUnknown, networks("", "", "")}, prior: []option{metal, networks("10.1.0.0/16", "10.2.0.0/16", "other.local")}},
		"networks not given":   {p: []option{metal}, prior: []option{metal, networks("10.1.0.0/16", "10.96.0.0/12", "")}, want: true},
		"networks by facts":    {p: []option{metal, networks("10.1.0.0/16", "10.96.0.0/12", ""), withFacts}, prior: []option{metal, withFacts}, want: true},
		"a namespace":          {p: []option{inPods, host("other", "cluster.local")}, prior: []option{inPods}, want: true},
		"a domain of the host": {p: []option{inPods, host("talos", "other.local")}, prior: []option{inPods}, want: true},
		"host not known":       {p: []option{inPods, host("", "")}, prior: []option{inPods}},
	} {
		same(t, name, aSet(t, test.p...).Replaces(aSet(t, test.prior...)), test.want)
	}
}

// A removal before another creation waits for control planes that stay.
func TestToReplace(t *testing.T) {
	t.Parallel()

	for name, test := range map[string]struct {
		others, want []string
	}{
		"not known":  {want: []string{"10.0.0.9", "10.0.0.8"}},
		"one leaves": {others: []string{"10.0.0.9"}, want: []string{"10.0.0.9"}},
		"one moves":  {others: []string{"10.0.0.9", "10.0.0.7"}, want: []string{"10.0.0.9", "10.0.0.8"}},
	} {
		single, list := aSet(t, onlyMachine(step.ControlPlane, false, "10.0.0.9", "10.0.0.8")), aSet(t, controlPlanes(1), beside("10.0.0.9", "10.0.0.8"))
		same(t, name, single.ToReplace(test.others).AddressesBeside(), test.want)
		same(t, name+", of a list", list.ToReplace(test.others).AddressesBeside(), test.want)
		same(t, name+", the set itself", len(single.AddressesBeside()), 2)
		same(t, name+", marked", single.ToReplace(test.others).Replaced && list.ToReplace(test.others).Replaced, true)
	}
}

// A snapshot is from one cluster, and for versions that read it.
func TestRestoration(t *testing.T) {
	t.Parallel()

	p := aSet(t, controlPlanes(2), restores("file:a"))
	same(t, "asked", p.Restores(""), true)
	same(t, "done", p.Restores("file:a"), false)
	same(t, "not known", Set{Unknown: UnknownSnapshot}.Restores(""), true)

	bundle, err := p.Bundle()
	if err != nil {
		t.Fatal(err)
	}

	own := "file:/b/etcd-snapshot-2026-01-02T03-04-05Z-" + bundle.Mark() + "-abcdef.db"
	expect(t, "its own", aSet(t, restores(own)).refuseForeignSnapshot(), nil)
	expect(t, "no name", p.refuseForeignSnapshot(), nil)

	for name, test := range map[string]struct {
		restored string
		refusals int
		access   step.Access
		from     string
		warned   bool
	}{
		"restored before":  {restored: "file:a", refusals: 1, access: step.Maintenance, from: "file:a", warned: true},
		"not restored yet": {restored: "file:b", refusals: 1, access: step.Maintenance, from: "file:a"},
		"none":             {refusals: 1, access: step.Maintenance},
		"nothing refused":  {restored: "file:a", access: step.Maintenance, from: "file:a"},
		"one lives":        {restored: "file:a", refusals: 1, access: step.Member, from: "file:a"},
	} {
		p := aSet(t, controlPlanes(2), workers("batch", 1), restores(test.from))
		r := recordOf(p).member("cp-1", func(s *step.MachineState) { s.Access = step.Maintenance }).
			member("cp-2", func(s *step.MachineState) { s.Access = test.access })
		r.RestoredFrom = test.restored

		var want []string
		if test.warned {
			want = []string{"Warning restore_from.key: snapshot_restored"}
		}

		expect(t, name, PriorState{Record: r}.remindOfRestore(p, cluster.Decision{Refusals: make([]step.Refusal, test.refusals)}), want, "file:a")
	}

	for _, test := range []struct {
		facts             backup.Facts
		kubernetes, talos string
		says              string
	}{
		{backup.Facts{KubernetesVersion: "v1.35.9", TalosVersion: "v1.14.1"}, "v1.35.2", "v1.14.1", ""},
		{backup.Facts{KubernetesVersion: "v1.34.9"}, "v1.35.2", "", ""},
		{backup.Facts{KubernetesVersion: "v1.36.0"}, "v1.35.2", "", "Kubernetes v1.36.0 wrote it"},
		{backup.Facts{KubernetesVersion: "v2.1.0"}, "v1.35.2", "", "Kubernetes v2.1.0 wrote it"},
		{backup.Facts{KubernetesVersion: "v0.99.0"}, "v1.35.2", "", ""},
		{backup.Facts{KubernetesVersion: "v1.36.0"}, "latest", "", ""},
		{backup.Facts{KubernetesVersion: "none"}, "v1.35.2", "", ""},
		{backup.Facts{TalosVersion: "v1.14.1"}, "", "v1.13.6", "the etcd of Talos v1.14.1 wrote it"},
		{backup.Facts{TalosVersion: "v1.13.6"}, "", "v1.12.4", ""},
		{backup.Facts{TalosVersion: "v1.14.1"}, "", "next", ""},
		{backup.Facts{TalosVersion: "none"}, "", "v1.10.0", ""},
	} {
		if got := TooOldFor(test.facts, test.kubernetes, test.talos); (got == "") != (test.says == "") || !contains(got, test.says) {
			t.Errorf("%+v with %s and %s: %q", test.facts, test.kubernetes, test.talos, got)
		}
	}
}

func TestPolicy(t *testing.T) {
	t.Parallel()

	base := cluster.DefaultPolicy()
	same(t, "nothing said", aSet(t).Policy(base).Drain, base.Drain)

	got := aSet(t, changing(func(c *Changes) {
		*c = Changes{AppearWithin: time.Second,
			Rollout: cluster.Rollout{TryConfig: true, DrainForKubelet: true, KeepManifests: true, StageReboots: true},
			Drain:   cluster.DrainPolicy{Skip: true, IgnoreVolumes: true, Timeout: time.Hour, OnTimeout: "force"}}
	})).Policy(base)
	same(t, "drain", got.Drain,
		cluster.DrainPolicy{Skip: true, IgnoreVolumes: true, Timeout: time.Hour, OnTimeout: "force"})
	same(t, "all else", got.TryConfig && got.DrainForKubelet && got.KeepManifests && got.StageReboots && got.AppearWithin == time.Second, true)
}

// META is written by Talos key, and unknown values are checked later.
func TestMeta(t *testing.T) {
	t.Parallel()

	m := Meta{Values: map[string]string{"0x0c": "a", "no key": "b"}, Provided: map[string]string{"0x0d": "c"}}
	same(t, "keyed", m.Keyed(), map[uint8]string{12: "a", 13: "c"})
	same(t, "none", Meta{}.Keyed(), nil)
	same(t, "no drift", len(m.drift(map[uint8]string{13: "c"})), 0)
	same(t, "drift", m.drift(nil).MetaKeys(), []uint8{13})

	sealed := aSet(t, controlPlanes(1), machine("cp-1", func(m *Machine) {
		m.Meta = Meta{Values: map[string]string{"no key": "b"}, Sealed: []string{"no key"}}
	}))
	same(t, "not known", sealed.checkMeta(), nil)
	same(t, "provided, fine", sealed.CheckProvidedMeta(), nil)

	wrong := aSet(t, controlPlanes(1), machine("cp-1", func(m *Machine) { m.Meta.Provided = map[string]string{"no key": "b"} }))
	same(t, "provided, wrong", len(machineconfig.FieldErrors(wrong.CheckProvidedMeta())), 1)
}
