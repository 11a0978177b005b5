package sim

import "errors"

// ExpireCertificate lets a configured machine show an API certificate whose time is over, as one does that was paused
// for longer than a day. Existing connections continue. RenewCertificate, another configuration and the next boot
// end it: Talos makes a new one every 12 hours (Talos 1.13, secrets.APIController).
func (m *Machine) ExpireCertificate() error {
	boot := m.current()
	if boot == nil {
		return errors.New("expire the certificate of " + m.Name() + ": it is off")
	}

	return boot.api.Expire()
}

// RenewCertificate makes a configured machine show a new API certificate.
func (m *Machine) RenewCertificate() error {
	boot := m.current()
	if boot == nil {
		return errors.New("renew the certificate of " + m.Name() + ": it is off")
	}

	return boot.api.Renew()
}
