package provider_test

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/hashicorp/terraform-plugin-framework/path"
	"github.com/hashicorp/terraform-plugin-framework/provider"
	"github.com/hashicorp/terraform-plugin-framework/providerserver"
	resourcepkg "github.com/hashicorp/terraform-plugin-framework/resource"
	"github.com/hashicorp/terraform-plugin-framework/resource/schema"
	"github.com/hashicorp/terraform-plugin-framework/resource/schema/planmodifier"
	"github.com/hashicorp/terraform-plugin-framework/resource/schema/stringplanmodifier"
	"github.com/hashicorp/terraform-plugin-framework/types"
	"github.com/hashicorp/terraform-plugin-go/tfprotov6"

	"github.com/talosop/terraform-provider-talosop/internal/clitest"
	"github.com/talosop/terraform-provider-talosop/internal/provider/sitetest"
	"github.com/talosop/terraform-provider-talosop/internal/provider/tftest"
	"github.com/talosop/terraform-provider-talosop/internal/sim"
	"github.com/talosop/terraform-provider-talosop/internal/testenv"
)

// hypervisor is a provider whose VMs are simulated machines: a destroy cuts their power.
type hypervisor struct {
	nothing

	machines map[string]*sim.Machine

	mu   sync.Mutex
	ends []string
}

// vm is its resource. Another machine under a name is another VM.
type vm struct{ *hypervisor }

type vmModel struct {
	Name    types.String `tfsdk:"name"`
	Machine types.String `tfsdk:"machine"`
	Address types.String `tfsdk:"address"`
	UUID    types.String `tfsdk:"uuid"`
}

func (*hypervisor) Metadata(_ context.Context, _ provider.MetadataRequest, resp *provider.MetadataResponse) {
	resp.TypeName = "hypervisor"
}

func (h *hypervisor) Resources(context.Context) []func() resourcepkg.Resource {
	return []func() resourcepkg.Resource{func() resourcepkg.Resource { return vm{h} }}
}

func (vm) Metadata(_ context.Context, _ resourcepkg.MetadataRequest, resp *resourcepkg.MetadataResponse) {
	resp.TypeName = "hypervisor_vm"
}

func (vm) Schema(_ context.Context, _ resourcepkg.SchemaRequest, resp *resourcepkg.SchemaResponse) {
	kept := []planmodifier.String{stringplanmodifier.UseStateForUnknown()}
	resp.Schema = schema.Schema{Attributes: map[string]schema.Attribute{
		"name": schema.StringAttribute{Required: true},
		"machine": schema.StringAttribute{
			Required: true, PlanModifiers: []planmodifier.String{stringplanmodifier.RequiresReplace()},
		},
		"address": schema.StringAttribute{Computed: true, PlanModifiers: kept},
		"uuid":    schema.StringAttribute{Computed: true, PlanModifiers: kept},
	}}
}

func (v vm) Create(ctx context.Context, req resourcepkg.CreateRequest, resp *resourcepkg.CreateResponse) {
	var model vmModel

	resp.Diagnostics.Append(req.Plan.Get(ctx, &model)...)

	m := v.machines[model.Machine.ValueString()]
	m.PowerOn()

	model.Address, model.UUID = types.StringValue(m.Address().String()), types.StringValue(m.UUID())
	resp.Diagnostics.Append(resp.State.Set(ctx, model)...)
}

func (vm) Read(context.Context, resourcepkg.ReadRequest, *resourcepkg.ReadResponse) {}

func (vm) Update(ctx context.Context, req resourcepkg.UpdateRequest, resp *resourcepkg.UpdateResponse) {
	resp.State.Raw = req.Plan.Raw
}

func (v vm) Delete(ctx context.Context, req resourcepkg.DeleteRequest, resp *resourcepkg.DeleteResponse) {
	var name types.String

	resp.Diagnostics.Append(req.State.GetAttribute(ctx, path.Root("machine"), &name)...)

	m := v.machines[name.ValueString()]
	end := name.ValueString() + " left"

	if m.Configured() {
		end = name.ValueString() + " in service"
	}

	m.PowerOff()

	v.mu.Lock()
	defer v.mu.Unlock()

	v.ends = append(v.ends, end)
}

// ended are the VMs that were destroyed since the last call, each with the state of its machine then.
func (h *hypervisor) ended() string {
	h.mu.Lock()
	defer h.mu.Unlock()

	ends := slices.Sorted(slices.Values(h.ends))
	h.ends = nil

	return strings.Join(ends, ", ")
}

