package machines_test

import (
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/hashicorp/terraform-plugin-go/tfprotov6"

	"github.com/talosop/terraform-provider-talosop/internal/provider/sitetest"
	"github.com/talosop/terraform-provider-talosop/internal/provider/tftest"
	"github.com/talosop/terraform-provider-talosop/internal/sim"
	"github.com/talosop/terraform-provider-talosop/internal/versions"
)

// No kubelet is newer than any API server of its cluster, whichever resources own the machines.

const (
	skewOld = "v1.35.2"
	skewNew = "v1.36.0"
)

// skewWatch observes every start and end of a kubelet and of an API server of a site.
type skewWatch struct {
	mu     sync.Mutex
	last   []sim.Versions
	Broken []string
}

// watchSkew watches a site from now on.
func watchSkew(s *sitetest.Site) *skewWatch {
	w := &skewWatch{}
	s.SetOnVersions(w.see)

	return w
}

func (w *skewWatch) see(running []sim.Versions) {
	w.mu.Lock()
	defer w.mu.Unlock()

	w.last = running

	for _, kubelet := range running {
		for _, api := range running {
			if versions.MinorsBetween(api.APIServer, kubelet.Kubelet) > 0 {
				w.Broken = append(w.Broken, fmt.Sprintf("the kubelet of %s runs %s and kube-apiserver of %s runs %s",
					kubelet.Machine, kubelet.Kubelet, api.Machine, api.APIServer))
			}
		}
	}
}

// kept checks that no kubelet was newer at any time.
func (w *skewWatch) kept(t *testing.T) {
	t.Helper()

	w.mu.Lock()
	defer w.mu.Unlock()

	if len(w.Broken) > 0 {
		t.Errorf("kubelets were newer than API servers:\n%s", strings.Join(slices.Compact(w.Broken), "\n"))
	}

	w.Broken = nil
}

// run checks what runs now: the kubelet version of each machine, and one version of all API servers.
func (w *skewWatch) run(t *testing.T, api string, kubelets map[string]string) {
	t.Helper()

	w.mu.Lock()
	defer w.mu.Unlock()

	for _, v := range w.last {
		if v.Kubelet != kubelets[v.Machine] || v.APIServer != "" && v.APIServer != api {
			t.Errorf("%s runs kubelet %s and kube-apiserver %s, want %s and %s", v.Machine, v.Kubelet, v.APIServer,
				kubelets[v.Machine], api)
		}
	}
}

// kubeletsAt are the kubelets of all machines of a site, with a version each.
func kubeletsAt(s *sitetest.Site, version string, other map[string]string) map[string]string {
	out := map[string]string{}

	for _, m := range s.Machines() {
		out[m.Name()] = version
		if v := other[m.Name()]; v != "" {
			out[m.Name()] = v
		}
	}

	return out
}

// skewLife is a cluster with three control planes in several resources, to be upgraded.
func skewLife(t *testing.T, layout lifeLayout, planes, workers int) (*rotationLife, *skewWatch) {
	t.Helper()

	r := newLifeAt(t, layout, 3, planes, workers, skewOld)
	r.config.Kubernetes = skewNew

	return r, watchSkew(r.Site)
}

// behindIn are the steps that an apply leaves to a later one.
func behindIn(diagnostics []*tfprotov6.Diagnostic) []string {
	var lines []string

	for _, d := range diagnostics {
		if code, _ := tftest.Code(d); code != "kubernetes_unfinished" {
			continue
		}

		for line := range strings.Lines(d.Detail) {
			if step, ok := strings.CutPrefix(line, "  - "); ok {
				lines = append(lines, strings.TrimSpace(step))
			}
		}
	}

	slices.Sort(lines)

	return lines
}

// Resources that are applied in parallel take turns: all API servers first, then the kubelets. One apply is enough.
func TestKubeletSkew_machinesSideBySide(t *testing.T) {
	t.Parallel()

	for _, layout := range []lifeLayout{machinesLayout, mixedLayout} {
		t.Run(string(layout), func(t *testing.T) {
			t.Parallel()

			r, watch := skewLife(t, layout, 3, 1)
			plan := r.plan(lifeOptions{})

			if layout == machinesLayout {
				for _, c := range plan.Changes {
					if operations := tftest.TextsOf(t, tftest.AttributeOf(t, c.Planned, "operations")); !slices.ContainsFunc(operations,
						saysLater) {
						t.Errorf("the plan of %s does not say that its kubelet may wait: %q", c.Key, operations)
					}
				}
			}

			applied := r.applied(plan)
			watch.kept(t)

			// In the mixed layout the first control plane is a resource that the workers depend on, and the other control
			// planes do not.
			if got := behindIn(applied.Diagnostics); len(got) > 0 {
				t.Errorf("left behind: %q", got)
			}

			if p := r.plan(lifeOptions{}); !p.empty() {
				t.Errorf("the next plan has %v", p.Changes)
			}

			watch.run(t, skewNew, kubeletsAt(r.lifeSite.Site, skewNew, nil))
		})
	}
}

func saysLater(line string) bool { return strings.Contains(line, "else in a later apply") }

