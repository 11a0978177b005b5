package rotation_test

import (
	"slices"
	"testing"

	"github.com/talosop/terraform-provider-talosop/internal/rotation"
)

const next = "cccc"

// holder is a machine with one trust for both authorities.
func holder(name string, controlPlane bool, trust rotation.Trust, token string) rotation.Holder {
	return rotation.Holder{Name: name, ControlPlane: controlPlane, Settled: true, Keys: keys(trust, token)}
}

var (
	uses      = rotation.Trust{Issuing: former}
	accepts   = rotation.Trust{Issuing: former, Accepted: present}
	turnsOver = rotation.Trust{Issuing: present, Accepted: former}
	dropsOld  = rotation.Trust{Issuing: present}
	nothing   = rotation.Trust{}
)

func TestDistinct_oneHolderOfEachKind(t *testing.T) {
	t.Parallel()

	got := rotation.Cluster{
		holder("cp-1", true, uses, former), holder("cp-2", true, uses, former), holder("cp-3", true, accepts, former),
		holder("w-1", false, uses, former), holder("w-2", false, uses, former),
	}.Distinct()

	want := rotation.Cluster{
		holder("", true, uses, former), holder("", true, accepts, former), holder("", false, uses, former),
	}
	if !slices.Equal(got, want) {
		t.Errorf("%v, want %v", got, want)
	}
}

func TestBlocking_namesMachinesOfOtherAuthorities(t *testing.T) {
	t.Parallel()

	talos, kubernetes := holder("talos", false, dropsOld, former), holder("kubernetes", true, dropsOld, former)
	talos.Keys.Talos, kubernetes.Keys.Kubernetes = accepts, accepts

	got := rotation.Cluster{talos, holder("done", true, dropsOld, former), kubernetes}.Blocking(keys(dropsOld, present))
	if !slices.Equal(got, []string{"talos", "kubernetes"}) {
		t.Error(got)
	}
}

// Workers follow the control planes of other resources, which make their moves first.
func TestAhead_controlPlanesOfOthersMove(t *testing.T) {
	t.Parallel()

	planes := func(trust rotation.Trust) rotation.Cluster {
		all := rotation.Cluster{holder("cp-1", true, trust, former), holder("cp-2", true, trust, former),
			holder("theirs", false, trust, former)}
		for i := range all {
			all[i].Keys.Aggregator, all[i].Keys.ServiceAccount = "aggregator", "account"
		}

		return all
	}

	for name, test := range map[string]struct {
		workers, others rotation.Trust
		want            rotation.Trust
	}{
		"until workers accept the new authority": {uses, uses, accepts},
		"until all workers accept it":            {turnsOver, uses, accepts},
		"and all machines accept it":             {accepts, accepts, turnsOver},
		"which is done already":                  {turnsOver, turnsOver, turnsOver},
	} {
		before := planes(test.others)

		got := before.Ahead(rotation.Cluster{holder("w-1", false, test.workers, former)}, keys(turnsOver, present))
		if len(got) != 3 || !slices.Equal(before, planes(test.others)) {
			t.Fatalf("%s: %v, and before that %v", name, got, before)
		}

		for _, h := range got[:2] {
			if h.Keys.Talos != test.want || h.Keys.Kubernetes != test.want || h.Keys.Aggregator != "aggregator" ||
				h.Keys.ServiceAccount != "account" || h.Keys.ClusterToken != present {
				t.Errorf("%s: %s has %s", name, h.Name, h.Keys)
			}
		}

		alone := before[:2].Ahead(rotation.Cluster{holder("w-1", false, accepts, former)}, keys(turnsOver, present))
		if alone[0].Keys.Talos != turnsOver || alone[1].Keys.Talos != turnsOver {
			t.Errorf("%s: without that worker, move after move: %v", name, alone)
		}

		if got[2] != before[2] {
			t.Errorf("%s: a worker of another resource moved to %s", name, got[2].Keys)
		}
	}
}

// Nodes report no keys before the first rotation.
func TestAhead_keysOfOthersAreUnknown(t *testing.T) {
	t.Parallel()

	unknown := rotation.Holder{Name: "cp-1", ControlPlane: true, Settled: true}

	got := rotation.Cluster{unknown}.Ahead(rotation.Cluster{holder("w-1", false, accepts, former)}, keys(turnsOver, present))
	if len(got) != 1 || got[0].Keys.Talos != turnsOver || got[0].Keys.Kubernetes != turnsOver {
		t.Errorf("they have the keys of the workers, and then %v", got)
	}

	got = rotation.Cluster{unknown}.Ahead(rotation.Cluster{holder("w-1", false, uses, former)}, keys(turnsOver, present))
	if got[0].Keys.Talos != accepts || got[0].Keys.Kubernetes != accepts {
		t.Errorf("workers do not accept the new authority yet: %v", got)
	}

	if got := (rotation.Cluster{unknown}).Ahead(nil, keys(turnsOver, present)); len(got) != 1 {
		t.Errorf("without workers: %v", got)
	}
}

