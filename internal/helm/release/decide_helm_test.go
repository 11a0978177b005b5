package release_test

import (
	"fmt"
	"io"
	"math/rand/v2"
	"strconv"
	"testing"
	"time"

	"helm.sh/helm/v3/pkg/action"
	helmchart "helm.sh/helm/v3/pkg/chart"
	"helm.sh/helm/v3/pkg/chartutil"
	kubefake "helm.sh/helm/v3/pkg/kube/fake"
	helmrelease "helm.sh/helm/v3/pkg/release"
	"helm.sh/helm/v3/pkg/storage"
	"helm.sh/helm/v3/pkg/storage/driver"
	helmtime "helm.sh/helm/v3/pkg/time"

	"github.com/talosop/terraform-provider-talosop/internal/helm/release"
)

// books is Helm's own code on a history in memory.
type books struct {
	t   *testing.T
	cfg *action.Configuration
	// inputs and removing are what the labels of a revision would say.
	inputs   map[int]string
	removing map[int]bool
}

func newBooks(t *testing.T, have release.Observation) *books {
	t.Helper()

	memory := driver.NewMemory()
	memory.SetNamespace("prod")

	b := &books{
		t: t, inputs: map[int]string{}, removing: map[int]bool{},
		cfg: &action.Configuration{
			Releases: storage.Init(memory), KubeClient: &kubefake.PrintingKubeClient{Out: io.Discard},
			Capabilities: chartutil.DefaultCapabilities, Log: func(string, ...any) {},
		},
	}

	for _, r := range have.History {
		b.inputs[r.Number], b.removing[r.Number] = r.Inputs, r.Removing

		labels := map[string]string{}
		if r.Former != "" {
			labels = release.FormerLabel(r.Number, r.Former)
		}

		if err := b.cfg.Releases.Create(&helmrelease.Release{
			Name: "web", Namespace: "prod", Version: r.Number, Chart: emptyChart(), Labels: labels,
			Info: &helmrelease.Info{
				Status: helmrelease.Status(r.Status), FirstDeployed: helmtime.Time{Time: r.FirstDeployed},
				LastDeployed: helmtime.Time{Time: r.LastDeployed}, Deleted: helmtime.Time{Time: r.Deleted},
			},
		}); err != nil {
			t.Fatal(err)
		}
	}

	return b
}

func emptyChart() *helmchart.Chart {
	return &helmchart.Chart{Metadata: &helmchart.Metadata{Name: "web", Version: "1.0.0", APIVersion: "v2"}}
}

// observe reads the history back.
func (b *books) observe() release.Observation {
	b.t.Helper()

	have := release.Observation{}

	records, err := b.cfg.Releases.History("web")
	if err != nil && len(b.inputs) > 0 {
		b.t.Fatal(err)
	}

	for number := range 100 {
		for _, r := range records {
			if r.Version == number {
				have.History = append(have.History, release.Revision{
					Number: number, Status: r.Info.Status.String(), Inputs: b.inputs[number], Removing: b.removing[number],
					Former:        release.FormerOf(r.Labels, number),
					FirstDeployed: r.Info.FirstDeployed.Time, LastDeployed: r.Info.LastDeployed.Time, Deleted: r.Info.Deleted.Time,
				})
			}
		}
	}

	return have
}

// do carries a decision out with Helm's own actions.
func (b *books) do(d release.Decision) error {
	b.t.Helper()

	switch d.Step {
	case release.Install, release.InstallOver:
		install := action.NewInstall(b.cfg)
		install.ReleaseName, install.Namespace, install.Replace = "web", "prod", d.Step == release.InstallOver

		made, err := install.Run(emptyChart(), nil)
		if err == nil {
			b.inputs[made.Version] = wish
		}

		return err
	case release.Upgrade:
		upgrade := action.NewUpgrade(b.cfg)
		upgrade.Namespace = "prod"

		made, err := upgrade.Run("web", emptyChart(), nil)
		if err == nil {
			b.inputs[made.Version] = wish
		}

		return err
	case release.MarkFailed:
		r, err := b.cfg.Releases.Get("web", d.Revision)
		if err != nil {
			return err
		}

		release.End(r)

		return b.cfg.Releases.Update(r)
	default:
		return fmt.Errorf("%s is nothing to do", d.Step)
	}
}