// When one resource is applied after another, kubelets stay behind. The apply reports it, the next plan lists them,
// and the next apply upgrades them.
func TestKubeletSkew_oneAfterTheOther(t *testing.T) {
	t.Parallel()

	for name, prepare := range map[string]func(*lifeConfig, *lifePlan){
		"depends_on":    func(c *lifeConfig, _ *lifePlan) { c.Chained = true },
		"parallelism=1": func(_ *lifeConfig, p *lifePlan) { p.Parallelism = 1 },
		"parallelism=2": func(_ *lifeConfig, p *lifePlan) { p.Parallelism = 2 },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()

			r, watch := skewLife(t, machinesLayout, 3, 1)
			prepare(&r.config, &lifePlan{})

			plan := r.plan(lifeOptions{})
			prepare(&lifeConfig{}, &plan)

			behind := behindIn(r.applied(plan).Diagnostics)
			watch.kept(t)

			if len(behind) == 0 {
				t.Error("the apply says of no kubelet that it stays behind")
			}

			other := map[string]string{}
			for _, line := range behind {
				var machine string

				if _, err := fmt.Sscanf(line, "upgrade kubelet on %s", &machine); err != nil {
					t.Fatalf("%q: %v", line, err)
				}

				other[strings.TrimSuffix(machine, ":")] = skewOld
			}

			watch.run(t, skewNew, kubeletsAt(r.lifeSite.Site, skewNew, other))

			again := r.plan(lifeOptions{})
			for _, c := range again.Changes {
				operations := tftest.TextsOf(t, tftest.AttributeOf(t, c.Planned, "operations"))
				if want := fmt.Sprintf("upgrade kubelet on %s: %s -> %s", tftest.Text(t, c.Planned, "name"), skewOld,
					skewNew); !slices.Contains(operations, want) {
					t.Errorf("the next plan has %q, not %q", operations, want)
				}
			}

			if len(again.Changes) != len(other) {
				t.Errorf("the next plan changes %v, and %v are behind", again.Changes, other)
			}

			prepare(&lifeConfig{}, &again)

			if behind := behindIn(r.applied(again).Diagnostics); len(behind) > 0 {
				t.Errorf("the next apply leaves %q behind", behind)
			}

			watch.kept(t)
			watch.run(t, skewNew, kubeletsAt(r.lifeSite.Site, skewNew, nil))

			if p := r.plan(lifeOptions{}); !p.empty() {
				t.Errorf("the last plan has %v", p.Changes)
			}
		})
	}
}

// A control plane that joins while the others are upgraded starts with the version that the cluster runs, and no
// kubelet gets ahead of its API server. The same applies to one that is replaced meanwhile.
func TestKubeletSkew_joinsMeanwhile(t *testing.T) {
	t.Parallel()

	for name, prepare := range map[string]func(*rotationLife, *lifeOptions){
		"new":      func(r *rotationLife, _ *lifeOptions) { r.config.Planes = append(r.config.Planes, 3) },
		"replaced": func(_ *rotationLife, o *lifeOptions) { o.Replace = []string{`talosop_machine.this["cp-3"]`} },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()

			var o lifeOptions

			r, watch := skewLife(t, machinesLayout, 4, 0)
			prepare(r, &o)

			r.applied(r.plan(o))
			watch.kept(t)
			r.settle()
			watch.kept(t)

			if !slices.Contains(r.config.Planes, 3) {
				return
			}

			watch.run(t, skewNew, kubeletsAt(r.lifeSite.Site, skewNew, nil))
		})
	}
}

// Wherever an upgrade is interrupted, the next applies keep the order.
func TestKubeletSkew_interrupted(t *testing.T) {
	t.Parallel()

	r, watch := skewLife(t, machinesLayout, 3, 1)

	for _, after := range []int{1, 3, 6, 9} {
		r.apply(r.plan(lifeOptions{}), killed, after)
		watch.kept(t)
	}

	r.settle()
	watch.kept(t)
	watch.run(t, skewNew, kubeletsAt(r.lifeSite.Site, skewNew, nil))
}

// An apply of a single control plane leaves its kubelet behind, and reports it each time until the others follow.
func TestKubeletSkew_onlyOneIsUpgraded(t *testing.T) {
	t.Parallel()

	r, watch := skewLife(t, machinesLayout, 3, 1)
	r.config.Kubernetes, r.config.Of = skewOld, map[string]string{"cp-2": skewNew, "w-1": skewNew}

	want := []string{
		"upgrade kubelet on cp-2: v1.35.2 -> v1.36.0: kube-apiserver of node cp-1 runs v1.35.2, and no kubelet may be newer",
		"upgrade kubelet on w-1: v1.35.2 -> v1.36.0: kube-apiserver of node cp-1 runs v1.35.2, and no kubelet may be newer",
	}

	for range 2 {
		if got := behindIn(r.applied(r.plan(lifeOptions{})).Diagnostics); !slices.Equal(got, want) {
			t.Errorf("left behind is %q, want %q", got, want)
		}

		watch.kept(t)
	}

	r.config.Kubernetes = skewNew

	r.settle()
	watch.kept(t)
	watch.run(t, skewNew, kubeletsAt(r.lifeSite.Site, skewNew, nil))
}
