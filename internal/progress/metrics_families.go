package progress

import (
	"cmp"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/talosop/terraform-provider-talosop/internal/cluster/step"
	"github.com/talosop/terraform-provider-talosop/internal/openmetrics"
)

// lastSuccess is the metric that outlasts an apply that fails.
const lastSuccess = "talosop_apply_last_success_timestamp_seconds"

// applyMetric is a metric of an apply.
type applyMetric struct {
	help, unit string
	// labels are those beside file, cluster and resource.
	labels []string
	// values has no value where there is none yet.
	values func(a *apply, now time.Time) []openmetrics.Sample
}

// applyMetrics are the metrics of an apply by name.
var applyMetrics = map[string]applyMetric{
	"talosop_apply_running": {help: "Whether the apply runs. A process that was killed leaves it at 1.",
		values: value(func(a *apply) float64 { return openmetrics.Of(a.running > 0) })},
	"talosop_apply_success": {help: "Whether the work on all resources succeeded, once it is over.",
		values: whenEnded(func(a *apply) float64 { return openmetrics.Of(a.failed == 0) })},
	"talosop_apply_start_timestamp_seconds": {help: "When the work of the apply began.", unit: "seconds",
		values: value(func(a *apply) float64 { return timestamp(a.began) })},
	"talosop_apply_end_timestamp_seconds": {help: "When the work of the apply ended.", unit: "seconds",
		values: whenEnded(func(a *apply) float64 { return timestamp(a.ended) })},
	"talosop_apply_duration_seconds": {help: "How long the work of the apply took.", unit: "seconds",
		values: whenEnded(func(a *apply) float64 { return a.ended.Sub(a.began).Seconds() })},
	"talosop_apply_update_timestamp_seconds": {help: "When the apply last wrote these metrics.", unit: "seconds",
		values: func(_ *apply, now time.Time) []openmetrics.Sample {
			return []openmetrics.Sample{{Value: timestamp(now)}}
		}},
	lastSuccess: {help: "When an apply last succeeded.", unit: "seconds",
		values: func(a *apply, _ time.Time) []openmetrics.Sample {
			if a.running > 0 || a.failed > 0 {
				return nil
			}

			return []openmetrics.Sample{{Value: timestamp(a.ended)}}
		}},
	"talosop_apply_resources": {help: "Resources that the apply worked on, by result.", labels: []string{"result"},
		values: func(a *apply, _ time.Time) []openmetrics.Sample {
			return []openmetrics.Sample{{Labels: []string{failure}, Value: float64(a.failed)},
				{Labels: []string{"running"}, Value: float64(a.running)}, {Labels: []string{success}, Value: float64(a.succeeded)}}
		}},
	"talosop_apply_steps": {help: "Steps that ended, by kind and result. talosop may repeat a step that failed.",
		labels: []string{"kind", "result"},
		values: perStep(func(s stepSum) float64 { return float64(s.count) })},
	"talosop_apply_steps_duration_seconds": {help: "How long these steps took together.", unit: "seconds",
		labels: []string{"kind", "result"},
		values: perStep(func(s stepSum) float64 { return s.elapsed.Seconds() })},
	"talosop_apply_disrupted_machines": {help: "Machines that the apply took out of service.",
		values: value(func(a *apply) float64 { return float64(len(a.disrupted)) })},
	"talosop_apply_waiting": {help: "Machines and resources that wait.",
		values: value(func(a *apply) float64 { return float64(len(a.waiting)) })},
	"talosop_apply_waits": {help: "Waits of the apply, each with another reason.",
		values: value(func(a *apply) float64 { return float64(a.waits) })},
}

func timestamp(t time.Time) float64 { return float64(t.UnixMilli()) / 1000 }

// value is one value.
func value(of func(a *apply) float64) func(*apply, time.Time) []openmetrics.Sample {
	return func(a *apply, _ time.Time) []openmetrics.Sample { return []openmetrics.Sample{{Value: of(a)}} }
}

// whenEnded is one value of an apply that is over.
func whenEnded(of func(a *apply) float64) func(*apply, time.Time) []openmetrics.Sample {
	return func(a *apply, now time.Time) []openmetrics.Sample {
		if a.running > 0 {
			return nil
		}

		return value(of)(a, now)
	}
}

// perStep is a value for each kind of step and result.
func perStep(of func(s stepSum) float64) func(*apply, time.Time) []openmetrics.Sample {
	return func(a *apply, _ time.Time) []openmetrics.Sample {
		var out []openmetrics.Sample

		for _, key := range slices.SortedFunc(maps.Keys(a.steps), func(a, b stepResult) int {
			return cmp.Or(strings.Compare(a.kind, b.kind), strings.Compare(a.result, b.result))
		}) {
			out = append(out, openmetrics.Sample{Labels: []string{key.kind, key.result}, Value: of(a.steps[key])})
		}

		return out
	}
}

// applyFamilies are the families of the metrics, without samples, by name.
func applyFamilies() []openmetrics.Family {
	var out []openmetrics.Family

	for _, name := range slices.Sorted(maps.Keys(applyMetrics)) {
		m := applyMetrics[name]
		out = append(out, openmetrics.Family{Name: name, Help: m.help, Unit: m.unit,
			Labels: append([]string{"file", "cluster", "resource"}, m.labels...)})
	}

	return out
}

// capitals finds where a word of a name begins.
var capitals = regexp.MustCompile(`([a-z])([A-Z])`)

// kindName is the kind of a step as a label, such as upgrade_component.
func kindName(s step.Step) string {
	_, name, _ := strings.Cut(fmt.Sprintf("%T", s), ".")

	return strings.ToLower(capitals.ReplaceAllString(name, "${1}_${2}"))
}