// vmsOf are the VMs of a configuration: the machine of each name, and their lifecycle.
func vmsOf(machines map[string]string, lifecycle string) string {
	var list strings.Builder
	for _, name := range slices.Sorted(maps.Keys(machines)) {
		fmt.Fprintf(&list, "    %s = %q\n", name, machines[name])
	}

	return fmt.Sprintf(`
terraform {
  required_providers {
    talosop    = { source = "talosop/talosop" }
    hypervisor = { source = "talosop/hypervisor" }
  }
}

resource "hypervisor_vm" "this" {
  for_each = {
%s  }
  name    = each.key
  machine = each.value
  %s
}
`, list.String(), lifecycle)
}

// clusterOnVMs is a cluster on the VMs of the same configuration, with the given lifecycle.
func clusterOnVMs(s *sitetest.Site, lifecycle string) func(machines map[string]string) string {
	of := func(prefix string) string {
		return fmt.Sprintf(
			`machines = { for name, vm in hypervisor_vm.this : name => { address = vm.address, uuid = vm.uuid } if startswith(name, %q) }`, prefix)
	}
	hcl := s.ClusterHCL(sitetest.PoolHCL("batch", nil, ""), "")
	hcl = strings.Replace(hcl, "machines = {\n"+sitetest.MachinesHCL(s.ControlPlane)+"    }", of("cp-"), 1)
	hcl = strings.Replace(hcl, "machines = {\n      }", of("w-"), 1)

	return func(machines map[string]string) string { return sitetest.SecretsHCL + vmsOf(machines, lifecycle) + hcl }
}

// singlyOnVMs is a resource for each machine on the VMs of the same configuration, which is destroyed with its VM.
func singlyOnVMs(s *sitetest.Site, machines map[string]string) string {
	hcl := sitetest.OneByOneHCL(s, nil)
	_, resource, _ := strings.Cut(hcl, "resource \"talosop_machine\"")
	resource = strings.NewReplacer(
		"local.machines", "hypervisor_vm.this",
		"each.value.role", `startswith(each.key, "cp-") ? "controlplane" : "worker"`,
		"deletion_protection = false", "lifecycle { replace_triggered_by = [hypervisor_vm.this[each.key]] }\n"+
			"  uuid = each.value.uuid\n  deletion_protection = false",
	).Replace(resource)

	return sitetest.SecretsHCL + vmsOf(machines, "") + fmt.Sprintf(`
locals {
  cluster = {
    name               = "test"
    endpoint           = %q
    secrets            = talosop_secrets.this.bundle
    talos_endpoints    = [for name, vm in hypervisor_vm.this : vm.address if startswith(name, "cp-")]
    kubernetes_version = "v1.36.2"
    version_contract   = "v1.13"
  }
}

resource "talosop_machine"`, s.URL) + resource
}

// vmSite is a workspace with a hypervisor whose machines are those of a site.
func vmSite(t *testing.T, s *sitetest.Site, cli clitest.CLI) (*clitest.Workspace, *hypervisor) {
	t.Helper()

	h := &hypervisor{machines: map[string]*sim.Machine{}}
	for _, m := range s.Machines() {
		h.machines[m.Name()] = m
	}

	w := clitest.NewWorkspace(t, cli)
	serveOthers(t, w, cli, map[string]func() tfprotov6.ProviderServer{
		"talosop/hypervisor": func() tfprotov6.ProviderServer { return providerserver.NewProtocol6(h)() },
	})

	return w, h
}

// changedVMs is one apply that changes VMs and the cluster on them.
type changedVMs struct {
	name     string
	machines map[string]string
	// says is in the plan, and ends are the destroyed VMs with the state of their machines then.
	says, ends string
	members    int
	// refused are the machines of an earlier plan, which replaces several control planes that cannot be replaced in
	// turn.
	refused map[string]string
}

// applyVMs makes the changes one after another: etcd stays the same throughout, and each plan afterwards is empty. It
// returns the workspace.
func applyVMs(
	t *testing.T, s *sitetest.Site, cli clitest.CLI, config func(machines map[string]string) string, changes []changedVMs,
) *clitest.Workspace {
	t.Helper()

	w, h := vmSite(t, s, cli)
	kept := map[string]string{"/kept": "value"}

	for i, change := range changes {
		if change.refused != nil {
			w.Write("main.tf", config(change.refused))
			sitetest.Shows(t, sitetest.Fails(t, w, "plan"), "control_planes_replaced_together")
		}

		w.Write("main.tf", config(change.machines))

		if i == 0 {
			w.Init()
		}

		if change.says != "" {
			sitetest.Says(t, w.MustRun("plan"), change.says)
		}

		w.MustRun("apply", "-auto-approve")
		sitetest.ExpectNoChanges(t, w, "after "+change.name)

		if i == 0 {
			tftest.Must(t, s.ControlPlane[0].PutEtcdKeys(t.Context(), kept))
		}

		if ends := h.ended(); ends != change.ends {
			t.Errorf("with %s VMs ended so: %s; want %s", change.name, ends, change.ends)
		}

		if members, err := s.EtcdMembers(t.Context()); err != nil || len(members) != change.members {
			t.Errorf("after %s etcd has the members %s (%v), want %d", change.name, members, err, change.members)
		}

		if got, err := s.ControlPlane[0].EtcdKeys(t.Context(), "/kept"); err != nil || !maps.Equal(got, kept) {
			t.Errorf("after %s etcd holds %v (%v)", change.name, got, err)
		}
	}

	return w
}

