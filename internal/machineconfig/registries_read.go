package machineconfig

import (
	"fmt"
	"strings"

	"github.com/siderolabs/talos/pkg/machinery/config/config"
	"github.com/siderolabs/talos/pkg/machinery/config/configloader"
)

// RegistriesOf reads from a configuration how a machine pulls images: what settings and patches have come to, whichever
// form they were written in. A document goes before what the main one says of the same registry (machinery 1.13,
// container.RegistryMirrorConfigs and the like). Errors do not quote the configuration.
func RegistriesOf(cfg []byte) (Registries, error) {
	registries := Registries{Mirrors: map[string]RegistryMirror{}, Auth: map[string]RegistryAuth{}, TLS: map[string]RegistryTLS{}}

	chunks, err := split(string(cfg))
	if err != nil {
		return Registries{}, fmt.Errorf("read registries: not YAML: %s", withoutQuotes(err.Error()))
	}

	// Other documents may be of kinds that only a newer Talos knows.
	for _, documents := range []bool{false, true} {
		for _, c := range chunks {
			if c.node == nil || (identify(c.node).kind != "") != documents || documents && !strings.HasPrefix(identify(c.node).kind, "Registry") {
				continue
			}

			provider, err := configloader.NewFromBytes([]byte(c.text))
			if err != nil {
				return Registries{}, fmt.Errorf("read registries: document %s: %w", identify(c.node), errNotData)
			}

			registries.read(provider)
		}
	}

	return registries, nil
}

// read adds what one document says.
func (r Registries) read(from config.Config) {
	for name, mirror := range from.RegistryMirrorConfigs() {
		read := RegistryMirror{SkipFallback: mirror.SkipFallback()}
		for _, endpoint := range mirror.Endpoints() {
			read.Endpoints = append(read.Endpoints, RegistryEndpoint{URL: endpoint.Endpoint(), OverridePath: endpoint.OverridePath()})
		}

		r.Mirrors[name] = read
	}

	for host, auth := range from.RegistryAuthConfigs() {
		r.Auth[host] = RegistryAuth{Username: auth.Username(), Password: auth.Password(), Auth: auth.Auth(), IdentityToken: auth.IdentityToken()}
	}

	for host, tls := range from.RegistryTLSConfigs() {
		read := RegistryTLS{CA: string(tls.CA()), InsecureSkipVerify: tls.InsecureSkipVerify()}
		if identity := tls.ClientIdentity(); identity != nil {
			read.ClientCertificate, read.ClientKey = string(identity.Crt), string(identity.Key)
		}

		r.TLS[host] = read
	}
}
