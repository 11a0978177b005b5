package lifecycle_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/talosop/terraform-provider-talosop/internal/lifecycle"
	"github.com/talosop/terraform-provider-talosop/internal/sim"
	"github.com/talosop/terraform-provider-talosop/internal/sim/etcd"
)

// A run with nothing to do ends with an error while etcd has an alarm, because the health data source and the next
// refresh report it. It does not wait until a person clears the alarm.
func TestConverge_endsWithAnErrorWhileEtcdHasAnAlarm(t *testing.T) {
	t.Parallel()

	s := newSite(t, 1, 0, sim.Options{})
	s.create()

	if err := s.sim.Machine("cp-1").RaiseEtcdAlarm(bounded(t), etcd.NoSpace); err != nil {
		t.Fatal(err)
	}

	_, err := s.runner().Converge(bounded(t), s.want)

	var refused *lifecycle.RefusedError
	if !errors.As(err, &refused) || !strings.Contains(err.Error(), "etcd has an alarm: NOSPACE") {
		t.Errorf("error %v, want a refusal that names the alarm", err)
	}

	if err := s.sim.Machine("cp-1").DisarmEtcdAlarms(bounded(t)); err != nil {
		t.Fatal(err)
	}

	if _, err := s.runner().Converge(bounded(t), s.want); err != nil {
		t.Errorf("once the alarm is cleared: %v", err)
	}
}
