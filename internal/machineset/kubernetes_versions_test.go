package machineset

import (
	"testing"

	"github.com/talosop/terraform-provider-talosop/internal/cluster"
	"github.com/talosop/terraform-provider-talosop/internal/cluster/step"
	"github.com/talosop/terraform-provider-talosop/internal/kubenames"
	"github.com/talosop/terraform-provider-talosop/internal/kubestate"
	"github.com/talosop/terraform-provider-talosop/internal/machineconfig"
	"github.com/talosop/terraform-provider-talosop/internal/record"
)

func kubernetesVersion(t *testing.T, text string) machineconfig.KubernetesVersion {
	t.Helper()

	v, err := machineconfig.ParseKubernetesVersion(text)
	if err != nil {
		t.Fatal(err)
	}

	return v
}

// imagesAt are component images at versions, such as kubelet v1.35.2.
func imagesAt(versions ...string) kubenames.Images {
	images := kubenames.Images{}
	for i := 0; i < len(versions); i += 2 {
		images[kubenames.Component(versions[i])] = "registry.k8s.io/" + versions[i] + ":" + versions[i+1]
	}

	return images
}

// kubernetesOn is the record of a set whose machines run with images, and the wanted configurations.
func kubernetesOn(p Set, has, gets map[string]kubenames.Images) (PriorState, Rendered) {
	r := recordOf(p)
	for name, images := range has {
		r.member(name, func(s *step.MachineState) { s.Images, s.Ready = images, true })
	}

	files := Rendered{Machines: map[string]cluster.Configured{}}
	for name, images := range gets {
		files.Machines[name] = cluster.Configured{Images: images}
	}

	return PriorState{Record: r}, files
}

// The running versions decide whether a version is refused, and what is offered instead.
func TestRefuseKubernetesVersion(t *testing.T) {
	t.Parallel()

	const refused = "Error kubernetes_version: kubernetes_change"

	both := func(version string) map[string]kubenames.Images {
		return map[string]kubenames.Images{"cp-1": imagesAt("kube-apiserver", version, "kubelet", version), "batch/w-1": imagesAt("kubelet", version)}
	}
	mixed := func(api, plane, worker string) map[string]kubenames.Images {
		return map[string]kubenames.Images{"cp-1": imagesAt("kube-apiserver", api, "kubelet", plane), "batch/w-1": imagesAt("kubelet", worker)}
	}
	downgrade := changing(func(c *Changes) { c.AllowDowngrade = true })

	for name, test := range map[string]struct {
		to        string
		has, gets map[string]kubenames.Images
		more      option
		refused   bool
		says      []string
	}{
		"the same":                {to: "v1.35.2", has: both("v1.35.2")},
		"the next minor":          {to: "v1.36.0", has: both("v1.35.2")},
		"two minors":              {to: "v1.36.0", has: both("v1.34.1")},
		"a minor back":            {to: "v1.34.1", has: both("v1.35.2"), refused: true, says: []string{"\nlowest: v1.35.2\n", "\nhighest: \n", "\nkeep: v1.35.2\n", "\nfinish: \n"}},
		"a patch back":            {to: "v1.35.1", has: both("v1.35.2"), refused: true, says: []string{"allow_downgrade = true"}},
		"a patch back, asked for": {to: "v1.35.1", has: both("v1.35.2"), more: downgrade},
		"a minor back, asked for": {to: "v1.34.1", has: both("v1.35.2"), more: downgrade, refused: true},
		"begun, taken back":       {to: "v1.34.1", has: mixed("v1.35.2", "v1.34.1", "v1.34.1")},
		"begun, taken back too far": {to: "v1.33.1", has: mixed("v1.35.2", "v1.34.1", "v1.34.1"), refused: true,
			says: []string{"\nlowest: v1.34.1\n", "\nhighest: v1.35.2\n", "\nkeep: v1.34.1\n", "\nfinish: v1.35.2\n"}},
		"a worker left behind":  {to: "v1.34.1", has: mixed("v1.35.2", "v1.35.2", "v1.34.1"), refused: true, says: []string{"\nkeep: v1.35.2\n"}},
		"newer than is known":   {to: "v1.99.0", has: both("v1.35.2"), refused: true},
		"newer than Talos runs": {to: "v1.36.0", has: both("v1.35.2"), more: talos("v1.12.4"), refused: true},
		"in a handle":           {to: "v1.34.1", has: both("v1.35.2"), more: joins("10.0.0.9"), refused: true},
		"nothing runs":          {to: "v1.99.0"},
		"no version":            {to: "latest", has: both("v1.35.2")},
		"an image stays":        {to: "v1.36.0", has: both("v1.35.2"), gets: both("v1.35.2")},
		"an image of no version": {to: "v1.36.0", has: both("v1.34.2"), gets: map[string]kubenames.Images{
			"batch/w-1": {kubenames.Kubelet: "registry.k8s.io/kubelet:mine"}}, refused: true},
	} {
		options := []option{controlPlanes(1), workers("batch", 1), workers("empty", 0), kubernetes(test.to)}
		if test.more != nil {
			options = append(options, test.more)
		}

		p := aSet(t, options...)

		gets := test.gets
		if gets == nil {
			gets = mixed(test.to, test.to, test.to)
		}

		r, files := kubernetesOn(p, test.has, gets)

		var want []string

		switch {
		case test.refused && p.InHandle:
			want = []string{"Error cluster.kubernetes_version: kubernetes_change"}
		case test.refused:
			want = []string{refused}
		}

		expect(t, name, once(refuseKubernetesVersion(p, r, files)), want, test.says...)
	}
}

