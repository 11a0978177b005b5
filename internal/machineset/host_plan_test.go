package machineset

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/talosop/terraform-provider-talosop/internal/cluster"
	"github.com/talosop/terraform-provider-talosop/internal/cluster/step"
	"github.com/talosop/terraform-provider-talosop/internal/hostcluster/workload"
	"github.com/talosop/terraform-provider-talosop/internal/record"
)

func sizes(state, of string) workload.Storage {
	return workload.Storage{State: resource.MustParse(state), Var: resource.MustParse(of), Other: resource.MustParse("1Gi")}
}

func stores(s workload.Storage) option { return each(func(m *Machine) { m.Pod.Storage = s }) }

// What a create makes and an update changes on the host, except pods.
func TestHostChanges(t *testing.T) {
	t.Parallel()

	endpoint := func(e workload.EndpointService) option { return func(p *Set) { p.Host.Endpoint = &e } }
	access := func(a workload.Access) option { return func(p *Set) { p.Host.Access = a } }
	namespace := func(p *Set) { p.Host.CreateNamespace = true }
	metal := func(p *Set) { p.Host = nil }

	const services = "change the Services of the Kubernetes API on the host cluster: "

	for name, test := range map[string]struct {
		now, before []option
		drift       record.Drift
		replace     string
		unknown     bool // to the record
		want        []string
	}{
		"nothing":            {},
		"a namespace":        {now: []option{namespace}, want: []string{"create namespace talos on the host cluster, unless it is there"}},
		"a namespace before": {now: []option{namespace}, before: []option{namespace}},
		"a type": {now: []option{endpoint(workload.EndpointService{Type: "NodePort"})}, before: []option{endpoint(workload.EndpointService{Type: "LoadBalancer"})},
			want: []string{services + "type LoadBalancer -> NodePort"}},
		"all else": {now: []option{endpoint(workload.EndpointService{TalosAPI: true, LoadBalancerClass: "a", Annotations: map[string]string{"a": "b"}})},
			before: []option{endpoint(workload.EndpointService{})}, want: []string{services + "annotations, load_balancer_class, talos_api"}},
		"the same":         {now: []option{endpoint(workload.EndpointService{})}, before: []option{endpoint(workload.EndpointService{})}},
		"a first endpoint": {now: []option{endpoint(workload.EndpointService{})}},
		"an access": {now: []option{access(workload.NodePort)}, before: []option{access(workload.Pod)},
			want: []string{"change the Services of the machines on the host cluster: access pod -> node-port"}},
		"the same Service":   {now: []option{access(workload.PortForward)}, before: []option{access(workload.Pod)}},
		"growth":             {now: []option{stores(sizes("2Gi", "20Gi"))}, before: []option{stores(sizes("1Gi", "20Gi"))}, want: []string{"grow volumes of batch/0 and cp-0: state 1Gi -> 2Gi"}},
		"growth in pods":     {now: []option{stores(sizes("2Gi", "20Gi")), each(func(m *Machine) { m.Pod.Storage.Ephemeral = true })}, before: []option{stores(sizes("1Gi", "20Gi"))}},
		"growth of new pods": {unknown: true, now: []option{stores(sizes("2Gi", "20Gi"))}, before: []option{stores(sizes("1Gi", "20Gi"))}},
		"repairs": {drift: record.Drift{{Kind: record.HostDiffers, Found: "a label"}, {Kind: record.HostReplaces, Found: "an image"}},
			want: []string{"repair on the host cluster, for cp-0: a label; an image"}},
		"repairs beside a step": {drift: record.Drift{{Kind: record.HostDiffers, Found: "a label"}, {Kind: record.HostReplaces, Found: "an image"}}, replace: "an image",
			want: []string{"repair on the host cluster, for cp-0: a label"}},
		"metal before": {now: []option{namespace}, before: []option{metal}},
		"metal now":    {now: []option{metal}, before: []option{namespace}},
	} {
		p, prior := aSet(t, append([]option{pods(1, 1)}, test.now...)...), aSet(t, append([]option{pods(1, 1)}, test.before...)...)
		r := PriorState{Record: recordOf(prior), Replace: map[string]string{"cp-0": test.replace}}
		r.Seen["cp-0"] = record.Machine{Drift: test.drift}

		if test.unknown {
			r.Machines = nil
		}

		same(t, name, textsOf(p.hostChanges(prior, r)), test.want)
	}

	same(t, "a create", aSet(t, pods(1, 0), namespace, endpoint(workload.EndpointService{Type: "NodePort"})).hostCreation(),
		[]string{"create namespace talos on the host cluster, unless it is there", "create Service prod of type NodePort on the host cluster"})
	same(t, "a create of less", aSet(t, pods(1, 0)).hostCreation(), nil)
	same(t, "a create on metal", aSet(t, controlPlanes(1)).hostCreation(), nil)
}