func TestNext_ofOneMachine(t *testing.T) {
	t.Parallel()

	cp, w := true, false

	for name, test := range map[string]struct {
		others      rotation.Cluster
		has, wanted rotation.Trust
		plane       bool
		want        rotation.Trust
	}{
		// A machine that joins accepts what is in use, and begins with what the control planes use.
		"a control plane joins": {rotation.Cluster{holder("w", w, accepts, ""), holder("cp", cp, accepts, "")},
			nothing, dropsOld, cp, turnsOver},
		"a worker joins":             {rotation.Cluster{holder("cp", cp, turnsOver, "")}, nothing, dropsOld, w, turnsOver},
		"a worker joins between":     {rotation.Cluster{holder("a", cp, turnsOver, ""), holder("b", cp, accepts, "")}, nothing, dropsOld, w, turnsOver},
		"a worker of another key":    {rotation.Cluster{holder("w", w, dropsOld, ""), holder("cp", cp, uses, "")}, nothing, uses, w, uses},
		"nothing is known of others": {rotation.Cluster{{Name: "x"}}, nothing, dropsOld, cp, dropsOld},
		"the first machine":          {nil, nothing, dropsOld, cp, dropsOld},
		// Nothing is dropped that a machine uses, or may use.
		"no machine uses the former key": {rotation.Cluster{holder("cp", cp, turnsOver, "")}, turnsOver, dropsOld, cp, dropsOld},
		"a machine is unknown": {rotation.Cluster{holder("cp", cp, turnsOver, ""), {Name: "x", Settled: true}},
			turnsOver, dropsOld, cp, turnsOver},
		"the machine alone used the former key": {rotation.Cluster{holder("cp", cp, dropsOld, "")}, uses, dropsOld, cp, dropsOld},
		"the former key is still wanted":        {rotation.Cluster{holder("cp", cp, dropsOld, "")}, uses, turnsOver, cp, turnsOver},
		// A key is used once all machines accept it.
		"its own key, and not that of others": {rotation.Cluster{holder("a", cp, rotation.Trust{Issuing: next}, ""), holder("b", cp, uses, "")},
			uses, turnsOver, cp, rotation.Trust{Issuing: former, Accepted: rotation.SetOf(present)}},
		"control planes come first": {rotation.Cluster{holder("cp", cp, accepts, ""), holder("w", w, accepts, "")}, accepts, turnsOver, w, accepts},
		"one worker does not accept it": {rotation.Cluster{holder("cp", cp, turnsOver, ""), holder("w", w, uses, "")},
			accepts, turnsOver, w, accepts},
	} {
		got := test.others.Next(keys(test.has, ""), keys(test.wanted, ""), test.plane)
		if got.Talos != test.want {
			t.Errorf("%s: %s, want %v for Talos", name, got, test.want)
		}

		// A worker gets a certificate of Kubernetes as soon as every API server has one.
		if name == "a worker joins" {
			test.want = dropsOld // no API server uses the former one
		}

		if name != "one worker does not accept it" && got.Kubernetes != test.want {
			t.Errorf("%s: %s, want %v for Kubernetes", name, got, test.want)
		}
	}
}

// A worker accepts a new authority after every control plane does.
func TestNext_workerFollowsControlPlanes(t *testing.T) {
	t.Parallel()

	c := rotation.Cluster{holder("a", true, turnsOver, ""), holder("b", true, uses, "")}
	if got := c.Next(keys(uses, ""), keys(dropsOld, ""), false); got.Talos != uses || got.Kubernetes != uses {
		t.Errorf("one does not accept it: %s", got)
	}
}

func TestNext_tokens(t *testing.T) {
	t.Parallel()

	pods := func(account string) rotation.Cluster {
		h := holder("cp", true, uses, former)
		h.Keys.ServiceAccount = account

		return rotation.Cluster{h}
	}

	has, wanted := keys(uses, former), keys(uses, present)
	has.PodTokens, wanted.PodTokens = former, present

	if got := pods(former).Next(has, wanted, false).PodTokens; got != former {
		t.Errorf("before API servers sign with the new key, pods have tokens of %s", got)
	}

	if got := pods(present).Next(has, wanted, false).PodTokens; got != present {
		t.Errorf("after that, pods have tokens of %s", got)
	}

	if got := pods(former).Next(rotation.Keys{}, wanted, false).PodTokens; got != present {
		t.Errorf("the first tokens of a machine that joins are of %s", got)
	}

	for name, test := range map[string]struct {
		others rotation.Cluster
		has    string
		want   string
	}{
		"all control planes have it":     {rotation.Cluster{holder("cp", true, uses, present)}, former, present},
		"one does not have it yet":       {rotation.Cluster{holder("cp", true, uses, former)}, next, next},
		"one does not, and it joins":     {rotation.Cluster{holder("w", false, uses, next), holder("cp", true, uses, former)}, "", former},
		"one does already, and it joins": {rotation.Cluster{holder("a", true, uses, present), holder("b", true, uses, former)}, "", former},
		"none is known, and it joins":    {rotation.Cluster{holder("w", false, uses, next), holder("cp", true, uses, "")}, "", present},
		"a worker has another one":       {rotation.Cluster{holder("w", false, uses, next), holder("cp", true, uses, present)}, "", present},
		"a control plane is not settled": {rotation.Cluster{{Name: "cp", ControlPlane: true, Keys: keys(uses, present)}}, former, former},
	} {
		if got := test.others.Next(keys(uses, test.has), keys(turnsOver, present), false).ClusterToken; got != test.want {
			t.Errorf("%s: %q, want %q", name, got, test.want)
		}
	}
}

func TestChanges_tokensOfPods(t *testing.T) {
	t.Parallel()

	from, to := keys(uses, former), keys(uses, former)
	to.PodTokens = present

	if got := rotation.Changes(from, to); !slices.Equal(got, []string{"restart the kubelet for tokens of the new service account key"}) {
		t.Error(got)
	}
}