var statuses = []string{
	release.Deployed, release.Failed, release.Superseded, release.PendingInstall, release.PendingUpgrade,
	release.PendingRollback,
	release.Uninstalling, release.Uninstalled, "unknown",
}

// anyHistory is a random one, also such as Helm would never leave.
func anyHistory(random *rand.Rand) release.Observation {
	have, first, number := release.Observation{}, birth, 0

	for i := range random.IntN(6) {
		number += 1 + random.IntN(8)/7
		at := birth.Add(time.Duration(i) * time.Hour)
		r := release.Revision{Number: number, Status: statuses[random.IntN(len(statuses))], LastDeployed: at, Changed: at}

		if i == 0 || random.IntN(4) == 0 {
			first = at
		}

		if ended := r.Status == release.Uninstalled || r.Status == release.Uninstalling; ended || random.IntN(8) == 0 {
			r.Deleted = at.Add(time.Minute)
		}

		if random.IntN(2) == 0 {
			r.Changed = now.Add(-time.Minute)
		}

		r.FirstDeployed, r.Removing = first, random.IntN(2) == 0
		r.Inputs = []string{"", wish, other}[random.IntN(3)]
		r.Former = []string{"", "", release.Deployed, release.Failed, release.PendingInstall}[random.IntN(5)]
		have.History = append(have.History, r)
	}

	return have
}

// For every history, Helm's own code can carry out every decision. A few decisions lead to the wanted release, and
// a create changes no object of another owner.
func TestDecide_helmCarriesItOut(t *testing.T) {
	t.Parallel()

	const histories = 4000

	for seed := range uint64(histories) {
		random := rand.New(rand.NewPCG(seed, 6))
		have := anyHistory(random)
		want := wanted([]release.Intent{{}, {Create: true}, {Create: true, Adopt: true}}[random.IntN(3)])

		t.Run(strconv.FormatUint(seed, 10), func(t *testing.T) {
			t.Parallel()

			b := newBooks(t, have)

			const enough = 5
			for range enough {
				d := release.Decide(want, have, now)
				checkForeign(t, want, have, d)

				if d.Step == release.Refuse || d.Step == release.Nothing {
					checkEnd(t, want, have, d)

					return
				}

				if err := b.do(d); err != nil {
					t.Fatalf("Helm refuses %+v on %+v: %v", d, have.History, err)
				}

				have = b.observe()
			}

			t.Errorf("no end of it: %+v", have.History)
		})
	}
}

func checkForeign(t *testing.T, want release.Wanted, have release.Observation, d release.Decision) {
	t.Helper()

	last, exists := have.Last()
	if !exists {
		return
	}

	deployed, isDeployed := have.Deployed()

	if (d.Step == release.Install || d.Step == release.InstallOver) && isDeployed && last.Deleted.IsZero() {
		t.Errorf("%+v over revision %d, which is deployed: %+v", d, deployed.Number, have.History)
	}

	alive := last.Deleted.IsZero() && last.Inputs == "" && last.Former == ""
	if want.Intent.Create && !want.Intent.Adopt && alive && d.Step != release.Refuse {
		t.Errorf("%+v of another client's release: %+v", d, have.History)
	}
}

func checkEnd(t *testing.T, want release.Wanted, have release.Observation, d release.Decision) {
	t.Helper()

	last, _ := have.Last()
	if d.Step == release.Nothing && (last.Status != release.Deployed || last.Inputs != wish) {
		t.Errorf("nothing to do with %+v", have.History)
	}

	if d.Step == release.Refuse && d.Reason == release.ErrExists && (!want.Intent.Create || want.Intent.Adopt) {
		t.Errorf("refused what is this wish's own: %+v", have.History)
	}
}
