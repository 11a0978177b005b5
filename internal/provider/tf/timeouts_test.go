package tf

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/hashicorp/terraform-plugin-framework/diag"
)

// The timeout that ended an operation is named with its value, in the usual form.
func TestRanOut_namesTheTimeout(t *testing.T) {
	t.Parallel()

	for limit, want := range map[time.Duration]string{
		30 * time.Minute: "after 30m (`timeouts.create`)", 2 * time.Hour: "after 2h (`timeouts.create`)",
		90 * time.Second: "after 1m30s (`timeouts.create`)", 10 * time.Second: "after 10s (`timeouts.create`)",
	} {
		if got := (&RanOutError{Operation: OpCreate, Limit: limit}).Error(); !strings.HasSuffix(got, want) {
			t.Errorf("%s: %s", limit, got)
		}
	}

	var diags diag.Diagnostics

	ctx, cancel := DeadlineOf(t.Context(), NoTimeouts(t.Context()), OpRead, &diags)
	if ranOut := RanOut(ctx); ranOut != nil {
		t.Errorf("before its end: %v", ranOut)
	}

	cancel()

	if ranOut := RanOut(ctx); ranOut != nil {
		t.Errorf("of a context that was cancelled: %v", ranOut)
	}

	ctx, cancel = context.WithTimeoutCause(t.Context(), 0, &RanOutError{Operation: OpUpdate, Limit: time.Hour})
	defer cancel()

	<-ctx.Done()

	if ranOut := RanOut(ctx); ranOut == nil || !errors.Is(ranOut, context.DeadlineExceeded) {
		t.Errorf("after its end: %v", ranOut)
	}

	if lines := RanOutLines(ctx); len(lines) != 1 || !strings.Contains(lines[0], "after 1h (`timeouts.update`)") {
		t.Errorf("a report says %q", lines)
	}

	if lines := RanOutLines(t.Context()); lines != nil {
		t.Errorf("a report of an operation that has time says %q", lines)
	}
}
