package machineconfig

import (
	"crypto/tls"
	"crypto/x509"
	"maps"
	"net/netip"
	"net/url"
	"slices"
	"strconv"
	"strings"
)

func checkRegistries(found *problems, c Cluster, s strictness) {
	registries := c.Registries

	for _, name := range slices.Sorted(maps.Keys(registries.Mirrors)) {
		checkMirror(found, under("registries.mirrors", name), name, registries.Mirrors[name], c.Contract, s)
	}

	for _, host := range slices.Sorted(maps.Keys(registries.Auth)) {
		checkRegistryAuth(found, under("registries.auth", host), host, registries.Auth[host])
	}

	for _, host := range slices.Sorted(maps.Keys(registries.TLS)) {
		checkRegistryTLS(found, under("registries.tls", host), host, registries.TLS[host], s)
	}
}

func checkMirror(found *problems, field, name string, mirror RegistryMirror, contract string, s strictness) {
	if name != "*" && !isRegistryHost(name) {
		found.add(field, quoted(name), `the host of a registry, such as docker.io or registry.local:5000, or "*"`,
			"leave out scheme and path")
	}

	if len(mirror.Endpoints) == 0 && s == complete {
		found.add(field+".endpoints", "no endpoints", "at least one mirror", "add one, or remove the entry")
	}

	overrides := 0

	for i, endpoint := range mirror.Endpoints {
		if endpoint.OverridePath {
			overrides++
		}

		if endpoint.URL == "" && s == partial {
			continue
		}

		parsed, err := url.Parse(endpoint.URL)
		if err != nil || (parsed.Scheme != "http" && parsed.Scheme != "https") || parsed.Hostname() == "" {
			found.add(at(field+".endpoints", i)+".url", withoutUserinfo(endpoint.URL),
				"an http or https URL, such as https://mirror.local:5000", "write the scheme")
		} else if parsed.User != nil {
			found.add(at(field+".endpoints", i)+".url", "a URL with credentials", "a URL without them",
				"put them in registries.auth")
		}
	}

	legacy, err := parseContract(contract)
	if err == nil && !legacy.MultidocNetworkConfigSupported() && overrides > 0 && overrides < len(mirror.Endpoints) {
		found.add(field+".endpoints", "override_path for some endpoints only",
			"the same for all endpoints of a mirror with contract "+contract,
			"set it for all of them, or for none")
	}
}

func checkRegistryAuth(found *problems, field, host string, auth RegistryAuth) {
	checkRegistryHost(found, field, host)

	password := auth.Username != "" || auth.Password != ""
	sources := 0

	for _, used := range []bool{password, auth.Auth != "", auth.IdentityToken != ""} {
		if used {
			sources++
		}
	}

	if sources > 1 {
		found.add(field, "several ways to authenticate", "a username with a password, or auth, or an identity token",
			"keep one of them")
	}
}

func checkRegistryTLS(found *problems, field, host string, settings RegistryTLS, s strictness) {
	checkRegistryHost(found, field, host)

	if settings.CA != "" && !x509.NewCertPool().AppendCertsFromPEM([]byte(settings.CA)) {
		found.add(field+".ca", "text that is not a certificate", "certificates in PEM",
			"set the contents of the file, not its name")
	}

	switch {
	case settings.ClientCertificate == "" && settings.ClientKey == "":
	case settings.ClientCertificate == "" || settings.ClientKey == "":
		if s == complete {
			found.add(field, "a client certificate without key, or a key without certificate", "both or none", "give both")
		}
	default:
		if _, err := tls.X509KeyPair([]byte(settings.ClientCertificate), []byte(settings.ClientKey)); err != nil {
			found.add(field+".client_certificate", "a client certificate and key that do not match or are not PEM",
				"a PEM certificate and its PEM key", "set the contents of the files")
		}
	}
}

func checkRegistryHost(found *problems, field, host string) {
	if !isRegistryHost(host) {
		found.add(field, quoted(host), "the host of a registry with its port if any, such as registry.local:5000",
			"leave out scheme and path")
	}
}

func isRegistryHost(host string) bool {
	if address, err := netip.ParseAddrPort(host); err == nil {
		return address.Port() > 0
	}

	if isHost(strings.Trim(host, "[]")) {
		return true
	}

	name, port, ok := strings.Cut(host, ":")
	number, err := strconv.Atoi(port)

	return ok && err == nil && number > 0 && number <= maxPort && isHost(name)
}
