package pki

import (
	"errors"
	"fmt"
	"time"

	talosx509 "github.com/siderolabs/crypto/x509"
	clientconfig "github.com/siderolabs/talos/pkg/machinery/client/config"
)

// TalosconfigInput says whom a talosconfig is for and where it connects to.
type TalosconfigInput struct {
	// Context names the only context of the file; usually the name of the cluster.
	Context string
	// Endpoints are the Talos API addresses talosctl connects to: control-plane machines or a load balancer.
	Endpoints []string
	// Nodes are the machines commands act on when they name none. May be empty.
	Nodes []string
	// Roles and TTL are those of TalosClient.
	Roles []string
	TTL   time.Duration
}

// Talosconfig mints a client certificate and writes the configuration file of talosctl with it.
func (b *Bundle) Talosconfig(in TalosconfigInput) ([]byte, error) {
	if in.Context == "" {
		return nil, errors.New("write talosconfig: a context name is required")
	}

	credentials, err := b.TalosClient(in.Roles, in.TTL)
	if err != nil {
		return nil, fmt.Errorf("write talosconfig: %w", err)
	}

	return credentials.Talosconfig(in.Context, in.Endpoints, in.Nodes)
}

// Talosconfig writes the configuration file of talosctl for credentials of the Talos API.
func (c Credentials) Talosconfig(context string, endpoints, nodes []string) ([]byte, error) {
	pair := &talosx509.PEMEncodedCertificateAndKey{Crt: c.Certificate, Key: c.Key}
	file := clientconfig.NewConfig(context, endpoints, c.CA, pair)
	file.Contexts[context].Nodes = nodes

	encoded, err := file.Bytes()
	if err != nil {
		return nil, fmt.Errorf("write talosconfig: %w", err)
	}

	return encoded, nil
}
