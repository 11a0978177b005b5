package talos

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"slices"
	"syscall"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/talosop/terraform-provider-talosop/internal/wait"
)

// The classes of errors. Each error of this package wraps at most one of them;
// [Classify] finds it.
var (
	// ErrUnreachable: no answer, or a connection that broke. Nothing follows from
	// it about the machine, nor about a call that was running.
	ErrUnreachable = errors.New("unreachable")
	// ErrMaintenance: the machine waits in maintenance mode, where the call is
	// not available.
	ErrMaintenance = errors.New("in maintenance mode")
	// ErrConfigured: the machine has a configuration, where one in maintenance
	// mode was expected.
	ErrConfigured = errors.New("not in maintenance mode")
	// ErrForeign: what answers is not the machine that was meant. Nothing was
	// sent to it.
	ErrForeign = errors.New("wrong identity")
	// ErrNotAuthorized: the machine does not accept the client's certificate or
	// its role.
	ErrNotAuthorized = errors.New("not authorized")
	// ErrInProgress: the machine is busy, or not far enough, for the call. Later
	// it may be accepted.
	ErrInProgress = errors.New("in progress")
	// ErrGone: the requested object does not exist.
	ErrGone = errors.New("not found")
	// ErrRejected: Talos refuses the request as it is; repeating it is useless.
	ErrRejected = errors.New("rejected")
	// ErrUnsupported: this machine has no such call, because of its role or of
	// its Talos version.
	ErrUnsupported = errors.New("not supported")
	// ErrQuorum: etcd refuses, because it has no quorum or would lose it. It may be
	// accepted once more members are well.
	ErrQuorum = errors.New("etcd has no quorum or would lose it")
)

var classes = []error{
	ErrUnreachable, ErrMaintenance, ErrConfigured, ErrForeign, ErrNotAuthorized,
	ErrInProgress, ErrGone, ErrRejected, ErrUnsupported, ErrQuorum,
}

// Classify returns the class of an error of this package or of a gRPC error, and nil for one without a class (an
// error in Talos itself, mostly code Unknown).
func Classify(err error) error {
	if err == nil {
		return nil
	}

	for _, class := range classes {
		if errors.Is(err, class) {
			return class
		}
	}

	if isTransport(err) {
		return ErrUnreachable
	}

	switch status.Code(err) {
	case codes.Unavailable, codes.Canceled, codes.DeadlineExceeded:
		return ErrUnreachable
	case codes.PermissionDenied, codes.Unauthenticated:
		return ErrNotAuthorized
	case codes.FailedPrecondition, codes.Aborted:
		return ErrInProgress
	case codes.NotFound:
		return ErrGone
	case codes.InvalidArgument, codes.OutOfRange, codes.ResourceExhausted:
		return ErrRejected
	case codes.Unimplemented:
		return ErrUnsupported
	default:
		return nil
	}
}

// unreachable reports whether an error says nothing about the machine.
func unreachable(err error) bool { return errors.Is(Classify(err), ErrUnreachable) }

// callError gives the error of a call its class and its text: the message of a
// gRPC status without gRPC's own words around it.
func callError(err error) error {
	if err == nil {
		return nil
	}

	class := Classify(err)
	if class == nil || errors.Is(err, class) {
		return plain(err)
	}

	return fmt.Errorf("%w: %w", class, plain(err))
}

// plain replaces a gRPC status by its message, and an expired deadline by what it means. Any other error stays as it
// is.
func plain(err error) error {
	if s, ok := status.FromError(err); ok && s.Code() != codes.OK {
		if s.Code() == codes.DeadlineExceeded {
			return statusError{text: "timed out waiting for a response", err: err}
		}

		return statusError{text: s.Message(), err: err}
	}

	if err == context.DeadlineExceeded { //nolint:errorlint // one with more around it says what it waited for
		return statusError{text: "no answer in time", err: err}
	}

	return err
}

// statusError is a gRPC error that reads as its message alone.
type statusError struct {
	text string
	err  error
}

func (e statusError) Error() string { return e.text }
func (e statusError) Unwrap() error { return e.err }

// isTransport recognizes errors of the network, by type.
func isTransport(err error) bool {
	var network net.Error

	return errors.As(err, &network) || errors.Is(err, syscall.ECONNREFUSED) || errors.Is(err, syscall.ECONNRESET) ||
		errors.Is(err, syscall.EPIPE) || errors.Is(err, os.ErrDeadlineExceeded) ||
		errors.Is(err, context.DeadlineExceeded) || errors.Is(err, context.Canceled)
}

// doing adds the failed operation to an error; nil stays nil.
func doing(err error, format string, args ...any) error {
	if err == nil {
		return nil
	}

	return fmt.Errorf("%s: %w", fmt.Sprintf(format, args...), err)
}

// final marks the error of a call that the machine refuses in the same way each time.
func final(err error) error {
	if errors.Is(err, ErrRejected) || errors.Is(err, ErrUnsupported) || errors.Is(err, ErrNotAuthorized) {
		return wait.Permanent(err)
	}

	return err
}

// foreignError describes the machine that answers instead of the expected one.
func foreignError(format string, args ...any) error {
	return fmt.Errorf("%w: %s", ErrForeign, fmt.Sprintf(format, args...))
}

// Windows has its own numbers for ECONNREFUSED, ENETUNREACH and EHOSTUNREACH (winsock2.h).
const wsaRefused, wsaNoNetwork, wsaNoHost = syscall.Errno(10061), syscall.Errno(10051), syscall.Errno(10065)

// refuses reports whether an error says that a host refuses connections, or that no route leads to it.
func refuses(err error) bool {
	return slices.ContainsFunc([]syscall.Errno{syscall.ECONNREFUSED, syscall.ENETUNREACH, syscall.EHOSTUNREACH, wsaRefused,
		wsaNoNetwork, wsaNoHost}, func(refusal syscall.Errno) bool { return errors.Is(err, refusal) })
}
