package cluster_test

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/talosop/terraform-provider-talosop/internal/cluster"
	"github.com/talosop/terraform-provider-talosop/internal/cluster/step"
	"github.com/talosop/terraform-provider-talosop/internal/metakey"
)

// observed is a small cluster, with more lines of its spec and its snapshot.
func observed(t *testing.T, spec, snapshot string) (cluster.Spec, cluster.Snapshot) {
	t.Helper()

	policy := cluster.DefaultPolicy()
	want := parseSpec(t, "bootstrapped\n"+spec, &policy)

	return want, parseSnapshot(t, want, snapshot)
}

// Only the node of the removed machine itself may be deleted.
func TestNodeOfRemoved_isItsOwn(t *testing.T) {
	t.Parallel()

	for name, test := range map[string]struct{ spec, snapshot, want string }{
		"by its recorded name":         {"removed old worker 10.0.0.9 node=n", "nodes n old(elsewhere)\nold gone", "n true"},
		"by the name that it reports":  {"removed old worker 10.0.0.9 node=n", "nodes n present\nold member node=present", "present true"},
		"silent, by the recorded name": {"removed old worker 10.0.0.9 node=n", "nodes n present\nold unreachable node=present", "n true"},
		"by its address":               {"removed old worker 10.0.0.9 node=", "nodes n old\nold gone", "old true"},
		"another machine answers, and no name is recorded": {
			"removed old worker 10.0.0.9 node= uuid=one", "nodes x old\nold member node=x uuid=two", " false"},
		"another machine answers, and a name is recorded": {
			"removed old worker 10.0.0.9 node=n uuid=one", "nodes x n old\nold member node=x uuid=two", "n true"},
		"ending, and its name is elsewhere":     {"ending\nremoved old worker 10.0.0.9", "nodes old(elsewhere)\nold gone", " false"},
		"ending, at its address":                {"ending\nremoved old worker 10.0.0.9", "nodes old\nold gone", "old true"},
		"ending, with the name that it reports": {"ending\nremoved old worker 10.0.0.9 node=", "nodes x\nold member node=x", "x true"},
		"a wanted machine has the name": {"w-2 worker 10.0.0.12\nremoved old worker 10.0.0.9 node=n",
			"nodes n\nold gone\nw-2 member node=n", " false"},
		"a wanted machine had the name, and is silent": {"w-2 worker 10.0.0.12\nremoved old worker 10.0.0.9 node=n",
			"nodes n\nold gone\nw-2 unreachable node=n", "n true"},
		"a wanted machine is at its address": {"w-2 worker 10.0.0.9\nremoved old worker 10.0.0.9",
			"nodes old\nold gone\nw-2 maintenance node=old", " false"},
		"a wanted machine has a node of its own": {"w-2 worker 10.0.0.12\nremoved old worker 10.0.0.9",
			"nodes old w-2\nold gone\nw-2 member node=w-2", "old true"},
		"it has no node": {"removed old worker 10.0.0.9", "nodes x\nold gone", " false"},
	} {
		want, have := observed(t, test.spec+"\n", test.snapshot+"\n")

		node, ok := cluster.NodeOfRemoved(want, have, want.Removed[0])
		if got := fmt.Sprintf("%s %t", node.Name, ok); got != test.want {
			t.Errorf("%s: %q, want %q", name, got, test.want)
		}
	}
}