// The configuration changes before the images: an API that only the wanted Kubernetes has stops the running one.
func TestRefuseSettingsTooNew(t *testing.T) {
	t.Parallel()

	config := func(api string) []byte {
		return []byte("version: v1alpha1\nmachine: {type: controlplane}\ncluster:\n  controlPlane: {endpoint: \"https://10.0.0.10:6443\"}\n" +
			"  apiServer: {extraArgs: {runtime-config: \"api/beta=true," + api + "=true\"}}\n")
	}
	const refused = "Error kubernetes_version: setting_too_new"

	for name, test := range map[string]struct {
		api, from, to string
		want          []string
	}{
		"added by the upgrade":   {"scheduling.k8s.io/v1alpha2", "v1.35.2", "v1.36.0", []string{refused}},
		"added on the way":       {"storagemigration.k8s.io/v1beta1", "v1.34.1", "v1.36.0", []string{refused}},
		"in both":                {"storagemigration.k8s.io/v1beta1", "v1.35.2", "v1.36.0", nil},
		"in none":                {"none.example.com/v1", "v1.35.2", "v1.36.0", nil}, // the configuration is refused
		"removed by the upgrade": {"scheduling.k8s.io/v1alpha1", "v1.35.2", "v1.36.0", nil},
		"without an upgrade":     {"scheduling.k8s.io/v1alpha2", "v1.36.0", "v1.36.1", nil},
		"not readable":           {"\"", "v1.35.2", "v1.36.0", nil},
	} {
		p := aSet(t, controlPlanes(1), kubernetes(test.to))
		r, files := kubernetesOn(p, map[string]kubenames.Images{"cp-1": imagesAt("kube-apiserver", test.from)},
			map[string]kubenames.Images{"cp-1": imagesAt("kube-apiserver", test.to)})
		files.Configs = map[string][]byte{"cp-1": config(test.api)}

		expect(t, name, refuseSettingsTooNew(p, r, files), test.want)
	}
}

