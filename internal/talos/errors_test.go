package talos

import (
	"context"
	"errors"
	"fmt"
	"net"
	"strings"
	"syscall"
	"testing"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
)

func TestClassify_errors(t *testing.T) {
	t.Parallel()

	tests := map[string]struct{ err, class error }{
		"none":                {nil, nil},
		"a class":             {fmt.Errorf("apply: %w", ErrForeign), ErrForeign},
		"refused":             {&net.OpError{Op: "dial", Err: syscall.ECONNREFUSED}, ErrUnreachable},
		"reset":               {fmt.Errorf("read: %w", syscall.ECONNRESET), ErrUnreachable},
		"deadline":            {context.DeadlineExceeded, ErrUnreachable},
		"canceled":            {context.Canceled, ErrUnreachable},
		"unavailable":         {status.Error(codes.Unavailable, "a"), ErrUnreachable},
		"not in time":         {status.Error(codes.DeadlineExceeded, "a"), ErrUnreachable},
		"not allowed":         {status.Error(codes.PermissionDenied, "not authorized"), ErrNotAuthorized},
		"too early":           {status.Error(codes.FailedPrecondition, "bootstrap is not available yet"), ErrInProgress},
		"not there":           {status.Error(codes.NotFound, "a"), ErrGone},
		"bad configuration":   {status.Error(codes.InvalidArgument, "a"), ErrRejected},
		"a worker":            {status.Error(codes.Unimplemented, "a"), ErrUnsupported},
		"an error of Talos":   {status.Error(codes.Unknown, "etcdserver: no leader"), nil},
		"no error of a call":  {errors.New("a"), nil},
		"wrapped status":      {fmt.Errorf("list: %w", status.Error(codes.NotFound, "a")), ErrGone},
		"class around status": {fmt.Errorf("%w: %w", ErrMaintenance, status.Error(codes.NotFound, "a")), ErrMaintenance},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()

			if got := Classify(test.err); !errors.Is(got, test.class) || (got == nil) != (test.class == nil) {
				t.Errorf("class %v, want %v", got, test.class)
			}

			if got := Classify(callError(test.err)); (got == nil) != (test.class == nil) || !errors.Is(got, test.class) {
				t.Errorf("class of the call's error %v, want %v", got, test.class)
			}
		})
	}
}

func TestCallError_readsWell(t *testing.T) {
	t.Parallel()

	err := fmt.Errorf("bootstrap: %w", callError(status.Error(codes.FailedPrecondition, "time is not in sync yet")))
	if want := "bootstrap: in progress: time is not in sync yet"; err.Error() != want {
		t.Errorf("%q, want %q", err, want)
	}

	if status.Code(err) != codes.FailedPrecondition {
		t.Error("the code is lost")
	}
}

func TestCredentials_areHidden(t *testing.T) {
	t.Parallel()

	c := newTestCA(t).credentials(t)
	for _, verb := range []string{"%v", "%+v", "%#v", "%s", "%q", "%x", "%d"} {
		for _, value := range []any{c, &c, Options{Credentials: c}} {
			text := fmt.Sprintf(verb, value)
			if strings.Contains(text, "BEGIN") || strings.Contains(text, "45 45") || strings.Contains(text, "2d2d2d") {
				t.Errorf("%s of %T shows credentials", verb, value)
			}
		}
	}
}

func TestNewFleet_refusesBadCredentials(t *testing.T) {
	t.Parallel()

	good := newTestCA(t).credentials(t)

	for name, c := range map[string]Credentials{
		"no CA":  {Cert: good.Cert, Key: good.Key},
		"no key": {CA: good.CA, Cert: good.Cert},
		"a key that belongs to another certificate": {CA: good.CA, Cert: good.Cert, Key: newTestCA(t).credentials(t).Key},
	} {
		if _, err := NewFleet(Options{Credentials: c}); err == nil ||
			!strings.Contains(err.Error(), "read Talos API credentials") {
			t.Errorf("%s: err = %v", name, err)
		}
	}
}