// Only the member of the removed machine itself may be removed from etcd.
func TestMemberOfRemoved_isItsOwn(t *testing.T) {
	t.Parallel()

	const (
		recorded = "removed old controlplane 10.0.0.9 node=n member=x\n"
		beside   = "cp-2 controlplane 10.0.0.9\n" + recorded
	)

	for name, test := range map[string]struct{ spec, snapshot, want string }{
		"recorded":                               {recorded, "etcd y@10.0.0.9 x@192.0.2.1\nold unreachable", "x true"},
		"taken over by a machine at its address": {beside, "etcd x@10.0.0.9\nold unreachable\ncp-2 member", "x false"},
		"beside a new machine at its address":    {beside, "etcd x@10.0.0.9\nold unreachable\ncp-2 maintenance", "x true"},
		"beside another member at its address":   {beside, "etcd y@10.0.0.9 x@10.0.0.8\nold unreachable\ncp-2 member", "x true"},
		"beside a machine that has not joined":   {beside, "etcd x@10.0.0.8\nold unreachable\ncp-2 member", "x true"},
		"beside a machine with its name elsewhere": {"cp-2 controlplane 10.0.0.8\n" + recorded,
			"etcd x@10.0.0.9\nold unreachable\ncp-2 member node=x", "x true"},
		"joined again, and silent":                 {recorded, "etcd n@10.0.0.9\nold unreachable", "n true"},
		"silent, and the name is elsewhere":        {recorded, "etcd n@192.0.2.1\nold unreachable", " false"},
		"silent, and the address has another name": {recorded, "etcd y@10.0.0.9\nold unreachable", " false"},
		"silent, without a name": {"removed old controlplane 10.0.0.9 node= member=x\n",
			"etcd y@10.0.0.9\nold unreachable", " false"},
		"a silent pod, by its name":                 {"pods\n" + recorded, "etcd n@192.0.2.1\nold unreachable", "n true"},
		"joined again, by the name that it reports": {recorded, "etcd now@192.0.2.1\nold member node=now", "now true"},
		"never recorded, by its address": {"removed old controlplane 10.0.0.9 node=n\n",
			"etcd y@10.0.0.9\nold unreachable", "y true"},
		"never recorded, and another machine answers": {"removed old controlplane 10.0.0.9 node=n uuid=one\n",
			"etcd y@10.0.0.9 n@192.0.2.1\nold member uuid=two", "n true"},
		"never recorded, and only the other machine has a member": {"removed old controlplane 10.0.0.9 node=n uuid=one\n",
			"etcd y@10.0.0.9\nold member uuid=two", " false"},
		"nothing is known, and another machine answers": {"removed old controlplane 10.0.0.9 node= uuid=one\n",
			"etcd y@10.0.0.9\nold member uuid=two", " false"},
		"a wanted machine has its member": {"cp-2 controlplane 10.0.0.8\n" + recorded,
			"etcd n@10.0.0.9\nold unreachable\ncp-2 member node=n", " false"},
		"a wanted machine has another member": {"cp-2 controlplane 10.0.0.8\n" + recorded,
			"etcd n@10.0.0.9 y@10.0.0.8\nold unreachable\ncp-2 member node=y", "n true"},
		"neither has a member": {"cp-2 controlplane 10.0.0.8\n" + recorded, "etcd z\nold unreachable\ncp-2 member", " false"},
	} {
		want, have := observed(t, test.spec, test.snapshot+"\n")

		member, ok := cluster.MemberOfRemoved(want, have, want.Removed[0])
		if got := fmt.Sprintf("%s %t", member.ID, ok); got != test.want {
			t.Errorf("%s: %q, want %q", name, got, test.want)
		}
	}
}