// The lowest and the highest running version, and the lowest that is not a downgrade.
func TestKubernetesPath_byWhatRuns(t *testing.T) {
	t.Parallel()

	p := aSet(t, controlPlanes(2), workers("batch", 2), kubernetes("v1.36.0"))

	for name, test := range map[string]struct {
		has, gets           map[string]kubenames.Images
		running             map[kubenames.Component]string // on batch/w-1
		lowest, highest, at string                         // at is the base
	}{
		"workers behind": {has: map[string]kubenames.Images{"cp-1": imagesAt("kube-apiserver", "v1.36.0"), "cp-2": imagesAt("kube-apiserver", "v1.35.4"),
			"batch/w-1": imagesAt("kubelet", "v1.34.1"), "batch/w-2": imagesAt("kubelet", "v1.35.9")},
			gets:   map[string]kubenames.Images{"cp-1": imagesAt("kube-apiserver", "v1.36.0"), "cp-2": imagesAt("kube-apiserver", "v1.36.0")},
			lowest: "v1.34.1", highest: "v1.36.0", at: "v1.35.4"},
		"a pinned image": {has: map[string]kubenames.Images{"cp-1": imagesAt("kube-apiserver", "v1.35.2", "kubelet", "v1.34.2")},
			gets:   map[string]kubenames.Images{"cp-1": imagesAt("kube-apiserver", "v1.36.0", "kubelet", "v1.34.9")},
			lowest: "v1.34.2", highest: "v1.35.2", at: "v1.35.2"},
		"only workers": {has: map[string]kubenames.Images{"batch/w-1": imagesAt("kubelet", "v1.35.2"), "batch/w-2": imagesAt("kubelet", "v1.34.1")},
			lowest: "v1.34.1", highest: "v1.35.2", at: "v1.34.1"},
		"an image of Talos": {running: map[kubenames.Component]string{kubenames.Kubelet: "v1.35.2"}, lowest: "v1.35.2", highest: "v1.35.2", at: "v1.35.2"},
		"an image that stays": {has: map[string]kubenames.Images{"batch/w-1": imagesAt("kubelet", "v1.34.1"), "batch/w-2": imagesAt("kubelet", "v1.35.2")},
			gets:   map[string]kubenames.Images{"batch/w-1": imagesAt("kubelet", "v1.34.1")},
			lowest: "v1.35.2", highest: "v1.35.2", at: "v1.35.2"},
		"nothing": {},
	} {
		r, files := kubernetesOn(p, test.has, test.gets)
		r.Seen.Change("batch/w-1", func(m *record.Machine) { m.Running = test.running })

		k, ok := p.kubernetesPath(r, files)
		if ok != (test.lowest != "") || ok && (k.Lowest.String() != test.lowest || k.highest.String() != test.highest || k.base.String() != test.at) {
			t.Errorf("%s: %v %v %v %v", name, ok, k.Lowest, k.highest, k.base)
		}
	}
}