// With create_before_destroy every machine is reset and has left before its VM ends, even when one apply removes
// several.
func TestAccVMs_createdBeforeDestroyed(t *testing.T) {
	t.Parallel()

	sitetest.InOneCLI(t, func(t *testing.T, cli clitest.CLI) {
		s := sitetest.New(t, 5, 3)
		applyVMs(t, s, cli, clusterOnVMs(s, "lifecycle { create_before_destroy = true }"), []changedVMs{
			{name: "the create", members: 3,
				machines: map[string]string{"cp-1": "cp-1", "cp-2": "cp-2", "cp-3": "cp-3", "w-1": "w-1", "w-2": "w-2"}},
			{name: "two control planes and a worker replaced", members: 3,
				machines: map[string]string{"cp-1": "cp-1", "cp-2": "cp-4", "cp-3": "cp-5", "w-1": "w-3", "w-2": "w-2"},
				ends:     "cp-2 left, cp-3 left, w-1 left"},
			{name: "the shrink to one", machines: map[string]string{"cp-1": "cp-1", "w-1": "w-3"}, members: 1,
				says: "etcd loses its quorum with cp-2 and cp-3 of its 3 members",
				ends: "cp-4 left, cp-5 left, w-2 left"},
		})
	})
}

// Without it VMs end first, and the remaining machines remove theirs from the cluster.
func TestAccVMs_destroyedFirst(t *testing.T) {
	testenv.BeforeRelease(t, "TestAccVMs_createdBeforeDestroyed", "TestRemoval_ofADeadControlPlaneGoesThroughASurvivor")
	t.Parallel()

	sitetest.InOneCLI(t, func(t *testing.T, cli clitest.CLI) {
		s := sitetest.New(t, 4, 3)
		applyVMs(t, s, cli, clusterOnVMs(s, ""), []changedVMs{
			{name: "the create", members: 3,
				machines: map[string]string{"cp-1": "cp-1", "cp-2": "cp-2", "cp-3": "cp-3", "w-1": "w-1", "w-2": "w-2"}},
			{name: "a control plane and a worker replaced", members: 3,
				machines: map[string]string{"cp-1": "cp-1", "cp-2": "cp-2", "cp-3": "cp-4", "w-1": "w-3", "w-2": "w-2"},
				ends:     "cp-3 in service, w-1 in service"},
			{name: "a smaller cluster", members: 2,
				machines: map[string]string{"cp-1": "cp-1", "cp-2": "cp-2", "w-1": "w-3"},
				says:     "set `create_before_destroy` in their `lifecycle`",
				ends:     "cp-4 in service, w-2 in service"},
		})
	})
}

// A resource for each machine ends before its VM, whatever the VM's lifecycle says.
func TestAccVMs_underSingleMachines(t *testing.T) {
	testenv.BeforeRelease(t, "TestAccVMs_createdBeforeDestroyed", "TestAccMachine_lifecycle")
	t.Parallel()

	sitetest.InOneCLI(t, func(t *testing.T, cli clitest.CLI) {
		s := sitetest.New(t, 5, 2)
		applyVMs(t, s, cli, func(machines map[string]string) string { return singlyOnVMs(s, machines) }, []changedVMs{
			{name: "the create", members: 3,
				machines: map[string]string{"cp-1": "cp-1", "cp-2": "cp-2", "cp-3": "cp-3", "w-1": "w-1"}},
			{name: "a control plane and a worker replaced", members: 3,
				machines: map[string]string{"cp-1": "cp-1", "cp-2": "cp-4", "cp-3": "cp-3", "w-1": "w-2"},
				ends:     "cp-2 left, w-1 left"},
			{name: "another control plane replaced", members: 3,
				machines: map[string]string{"cp-1": "cp-1", "cp-2": "cp-4", "cp-3": "cp-5", "w-1": "w-2"},
				refused:  map[string]string{"cp-1": "cp-1", "cp-2": "cp-2", "cp-3": "cp-5", "w-1": "w-2"},
				ends:     "cp-3 left"},
			{name: "the shrink to one", machines: map[string]string{"cp-1": "cp-1"}, members: 1,
				ends: "cp-4 left, cp-5 left, w-2 left"},
		})
	})
}