func TestRenamed_sameMachineUnderAnotherName(t *testing.T) {
	t.Parallel()

	for name, test := range map[string]struct {
		removed, wanted, snapshot string
		same                      bool
	}{
		"the same hardware":                    {"10.0.0.9 uuid=one", "10.0.0.8 uuid=ONE", "w-1 unreachable", true},
		"the same hardware answers":            {"10.0.0.9 uuid=one", "10.0.0.8 uuid=two", "w-1 member uuid=one", true},
		"other hardware at the address":        {"10.0.0.9 uuid=one", "10.0.0.9 uuid=two", "w-1 member", false},
		"unknown hardware at another address":  {"10.0.0.9", "10.0.0.8", "w-1 member node=w-9", false},
		"unknown hardware at the address":      {"10.0.0.9 node=", "10.0.0.9", "w-1 member", true},
		"it lost everything":                   {"10.0.0.9 node=", "10.0.0.9", "w-1 maintenance", false},
		"it has the same node":                 {"10.0.0.9 node=n", "10.0.0.9", "w-1 member node=n", true},
		"it has another node":                  {"10.0.0.9 node=n", "10.0.0.9", "w-1 member node=m", false},
		"its node is unknown":                  {"10.0.0.9 node=n", "10.0.0.9", "w-1 member", true},
		"only the removed hardware is known":   {"10.0.0.9 node= uuid=one", "10.0.0.9", "w-1 member", false},
		"the same node, and one UUID is known": {"10.0.0.9 node=n uuid=one", "10.0.0.9", "w-1 member node=n", true},
		"only the wanted hardware is known":    {"10.0.0.9 node=n", "10.0.0.9 uuid=one", "w-1 member node=n", true},
	} {
		want, have := observed(t, "removed w-9 worker "+test.removed+"\nw-1 worker "+test.wanted+"\n", test.snapshot+"\n")

		if got := cluster.Renamed(have, want.Removed[0], want.Machines[0]); got != test.same {
			t.Errorf("%s: %t, want %t", name, got, test.same)
		}
	}
}

// What a read does not take over from machines that are not the wanted ones.
func TestWithoutMismatches_dropsForeignAnswers(t *testing.T) {
	t.Parallel()

	const same = "cp-1 and w-1 are the same machine: UUID ONE"

	for name, test := range map[string]struct {
		spec, snapshot string
		want           map[string]string
	}{
		"as wanted": {"cp-1 controlplane 10.0.0.1 uuid=one\nw-1 worker 10.0.0.2\n",
			"cp-1 member uuid=ONE\nw-1 member uuid=two\n", map[string]string{}},
		"other hardware": {"cp-1 controlplane 10.0.0.1 uuid=one\nw-1 worker 10.0.0.2 uuid=\n", "cp-1 member uuid=two\nw-1 member\n",
			map[string]string{"cp-1": "responds as another machine: UUID two, expected one"}},
		"another machine of the cluster": {"cp-1 controlplane 10.0.0.1 uuid=one\nw-1 worker 10.0.0.2 uuid=two\n",
			"cp-1 maintenance uuid=two\nw-1 unreachable\n", map[string]string{"cp-1": "10.0.0.1 is w-1"}},
		"one of several with its UUID": {"cp-1 controlplane 10.0.0.1 uuid=one\nw-1 worker 10.0.0.2 uuid=two\nw-2 worker 10.0.0.3 uuid=two\n",
			"cp-1 maintenance uuid=two\n", map[string]string{"cp-1": "responds as another machine: UUID two, expected one"}},
		"recorded hardware of a silent machine": {"cp-1 controlplane 10.0.0.1 uuid=one\n", "cp-1 unreachable uuid=two\n",
			map[string]string{}},
		"another role": {"cp-1 controlplane 10.0.0.1\n", "cp-1 member role=worker\n",
			map[string]string{"cp-1": "responds as a worker, expected a control plane"}},
		"another cluster": {"cp-1 controlplane 10.0.0.1\n", "cp-1 foreign cause=unknown_authority\n",
			map[string]string{"cp-1": "unknown authority"}},
		"one machine at two addresses": {"cp-1 controlplane 10.0.0.1\nw-1 worker 10.0.0.2\n",
			"cp-1 member uuid=ONE\nw-1 member uuid=ONE\n", map[string]string{"cp-1": same, "w-1": same}},
		"one machine at two addresses, known by one name": {"cp-1 controlplane 10.0.0.1 uuid=one\nw-1 worker 10.0.0.2\n",
			"cp-1 member uuid=ONE\nw-1 member uuid=ONE\n", map[string]string{"w-1": same}},
	} {
		want, have := observed(t, test.spec, test.snapshot)
		before := maps.Clone(have.Machines)
		got := map[string]string{}

		for name, s := range have.WithoutMismatches(want).Machines {
			switch {
			case s.Access == step.Foreign:
				got[name] = s.Cause
			case !cmp.Equal(s, before[name]):
				t.Errorf("%s: %s changed to %+v", name, name, s)
			}
		}

		if diff := cmp.Diff(test.want, got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}

		if !cmp.Equal(before, have.Machines) {
			t.Errorf("%s: the snapshot itself changed", name)
		}
	}
}

