package talos

import (
	"errors"
	"fmt"
	"net"
	"reflect"
	"sync"
)

// wire is a connection that remembers why it broke. gRPC turns the error of a
// failed read into text; here it keeps its type.
type wire struct {
	net.Conn

	mu  sync.Mutex
	err error
}

// Read reads, and remembers the first error.
func (w *wire) Read(p []byte) (int, error) {
	n, err := w.Conn.Read(p)
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
	if err == nil {
		return
	}

	w.mu.Lock()
	defer w.mu.Unlock()

	// An alert tells more than the broken pipe of the write before it.
	if _, alert := alertOf(err); w.err == nil || alert {
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
		return fmt.Errorf("%w: it takes the client certificate to be expired or not yet valid: compare its clock with this machine's",
			ErrNotAuthorised)
	case alertUnknownCA, alertCertificateRequired:
		return foreignError("it does not accept client certificates of this cluster's Talos CA")
	case alertBadCertificate:
		return fmt.Errorf("%w: it refuses the client certificate", ErrNotAuthorised)
	default:
		return fmt.Errorf("%w: it ended the TLS handshake with alert %d", ErrUnreachable, a)
	}
}
