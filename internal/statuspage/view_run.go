package statuspage

import (
	"fmt"
	"slices"
	"strings"
	"time"
)

type runView struct {
	Running, Failed []stepView
	// Waits are the first ones, and Later those after them.
	Waits, Later []stepView
	// Finished are the last ones, and Earlier those before; both begin with the newest.
	Finished, Earlier []stepView
}

type stepView struct {
	Mark kind
	// Time is how long the step takes or took, and Detail the reason of a failure or what it waits for.
	Text, Time, Detail string
}

// shownSteps are the finished, and the waiting steps that a page shows at once.
const shownSteps = 5

func (r *Run) running() bool {
	return slices.ContainsFunc(r.Resources, func(r Resource) bool { return !r.Ended })
}

func (r *Run) failed() bool {
	return slices.ContainsFunc(r.Resources, func(r Resource) bool { return r.Failure != "" })
}

func (r *Run) headline(cluster string) string {
	switch {
	case r.running():
		return "The apply to cluster " + cluster + " is running"
	case r.failed():
		return "The apply to cluster " + cluster + " failed"
	default:
		return "The apply to cluster " + cluster + " has finished"
	}
}

func (r *Run) mark() kind {
	switch {
	case r.running():
		return kind{Working, "Running"}
	case r.failed():
		return kind{Broken, "Failed"}
	default:
		return kind{noProblems, "Finished"}
	}
}

func (r *Run) note() string {
	if r.running() {
		return fmt.Sprintf("This page loads itself again every %d seconds. A running apply writes it at least once a minute.",
			reloadRunning)
	}

	return fmt.Sprintf("The work on %s is over. This page loads itself again every %d seconds, in case the apply "+
		"continues with another resource.", strings.Join(r.names(), ", "), reloadEnded)
}

func (r *Run) names() []string {
	out := make([]string, len(r.Resources))
	for i, resource := range r.Resources {
		out[i] = text(resource.Name)
	}

	return out
}

func (r *Run) view(now time.Time) *runView {
	v := &runView{}

	for _, s := range slices.Backward(r.Steps) {
		switch s.State {
		case Running:
			v.Running = append(v.Running, s.view(now))
		case Failed:
			v.Failed = append(v.Failed, s.view(now))
		case Finished:
			v.Finished = append(v.Finished, s.view(now))
		}
	}

	slices.Reverse(v.Running)

	v.Finished, v.Earlier = split(v.Finished)
	v.Waits, v.Later = split(r.waiting())

	for _, resource := range r.Resources {
		if resource.Failure != "" {
			v.Failed = append(v.Failed, stepView{Mark: kind{Broken, "Failed"}, Text: text(resource.Name),
				Detail: text(resource.Failure)})
		}
	}

	return v
}

// split returns the first rows, and those after them. A single row more is one of the first.
func split(rows []stepView) (first, rest []stepView) {
	if len(rows) <= shownSteps+1 {
		return rows, nil
	}

	return rows[:shownSteps], rows[shownSteps:]
}

// waiting has what waits without a step, then the steps that did not begin. The first step of a machine has the
// reason why the machine waits.
func (r *Run) waiting() []stepView {
	var next []stepView

	waits := slices.Clone(r.Waits)

	for _, s := range r.Next {
		v := stepView{Mark: kind{Waiting, "Waiting"}, Text: text(s.Text)}

		if i := slices.IndexFunc(waits, func(w Wait) bool { return w.Machine != "" && w.Machine == s.Machine }); i >= 0 {
			v.Detail = text(waits[i].Reason)
			waits = slices.Delete(waits, i, i+1)
		}

		next = append(next, v)
	}

	return append(waitsOf(waits), next...)
}

// waitsOf has one row for each reason, with all machines that wait for it.
func waitsOf(waits []Wait) []stepView {
	var reasons []string

	machines := map[string][]string{}

	for _, w := range waits {
		if _, known := machines[w.Reason]; !known {
			reasons, machines[w.Reason] = append(reasons, w.Reason), nil
		}

		if w.Machine != "" {
			machines[w.Reason] = append(machines[w.Reason], w.Machine)
		}
	}

	out := make([]stepView, len(reasons))

	for i, reason := range reasons {
		out[i] = stepView{Mark: kind{Waiting, "Waiting"}, Text: text(reason)}
		if of := machines[reason]; len(of) > 0 {
			out[i].Text, out[i].Detail = text(strings.Join(of, ", ")), text(reason)
		}
	}

	return out
}

func (s Step) view(now time.Time) stepView {
	v := stepView{Text: text(s.Text), Detail: text(s.Reason)}

	switch s.State {
	case Running:
		v.Mark = kind{Working, "Running"}
		v.Time = "for " + rounded(now.Sub(s.Began))

		if s.Usual > 0 {
			v.Time += ", usually " + rounded(s.Usual)
		}
	case Failed:
		v.Mark, v.Time = kind{Broken, "Failed"}, "after "+rounded(s.Elapsed)
	case Finished:
		v.Mark, v.Time = kind{noProblems, "Finished"}, rounded(s.Elapsed)
	}

	return v
}

// rounded is a duration in full seconds.
func rounded(d time.Duration) string { return max(d.Round(time.Second), 0).String() }
