// Package network is how networks and DNS names are written, and which of them are the same.
//
// The package is pure.
package network

import (
	"cmp"
	"net/netip"
	"regexp"
	"slices"
	"strings"
)

// Canonical gives the same texts for all spellings of the same networks, in their order, of which the first is the
// primary one. What is no network, or has bits set after its prefix, stays as it is, to be refused as it was written.
func Canonical(cidrs []string) []string {
	out := slices.Clone(cidrs)

	for i, cidr := range out {
		if network, err := netip.ParsePrefix(cidr); err == nil && network == network.Masked() {
			out[i] = network.String()
		}
	}

	return out
}

// CanonicalDomain gives the same text for all spellings of a DNS domain, which differ in case. What is none stays as it
// is.
func CanonicalDomain(domain string) string {
	if lower := strings.ToLower(domain); IsDNSName(lower) {
		return lower
	}

	return domain
}

// Same reports whether two lists are the same networks. An empty one is fallback.
func Same(a, b []string, fallback string) bool {
	given := func(cidrs []string) []string {
		if len(cidrs) == 0 {
			return []string{fallback}
		}

		return Canonical(cidrs)
	}

	return slices.Equal(given(a), given(b))
}

// SameDomain reports whether two names are the same DNS domain. An empty one is fallback.
func SameDomain(a, b, fallback string) bool {
	return CanonicalDomain(cmp.Or(a, fallback)) == CanonicalDomain(cmp.Or(b, fallback))
}

var labelPattern = regexp.MustCompile(`^[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?$`)

const maxDNSName = 253

// IsDNSName reports whether a name is one of DNS, in lower case.
func IsDNSName(name string) bool {
	if name == "" || len(name) > maxDNSName {
		return false
	}

	for label := range strings.SplitSeq(name, ".") {
		if !labelPattern.MatchString(label) {
			return false
		}
	}

	return true
}
