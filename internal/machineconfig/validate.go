package machineconfig

import (
	"fmt"
	"net/netip"
	"net/url"
	"regexp"
	"strconv"
	"strings"

	"github.com/talosop/terraform-provider-talosop/internal/machineconfig/network"
)

// strictness is whether a missing setting is an error.
type strictness bool

const (
	// complete is for settings that are about to be used.
	complete strictness = true
	// partial is for plans, where what is not known yet is left out.
	partial strictness = false
)

// ValidateCluster reports all errors in the settings of a cluster. Settings that are not known yet are left
// at their zero value, and elements of lists that are not known are "": neither is reported as missing, so
// that every plan can be checked as far as it is known. Errors are FieldErrors; see NewChecker for the rest.
func ValidateCluster(c Cluster) error { return checkCluster(c, partial) }

// ValidateMachine reports all errors in the settings of a machine, as far as they are known; see
// ValidateCluster. Of the cluster only the contract is used.
func ValidateMachine(c Cluster, m Machine) error {
	m = m.within(c)

	var found problems

	checkMachine(&found, c, m, partial)

	if c.Contract != "" {
		checkPatches(&found, "pool.patches", m.PoolPatches, c.Contract)
		checkPatches(&found, "machine.patches", m.Patches, c.Contract)
		checkPatches(&found, providedOfOne, m.ProvidedPatches, c.Contract)
	}

	return found.err()
}

func checkCluster(c Cluster, s strictness) error {
	var found problems

	checkName(&found, c.Name, s)

	endpoint := checkEndpoint(&found, c.Endpoint, s)

	checkClusterVersions(&found, c, s)

	for i, san := range c.CertSANs {
		checkSAN(&found, at("cert_sans", i), san, s)
	}

	checkDuplicates(&found, "cert_sans", c.CertSANs)
	checkNetworks(&found, c, endpoint, s)

	if c.DNSDomain != "" && !network.IsDNSName(c.DNSDomain) {
		found.add("dns_domain", quoted(c.DNSDomain), "a DNS name in lower case, such as cluster.local",
			"use letters, digits and dashes between dots")
	}

	checkCNI(&found, c, s)
	checkRegistries(&found, c, s)
	checkIsolated(&found, c)
	checkSettings(&found, level{"", c.Settings}, c, false, s)

	if c.Container && c.ImageCache {
		found.add("image_cache", "true", "false", "the cache is stored on the system disk, which containers do not have")
	}

	if c.Contract != "" {
		checkPatches(&found, "patches", c.Patches, c.Contract)
		checkPatches(&found, providedPatches, c.ProvidedPatches, c.Contract)
	}

	return found.err()
}

func checkName(found *problems, name string, s strictness) {
	switch {
	case name == "" && s == complete:
		found.add("name", "no name", "a name for the cluster", "set name")
	case name != "" && !namePattern.MatchString(name):
		found.add("name", quoted(name),
			"up to 63 letters, digits, dots, dashes and underscores, starting with a letter or digit", "choose such a name")
	}
}

// The name becomes part of kubeconfig and talosconfig contexts and of file names.
var namePattern = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9._-]{0,62}$`)

func checkClusterVersions(found *problems, c Cluster, s strictness) {
	if c.KubernetesVersion != "" || s == complete {
		if _, err := ParseKubernetesVersion(c.KubernetesVersion); err != nil {
			*found = append(*found, err)
		}
	}

	if c.Contract != "" || s == complete {
		if _, err := parseContract(c.Contract); err != nil {
			*found = append(*found, err)
		}
	}
}

const (
	endpointShape = "a URL of the Kubernetes API such as https://10.0.0.10:6443 or https://[fd00::10]:6443"
	maxPort       = 65535
)

// checkEndpoint returns the host of the endpoint, or "" when it is not known or wrong.
func checkEndpoint(found *problems, endpoint string, s strictness) string {
	if endpoint == "" {
		if s == complete {
			found.add("endpoint", "no endpoint", endpointShape, "set endpoint")
		}

		return ""
	}

	wrong := func(fix string) string {
		found.add("endpoint", quoted(endpoint), endpointShape, fix)

		return ""
	}

	if !strings.Contains(endpoint, "://") {
		return wrong("put https:// in front")
	}

	parsed, err := url.Parse(endpoint)
	if err != nil || parsed.Opaque != "" {
		return wrong("check brackets around an IPv6 address and the port")
	}

	switch {
	case parsed.Scheme != "https":
		return wrong("the Kubernetes API supports only https")
	case parsed.User != nil:
		// Not shown: it may hold a password.
		found.add("endpoint", "a URL with a user name", endpointShape, "remove the part before the @")

		return ""
	case parsed.Path != "" || parsed.RawQuery != "" || parsed.Fragment != "" || parsed.ForceQuery:
		return wrong("remove everything after the port")
	case parsed.Hostname() == "":
		return wrong("name the host")
	case strings.HasSuffix(parsed.Host, ":"):
		return wrong("write the port after the colon; Talos serves the Kubernetes API on 6443")
	}

	if port := parsed.Port(); port != "" {
		if number, err := strconv.Atoi(port); err != nil || number < 1 || number > maxPort {
			return wrong("use a port from 1 to 65535; Talos serves the Kubernetes API on 6443")
		}
	}

	if !isHost(parsed.Hostname()) {
		return wrong("use an IP address or a DNS name as host")
	}

	return parsed.Hostname()
}

var numericPattern = regexp.MustCompile(`^[0-9.]+$`)

// isHost accepts IP addresses and DNS names, which are not case-sensitive. Numbers and dots that are no IP
// address are no DNS name either, but a mistyped address.
func isHost(host string) bool {
	if address, err := netip.ParseAddr(host); err == nil {
		return address.Zone() == ""
	}

	return !numericPattern.MatchString(host) && network.IsDNSName(strings.ToLower(host))
}

func checkSAN(found *problems, field, san string, s strictness) {
	if san == "" && s == partial {
		return
	}

	if isHost(san) || isHost(strings.TrimPrefix(san, "*.")) && strings.HasPrefix(san, "*.") {
		return
	}

	fix := "use an IP address or a DNS name"
	if strings.Contains(san, "://") {
		fix = "leave out the scheme and the port"
	} else if strings.Contains(san, "/") {
		fix = "certificates name single addresses, not networks"
	} else if host, _, ok := strings.Cut(san, ":"); ok && isHost(host) {
		fix = "leave out the port"
	}

	found.add(field, quoted(san), "an IP address or a DNS name", fix)
}

func checkDuplicates(found *problems, field string, values []string) {
	first := map[string]int{}

	for i, value := range values {
		if value == "" {
			continue
		}

		if earlier, ok := first[value]; ok {
			found.add(at(field, i), quoted(value)+" again", "each value once",
				fmt.Sprintf("remove it; it is the same as %s", at(field, earlier)))

			continue
		}

		first[value] = i
	}
}

func checkPatches(found *problems, field string, patches []string, contract string) {
	if err := validatePatches(field, patches, contract); err != nil {
		for _, mistake := range FieldErrors(err) {
			// A wrong contract is reported where it is set.
			if strings.HasPrefix(mistake.Field, field) {
				*found = append(*found, mistake)
			}
		}
	}
}
