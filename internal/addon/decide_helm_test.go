package addon_test

import (
	"fmt"
	"io"
	"math/rand/v2"
	"strconv"
	"testing"
	"time"

	"helm.sh/helm/v3/pkg/action"
	"helm.sh/helm/v3/pkg/chart"
	"helm.sh/helm/v3/pkg/chartutil"
	kubefake "helm.sh/helm/v3/pkg/kube/fake"
	"helm.sh/helm/v3/pkg/release"
	"helm.sh/helm/v3/pkg/storage"
	"helm.sh/helm/v3/pkg/storage/driver"
	helmtime "helm.sh/helm/v3/pkg/time"

	"github.com/talosop/terraform-provider-talosop/internal/addon"
)

// books is Helm's own code on a history in memory.
type books struct {
	t   *testing.T
	cfg *action.Configuration
	// inputs and removing are what the labels of a revision would say.
	inputs   map[int]string
	removing map[int]bool
}

func newBooks(t *testing.T, have addon.Observation) *books {
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
			labels = addon.FormerLabel(r.Number, r.Former)
		}

		if err := b.cfg.Releases.Create(&release.Release{
			Name: "web", Namespace: "prod", Version: r.Number, Chart: emptyChart(), Labels: labels,
			Info: &release.Info{
				Status: release.Status(r.Status), FirstDeployed: helmtime.Time{Time: r.FirstDeployed},
				LastDeployed: helmtime.Time{Time: r.LastDeployed}, Deleted: helmtime.Time{Time: r.Deleted},
			},
		}); err != nil {
			t.Fatal(err)
		}
	}

	return b
}

func emptyChart() *chart.Chart {
	return &chart.Chart{Metadata: &chart.Metadata{Name: "web", Version: "1.0.0", APIVersion: "v2"}}
}

// observe reads the history back.
func (b *books) observe() addon.Observation {
	b.t.Helper()

	have := addon.Observation{}

	records, err := b.cfg.Releases.History("web")
	if err != nil && len(b.inputs) > 0 {
		b.t.Fatal(err)
	}

	for number := range 100 {
		for _, r := range records {
			if r.Version == number {
				have.History = append(have.History, addon.Revision{
					Number: number, Status: r.Info.Status.String(), Inputs: b.inputs[number], Removing: b.removing[number],
					Former:        addon.FormerOf(r.Labels, number),
					FirstDeployed: r.Info.FirstDeployed.Time, LastDeployed: r.Info.LastDeployed.Time, Deleted: r.Info.Deleted.Time,
				})
			}
		}
	}

	return have
}

// do carries a decision out with Helm's own actions.
func (b *books) do(d addon.Decision) error {
	b.t.Helper()

	switch d.Step {
	case addon.Install, addon.InstallOver:
		install := action.NewInstall(b.cfg)
		install.ReleaseName, install.Namespace, install.Replace = "web", "prod", d.Step == addon.InstallOver

		made, err := install.Run(emptyChart(), nil)
		if err == nil {
			b.inputs[made.Version] = wish
		}

		return err
	case addon.Upgrade:
		upgrade := action.NewUpgrade(b.cfg)
		upgrade.Namespace = "prod"

		made, err := upgrade.Run("web", emptyChart(), nil)
		if err == nil {
			b.inputs[made.Version] = wish
		}

		return err
	case addon.MarkFailed:
		r, err := b.cfg.Releases.Get("web", d.Revision)
		if err != nil {
			return err
		}

		addon.End(r)

		return b.cfg.Releases.Update(r)
	default:
		return fmt.Errorf("%s is nothing to do", d.Step)
	}
}

var statuses = []string{
	addon.Deployed, addon.Failed, addon.Superseded, addon.PendingInstall, addon.PendingUpgrade, addon.PendingRollback,
	addon.Uninstalling, addon.Uninstalled, "unknown",
}

// anyHistory is a random one, also such as Helm would never leave.
func anyHistory(random *rand.Rand) addon.Observation {
	have, first, number := addon.Observation{}, birth, 0

	for i := range random.IntN(6) {
		number += 1 + random.IntN(8)/7
		at := birth.Add(time.Duration(i) * time.Hour)
		r := addon.Revision{Number: number, Status: statuses[random.IntN(len(statuses))], LastDeployed: at, Changed: at}

		if i == 0 || random.IntN(4) == 0 {
			first = at
		}

		if ended := r.Status == addon.Uninstalled || r.Status == addon.Uninstalling; ended || random.IntN(8) == 0 {
			r.Deleted = at.Add(time.Minute)
		}

		if random.IntN(2) == 0 {
			r.Changed = now.Add(-time.Minute)
		}

		r.FirstDeployed, r.Removing = first, random.IntN(2) == 0
		r.Inputs = []string{"", wish, other}[random.IntN(3)]
		r.Former = []string{"", "", addon.Deployed, addon.Failed, addon.PendingInstall}[random.IntN(5)]
		have.History = append(have.History, r)
	}

	return have
}

// Whatever the history, Helm's own code carries every decision out, a few of them lead to the
// release that is wanted, and a create touches nothing of anybody else's.
func TestHelmCarriesOutEveryDecision(t *testing.T) {
	t.Parallel()

	const histories = 4000

	for seed := range uint64(histories) {
		random := rand.New(rand.NewPCG(seed, 6))
		have := anyHistory(random)
		want := wanted([]addon.Intent{{}, {Create: true}, {Create: true, Adopt: true}}[random.IntN(3)])

		t.Run(strconv.FormatUint(seed, 10), func(t *testing.T) {
			t.Parallel()

			b := newBooks(t, have)

			const enough = 5
			for range enough {
				d := addon.Decide(want, have, now)
				checkForeign(t, want, have, d)

				if d.Step == addon.Refuse || d.Step == addon.Nothing {
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

func checkForeign(t *testing.T, want addon.Wanted, have addon.Observation, d addon.Decision) {
	t.Helper()

	last, exists := have.Last()
	if !exists {
		return
	}

	deployed, isDeployed := have.Deployed()

	if (d.Step == addon.Install || d.Step == addon.InstallOver) && isDeployed && last.Deleted.IsZero() {
		t.Errorf("%+v over revision %d, which is deployed: %+v", d, deployed.Number, have.History)
	}

	alive := last.Deleted.IsZero() && last.Inputs == "" && last.Former == ""
	if want.Intent.Create && !want.Intent.Adopt && alive && d.Step != addon.Refuse {
		t.Errorf("%+v of somebody else's release: %+v", d, have.History)
	}
}

func checkEnd(t *testing.T, want addon.Wanted, have addon.Observation, d addon.Decision) {
	t.Helper()

	last, _ := have.Last()
	if d.Step == addon.Nothing && (last.Status != addon.Deployed || last.Inputs != wish) {
		t.Errorf("nothing to do with %+v", have.History)
	}

	if d.Step == addon.Refuse && d.Reason == addon.ErrExists && (!want.Intent.Create || want.Intent.Adopt) {
		t.Errorf("refused what is this wish's own: %+v", have.History)
	}
}
