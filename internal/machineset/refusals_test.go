package machineset

import (
	"os"
	"strings"
	"testing"

	"github.com/talosop/terraform-provider-talosop/internal/cluster"
	"github.com/talosop/terraform-provider-talosop/internal/cluster/step"
	"github.com/talosop/terraform-provider-talosop/internal/finding"
	"github.com/talosop/terraform-provider-talosop/internal/pki"
	"github.com/talosop/terraform-provider-talosop/internal/rotation"
)

// The former encryption key for Kubernetes Secrets may be added and removed, with a warning. The encrypting key
// stays.
func TestRefuseNewSecrets_ofEncryptionKeys(t *testing.T) {
	t.Parallel()

	file, err := os.ReadFile("../pki/testdata/test-only-secrets.yaml")
	if err != nil {
		t.Fatal(err)
	}

	head, tail, _ := strings.Cut(string(file), "    secretboxencryptionsecret: ")
	secret, rest, _ := strings.Cut(tail, "\n")
	bundle := func(lines ...string) string { return head + strings.Join(lines, "") + rest }
	secretbox, aescbc := "    secretboxencryptionsecret: "+secret+"\n", "    aescbcencryptionsecret: Zm9ybWVy\n"
	other := strings.Replace(aescbc, "Zm9ybWVy", "b3RoZXI=", 1)

	for name, test := range map[string]struct {
		was, is string
		want    string
	}{
		"both stay":              {bundle(secretbox, aescbc), bundle(aescbc, secretbox), ""},
		"the former one goes":    {bundle(secretbox, aescbc), bundle(secretbox), "encryption_key_removed"},
		"the former one changes": {bundle(secretbox, aescbc), bundle(secretbox, other), "encryption_key_removed"},
		"a former one comes":     {bundle(secretbox), bundle(secretbox, aescbc), ""},
		"the present one goes":   {bundle(secretbox, aescbc), bundle(aescbc), "secrets_changed"},
		"another present one":    {bundle(aescbc), bundle(secretbox), "secrets_changed"},
		"another token": {bundle(secretbox, aescbc), strings.Replace(bundle(secretbox), "token: 1ibwy8", "token: 1ibwy9", 1),
			"secrets_changed"},
	} {
		p, prior := listing(nil), listing(nil)
		p.Secrets, prior.Secrets = test.is, test.was

		var got finding.Finding
		if found := p.RefuseNewSecrets(prior, Record{}); len(found) > 0 {
			got = found[0]
		}

		if got.Code != test.want || (got.Severity == finding.Error) != (test.want == "secrets_changed") {
			t.Errorf("%s: %+v, want %q", name, got, test.want)
		}
	}
}

// The contract can change to v1.14 and back, once all members run a Talos that knows it.
func TestRefuseContract(t *testing.T) {
	t.Parallel()

	for name, test := range map[string]struct {
		was, is string
		record  func(s *step.MachineState)
		refused bool
		code    string
		names   []string
	}{
		"the same":                {was: "v1.12", is: "v1.12"},
		"not given":               {was: "v1.12"},
		"another one":             {was: "v1.12", is: "v1.13", refused: true, code: "contract_change", names: []string{"from: v1.12\nto: v1.13\n"}},
		"another one, no members": {was: "v1.12", is: "v1.13", record: func(s *step.MachineState) { s.Access = step.Maintenance }},
		"the documents":           {was: "v1.13", is: "v1.14"},
		"and back":                {was: "v1.14", is: "v1.13", record: func(s *step.MachineState) { s.TalosVersion = "v1.13.6" }},
		"the documents too early": {was: "v1.13", is: "v1.14", record: func(s *step.MachineState) { s.TalosVersion = "v1.13.6" },
			refused: true, code: "contract_too_new", names: []string{"machines: batch/w-1\n"}},
		"the documents, Talos unknown": {was: "v1.13", is: "v1.14", record: func(s *step.MachineState) { s.TalosVersion = "" }},
		"the documents, and one that lost everything": {was: "v1.13", is: "v1.14",
			record: func(s *step.MachineState) { s.Access, s.TalosVersion = step.Maintenance, "v1.13.6" }},
	} {
		prior := aSet(t, controlPlanes(1), workers("batch", 1), contract(test.was))
		p := aSet(t, controlPlanes(1), workers("batch", 1), contract(test.is))
		r := recordOf(prior)

		if name == "another one, no members" {
			r.member("cp-1", test.record)
		} else {
			r.member("cp-1", func(s *step.MachineState) { s.TalosVersion = runsTalos })
		}

		r.member("batch/w-1", func(s *step.MachineState) { s.TalosVersion = runsTalos })

		if test.record != nil {
			r.member("batch/w-1", test.record)
		}

		var want []string
		if test.refused {
			want = []string{"Error version_contract: " + test.code}
		}

		expect(t, name, refuseContract(p, prior, PriorState{Record: r}), want, test.names...)
	}
}

// rotatedSecrets are those of aSet with another cluster token.
func rotatedSecrets(t *testing.T) string {
	t.Helper()

	bundle, err := pki.Parse([]byte(testSecrets(t)))
	if err != nil {
		t.Fatal(err)
	}

	next, err := bundle.Rotate(rotation.ClusterToken)
	if err != nil {
		t.Fatal(err)
	}

	rotated, err := next.YAML()
	if err != nil {
		t.Fatal(err)
	}

	return string(rotated)
}

