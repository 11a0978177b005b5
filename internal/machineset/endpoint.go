package machineset

import (
	"errors"
	"slices"
	"strconv"
	"strings"
)

// talosPort is the port of the Talos API (machinery 1.14, constants.ApidPort).
const talosPort = 50000

// The Talos API of a machine is at its address, unless that has a port or there is an endpoint: a NAT address, a
// tunnel, a forwarded port.

// CanonicalEndpoint gives the same text for all spellings of one host with or without a port: the host alone for the
// port of the Talos API, host:port otherwise.
func CanonicalEndpoint(text string) (string, error) {
	host, port, found := splitPort(text)
	if !found || strings.Contains(text, "://") {
		return CanonicalHost(text)
	}

	host, err := CanonicalHost(host)
	if err != nil {
		return "", err
	}

	number, err := strconv.ParseUint(port, 10, 16)

	switch {
	case err != nil || number == 0:
		return "", errors.New("write a port from 1 to 65535, or none for 50000")
	case number == talosPort:
		return host, nil
	default:
		return withPort(host, strconv.FormatUint(number, 10)), nil
	}
}

// HostOf is an endpoint without its port.
func HostOf(endpoint string) string {
	if host, _, found := splitPort(endpoint); found {
		return host
	}

	return endpoint
}

// splitPort splits host:port and [host]:port.
func splitPort(text string) (host, port string, found bool) {
	i := strings.LastIndexByte(text, ':')
	if i < 0 {
		return "", "", false
	}

	host, port = text[:i], text[i+1:]

	if inner, bracketed := strings.CutPrefix(host, "["); bracketed {
		host, found = strings.CutSuffix(inner, "]")

		return host, port, found
	}

	return host, port, !strings.Contains(host, ":")
}

func withPort(host, port string) string {
	if strings.Contains(host, ":") {
		host = "[" + host + "]"
	}

	return host + ":" + port
}

// Reached splits the settings of a machine into its own address, and host:port of its Talos API, which is empty where
// it follows from the address. An unreadable value stays as it is, for the validation.
func Reached(address, endpoint string) (own, dialed string) {
	if host, _, found := splitPort(address); found && endpoint == "" {
		return host, dialable(address)
	}

	if endpoint == "" {
		return address, ""
	}

	return address, dialable(endpoint)
}

// NamesOf are the extra names in a machine's certificates for an endpoint: its host.
func NamesOf(endpoint string) []string {
	if host, err := CanonicalHost(HostOf(endpoint)); err == nil {
		return []string{host}
	}

	return nil
}

func dialable(endpoint string) string {
	if _, _, found := splitPort(endpoint); found {
		return endpoint
	}

	return withPort(strings.Trim(endpoint, "[]"), strconv.Itoa(talosPort))
}

// DialedAt are the endpoints of machines that are not reached at their addresses: host:port by address. They include
// machines of the set, machines that leave it, and control planes of other resources. The current machine of an
// address decides.
func (p Set) DialedAt() map[string]string {
	dialed := map[string]string{}
	for address, endpoint := range p.EndpointOf {
		dialed[address] = dialable(endpoint)
	}

	for _, m := range p.Leaving {
		if m.Endpoint != "" {
			dialed[m.Address] = m.Endpoint
		}
	}

	for _, m := range p.Machines {
		delete(dialed, m.Address)

		if m.Endpoint != "" {
			dialed[m.Address] = m.Endpoint
		}
	}

	return dialed
}

// ControlPlaneAddresses are those of the known control planes of the cluster, with those of the set first.
func (p Set) ControlPlaneAddresses() []string {
	var addresses []string
	for _, name := range p.controlPlanes() {
		addresses = append(addresses, p.Machines[name].Address)
	}

	addresses = append(addresses, p.Endpoints...)
	for _, other := range p.Others {
		addresses = append(addresses, other.Address)
	}

	seen := map[string]bool{"": true}

	return slices.DeleteFunc(addresses, func(address string) bool {
		known := seen[address]
		seen[address] = true

		return known
	})
}

// SameEndpoint reports whether an entry of an endpoint list is this machine, by its endpoint or by its own address.
func (m Machine) SameEndpoint(text string) bool {
	canonical, err := CanonicalEndpoint(text)
	if err != nil {
		return false
	}

	for _, own := range []string{m.Address, m.Endpoint} {
		if same, err := CanonicalEndpoint(own); err == nil && same == canonical {
			return true
		}
	}

	return false
}