// Images in patches have at most the minor version of the API server, and kubelets that of the cluster.
func TestRefuseAhead(t *testing.T) {
	t.Parallel()

	one := func(images kubenames.Images) map[string]kubenames.Images {
		return map[string]kubenames.Images{"cp-1": images}
	}

	for name, test := range map[string]struct {
		has, gets map[string]kubenames.Images
		want      string
		says      string
	}{
		"alike":                   {gets: one(imagesAt("kube-apiserver", "v1.35.2", "kubelet", "v1.35.9", "kube-scheduler", "v1.35.9"))},
		"a scheduler":             {gets: one(imagesAt("kube-apiserver", "v1.35.2", "kube-scheduler", "v1.36.0")), want: "kube-scheduler", says: "\nlimit: v1.35.2\n"},
		"a kubelet":               {gets: one(imagesAt("kubelet", "v1.36.0")), want: "kubelet", says: "\nlimit: v1.35.2\nmachines: cp-1\nplane: \n"},
		"a kubelet, an older API": {gets: one(imagesAt("kube-apiserver", "v1.34.1", "kubelet", "v1.35.2")), want: "kubelet", says: "\nlimit: v1.34.1\nmachines: cp-1\nplane: cp-1\n"},
		"a scheduler, no API":     {gets: one(imagesAt("kube-scheduler", "v1.36.0"))},
		"it is there already":     {gets: one(imagesAt("kubelet", "v1.36.0")), has: one(imagesAt("kubelet", "v1.36.0"))},
		"no version":              {gets: one(kubenames.Images{kubenames.Kubelet: "kubelet:mine"})},
		"the oldest API counts": {gets: map[string]kubenames.Images{"cp-1": imagesAt("kube-apiserver", "v1.36.0", "kube-proxy", "v1.35.0"),
			"cp-2": imagesAt("kube-apiserver", "v1.34.1")}, want: "kube-proxy", says: "\nlimit: v1.34.1\nmachines: cp-1\nplane: cp-2\n"},
	} {
		p := aSet(t, controlPlanes(2))
		r, files := kubernetesOn(p, test.has, test.gets)

		var want []string
		if test.want != "" {
			want = []string{`Error control_plane.machines["cp-1"]: image_ahead`}
		}

		expect(t, name, p.refuseAhead(r, files), want, test.says, "component: "+test.want)
	}

	for _, test := range []struct {
		version, other string
		later          bool
	}{{"v1.36.0", "v1.35.2", true}, {"v1.35.2", "v1.35.1", false}, {"v1.34.9", "v1.35.2", false}, {"mine", "v1.35.2", false},
		{"v1.36.0", "mine", false}} {
		same(t, test.version+" after "+test.other, laterMinor(test.version, test.other), test.later)
	}
}

// Warnings about a Kubernetes upgrade come from the recorded state.
func TestWarnOfKubernetes(t *testing.T) {
	t.Parallel()

	const (
		unready = "Warning: kubernetes_awaits_machines"
		back    = "Warning: kubernetes_downgrade"
		patch   = "Warning: kubernetes_patch_downgrade"
		runs    = "Warning: kubernetes_runs_other"
		passed  = "Warning kubernetes_upgrade_via[1]: release_not_passed"
	)

	component := func(from, to string) step.Step {
		return step.UpgradeComponent{Machine: "batch/w-1", Component: kubenames.Kubelet, From: from, Image: to}
	}
	kubelet := func(version string) string { return imagesAt("kubelet", version)[kubenames.Kubelet] }

	for name, test := range map[string]struct {
		from, to string
		steps    []step.Step
		ready    bool
		running  string
		via      []string
		want     []string
		says     []string
	}{
		"nothing to do":            {from: "v1.35.2", to: "v1.35.2"},
		"an upgrade":               {from: "v1.35.2", to: "v1.36.0", ready: true},
		"not ready":                {from: "v1.35.2", to: "v1.36.0", want: []string{unready}, says: []string{"machines: batch/w-1\n"}},
		"not ready, images pulled": {from: "v1.35.2", to: "v1.35.2", steps: []step.Step{step.PullImages{}}, want: []string{unready}},
		"not ready, manifests":     {from: "v1.35.2", to: "v1.35.2", steps: []step.Step{step.SyncManifests{}}, want: []string{unready}},
		"not ready, other steps":   {from: "v1.35.2", to: "v1.35.2", steps: []step.Step{step.Uncordon{}}},
		"a minor taken back": {from: "v1.35.2", to: "v1.35.2", ready: true, steps: []step.Step{component(kubelet("v1.36.0"), kubelet("v1.35.2"))},
			want: []string{back}, says: []string{"version: v1.35.2\n", "kubelet of batch/w-1: v1.36.0 -> v1.35.2"}},
		"a patch taken back": {from: "v1.35.2", to: "v1.35.2", ready: true, steps: []step.Step{component(kubelet("v1.35.3"), kubelet("v1.35.2"))},
			want: []string{patch}},
		"brought forward":  {from: "v1.35.2", to: "v1.35.2", ready: true, steps: []step.Step{component(kubelet("v1.35.2"), kubelet("v1.35.3"))}},
		"from no version":  {from: "v1.35.2", to: "v1.35.2", ready: true, steps: []step.Step{component("kubelet:mine", kubelet("v1.35.3"))}},
		"to no version":    {from: "v1.35.2", to: "v1.35.2", ready: true, steps: []step.Step{component(kubelet("v1.35.3"), "kubelet:mine")}},
		"it runs another":  {from: "v1.35.2", to: "v1.35.2", ready: true, running: "v1.34.1", steps: []step.Step{component(kubelet("v1.35.2"), kubelet("v1.35.2"))}, want: []string{runs}, says: []string{"kubelet of batch/w-1 runs v1.34.1"}},
		"it is changed":    {from: "v1.35.2", to: "v1.35.2", ready: true, running: "v1.34.1", steps: []step.Step{component(kubelet("v1.35.2"), kubelet("v1.35.3"))}},
		"it runs the same": {from: "v1.35.2", to: "v1.35.2", ready: true, steps: []step.Step{component(kubelet("v1.35.2"), kubelet("v1.35.2"))}},
		"a release on the way": {from: "v1.34.1", to: "v1.36.0", ready: true, via: []string{"v1.35.1", "v1.33.1"}, want: []string{passed},
			says: []string{"from: v1.34.1\nrelease: v1.33.1\nto: v1.36.0\n"}},
		"nothing is passed": {from: "v1.36.0", to: "v1.36.0", ready: true, via: []string{"v1.35.1", "v1.33.1"}},
	} {
		p := aSet(t, workers("batch", 1), joins("10.0.0.9"))
		r := recordOf(p).member("batch/w-1", func(s *step.MachineState) { s.Ready = test.ready })
		r.Seen.Change("batch/w-1", func(m *record.Machine) {
			m.Running = map[kubenames.Component]string{kubenames.Kubelet: test.running}
		})

		for _, via := range test.via {
			p.Changes.KubernetesVia = append(p.Changes.KubernetesVia, kubernetesVersion(t, via))
		}

		to := kubernetesVersion(t, test.to)
		path := KubernetesPath{Lowest: kubernetesVersion(t, test.from), To: to, Releases: machineconfig.KubernetesReleases(to, p.Changes.KubernetesVia)}

		expect(t, name, p.warnOfKubernetes(path, PriorState{Record: r}, test.steps), test.want, test.says...)
	}
}