// Secrets that a plan generates, or that the provider was given, are refused where machines do not accept them.
func TestRefuseNewSecrets_ofMachinesThatRun(t *testing.T) {
	t.Parallel()

	const refused = "Error secrets: secrets_changed"

	rotated := rotatedSecrets(t)
	planes := controlPlanes(1)
	recorded := func(p *Set) { p.Secrets, p.RecordedSecrets = "", "identity" }
	none := func(p *Set) { p.Secrets = "" }
	members := func(p Set) Record { return recordOf(p) }
	phase := func(phase cluster.Phase, change func(s *step.MachineState)) func(Set) Record {
		return func(p Set) Record {
			r := recordOf(p).member("cp-1", change)
			r.Phase = phase

			return r
		}
	}
	lost := func(s *step.MachineState) { s.Access = step.Maintenance }
	carries := func(id string) func(Set) Record {
		return phase(cluster.Ready, func(s *step.MachineState) { s.Keys.Talos.Issuing = id })
	}

	for name, test := range map[string]struct {
		p, prior option
		record   func(Set) Record
		want     string
		says     string
	}{
		"new ones":                       {p: secretsNew, record: members, want: refused, says: "provided: false"},
		"new ones, state has their mark": {p: secretsNew, prior: recorded, record: members, want: refused},
		"new ones, the provider had them": {p: secretsNew, prior: func(p *Set) { recorded(p); provided(p) }, record: members,
			want: refused, says: "provided: true"},
		"new ones, state has none":           {p: secretsNew, prior: none, record: members},
		"new ones, before the bootstrap":     {p: secretsNew, record: phase(cluster.Provisioning, lost)},
		"new ones, with a member":            {p: secretsNew, record: phase(cluster.Provisioning, func(*step.MachineState) {}), want: refused},
		"new ones, all machines lost":        {p: secretsNew, record: phase(cluster.Degraded, lost), want: refused},
		"not known yet":                      {p: secretsUnknown, record: members},
		"state has none":                     {prior: none, record: members},
		"no bundle":                          {p: secrets("cluster: {}"), record: members, want: "Error secrets: invalid_secrets"},
		"state has no bundle":                {prior: secrets("cluster: {}"), record: members, want: refused},
		"keys are turned over":               {p: secrets(rotated), record: members},
		"provided, keys unknown":             {p: provided, record: carries("")},
		"provided, another authority":        {p: provided, record: carries("other"), want: "Error secrets: keys_missing", says: "machine: cp-1\n"},
		"given, carries another authority":   {record: carries("other")},
		"provided and other, keys not known": {p: func(p *Set) { provided(p); p.Secrets = rotated }, record: carries("")},
	} {
		options := func(more option) []option {
			if more == nil {
				return []option{planes}
			}

			return []option{planes, more}
		}
		p, prior := aSet(t, options(test.p)...), aSet(t, options(test.prior)...)

		var want []string
		if test.want != "" {
			want = []string{test.want}
		}

		expect(t, name, p.RefuseNewSecrets(prior, test.record(prior)), want, test.says)
	}

	inHandle := aSet(t, planes, joins("10.0.0.9"), secretsNew)
	expect(t, "in a handle", inHandle.RefuseNewSecrets(aSet(t, planes), recordOf(inHandle)),
		[]string{"Error cluster.secrets: secrets_changed"})
}

// A refusal about a pod is at the changed attribute.
func TestChangedAt(t *testing.T) {
	t.Parallel()

	node := func(m *Machine) { m.Pod.NodeSelector = map[string]string{"a": "b"} }

	for name, test := range map[string]struct {
		machine string
		change  option
		want    string
	}{
		"nothing":                {machine: "cp-0", want: "control_plane.replicas"},
		"Talos":                  {machine: "cp-0", change: talos("v1.14.0"), want: "talos_version"},
		"the image":              {machine: "cp-0", change: each(func(m *Machine) { m.Image = "mirror:5000/talos:v1.14.1" }), want: "host.image"},
		"the tag":                {machine: "cp-0", change: each(func(m *Machine) { m.Image = "ghcr.io/siderolabs/talos:v1" }), want: "control_plane.replicas"},
		"the pod":                {machine: "cp-0", change: machine("cp-0", node), want: "host.pod"},
		"the pod of a pool":      {machine: "batch/0", change: machine("batch/0", node), want: `workers["batch"].pod`},
		"a new machine":          {machine: "cp-1", change: machine("cp-1", func(m *Machine) { node(m); m.Group = &Group{At: finding.Root("planes")} }), want: "planes.replicas"},
		"one that leaves":        {machine: "cp-7"},
		"a machine without pods": {machine: "cp-0", change: func(p *Set) { machine("cp-0", node)(p); p.Host = nil }, want: `control_plane.machines["0"]`},
	} {
		p := aSet(t, pods(1, 1))
		if test.change != nil {
			test.change(&p)
		}

		same(t, name, p.changedAt(aSet(t, pods(1, 1)), test.machine).String(), test.want)
	}
}
