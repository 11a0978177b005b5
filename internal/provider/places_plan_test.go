package provider

import (
	"slices"
	"strings"
	"testing"

	"github.com/hashicorp/terraform-plugin-go/tfprotov6"
	"github.com/hashicorp/terraform-plugin-go/tftypes"
)

// placesSite is a cluster of one control plane and two workers in talosop_cluster.
func placesSite(t *testing.T) (*site, *driven, func(first, second string) configuration) {
	t.Helper()

	s := newSite(t, 1, 2)
	config := func(first, second string) configuration {
		base := baseControlPlane()
		disk := configuration{"disk": "/dev/sda"}

		return configuration{
			"mode": "metal", "name": "test", "endpoint": s.endpoint, "secrets": base["secrets"],
			"talos_version": "v1.13.0", "kubernetes_version": "v1.35.4", "deletion_protection": false,
			"control_plane": configuration{"install": disk,
				"machines": configuration{"cp-1": configuration{"address": s.controlPlane[0].Address().String()}}},
			"workers": configuration{"batch": configuration{"install": disk, "machines": configuration{
				"w-1": configuration{"address": first}, "w-2": configuration{"address": second},
			}}},
		}
	}

	return s, drive(t, "talosop_cluster", nil), config
}

// Addresses that were swapped are refused by the plan, which says whose they are. What machines did answer at other
// addresses is no reason, and neither is a name that changed.
func TestPlan_swappedAddresses(t *testing.T) {
	t.Parallel()

	s, d, config := placesSite(t)
	first, second := s.workers[0].Address().String(), s.workers[1].Address().String()
	d.apply(t, config(first, second)).must(t)
	s.ForgetCalls()

	for _, when := range []string{"after the create", "after a refresh"} {
		swapped := d.plan(t, config(second, first))

		for _, says := range []string{second + " is batch/w-2", first + " is batch/w-1"} {
			if !strings.Contains(show(swapped.diagnostics), says) {
				t.Errorf("%s the plan does not say %q: %s", when, says, show(swapped.diagnostics))
			}
		}

		d.refresh(t).must(t)
	}

	renamed := config(first, second)
	workers := machinesOfBatch(t, renamed)
	workers["w-9"] = workers["w-1"]
	delete(workers, "w-1")
	d.plan(t, renamed).must(t)

	s.nothingWasSent(t)
}

// A machine that does not answer is one whose address may be another one's by now: the plan allows it, and the apply
// says whose the address is before anything is sent.
func TestApply_addressOfAnotherMachine(t *testing.T) {
	t.Parallel()

	s, d, config := placesSite(t)
	first, second := s.workers[0].Address().String(), s.workers[1].Address().String()
	d.apply(t, config(first, second)).must(t)
	d.private = nil // as the CLIs leave it where the provider was killed
	s.ForgetCalls()

	said := show(d.apply(t, config(second, first)).diagnostics)
	if !strings.Contains(said, second+" is batch/w-2") || strings.Contains(said, s.workers[1].UUID()) {
		t.Errorf("the apply says %s", said)
	}

	s.nothingWasSent(t)
}

// A machine that two resources of one cluster list is refused by the plan, in whatever order the CLI plans them, and
// says which one it is.
func TestPlan_machineOfTwoResources(t *testing.T) {
	t.Parallel()

	typ := typeOf(t, "talosop_worker")
	other := func(address string) configuration {
		return with(baseWorker(), configuration{"a-1": configuration{"address": address}}, "machines")
	}

	for _, existsFirst := range []bool{true, false} {
		// A state has an owner id, and an object that is still to be created has none.
		for address, refused := range map[string]bool{"10.0.0.22": true, "::ffff:10.0.0.22": true, "10.0.0.99": false} {
			server := secretsServer(t)
			prior := put(t, settledState(t, "talosop_worker", baseWorker()),
				tftypes.NewAttributePath().WithAttributeName("owner_id"), "of the first pool")

			plans := []func() []*tfprotov6.Diagnostic{
				func() []*tfprotov6.Diagnostic {
					return plannedBy(t, server, "talosop_worker", &prior, valueOf(t, typ, baseWorker())).Diagnostics
				},
				func() []*tfprotov6.Diagnostic {
					return plannedBy(t, server, "talosop_worker", nil, valueOf(t, typ, other(address))).Diagnostics
				},
			}
			if !existsFirst {
				slices.Reverse(plans)
			}

			if found := plans[0](); (outcome{diagnostics: found}).failed() {
				t.Fatal(show(found))
			}

			found := show(plans[1]())
			if got := strings.Contains(found, "10.0.0.22 is "); got != refused {
				t.Errorf("%s, the one that exists is planned first: %v: %s", address, existsFirst, found)
			}
		}
	}
}

// machinesOfBatch are the machines of the pool batch.
func machinesOfBatch(t *testing.T, config configuration) configuration {
	t.Helper()

	pools, _ := config["workers"].(configuration)
	pool, _ := pools["batch"].(configuration)

	machines, ok := pool["machines"].(configuration)
	if !ok {
		t.Fatal("there is no pool batch")
	}

	return machines
}
