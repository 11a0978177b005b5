package statuspage

import (
	"fmt"
	"slices"
	"strconv"
	"time"
)

type driftView struct {
	Mark     kind
	Text     string
	Machines []Drift
}

func driftOf(drift []Drift) *driftView {
	switch {
	case drift == nil:
		return nil
	case len(drift) == 0:
		return &driftView{Mark: marks[Good], Text: "All machines are as last applied"}
	}

	v := &driftView{Mark: kind{Drifted, "Drift"}, Text: countOf(len(drift), "machine") + " with differences"}

	for _, d := range drift {
		shown := Drift{Machine: text(d.Machine)}
		for _, line := range d.Lines {
			shown.Lines = append(shown.Lines, text(line))
		}

		v.Machines = append(v.Machines, shown)
	}

	return v
}

type operationsView struct {
	Mark kind
	Text string
	// First are those that are shown, Rest those that the reader unfolds, and Next the number of its first one.
	First, Rest []string
	Next        int
}

// mostOperations are the operations that a page shows at once.
const mostOperations = 8

func operationsOf(operations []string) *operationsView {
	switch {
	case operations == nil:
		return nil
	case len(operations) == 0:
		return &operationsView{Mark: marks[Good], Text: "None"}
	}

	v := &operationsView{Mark: kind{Waiting, "Pending"}, Text: countOf(len(operations), "operation") + " in the plan",
		Next: mostOperations + 1}

	for i, o := range operations {
		if i < mostOperations {
			v.First = append(v.First, text(o))
		} else {
			v.Rest = append(v.Rest, text(o))
		}
	}

	return v
}

type backupsView struct {
	Mark, BadMark kind
	Text          string
	Rows          []backupView
}

type backupView struct{ When, Key, Problem string }

func backupsOf(backups []Backup, now time.Time) *backupsView {
	if backups == nil {
		return nil
	}

	v := &backupsView{Mark: marks[Bad], BadMark: marks[Bad], Text: "No backup can be restored"}

	if i := slices.IndexFunc(backups, func(b Backup) bool { return b.Problem == "" }); i == 0 {
		v.Mark, v.Text = marks[Good], "The newest one was taken "+ago(backups[i].Time, now)
	} else if i > 0 {
		v.Text = "The newest one cannot be restored; the last good one was taken " + ago(backups[i].Time, now)
	}

	for _, b := range backups {
		v.Rows = append(v.Rows, backupView{b.Time.UTC().Format(minute), text(b.Key), text(b.Problem)})
	}

	return v
}

// ago is the age of a time in days.
func ago(t, now time.Time) string {
	switch days := daysBetween(t, now); days {
	case 0:
		return "today"
	case 1:
		return "yesterday"
	default:
		return thousands(days) + " days ago"
	}
}

// daysBetween counts the midnights (UTC) between two times, so that the count stays the same for a day.
func daysBetween(from, to time.Time) int {
	const day = 24 * time.Hour

	return int(to.UTC().Truncate(day).Sub(from.UTC().Truncate(day)) / day)
}

// thousands is a number with separators.
func thousands(n int) string {
	const thousand = 1000

	if n < thousand {
		return strconv.Itoa(n)
	}

	return thousands(n/thousand) + fmt.Sprintf(",%03d", n%thousand)
}

type certificatesView struct {
	Mark kind
	Text string
	Open bool
	Rows []certificateView
}

type certificateView struct {
	Mark               kind
	Name, Server, Left string
}

func certificatesOf(certificates []Certificate, now time.Time) *certificatesView {
	if len(certificates) == 0 {
		return nil
	}

	v := &certificatesView{Mark: marks[Good]}

	due, next := 0, time.Time{}

	for _, c := range certificates {
		row := certificateView{marks[Good], text(c.Name), text(c.Server), thousands(daysBetween(now, c.Until))}

		switch {
		case c.Due && !now.Before(c.Until):
			row.Left = "expired"
		case c.Renewed && !c.Due:
			row.Left = "renewed daily"
		}

		if c.Due {
			due++

			row.Mark = marks[Bad]
		}

		if !c.Renewed && (next.IsZero() || c.Until.Before(next)) {
			next = c.Until
		}

		v.Rows = append(v.Rows, row)
	}

	switch {
	case due > 0:
		v.Mark, v.Open, v.Text = marks[Bad], true, countOf(due, "certificate")+" expired or due"
	case next.IsZero():
		v.Text = "Talos renews all of them"
	default:
		v.Text = "Next expiry in " + countOf(daysBetween(now, next), "day")
	}

	return v
}

type conditionsView struct {
	Mark kind
	Text string
	Rows []conditionView
}

type conditionView struct {
	Mark                kind
	Name, Reason, Since string
}

func (c Condition) view() conditionView {
	v := conditionView{Mark: marks[c.State], Name: text(c.Name), Reason: text(c.Reason)}
	v.Mark.Label = map[State]string{Good: "True", Bad: "False", Unknown: "Unknown"}[c.State]

	if !c.Since.IsZero() {
		v.Since = c.Since.UTC().Format(minute)
	}

	return v
}

func conditionsOf(conditions []Condition) *conditionsView {
	if len(conditions) == 0 {
		return nil
	}

	v := &conditionsView{Mark: marks[Good]}
	good := 0

	for _, c := range conditions {
		if c.State == Good {
			good++
		} else if v.Mark != marks[Bad] {
			v.Mark = marks[c.State]
		}

		v.Rows = append(v.Rows, c.view())
	}

	v.Text = fmt.Sprintf("%d of %d are True", good, len(conditions))

	return v
}
