package kubestate

import "time"

// Certificate is the validity of a certificate. The zero value is a certificate that was not observed.
type Certificate struct {
	NotBefore, NotAfter time.Time
}

// Known is false for a certificate that was not observed.
func (c Certificate) Known() bool { return !c.NotAfter.IsZero() }

// Due is true when the remaining time is at most within, or at most a third of the lifetime if that is shorter. Talos
// makes certificates that last one day, and replaces its own at half of their lifetime.
func (c Certificate) Due(now time.Time, within time.Duration) bool {
	const part = 3

	return !now.Before(c.NotAfter.Add(-min(within, c.NotAfter.Sub(c.NotBefore)/part)))
}

// ServerCertificate is the certificate of the API server at a URL.
type ServerCertificate struct {
	URL string
	Certificate
}