// Volumes neither shrink nor change their class, and data stays where it is.
func TestRefuseHostChanges(t *testing.T) {
	t.Parallel()

	const at = `workers["batch"].pod.storage.`

	class := func(name string) workload.Storage { s := sizes("1Gi", "20Gi"); s.Class = name; return s }
	inPods := func(s workload.Storage) workload.Storage { s.Ephemeral = true; return s }

	for name, test := range map[string]struct {
		now, before workload.Storage
		more        option
		want        []string
		says        string
	}{
		"nothing":          {now: sizes("1Gi", "20Gi"), before: sizes("1Gi", "20Gi")},
		"growth":           {now: sizes("2Gi", "30Gi"), before: sizes("1Gi", "20Gi")},
		"shrinks":          {now: sizes("1Gi", "10Gi"), before: sizes("2Gi", "20Gi"), want: []string{"state: storage_shrinks", "var: storage_shrinks"}},
		"a class":          {now: class("b"), before: class("a"), want: []string{"class: storage_class_change"}, says: "before: a\n"},
		"from the default": {now: class("b"), before: class(""), want: []string{"class: storage_class_change"}, says: "before: \n"},
		"to the default":   {now: class(""), before: class("a"), want: []string{"class: storage_class_change"}, says: "now: \n"},
		"into pods":        {now: inPods(class("a")), before: class("a"), want: []string{"ephemeral: storage_to_pods"}},
		"out of pods":      {now: class("a"), before: inPods(class("a")), want: []string{"ephemeral: storage_to_volumes"}},
		"in pods":          {now: inPods(class("a")), before: inPods(class("b"))},
		"unknown":          {now: class("b"), before: class("a"), more: valuesUnknown},
		"on metal":         {now: class("b"), before: class("a"), more: func(p *Set) { p.Host = nil }},
		"only of new pods": {now: class("b"), before: class("a"), more: func(p *Set) { p.Machines = map[string]Machine{"batch/7": p.Machines["batch/0"]} }},
	} {
		p, prior := aSet(t, pods(0, 2), stores(test.now)), aSet(t, pods(0, 2), stores(test.before))
		if test.more != nil {
			test.more(&p)
		}

		var want []string
		for _, attribute := range test.want {
			want = append(want, "Error "+at+attribute)
		}

		expect(t, name, refuseHostChanges(p, prior, PriorState{Record: recordOf(prior)}), want, test.says)
	}

	prior := aSet(t, pods(0, 1), stores(class("a")), valuesUnknown)
	expect(t, "unknown before", refuseHostChanges(aSet(t, pods(0, 1), stores(class("b"))), prior, PriorState{Record: recordOf(prior)}), nil)
	same(t, "of the resource", (&Group{}).storagePath().String(), "host.pod.storage")
}

