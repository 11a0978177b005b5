package charts

import "errors"

// What is wrong with a source. Errors of this package are these for errors.Is.
var (
	// ErrUnreachable is that a server gave no answer: anything might be.
	ErrUnreachable = errors.New("no answer")
	// ErrCertificate is that TLS came to nothing: a certificate that is not believed, one that the
	// server misses, or a server without TLS. Such an error is ErrUnreachable too.
	ErrCertificate = errors.New("no TLS connection")
	// ErrCredentials is that the server refused the credentials, or wants some (401, 403).
	ErrCredentials = errors.New("credentials refused")
	// ErrNoChart is that there is no such chart, repository or path.
	ErrNoChart = errors.New("no such chart")
	// ErrNoVersion is that the chart has no such version.
	ErrNoVersion = errors.New("no such version")
	// ErrDamaged is that what is there is no chart that can be installed, or not the one that was
	// announced (digest, provenance).
	ErrDamaged = errors.New("not a usable chart")
	// ErrTooLarge is that an index or a package is larger than any real one. It is ErrDamaged too.
	ErrTooLarge = errors.New("too large")
)
