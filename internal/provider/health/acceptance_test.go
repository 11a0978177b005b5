package health_test

import (
	"strings"
	"testing"

	"github.com/talosop/terraform-provider-talosop/internal/clitest"
	"github.com/talosop/terraform-provider-talosop/internal/provider/sitetest"
	"github.com/talosop/terraform-provider-talosop/internal/provider/tf"
	"github.com/talosop/terraform-provider-talosop/internal/provider/tftest"
	"github.com/talosop/terraform-provider-talosop/internal/sim"
	"github.com/talosop/terraform-provider-talosop/internal/sim/etcd"
	"github.com/talosop/terraform-provider-talosop/internal/testenv"
)

// healthHCL observes the cluster of the quickstart with both data sources. The outputs make the CLI show changes
// between reads.
const healthHCL = `
data "talosop_cluster_health" "this" {
  cluster    = talosop_control_plane.this.cluster
  depends_on = [talosop_worker.this]
}

data "talosop_etcd_members" "this" {
  cluster = talosop_control_plane.this.cluster
}

check "cluster" {
  assert {
    condition     = data.talosop_cluster_health.this.healthy
    error_message = "the check says ${data.talosop_cluster_health.this.summary}"
  }
}

check "etcd" {
  assert {
    condition     = data.talosop_etcd_members.this.healthy
    error_message = "the check says etcd is unwell"
  }
}

output "conditions" {
  value = data.talosop_cluster_health.this.conditions
}

output "picture" {
  value = [data.talosop_cluster_health.this.markdown, data.talosop_cluster_health.this.svg]
}

output "etcd" {
  value = [data.talosop_etcd_members.this.members, data.talosop_etcd_members.this.alarms]
}
`

const (
	healthAddress = "data.talosop_cluster_health.this"
	etcdAddress   = "data.talosop_etcd_members.this"
)

// expectConditions checks the start of status and reason of conditions, by name.
func expectConditions(t *testing.T, w *clitest.Workspace, want map[string]string) {
	t.Helper()

	got := map[string]string{}

	conditions, _ := w.Attribute(healthAddress, "conditions").([]any)
	for _, c := range conditions {
		condition, _ := c.(map[string]any)
		got[condition["name"].(string)] = condition["status"].(string) + ": " + condition["reason"].(string)
	}

	for name, begin := range want {
		if !strings.HasPrefix(got[name], begin) {
			t.Errorf("%s is %q, want %q", name, got[name], begin)
		}
	}
}

// Any unhealthy cluster is a result and stops no plan, refresh or destroy plan; without an event, another read changes
// nothing. An apply would wait for the silent machines.
func TestAccClusterHealth_ofUnhealthyClusters(t *testing.T) {
	t.Parallel()
	testenv.BeforeRelease(t, "TestHealth_conditionsThatAreNotTrue", "TestClusterHealth_silentClusterIsAResult")

	s := sitetest.New(t, 3, 1)
	w := s.Quickstart(t, clitest.Any(t), map[string]any{"deletion_protection": false})
	w.Write("health.tf", healthHCL)

	// The handle is unknown in the plan of a create: the cluster is observed after it.
	w.MustRun("apply", "-auto-approve")

	if healthy := w.Attribute(healthAddress, "healthy"); healthy != true {
		t.Errorf("a new cluster is %v", w.Attribute(healthAddress, "summary"))
	}

	etcdIsHealthy(t, s, w)
	isDrawn(t, s, w)
	sitetest.ExpectNoChanges(t, w, "while all is well")
	pendingIsDrawn(t, w)

	oneIsOff(t, s, w)
	allAreOff(t, s, w)

	for _, m := range s.Machines() {
		m.PowerOn()
	}

	s.AwaitReady(t)
	w.MustRun("apply", "-auto-approve")

	if err := s.ControlPlane[0].RaiseEtcdAlarm(t.Context(), etcd.NoSpace); err != nil {
		t.Fatal(err)
	}

	sitetest.Says(t, w.MustRun("apply", "-refresh-only", "-auto-approve"), "the check says Degraded")
	expectConditions(t, w, map[string]string{"EtcdNoAlarms": "False: NOSPACE on cp-1", "EtcdQuorum": "True",
		"NodesReady": "True"})

	if alarms := tftest.JSON(t, w.Attribute(etcdAddress, "alarms")); alarms != `["NOSPACE on cp-1"]` {
		t.Errorf("alarms are %s", alarms)
	}
}

