package talos

import (
	"context"
	"errors"
	"fmt"
	"net"
	"reflect"
	"sync"
	"time"
)

// wire is a connection that remembers why it broke. gRPC turns the error of a
// failed read into text; here it keeps its type.
type wire struct {
	net.Conn

	mu  sync.Mutex
	err error
	// ahead is what was read before gRPC got the connection. Only its one reader
	// uses it.
	ahead []byte
	// limited is true for a peer that proved nothing: left is how many bytes it may still say. Both are set before
	// gRPC gets the connection.
	limited bool
	left    int
}

const (
	// maxUnprovenBytes limits the bytes that are read of one connection in maintenance mode, where any server at the
	// address may answer. It is a thousand times what describes a machine. The next connection starts from zero.
	maxUnprovenBytes = 16 << 20
	// maxUnprovenMessage is the largest message that is taken of one, in bytes.
	maxUnprovenMessage = 1 << 20
)

// errTooMuch ends a connection to a machine that says more than one in maintenance mode has to say.
var errTooMuch = fmt.Errorf("the server sent more than %d MiB in maintenance mode", maxUnprovenBytes>>20)

// greeted waits for the first bytes of the server, which gRPC servers send unprompted. With TLS 1.3 they show
// whether the server accepts the client certificate: the client's handshake ends before that. They have to be read
// before anything is written, because a refusing server closes at once, and a write to a closed connection
// discards the unread refusal.
func (w *wire) greeted(ctx context.Context) error {
	stop := context.AfterFunc(ctx, func() { _ = w.Conn.SetReadDeadline(time.Unix(1, 0)) })
	defer stop()

	first := make([]byte, 1)

	n, err := w.Conn.Read(first)

	switch alert, refused := alertOf(err); {
	case err == nil:
		w.ahead = first[:n]

		return nil
	case refused:
		return alert.verdict()
	case ctx.Err() != nil:
		return callError(context.Cause(ctx))
	default:
		return fmt.Errorf("%w: %w", ErrUnreachable, err)
	}
}

// Read reads, and remembers the first error.
func (w *wire) Read(p []byte) (int, error) {
	if len(w.ahead) > 0 {
		n := copy(p, w.ahead)
		w.ahead = w.ahead[n:]

		return n, nil
	}

	n, err := w.Conn.Read(p)
	if w.left -= n; w.limited && w.left < 0 {
		n, err = 0, errTooMuch
	}

	w.remember(err)

	return n, err
}

// Write writes, and remembers the first error.
func (w *wire) Write(p []byte) (int, error) {
	n, err := w.Conn.Write(p)
	w.remember(err)

	return n, err
}

func (w *wire) remember(err error) {
	w.mu.Lock()
	defer w.mu.Unlock()

	if w.err == nil {
		w.err = err
	}
}

// broken returns the error that ended the connection, nil while it is alive.
func (w *wire) broken() error {
	w.mu.Lock()
	defer w.mu.Unlock()

	return w.err
}

// alert is the number of a TLS alert that the peer sent (RFC 8446, 6).
type alert uint8

const (
	alertBadCertificate      alert = 42
	alertCertificateExpired  alert = 45
	alertUnknownCA           alert = 48
	alertCertificateRequired alert = 116
)

// alertOf finds a TLS alert that the peer sent. crypto/tls reports one as an
// operation error "remote error" around a number of an unexported type.
func alertOf(err error) (alert, bool) {
	var op *net.OpError
	if !errors.As(err, &op) || op.Op != "remote error" || op.Err == nil {
		return 0, false
	}

	if v := reflect.ValueOf(op.Err); v.Kind() == reflect.Uint8 {
		return alert(v.Uint()), true
	}

	return 0, true
}

// verdict is what an alert means for a client that accepted the server's
// certificate and was refused itself.
func (a alert) verdict() error {
	switch a {
	case alertCertificateExpired:
		return fmt.Errorf("%w: the machine considers the client certificate expired or not yet valid: compare its clock "+
			"with the clock of this computer",
			ErrNotAuthorized)
	case alertUnknownCA, alertCertificateRequired:
		return foreignError("the machine does not accept client certificates of this cluster's Talos CA")
	case alertBadCertificate:
		return fmt.Errorf("%w: the machine refused the client certificate", ErrNotAuthorized)
	default:
		return fmt.Errorf("%w: the machine ended the TLS handshake with alert %d", ErrUnreachable, a)
	}
}