// Long lists end with the number of further entries.
func TestWarnings_nameMostSteps(t *testing.T) {
	t.Parallel()

	for n, more := range map[int]string{20: "", 22: "\n  - 2 more"} {
		var (
			back, still []step.Step
			kept        []step.Kept
		)

		for range n {
			s := step.UpgradeComponent{Machine: "w", Component: kubenames.KubeAPIServer, From: "api:v1.35.2", Image: "api:v1.35.1"}
			back, kept = append(back, s), append(kept, step.Kept{Step: s, Reason: "it waits"})
			s.Image = s.From
			still = append(still, s)
		}

		r := PriorState{Record: Record{Seen: record.Machines{"w": {Running: map[kubenames.Component]string{kubenames.KubeAPIServer: "v1.34.1"}}}}}
		list := map[string]string{"back": Set{}.warnOfDowngrade(KubernetesPath{}, back)[0].Detail, "runs": Set{}.warnOfRunning(r, still)[0].Detail,
			"behind": WarnOfBehind(kept)[0].Detail}

		for name, detail := range list {
			if got := lastLines(detail); got != 20 || more != "" && !contains(detail, more) {
				t.Errorf("%s of %d: %d lines\n%s", name, n, got, detail)
			}
		}

		expect(t, "API servers", WarnOfBehind(kept), []string{"Warning: kubernetes_unfinished"}, "kubelets: false\n")
	}
}

