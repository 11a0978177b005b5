package kubenames

import "strings"

// NodeName derives the name of the Kubernetes node of a machine from its host name the way Talos does
// (NodenameController, Talos 1.13): without its domain, unless the kubelet registers with it, and made to fit RFC 1123.
func NodeName(hostname string, withDomain bool) string {
	if !withDomain {
		hostname, _, _ = strings.Cut(hostname, ".")
	}

	name := strings.Map(func(r rune) rune {
		switch {
		case r >= 'a' && r <= 'z', r >= '0' && r <= '9', r == '-', r == '.':
			return r
		case r >= 'A' && r <= 'Z':
			return r - 'A' + 'a'
		case r == '_':
			return '-'
		default:
			return -1
		}
	}, hostname)

	return strings.Trim(name, "-.")
}
