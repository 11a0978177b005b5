package lock

import (
	"strings"
	"testing"
	"testing/synctest"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// A lease that does not change ends after its duration, as far as that is one and not longer than what a run waits for.
// The times that the holder wrote do not matter: its clock may be wrong, or it lies.
func TestObservation_expires(t *testing.T) {
	t.Parallel()

	const longest = 2 * time.Minute

	year := metav1.NewMicroTime(time.Now().AddDate(1, 0, 0))

	for name, test := range map[string]struct {
		spec coordinationv1.LeaseSpec
		want time.Duration
	}{
		"of talosop":            {coordinationv1.LeaseSpec{LeaseDurationSeconds: new(int32(30))}, 30 * time.Second},
		"shorter":               {coordinationv1.LeaseSpec{LeaseDurationSeconds: new(int32(2))}, 2 * time.Second},
		"of 68 years":           {coordinationv1.LeaseSpec{LeaseDurationSeconds: new(int32(2147483647))}, longest},
		"without a duration":    {coordinationv1.LeaseSpec{}, DefaultDuration},
		"of no time":            {coordinationv1.LeaseSpec{LeaseDurationSeconds: new(int32(0))}, DefaultDuration},
		"of negative duration":  {coordinationv1.LeaseSpec{LeaseDurationSeconds: new(int32(-1))}, DefaultDuration},
		"renewed in the future": {coordinationv1.LeaseSpec{RenewTime: &year, AcquireTime: &year}, DefaultDuration},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				lease := &coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{ResourceVersion: "1"}, Spec: test.spec}
				seen := observation{longest: longest}

				if seen.expired(lease) {
					t.Error("it ends when it is first seen")
				}

				<-time.After(test.want)

				if seen.expired(lease) {
					t.Errorf("it ends within %s", test.want)
				}

				<-time.After(time.Second)

				if !seen.expired(lease) {
					t.Errorf("it does not end after %s", test.want)
				}

				lease.ResourceVersion = "2"

				if seen.expired(lease) {
					t.Error("it ends although it changed")
				}
			})
		})
	}
}

// The error of a run that waits names the holder, how old its lease is, and when the run takes it.
func TestObservation_namesTheHolder(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		at := metav1.NewMicroTime(time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC))
		lease := &coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{ResourceVersion: "1"},
			Spec: coordinationv1.LeaseSpec{RenewTime: &at, AcquireTime: &at, LeaseDurationSeconds: new(int32(2147483647))}}
		seen := observation{longest: 2 * time.Minute}

		seen.expired(lease)
		<-time.After(70 * time.Second)

		for _, text := range []string{
			`"ci@host"`, "renewed at 2026-01-02T03:04:05Z", "unchanged for 1m10s", "after 2m0s",
		} {
			if err := seen.heldBy("ci@host"); !strings.Contains(err.Error(), text) {
				t.Errorf("error %q does not say %q", err, text)
			}
		}

		lease.Spec.RenewTime, lease.ResourceVersion = nil, "2"
		seen.expired(lease)

		if err := seen.heldBy("ci@host"); !strings.Contains(err.Error(), "never renewed") {
			t.Errorf("error %q does not say that it was never renewed", err)
		}
	})
}
