package cluster_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/talosop/terraform-provider-talosop/internal/cluster"
)

// TestForecastIsWhatHappens compares what is foretold of a change with what is done, on
// clusters of the model in which nothing is wrong and nothing goes wrong: upgrades,
// reboots and removals are the same, however differently they interleave.
func TestForecastIsWhatHappens(t *testing.T) {
	const clusters = 2000

	for seed := range uint64(clusters) {
		run := newTrial(seed)
		dead := func(m cluster.Machine) bool { return run.meant[m.Name].life == off } // given up in time, which a forecast has none of

		if !run.whole || slices.ContainsFunc(run.want.Removed, dead) {
			continue
		}

		watch := newEye(run.site, run.want)
		watch.observe() // members that the spec does not own are asked the second time

		foretold := texts(cluster.Forecast(run.want, watch.observe(), run.policy))

		if end := run.run(); end != "done" {
			t.Fatalf("seed %d: ended %s\n%s", seed, end, run)
		}

		done := texts(run.done)
		if !slices.Equal(foretold, done) {
			t.Fatalf("seed %d: foretold\n%s\ndone\n%s\n%s", seed, strings.Join(foretold, "\n"), strings.Join(done, "\n"), run)
		}
	}
}

// texts are steps as they read, sorted; whether a node is drained depends on how many are
// left by then.
func texts(steps []cluster.Step) []string {
	var out []string
	for _, s := range steps {
		out = append(out, fmt.Sprintf("%s: %s", s.On(), strings.NewReplacer("drain, ", "", " (drains it)", "", "drains it, ", "").Replace(s.String())))
	}

	slices.Sort(out)

	return out
}