// The data sources of a plan do not ask control planes again that its refresh observed.
func TestAccClusterHealth_asksEachMachineOnce(t *testing.T) {
	t.Parallel()

	s := sitetest.New(t, 3, 1)
	w := s.Quickstart(t, clitest.Any(t), map[string]any{"deletion_protection": false})
	w.MustRun("apply", "-auto-approve")
	w.Write("health.tf", healthHCL)
	w.MustRun("apply", "-auto-approve")
	s.ForgetCalls()
	sitetest.ExpectNoChanges(t, w, "while all is well")

	// Each observation of a machine asks the version, once in a connection, and each one of its member the status.
	machines, members := timesAsked(s, "Version"), timesAsked(s, "EtcdStatus")

	for _, m := range s.Machines() {
		if n := machines[m.Name()]; n != 1 {
			t.Errorf("%s was asked %d times", m.Name(), n)
		}
	}

	for _, m := range s.ControlPlane {
		if n := members[m.Name()]; n != 1 {
			t.Errorf("the member of %s was asked %d times", m.Name(), n)
		}
	}

	if healthy := w.Attribute(healthAddress, "healthy"); healthy != true {
		t.Errorf("the cluster is %v", w.Attribute(healthAddress, "summary"))
	}

	isDrawn(t, s, w)
}

// timesAsked counts the calls to a method, by machine.
func timesAsked(s *sitetest.Site, method string) map[string]int {
	times := map[string]int{}
	for _, call := range s.CallsTo(method) {
		times[call.Machine]++
	}

	return times
}

// isDrawn finds every machine in the pictures, healthy and with its versions.
func isDrawn(t *testing.T, s *sitetest.Site, w *clitest.Workspace) {
	t.Helper()

	markdown, _ := w.Attribute(healthAddress, "markdown").(string)
	svg, _ := w.Attribute(healthAddress, "svg").(string)

	if strings.Contains(markdown, "Pending operations") || strings.Contains(markdown, "❌") ||
		!strings.HasPrefix(markdown, "### ✅ Cluster ") || !strings.HasPrefix(svg, "<svg ") {
		t.Errorf("a healthy cluster is drawn as\n%s\n%s", markdown, svg)
	}

	html, _ := w.Attribute(healthAddress, "html").(string)
	bundle, _ := w.Attribute("talosop_secrets.this", "bundle").(string)

	if bundle == "" || !strings.Contains(html, "Cluster quickstart is healthy") {
		t.Errorf("the page is\n%s", html)
	}

	for _, secret := range tf.MasksOf(bundle) {
		if strings.Contains(html, secret) {
			t.Errorf("a secret of %d characters is in the page", len(secret))
		}
	}

	for _, m := range s.Machines() {
		if n := strings.Count(html, "<b><bdi>"+m.Name()+"</bdi></b>"); n != 1 {
			t.Errorf("%s is drawn %d times in\n%s", m.Name(), n, html)
		}

		title := m.Name() + " (" + m.Address().String() + ")"
		if !strings.Contains(markdown, "| ✅ | `"+title+"` | ") || !strings.Contains(svg, ">"+title+"<") {
			t.Errorf("%s is not in\n%s", title, markdown)
		}
	}

	// All run the same Talos, which control planes report themselves and workers through their nodes.
	if got := strings.Count(markdown, "| `"+sim.DefaultTalosVersion+"` |"); got != len(s.Machines()) {
		t.Errorf("%d machines run %s in\n%s", got, sim.DefaultTalosVersion, markdown)
	}
}

