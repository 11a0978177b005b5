package machineset

import (
	"errors"
	"net/netip"
	"strings"
)

// CanonicalHost gives the same text for all spellings of one host.
func CanonicalHost(host string) (string, error) {
	if ip, err := netip.ParseAddr(host); err == nil {
		return ip.Unmap().String(), nil
	}

	switch {
	case strings.Contains(host, "://"):
		return "", errors.New("leave out the scheme")
	case strings.HasPrefix(host, "["):
		return "", errors.New("leave out the brackets")
	case strings.Contains(host, ":"):
		return "", errors.New("leave out the port")
	case host == "" || strings.Trim(host, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789.-") != "" ||
		strings.Trim(host, "0123456789.") == "":
		return "", errors.New("write an IP address such as 10.0.0.11 or fd00::11, or a host name")
	}

	return strings.ToLower(strings.TrimSuffix(host, ".")), nil
}
