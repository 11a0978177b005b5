package lifecycle_test

import (
	"strconv"
	"testing"
	"time"

	"github.com/talosop/terraform-provider-talosop/internal/sim"
)

// BenchmarkCreate is a create from blank machines to Ready. It reports the seconds of the create, and the calls and
// connections for each machine.
func BenchmarkCreate(b *testing.B) {
	for _, size := range []int{10, 50, 100, 200, 500, 1000} {
		b.Run(strconv.Itoa(size), func(b *testing.B) {
			var (
				took               time.Duration
				calls, connections int
			)

			for b.Loop() {
				s := newSite(b, 3, size-3, sim.Options{})
				s.quiet = true
				runner := s.runner()
				runner.Interval = 0 // as in production

				begun := time.Now()

				if _, err := runner.Converge(bounded(b), s.want); err != nil {
					b.Fatal(err)
				}

				took += time.Since(begun)
				calls += len(s.sim.Calls())
				connections += s.sim.Connections()
			}

			b.ReportMetric(took.Seconds()/float64(b.N), "s/create")
			b.ReportMetric(float64(calls)/float64(b.N*size), "calls/machine")
			b.ReportMetric(float64(connections)/float64(b.N*size), "connections/machine")
		})
	}
}
