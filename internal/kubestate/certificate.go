package kubestate

import "time"

// Certificate is when a certificate is valid; the zero value is one that nobody saw.
type Certificate struct {
	NotBefore, NotAfter time.Time
}

// Known is false for a certificate that nobody saw.
func (c Certificate) Known() bool { return !c.NotAfter.IsZero() }

// Due is true when no more than a time is left of it, or a third of its lifetime where that is shorter: Talos makes
// certificates that last a day, of which a month is never left, and replaces what it makes at half of its lifetime.
func (c Certificate) Due(now time.Time, within time.Duration) bool {
	const part = 3

	return !now.Before(c.NotAfter.Add(-min(within, c.NotAfter.Sub(c.NotBefore)/part)))
}

// ServerCertificate is the certificate of the API server that is at a URL.
type ServerCertificate struct {
	URL string
	Certificate
}
