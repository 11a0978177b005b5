package health

import (
	"time"

	"github.com/talosop/terraform-provider-talosop/internal/cluster"
	"github.com/talosop/terraform-provider-talosop/internal/kubestate"
)

// Certificate is one of a cluster that can end.
type Certificate struct {
	kubestate.Certificate

	// Name is that of an authority, [TalosAPI] or [KubernetesServer].
	Name string
	// Server shows it: a control plane, as conditions name it, or the URL of an API server. Empty for an authority.
	Server string
	// Due is true when it ends soon, or has ended.
	Due bool
}

// What servers show their certificates for.
const (
	TalosAPI         = "Talos API"
	KubernetesServer = "Kubernetes API"
)

// Expiry is what is known of certificates beside a snapshot.
type Expiry struct {
	// Authorities are those in the secrets of the cluster.
	Authorities []Certificate
	// Within is how much time is left of a certificate that is due, unless a third of its lifetime is shorter.
	Within time.Duration
}

// certificatesOf lists what was seen: the authorities in their order, the control planes by their titles, and the API
// servers by their URLs. What etcd, kubelets and the rest of Kubernetes show each other is not seen from outside; Talos
// and the kubelets renew it.
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

// certificatesValid is False for those that are due.
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
		unsure = append(unsure, "no control plane is known")
	}

	if len(have.Kubernetes.Certificates) == 0 {
		unsure = append(unsure, "the Kubernetes API shows no certificate")
	}

	return judged(CertificatesValid, bad, unsure, "no certificate ends soon")
}

// text says until when a certificate is valid.
func (c Certificate) text() string {
	name := c.Name
	if c.Server != "" {
		name += " of " + c.Server
	}

	return name + " is valid until " + c.NotAfter.UTC().Format(time.RFC3339)
}
