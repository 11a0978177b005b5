package machines_test

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"

	"github.com/hashicorp/terraform-plugin-go/tfprotov6"
	"github.com/hashicorp/terraform-plugin-go/tftypes"

	"github.com/talosop/terraform-provider-talosop/internal/provider/sitetest"
	"github.com/talosop/terraform-provider-talosop/internal/provider/tftest"
)

// placesSite is a cluster of one control plane and two workers in talosop_cluster.
func placesSite(t *testing.T) (*sitetest.Site, *tftest.Driven, func(first, second string) tftest.Config) {
	t.Helper()

	s := sitetest.New(t, 1, 2)
	config := func(first, second string) tftest.Config {
		base := tftest.BaseControlPlane()
		disk := tftest.Config{"disk": "/dev/sda"}

		return tftest.Config{
			"mode": "metal", "name": "test", "endpoint": s.URL, "secrets": base["secrets"],
			"talos_version": "v1.13.0", "kubernetes_version": "v1.35.4", "deletion_protection": false,
			"control_plane": tftest.Config{"install": disk,
				"machines": tftest.Config{"cp-1": tftest.Config{"address": s.ControlPlane[0].Address().String()}}},
			"workers": tftest.Config{"batch": tftest.Config{"install": disk, "machines": tftest.Config{
				"w-1": tftest.Config{"address": first}, "w-2": tftest.Config{"address": second},
			}}},
		}
	}

	return s, tftest.Drive(t, "talosop_cluster", nil), config
}

// The plan refuses swapped addresses, and says which machines have them. A machine that used to answer at another
// address is no reason, and neither is a changed name.
func TestPlan_swappedAddresses(t *testing.T) {
	t.Parallel()

	s, d, config := placesSite(t)
	first, second := s.Workers[0].Address().String(), s.Workers[1].Address().String()
	d.Apply(t, config(first, second)).Must(t)
	s.ForgetCalls()

	for _, when := range []string{"after the create", "after a refresh"} {
		swapped := d.Plan(t, config(second, first))

		for _, says := range []string{"where batch/w-2 answered", "where batch/w-1 answered"} {
			if !strings.Contains(tftest.Show(swapped.Diagnostics), says) {
				t.Errorf("%s the plan does not say %q: %s", when, says, tftest.Show(swapped.Diagnostics))
			}
		}

		d.Refresh(t).Must(t)
	}

	renamed := config(first, second)
	workers := machinesOfBatch(t, renamed)
	workers["w-9"] = workers["w-1"]
	delete(workers, "w-1")
	d.Plan(t, renamed).Must(t)

	s.ExpectNothingSent(t)
}

// Former private state, with a key for each value, also contains who answered where, and a refresh rewrites it.
func TestPlan_swappedAddressesByFormerPrivateState(t *testing.T) {
	t.Parallel()

	s, d, config := placesSite(t)
	first, second := s.Workers[0].Address().String(), s.Workers[1].Address().String()
	d.Apply(t, config(first, second)).Must(t)

	values := func() (private map[string][]byte) {
		tftest.Must(t, json.Unmarshal(d.Private, &private))

		return private
	}

	former := values()
	delete(former, "surroundings")

	refuses := func() bool {
		return strings.Contains(tftest.Show(d.Plan(t, config(second, first)).Diagnostics), "where batch/w-2 answered")
	}

	for unseen, refused := range map[string]bool{`[]`: true, `["batch/w-1","batch/w-2"]`: false} {
		former["unseen_machines"] = []byte(unseen)

		var err error

		d.Private, err = json.Marshal(former)
		tftest.Must(t, err)

		if refuses() != refused {
			t.Errorf("with %s unseen it is refused: %t", unseen, !refused)
		}
	}

	d.Refresh(t).Must(t)

	if now := values(); now["unseen_machines"] != nil || now["surroundings"] == nil || !refuses() {
		t.Errorf("after a refresh there is %q", now)
	}
}

// The address of a machine that does not answer may belong to another one by now. The plan allows it, and the apply
// names the machine at the address before anything is sent.
func TestApply_addressOfAnotherMachine(t *testing.T) {
	t.Parallel()

	s, d, config := placesSite(t)
	first, second := s.Workers[0].Address().String(), s.Workers[1].Address().String()
	d.Apply(t, config(first, second)).Must(t)
	d.Private = nil // as the CLIs leave it after the provider was killed
	s.ForgetCalls()

	diagnostics := tftest.Show(d.Apply(t, config(second, first)).Diagnostics)
	if !strings.Contains(diagnostics, second+" is batch/w-2") || strings.Contains(diagnostics, s.Workers[1].UUID()) {
		t.Errorf("the apply says %s", diagnostics)
	}

	s.ExpectNothingSent(t)
}

// The plan refuses a machine that two resources of one cluster list, in any order of planning, and names it.
func TestPlan_machineOfTwoResources(t *testing.T) {
	t.Parallel()

	typ := tftest.TypeOf(t, "talosop_worker")
	other := func(address string) tftest.Config {
		return tftest.With(tftest.BaseWorker(), tftest.Config{"a-1": tftest.Config{"address": address}}, "machines")
	}

	for _, existsFirst := range []bool{true, false} {
		// A state has an owner ID; an object that is still to be created has none.
		for address, refused := range map[string]bool{"10.0.0.22": true, "::ffff:10.0.0.22": true, "10.0.0.99": false} {
			server := tftest.NewServer(t)
			prior := tftest.Put(t, settledState(t, "talosop_worker", tftest.BaseWorker()),
				tftypes.NewAttributePath().WithAttributeName("owner_id"), "of the first pool")

			plans := []func() []*tfprotov6.Diagnostic{
				func() []*tfprotov6.Diagnostic {
					return tftest.PlanBy(t, server, "talosop_worker", &prior, tftest.ValueOf(t, typ, tftest.BaseWorker())).Diagnostics
				},
				func() []*tfprotov6.Diagnostic {
					return tftest.PlanBy(t, server, "talosop_worker", nil, tftest.ValueOf(t, typ, other(address))).Diagnostics
				},
			}
			if !existsFirst {
				slices.Reverse(plans)
			}

			if found := plans[0](); (tftest.Outcome{Diagnostics: found}).Failed() {
				t.Fatal(tftest.Show(found))
			}

			found := tftest.Show(plans[1]())
			if got := strings.Contains(found, "[machine_of_another_resource]"); got != refused {
				t.Errorf("%s, the one that exists is planned first: %v: %s", address, existsFirst, found)
			}
		}
	}
}

// machinesOfBatch are the machines of the pool batch.
func machinesOfBatch(t *testing.T, config tftest.Config) tftest.Config {
	t.Helper()

	pools, _ := config["workers"].(tftest.Config)
	pool, _ := pools["batch"].(tftest.Config)

	machines, ok := pool["machines"].(tftest.Config)
	if !ok {
		t.Fatal("there is no pool batch")
	}

	return machines
}
