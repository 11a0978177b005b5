package diagnose

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/util/resourceversion"

	"github.com/talosop/terraform-provider-talosop/internal/kubernetes/api"
)

// LastEvent is the last one about an object. What cannot be read is said instead.
func (d *Diagnosis) LastEvent(ctx context.Context, namespace, kind, name string) string {
	list, err := d.api.CoreV1().Events(namespace).List(ctx, metav1.ListOptions{
		FieldSelector: fields.Set{"involvedObject.kind": kind, "involvedObject.name": name}.String(),
	})

	switch {
	case err != nil:
		return "unknown, " + api.OneLine(err)
	case len(list.Items) == 0:
		return "none"
	}

	return Last(list.Items)
}

// Last says which of some events, one at least, happened last, and when. Of several at the same time it is
// the one that was written last, and then the one whose name is last.
func Last(events []corev1.Event) string {
	last := slices.MaxFunc(events, func(a, b corev1.Event) int {
		// Versions that cannot be compared are as good as equal.
		later, err := resourceversion.CompareResourceVersion(a.ResourceVersion, b.ResourceVersion)
		if err != nil {
			later = 0
		}

		return cmp.Or(eventTime(&a).Compare(eventTime(&b)), later, cmp.Compare(a.Name, b.Name))
	})

	return fmt.Sprintf("%s %s: %s (%s)", last.Type, last.Reason, strings.TrimSpace(last.Message),
		eventTime(&last).UTC().Format(time.RFC3339))
}

// eventTime is the second in which an event happened last: which field says so depends on the library that recorded it,
// and only some of them have fractions.
func eventTime(e *corev1.Event) time.Time {
	at := e.CreationTimestamp.Time

	for _, t := range []time.Time{e.FirstTimestamp.Time, e.EventTime.Time, e.LastTimestamp.Time} {
		if t.After(at) {
			at = t
		}
	}

	if e.Series != nil && e.Series.LastObservedTime.After(at) {
		at = e.Series.LastObservedTime.Time
	}

	return at.Truncate(time.Second)
}
