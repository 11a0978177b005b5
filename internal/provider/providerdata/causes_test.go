package providerdata_test

import (
	"context"
	"errors"
	"slices"
	"testing"
	"time"

	"github.com/talosop/terraform-provider-talosop/internal/cluster/step"
	"github.com/talosop/terraform-provider-talosop/internal/lifecycle"
	"github.com/talosop/terraform-provider-talosop/internal/provider/providerdata"
	"github.com/talosop/terraform-provider-talosop/internal/provider/tf"
	"github.com/talosop/terraform-provider-talosop/internal/talos"
)

// Each cause is listed once, with all machines that have it. A remedy takes the place of "Applying again is safe" where
// another run cannot help.
func TestStopOf_namesEachCauseOnce(t *testing.T) {
	t.Parallel()

	missing := func(machine string) *lifecycle.StepError {
		return &lifecycle.StepError{Step: step.Uncordon{Machine: machine}, Err: &talos.MissingImageError{Image: "kubelet:v2"}}
	}
	ranOut := &tf.RanOutError{Operation: tf.OpUpdate, Limit: 5 * time.Second}
	holds := []step.Hold{{Machine: "w-1", Reason: "no answer"}, {Machine: "w-2", Reason: "no answer"}}

	for name, test := range map[string]struct {
		err    error
		causes []string
		remedy string
	}{
		"refusals": {
			&lifecycle.IncompleteError{Err: &lifecycle.RefusedError{Refusals: []step.Refusal{
				{Machine: "cp-1", Reason: "another cluster", Remedy: "reset it"},
				{Machine: "cp-2", Reason: "another cluster", Remedy: "reset it"},
			}}},
			[]string{"cp-1 and cp-2: another cluster"}, "Reset it.",
		},
		"an image": {
			&lifecycle.IncompleteError{Err: missing("cp-1"), Failed: []*lifecycle.StepError{missing("w-1"), missing("w-2")}},
			[]string{"cp-1, w-1 and w-2: the registry has no image kubelet:v2"},
			"Correct the version or the image, or add the image to the registry mirror of the machines. Then apply again.",
		},
		"a timeout": {
			&lifecycle.IncompleteError{Err: context.DeadlineExceeded, Holds: holds},
			[]string{"timed out after 5s (`timeouts.update`), waiting for:", "w-1 and w-2: no answer"}, "",
		},
		"an interrupt": {
			&lifecycle.IncompleteError{Err: context.Canceled}, []string{"interrupted"}, "",
		},
		"no run": {errors.New("no secrets"), []string{"no secrets"}, "Correct the cause, then apply again."},
	} {
		stop := providerdata.StopOf(test.err, ranOut)
		if !slices.Equal(stop.Causes, test.causes) || stop.Remedy != test.remedy {
			t.Errorf("%s: %q and %q", name, stop.Causes, stop.Remedy)
		}
	}
}