// The snapshot of a forecast has the running versions where images differ.
func TestAssume_whatRefreshesSaw(t *testing.T) {
	t.Parallel()

	p := aSet(t, controlPlanes(1), workers("batch", 1))
	images := map[string]kubenames.Images{"cp-1": imagesAt("kube-apiserver", "v1.35.2", "kubelet", "v1.35.2"), "batch/w-1": imagesAt("kubelet", "v1.35.2")}

	for name, test := range map[string]struct {
		seen    record.Machine
		on      string
		change  func(s *step.MachineState)
		kubelet string
		api     string
	}{
		"as recorded":         {on: "batch/w-1", kubelet: "v1.35.2"},
		"another kubelet":     {on: "batch/w-1", seen: record.Machine{Running: map[kubenames.Component]string{kubenames.Kubelet: "v1.34.1+fips"}}, kubelet: "v1.34.1"},
		"not a member":        {on: "batch/w-1", seen: record.Machine{Running: map[kubenames.Component]string{kubenames.Kubelet: "v1.34.1"}}, change: func(s *step.MachineState) { s.Access = step.Unreachable }, kubelet: ""},
		"another API server":  {on: "cp-1", seen: record.Machine{Running: map[kubenames.Component]string{kubenames.KubeAPIServer: "v1.34.1"}}, kubelet: "v1.35.2", api: "v1.34.1"},
		"no node any more":    {on: "batch/w-1", seen: record.Machine{Drift: record.Drift{{Kind: record.NoNode}}}, kubelet: ""},
		"an image of no kind": {on: "batch/w-1", seen: record.Machine{Running: map[kubenames.Component]string{kubenames.KubeProxy: "v1.34.1"}}, kubelet: "v1.35.2"},
	} {
		r, _ := kubernetesOn(p, images, nil)
		r.Seen[test.on] = test.seen

		if test.change != nil {
			r.member(test.on, test.change)
		}

		want := p.Spec(r, Rendered{})
		have := r.Assume(want)

		i := 0
		if want.Machines[0].Name != test.on {
			i = 1
		}

		node, found := have.NodeOf(want.Machines[i])
		api, _ := kubenames.ImageVersion(node.StaticPods["kube-apiserver"].Image)

		if node.KubeletVersion != test.kubelet || test.api != "" && api != test.api {
			t.Errorf("%s: node %v %+v", name, found, node)
		}

		same(t, name+": without a node", have.Machines[test.on].NodeMissing, test.seen.Drift.Has(record.NoNode))
	}
}

func TestAssume_whatElseRefreshesSaw(t *testing.T) {
	t.Parallel()

	p := aSet(t, controlPlanes(1), workers("batch", 1))
	r := recordOf(p).member("cp-1", func(s *step.MachineState) { s.Meta = map[uint8]string{10: "a", 12: "b"} })
	r.Seen["cp-1"] = record.Machine{Drift: record.Drift{{Kind: record.Unproven}, {Kind: record.MetaDiffers, Keys: []uint8{12}}}}
	r.Seen["batch/w-1"] = record.Machine{Drift: record.Drift{{Kind: record.NotOnHost}}}

	prior := PriorState{Record: r}
	want := p.Spec(prior, Rendered{})
	want.Removed = []cluster.Machine{{Name: "batch/w-1"}}
	have := r.Assume(want)

	same(t, "hardware that proves nothing", have.Machines["cp-1"].UUID, "")
	same(t, "META", have.Machines["cp-1"].Meta, map[uint8]string{10: "a"})
	same(t, "META in state", r.Machines["cp-1"].Meta, map[uint8]string{10: "a", 12: "b"})
	same(t, "one that leaves and is gone", have.Machines["batch/w-1"].Access, step.Gone)
}

