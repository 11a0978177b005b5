package diagnose

import (
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// The scheduler's events have times of microseconds and the kubelet's of whole seconds: what a kubelet says within the
// second of the binding is later nevertheless.
func TestLast_timesOfDifferentPrecision(t *testing.T) {
	t.Parallel()

	second := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	scheduled := corev1.Event{ObjectMeta: metav1.ObjectMeta{ResourceVersion: "7"}, Reason: "Scheduled",
		EventTime: metav1.NewMicroTime(second.Add(500 * time.Millisecond))}
	backOff := corev1.Event{ObjectMeta: metav1.ObjectMeta{ResourceVersion: "8"}, Reason: "BackOff",
		LastTimestamp: metav1.NewTime(second)}

	if got := Last([]corev1.Event{scheduled, backOff}); !strings.Contains(got, "BackOff") {
		t.Errorf("the last event is %s", got)
	}
}