// A pod is replaced when its specification changes, or when a refresh found a reason.
func TestWithReplacements(t *testing.T) {
	t.Parallel()

	const cp = "cp-0"

	pod := func(change func(p *workload.PodSpec)) option { return machine(cp, func(m *Machine) { change(&m.Pod) }) }

	for name, test := range map[string]struct {
		change option
		seen   func(m *record.Machine)
		access step.Access
		want   string
	}{
		"nothing":     {},
		"an image":    {change: machine(cp, func(m *Machine) { m.Image = "mirror/talos:" + runsTalos }), want: "changes image"},
		"a selector":  {change: pod(func(p *workload.PodSpec) { p.NodeSelector = map[string]string{"a": "b"} }), want: "changes node_selector"},
		"tolerations": {change: pod(func(p *workload.PodSpec) { p.Tolerations = []corev1.Toleration{{Key: "a"}} }), want: "changes tolerations"},
		"a priority":  {change: pod(func(p *workload.PodSpec) { p.PriorityClass = "high" }), want: "changes priority_class"},
		"annotations": {change: pod(func(p *workload.PodSpec) { p.Annotations = map[string]string{"a": "b"} }), want: "changes annotations"},
		"resources": {change: pod(func(p *workload.PodSpec) {
			p.Resources.Requests = corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("1")}
		}), want: "changes resources"},
		"of the host":   {change: func(p *Set) { p.Host.Labels, p.Host.PullSecrets = map[string]string{"a": "b"}, []string{"pull"} }, want: "changes image_pull_secrets, labels"},
		"not a member":  {change: pod(func(p *workload.PodSpec) { p.PriorityClass = "high" }), access: step.Maintenance},
		"made of other": {seen: func(m *record.Machine) { m.PodDigest = "other" }, want: "it was made of something else than is wanted"},
		"found other": {seen: func(m *record.Machine) {
			m.PodDigest, m.Drift = "", record.Drift{{Kind: record.HostReplaces, Found: "spec was added"}}
		}, want: "spec was added"},
		"never seen": {seen: func(m *record.Machine) { m.PodDigest = "" }},
	} {
		prior, p := aSet(t, pods(1, 0)), aSet(t, pods(1, 0))
		if test.change != nil {
			test.change(&p)
		}

		bundle, err := prior.Bundle()
		if err != nil {
			t.Fatal(err)
		}

		digest, err := workload.PodDigest(prior.HostSpec(PriorState{}, bundle.Mark()), cp)
		if err != nil {
			t.Fatal(err)
		}

		r := recordOf(prior)
		r.Seen.Change(cp, func(m *record.Machine) { m.PodDigest = digest })

		if test.seen != nil {
			r.Seen.Change(cp, test.seen)
		}

		if test.access != "" {
			r.member(cp, func(s *step.MachineState) { s.Access = test.access })
		}

		got, found := PriorState{Record: r}.withReplacements(p, prior)
		expect(t, name, found, nil)
		same(t, name, got.Replace[cp], test.want)
	}

	_, found := PriorState{}.withReplacements(aSet(t, pods(1, 0), secrets("no")), Set{})
	expect(t, "no secrets", found, []string{"Error secrets: invalid_secrets"})

	got, found := PriorState{}.withReplacements(aSet(t, controlPlanes(1), secrets("no")), Set{})
	expect(t, "on metal", found, nil)
	same(t, "on metal", got.Replace, nil)
	same(t, "of an import", aSet(t, pods(1, 0)).podChanges(aSet(t, controlPlanes(1)), cp), "it was made of something else than is wanted")
}

func TestImageName(t *testing.T) {
	t.Parallel()

	for image, want := range map[string]string{"a/b:v1": "a/b", "a:5000/b": "a:5000/b", "a:5000/b:v1": "a:5000/b", "b": "b", ":v1": ""} {
		same(t, image, imageName(image), want)
	}
}

// Machines without a recorded member may have to be created.
func TestMakes(t *testing.T) {
	t.Parallel()

	p := aSet(t, pods(2, 0))
	same(t, "none", p.makes(recordOf(p)), false)
	same(t, "one", p.makes(recordOf(p).member("cp-1", func(s *step.MachineState) { s.Access = step.Gone })), true)
	same(t, "a new one", p.makes(recordOf(aSet(t, pods(1, 0)))), true)
}

// A machine on the host that is neither wanted nor leaving is orphaned.
func TestOrphans(t *testing.T) {
	t.Parallel()

	p := aSet(t, pods(1, 1))
	r := PriorState{Record: Record{Seen: record.Machines{"cp-3": {MemberID: "m"}}}, Removed: []cluster.Machine{{Name: "batch/7"}}}

	got := r.Orphans(p, []string{"cp-0", "cp-3", "batch-7", "batch-8", "other-1", "cp-x", "cp", "-1"})
	want := []cluster.Machine{
		{Name: "cp-3", Role: step.ControlPlane, Container: true, Remembered: cluster.Remembered{NodeName: "prod-cp-3", MemberID: "m"}},
		{Name: "batch/8", Role: step.Worker, Pool: "batch", Container: true, Remembered: cluster.Remembered{NodeName: "prod-batch-8"}},
	}

	for i := range got {
		if name := got[i].NodeName; !contains(got[i].Address, name) || !contains(got[i].Address, "talos") {
			t.Errorf("%s is at %s", got[i].Name, got[i].Address)
		}

		got[i].Address = ""
	}

	same(t, "orphans", got, want)
}