// pendingIsDrawn plans a change, and finds its effects in the picture of the plan. This needs no apply when the data
// source refers to the resources through locals. The CLIs defer one that refers to them directly.
func pendingIsDrawn(t *testing.T, w *clitest.Workspace) {
	t.Helper()
	w.Write("pending.tf", `
locals {
  cluster    = talosop_control_plane.this.cluster
  operations = concat(talosop_control_plane.this.operations, talosop_worker.this.operations)
  pools      = { batch = keys(talosop_worker.this.machines) }
}

data "talosop_cluster_health" "pending" {
  cluster    = local.cluster
  operations = local.operations
  pools      = local.pools
  backups    = [{ key = "a/snapshot", time = "2020-01-01T00:00:00Z", size = 1 }]
}

output "pending" {
  value = data.talosop_cluster_health.pending.markdown
}

output "page" {
  value = [for text in ["Pool batch", "operations in the plan", "a/snapshot"] :
    "the page has ${text}" if strcontains(data.talosop_cluster_health.pending.html, text)]
}
`)
	sitetest.Says(t, w.MustRun("plan", `-var=config_patches=["machine: {nodeLabels: {example.com/new: label}}"]`),
		"**Pending operations**", "| 1 | `", "the page has Pool batch", "the page has operations in the plan",
		"the page has a/snapshot")
	w.Write("pending.tf", "")
}

func etcdIsHealthy(t *testing.T, s *sitetest.Site, w *clitest.Workspace) {
	t.Helper()

	if quorum := tftest.JSON(t, w.Attribute(etcdAddress, "quorum")); quorum != "2" {
		t.Errorf("the quorum is %s", quorum)
	}

	if w.Attribute(etcdAddress, "healthy") != true || w.Attribute(etcdAddress, "reachable") != true ||
		w.Attribute(etcdAddress, "cause") != nil {
		t.Errorf("healthy is %v, reachable %v, the cause %v",
			w.Attribute(etcdAddress, "healthy"), w.Attribute(etcdAddress, "reachable"), w.Attribute(etcdAddress, "cause"))
	}

	members, _ := w.Attribute(etcdAddress, "members").([]any)
	if len(members) != 3 {
		t.Fatalf("members are %v", members)
	}

	leaders := 0

	for i, m := range members {
		member, _ := m.(map[string]any)
		if member["name"] != s.ControlPlane[i].Name() || member["healthy"] != true || member["learner"] != false {
			t.Errorf("member %v", member)
		}

		if member["leader"] == true {
			leaders++
		}
	}

	if leaders != 1 {
		t.Errorf("%d members lead", leaders)
	}
}

// oneIsOff powers a control plane off. The check reports it, and nothing else happens.
func oneIsOff(t *testing.T, s *sitetest.Site, w *clitest.Workspace) {
	t.Helper()
	s.ControlPlane[2].PowerOff()

	result := w.MustRun("apply", "-refresh-only", "-auto-approve")
	sitetest.Says(t, result, "the check says Degraded", "the check says etcd is unwell")
	sitetest.Shows(t, result, "parts_silent")

	cp3 := "cp-3 (" + s.ControlPlane[2].Address().String() + ") does not respond"
	expectConditions(t, w, map[string]string{
		"TalosAPIReachable": "False: " + cp3, "ControlPlanesReady": "Unknown: " + cp3, "EtcdQuorum": "True",
		"KubernetesAPI":      "True",
		"EtcdMembersHealthy": "False: cp-3 its machine does not respond",
	})

	members, _ := w.Attribute(etcdAddress, "members").([]any)
	if text := tftest.JSON(t, members); w.Attribute(etcdAddress, "healthy") != false ||
		!strings.Contains(text, `"errors":["its machine does not respond"],"healthy":false`) {
		t.Errorf("members are %s", text)
	}

	w.MustRun("plan", "-refresh-only", "-detailed-exitcode")
	sitetest.Says(t, w.MustRun("plan"), `+ "wait for cp-3",`)
}

// allAreOff powers off the others, too.
func allAreOff(t *testing.T, s *sitetest.Site, w *clitest.Workspace) {
	t.Helper()

	for _, m := range s.Machines() {
		m.PowerOff()
	}

	sitetest.Says(t, w.MustRun("apply", "-refresh-only", "-auto-approve"), "the check says Unreachable")
	expectConditions(t, w, map[string]string{"TalosAPIReachable": "False", "EtcdQuorum": "Unknown",
		"KubernetesAPI": "False", "NodesReady": "Unknown"})

	cause, _ := w.Attribute(etcdAddress, "cause").(string)
	if members := tftest.JSON(t, w.Attribute(etcdAddress, "members")); w.Attribute(etcdAddress, "reachable") != false ||
		members != "[]" || !strings.Contains(cause, "does not respond") {
		t.Errorf("members are %s, the cause is %q", members, cause)
	}

	w.MustRun("plan", "-refresh-only", "-detailed-exitcode")
	w.MustRun("plan", "-destroy")
}