func TestMismatches_namesAnswersOfOtherClusters(t *testing.T) {
	t.Parallel()

	want, have := observed(t, "cp-1 controlplane 10.0.0.1\nbeside cp-2 10.0.0.2\nremoved w-1 worker 10.0.0.3\n",
		"cp-1 foreign cause=no_answer\ncp-2 foreign\nw-1 foreign\n")

	var got []string

	for _, m := range cluster.Mismatches(want, have) {
		got = append(got, m.Machine.Name+" "+m.String())
	}

	if !slices.Equal(got, []string{"cp-1 responds, but not as a machine of this cluster (no answer)",
		"w-1 responds, but not as a machine of this cluster", "cp-2 responds, but not as a machine of this cluster"}) {
		t.Errorf("%s", strings.Join(got, "\n"))
	}
}

func TestOtherNodes_areControlPlanesOutsideTheSpec(t *testing.T) {
	t.Parallel()

	want, have := observed(t, "cp-1 controlplane 10.0.0.1\n", "nodes cp-1 cp-8(controlplane,NotReady) cp-9(controlplane) w-9\n")

	names := func(have cluster.Snapshot) (all, ready []string) {
		for _, node := range cluster.OtherNodes(want, have) {
			all = append(all, node.Name)
		}

		for _, node := range cluster.OtherNodesAtWork(want, have) {
			ready = append(ready, node.Name)
		}

		return all, ready
	}

	if all, ready := names(have); !slices.Equal(all, []string{"cp-8", "cp-9"}) || !slices.Equal(ready, []string{"cp-9"}) {
		t.Errorf("%q, ready %q", all, ready)
	}

	have.Kubernetes.Reachable = false

	if all, ready := names(have); len(all)+len(ready) > 0 {
		t.Errorf("from an API that does not answer: %q, ready %q", all, ready)
	}
}

func TestIsOtherNode_whereNoUUIDIdentifiesIt(t *testing.T) {
	t.Parallel()

	for name, test := range map[string]struct {
		spec, snapshot string
		other          bool
	}{
		"another node":                      {"node=n", "member node=m", true},
		"its node":                          {"node=n", "member node=n", false},
		"no node is recorded":               {"node=", "member node=m", false},
		"no node is reported":               {"node=n", "member", false},
		"silent":                            {"node=n", "unreachable node=m", false},
		"in maintenance mode":               {"node=n", "maintenance node=m", false},
		"its UUID is known":                 {"node=n uuid=one", "member node=m uuid=one", false},
		"its UUID was not recorded":         {"node=n", "member node=m uuid=one", true},
		"its UUID is not reported any more": {"node=n uuid=one", "member node=m", true},
	} {
		want, have := observed(t, "w-1 worker 10.0.0.11 "+test.spec+"\n", "w-1 "+test.snapshot+"\n")

		if got := cluster.IsOtherNode(want.Machines[0], have.Machines["w-1"]); got != test.other {
			t.Errorf("%s: %t", name, got)
		}

		pod := want.Machines[0]
		pod.Container = true

		if cluster.IsOtherNode(pod, have.Machines["w-1"]) {
			t.Errorf("%s: a pod, which the host cluster identifies", name)
		}
	}
}

func TestMayReport_itsUUIDOrThatOfMeta(t *testing.T) {
	t.Parallel()

	m := cluster.MachineAt("w-1", step.Worker, "10.0.0.11")
	m.UUID = "one"

	if !m.MayReport("ONE") || m.MayReport("two") {
		t.Error("not its own UUID alone")
	}

	m.Meta = map[uint8]string{metakey.UUIDOverride: "two"}

	if !m.MayReport("one") || !m.MayReport("TWO") || m.MayReport("three") {
		t.Error("not its own UUID and that of META alone")
	}
}
