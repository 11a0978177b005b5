package machineconfig

import (
	"fmt"
	"maps"
	"net/url"
	"slices"

	"github.com/siderolabs/crypto/x509"
	"github.com/siderolabs/talos/pkg/machinery/config/config"
	"github.com/siderolabs/talos/pkg/machinery/config/types/cri"
	"github.com/siderolabs/talos/pkg/machinery/config/types/meta"
	"github.com/siderolabs/talos/pkg/machinery/config/types/v1alpha1"
)

// putRegistries writes the registry settings: into the main document before contract v1.12, as documents
// of their own, which are returned in a fixed order, from then on.
func (g *Generator) putRegistries(machine *v1alpha1.MachineConfig) ([]config.Document, error) {
	registries := g.cluster.Registries

	if !g.contract.MultidocNetworkConfigSupported() {
		registries.putLegacy(machine)

		return nil, nil
	}

	var documents []config.Document

	for _, name := range slices.Sorted(maps.Keys(registries.Mirrors)) {
		mirror, err := registries.Mirrors[name].document(name)
		if err != nil {
			return nil, err
		}

		documents = append(documents, mirror)
	}

	for _, host := range slices.Sorted(maps.Keys(registries.Auth)) {
		auth := registries.Auth[host]

		document := cri.NewRegistryAuthConfigV1Alpha1(host)
		document.RegistryUsername = auth.Username
		document.RegistryPassword = auth.Password
		document.RegistryAuth = auth.Auth
		document.RegistryIdentityToken = auth.IdentityToken
		documents = append(documents, document)
	}

	for _, host := range slices.Sorted(maps.Keys(registries.TLS)) {
		documents = append(documents, registries.TLS[host].document(host))
	}

	return documents, nil
}

func (m RegistryMirror) document(name string) (config.Document, error) {
	document := cri.NewRegistryMirrorConfigV1Alpha1(name)

	for _, endpoint := range m.Endpoints {
		parsed, err := url.Parse(endpoint.URL)
		if err != nil {
			return nil, fmt.Errorf("registry mirror %s: %w", name, err)
		}

		written := cri.RegistryEndpoint{EndpointURL: meta.URL{URL: parsed}}
		if endpoint.OverridePath {
			written.EndpointOverridePath = new(true)
		}

		document.RegistryEndpoints = append(document.RegistryEndpoints, written)
	}

	if m.SkipFallback {
		document.RegistrySkipFallback = new(true)
	}

	return document, nil
}

func (t RegistryTLS) document(host string) config.Document {
	document := cri.NewRegistryTLSConfigV1Alpha1(host)
	document.TLSCA = t.CA

	if t.ClientCertificate != "" {
		document.TLSClientIdentity = &meta.CertificateAndKey{Cert: t.ClientCertificate, Key: t.ClientKey}
	}

	if t.InsecureSkipVerify {
		document.TLSInsecureSkipVerify = new(true)
	}

	return document
}

// putLegacy writes machine.registries, the only form before Talos 1.12.
func (r Registries) putLegacy(machine *v1alpha1.MachineConfig) {
	mirrors := make(map[string]*v1alpha1.RegistryMirrorConfig, len(r.Mirrors))

	for name, mirror := range r.Mirrors {
		written := &v1alpha1.RegistryMirrorConfig{}

		for _, endpoint := range mirror.Endpoints {
			written.MirrorEndpoints = append(written.MirrorEndpoints, endpoint.URL)

			if endpoint.OverridePath {
				written.MirrorOverridePath = new(true)
			}
		}

		if mirror.SkipFallback {
			written.MirrorSkipFallback = new(true)
		}

		mirrors[name] = written
	}

	hosts := make(map[string]*v1alpha1.RegistryConfig, len(r.Auth)+len(r.TLS))
	host := func(name string) *v1alpha1.RegistryConfig {
		if hosts[name] == nil {
			hosts[name] = &v1alpha1.RegistryConfig{}
		}

		return hosts[name]
	}

	for name, auth := range r.Auth {
		host(name).RegistryAuth = &v1alpha1.RegistryAuthConfig{
			RegistryUsername:      auth.Username,
			RegistryPassword:      auth.Password,
			RegistryAuth:          auth.Auth,
			RegistryIdentityToken: auth.IdentityToken,
		}
	}

	for name, tls := range r.TLS {
		host(name).RegistryTLS = tls.legacy()
	}

	machine.MachineRegistries = v1alpha1.RegistriesConfig{RegistryMirrors: mirrors, RegistryConfig: hosts}
}

func (t RegistryTLS) legacy() *v1alpha1.RegistryTLSConfig {
	written := &v1alpha1.RegistryTLSConfig{TLSCA: v1alpha1.Base64Bytes(t.CA)}

	if t.ClientCertificate != "" {
		written.TLSClientIdentity = &x509.PEMEncodedCertificateAndKey{Crt: []byte(t.ClientCertificate),
			Key: []byte(t.ClientKey)}
	}

	if t.InsecureSkipVerify {
		written.TLSInsecureSkipVerify = new(true)
	}

	return written
}
