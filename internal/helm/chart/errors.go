package chart

import (
	"errors"
	"fmt"
	"net/url"
	"slices"
	"strings"
)

// What is wrong with a source. Errors of this package are these for errors.Is, or the context's.
var (
	// ErrUnreachable is that a server gave no answer: anything might be.
	ErrUnreachable = errors.New("no response")
	// ErrCertificate is that TLS came to nothing: a certificate that is not trusted, one that the
	// server misses, or a server without TLS. Such an error is ErrUnreachable too.
	ErrCertificate = errors.New("no TLS connection")
	// ErrWithoutTLS is that the server speaks HTTP alone. Such an error is ErrCertificate too.
	ErrWithoutTLS = errors.New("no TLS")
	// ErrCredentials is that the server refused the credentials, or wants some (401, 403).
	ErrCredentials = errors.New("credentials refused")
	// ErrNoChart is that there is no such chart, repository or path.
	ErrNoChart = errors.New("no such chart")
	// ErrNoVersion is that the chart has no such version.
	ErrNoVersion = errors.New("no such version")
	// ErrDamaged is that what is there is no chart that can be installed, or not the one that was
	// expected (digest, provenance).
	ErrDamaged = errors.New("not a usable chart")
	// ErrTooLarge is that an index or a package is larger than any real one. It is ErrDamaged too.
	ErrTooLarge = errors.New("too large")
)

var (
	// errGone is a 404 or 410; its meaning depends on the request.
	errGone = errors.New("not found")
	// errTransient is an ErrUnreachable that a retry may fix.
	errTransient = errors.New("try again")
	// errMismatch is an ErrDamaged that a newer index may explain.
	errMismatch = errors.New("unexpected content")
)

// sourceError is what went wrong, in words for a user, and which of the errors above it is.
type sourceError struct {
	text  string
	kinds []error
	cause error
}

// newError makes an error of kinds. The text is complete but for the cause, which may be nil.
func newError(text string, cause error, kinds ...error) error {
	return &sourceError{text: text, kinds: kinds, cause: cause}
}

// Error describes the problem.
func (e *sourceError) Error() string {
	if e.cause == nil {
		return e.text
	}
	return e.text + ": " + e.cause.Error()
}

// Unwrap makes the kinds visible to errors.Is.
func (e *sourceError) Unwrap() []error {
	if e.cause == nil {
		return e.kinds
	}
	return append(slices.Clone(e.kinds), e.cause)
}

// redactedError is an error whose text held a secret.
type redactedError struct {
	text string
	err  error
}

func (e *redactedError) Error() string { return e.text }
func (e *redactedError) Unwrap() error { return e.err }

// redact takes the secrets of a source out of the text of an error: a server may send back
// whatever it was sent.
func redact(err error, from Source) error {
	if err == nil {
		return nil
	}
	before := err.Error()
	text := before
	for _, secret := range []string{from.Password, from.ClientKey} {
		// A text this short occurs by chance.
		if len(secret) <= 3 {
			continue
		}
		text = strings.ReplaceAll(text, secret, "(sensitive)")
		text = strings.ReplaceAll(text, url.QueryEscape(secret), "(sensitive)")
	}
	if text == before {
		return err
	}
	return &redactedError{text: text, err: err}
}

// displayURL is a URL without what may be secret in it: user, query and fragment.
func displayURL(u *url.URL) string {
	plain := url.URL{Scheme: u.Scheme, Host: u.Host, Path: u.Path, RawPath: u.RawPath}
	return plain.String()
}

// some lists the first of the names, and how many more there are.
func some(names []string) string {
	const few = 5
	if len(names) == 0 {
		return "none"
	}
	if len(names) <= few {
		return strings.Join(names, ", ")
	}
	return strings.Join(names[:few], ", ") + ", …"
}

// noVersion names the versions that there are, newest first.
func noVersion(from Source, chart, host string, have []string) error {
	text := fmt.Sprintf("chart %s of %s has no %s; newest versions: %s", chart, host, from.wanted(), some(have))
	return newError(text, nil, ErrNoVersion)
}