func TestKubernetes_readsVersions(t *testing.T) {
	t.Parallel()

	node := kubestate.Node{KubeletVersion: "v1.35.2", StaticPods: map[string]kubestate.StaticPod{
		"kube-apiserver": {Image: "api:v1.34.1"}, "kube-scheduler": {Image: "scheduler:mine"}, "etcd": {Image: "etcd:v1.2.3"}}}
	same(t, "running", RunningOn(node), map[kubenames.Component]string{kubenames.Kubelet: "v1.35.2", kubenames.KubeAPIServer: "v1.34.1"})
	same(t, "nothing", RunningOn(kubestate.Node{}), map[kubenames.Component]string{})
	same(t, "otherwise", runningOtherwise(imagesAt("kubelet", "v1.35.2", "kube-proxy", "v1.35.2"), map[kubenames.Component]string{
		kubenames.Kubelet: "v1.35.2+k3s1", kubenames.KubeProxy: "v1.34.1", kubenames.KubeScheduler: "v1.34.1", kubenames.KubeAPIServer: "x"}),
		map[kubenames.Component]string{kubenames.KubeProxy: "v1.34.1"})

	want := cluster.Spec{Machines: []cluster.Machine{{Name: "a", Role: step.ControlPlane}, {Name: "b", Role: step.ControlPlane}, {Name: "w", Role: step.Worker}}}
	have := cluster.Snapshot{Machines: map[string]step.MachineState{"a": {Images: imagesAt("kube-apiserver", "v1.35.10")},
		"b": {Images: imagesAt("kube-apiserver", "v1.35.9")}, "w": {Images: imagesAt("kube-apiserver", "v1.1.1")}}}
	same(t, "the oldest API server", ManifestsRunning(want, have), "v1.35.9")
	same(t, "none", ManifestsRunning(want, cluster.Snapshot{}), "")

	p := aSet(t, kubernetes("v1.35.2"), changing(func(c *Changes) {
		c.KubernetesVia = []machineconfig.KubernetesVersion{kubernetesVersion(t, "v1.34.7")}
	}))
	spec := p.kubernetes(PriorState{Record: Record{Manifests: "v1.34.1"}, changedManifests: []string{"flannel"}})
	same(t, "the version", spec.Version+" "+spec.Manifests, "v1.35.2 v1.34.1")
	same(t, "what changes", spec.Changed, []string{"flannel"})

	if len(spec.Via) == 0 || spec.Via[len(spec.Via)-1] != "v1.34.7" {
		t.Errorf("passed are %q", spec.Via)
	}

	same(t, "no version", aSet(t, kubernetes("latest")).kubernetes(PriorState{}), cluster.KubernetesSpec{})
}

// Bootstrap manifests change with their sources, where both are known.
func TestChangedManifests(t *testing.T) {
	t.Parallel()

	cni := func(p *Set) { p.Settings.CNI.Name = machineconfig.CNINone }

	for name, test := range map[string]struct {
		p, prior option
		changes  bool
	}{
		"nothing":           {p: controlPlanes(1)},
		"the network":       {p: func(p *Set) { controlPlanes(1)(p); cni(p) }, changes: true},
		"not known":         {p: func(p *Set) { controlPlanes(1)(p); cni(p); valuesUnknown(p) }},
		"not known before":  {p: func(p *Set) { controlPlanes(1)(p); cni(p) }, prior: valuesUnknown},
		"no control planes": {p: func(p *Set) { workers("batch", 1)(p); cni(p) }},
		"none before":       {p: func(p *Set) { controlPlanes(1)(p); cni(p) }, prior: without("cp-1")},
		"of the machine": {p: func(p *Set) {
			controlPlanes(1)(p)
			machine("cp-1", func(m *Machine) { m.Config.Hostname = "other" })(p)
		}},
		"invalid": {p: func(p *Set) { controlPlanes(1)(p); cni(p); p.Settings.Endpoint = "no" }},
		"of a machine patch": {p: func(p *Set) {
			controlPlanes(1)(p)
			machine("cp-1", func(m *Machine) { m.Config.Patches = []string{"cluster: {network: {cni: {name: none}}}"} })(p)
		}, changes: true},
	} {
		prior := aSet(t, controlPlanes(1))
		if test.prior != nil {
			test.prior(&prior)
		}

		if got := aSet(t, test.p).changedManifests(prior); (len(got) > 0) != test.changes {
			t.Errorf("%s: %q", name, got)
		}
	}
}
