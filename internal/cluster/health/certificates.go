package health

import (
	"time"

	"github.com/talosop/terraform-provider-talosop/internal/cluster"
	"github.com/talosop/terraform-provider-talosop/internal/kubestate"
)

// Certificate is a certificate of a cluster that can expire.
type Certificate struct {
	kubestate.Certificate

	// Name is that of an authority, [TalosAPI] or [KubernetesServer].
	Name string
	// Server presents it: a control plane, as conditions name it, or the URL of an API server. Empty for an authority.
	Server string
	// Due is true when it expires soon, or has expired.
	Due bool
}

// The services with a server certificate.
const (
	TalosAPI         = "Talos API"
	KubernetesServer = "Kubernetes API"
)

// Expiry is what is known about certificates beside a snapshot.
type Expiry struct {
	// Authorities are those in the secrets of the cluster.
	Authorities []Certificate
	// Within is the remaining time from which a certificate is due, unless a third of its lifetime is shorter.
	Within time.Duration
}

// certificatesOf lists the observed certificates: the authorities in their order, the control planes by their titles,
// and the API servers by their URLs. Certificates that etcd, kubelets and the rest of Kubernetes present to each
// other are not observed; Talos and the kubelets renew them.
func certificatesOf(planes []plane, have cluster.Snapshot, expiry Expiry) []Certificate {
	out := append([]Certificate(nil), expiry.Authorities...)

	for _, p := range planes {
		if p.state.Certificate.Known() {
			out = append(out, Certificate{Name: TalosAPI, Server: p.title, Certificate: p.state.Certificate})
		}
	}

	for _, c := range have.Kubernetes.Certificates {
		out = append(out, Certificate{Name: KubernetesServer, Server: c.URL, Certificate: c.Certificate})
	}

	for i := range out {
		out[i].Due = out[i].Certificate.Due(have.Time, expiry.Within)
	}

	return out
}

// certificatesValid is False for certificates that are due.
func certificatesValid(planes []plane, have cluster.Snapshot, seen []Certificate) Condition {
	var bad, unsure []string

	for _, c := range seen {
		if c.Due {
			bad = append(bad, c.text())
		}
	}

	for _, p := range planes {
		if reason, known := p.absence(); !known && !p.state.Certificate.Known() {
			unsure = append(unsure, p.title+" "+reason)
		}
	}

	if len(planes) == 0 {
		unsure = append(unsure, "no known control plane")
	}

	if len(have.Kubernetes.Certificates) == 0 {
		unsure = append(unsure, "the Kubernetes API presents no certificate")
	}

	return judged(CertificatesValid, bad, unsure, "no certificate expires soon")
}

// text says until when a certificate is valid.
func (c Certificate) text() string {
	name := c.Name
	if c.Server != "" {
		name += " of " + c.Server
	}

	return name + " is valid until " + c.NotAfter.UTC().Format(time.RFC3339)
}
