package discovery

import (
	"math/big"
	"net/netip"
	"slices"

	"github.com/hashicorp/terraform-plugin-framework/diag"

	"github.com/talosop/terraform-provider-talosop/internal/finding"
	"github.com/talosop/terraform-provider-talosop/internal/machineset"
	"github.com/talosop/terraform-provider-talosop/internal/provider/tf"
)

// target is an address to ask. A named one is reported when no machine answers there.
type target struct {
	address string
	named   bool
}

// targetsOf are the addresses, and those of networks, each once, with the named ones first. An empty text is a value
// that is not known yet; no configuration has one.
func targetsOf(addresses, networks []string, most int64) ([]target, diag.Diagnostics) {
	var (
		targets []target
		diags   diag.Diagnostics
		seen    = map[string]bool{}
	)

	add := func(address string, named bool) {
		if !seen[address] {
			seen[address] = true
			targets = append(targets, target{address, named})
		}
	}

	for i, address := range addresses {
		if address == "" {
			continue
		}

		host, err := machineset.CanonicalHost(address)
		if err != nil {
			diags.Append(tf.Diagnostic(invalidHost.At(
				finding.Root("addresses").AtListIndex(i), finding.Args{"address": address, "hint": err.Error()})))

			continue
		}

		add(host, true)
	}

	parsed, invalid := networksOf(networks, most)
	diags.Append(invalid...)

	for _, network := range parsed {
		for _, address := range network.hosts() {
			add(address.String(), false)
		}
	}

	return targets, diags
}

// network is a prefix of addresses.
type network struct{ netip.Prefix }

// networksOf reads networks, sorted by address, and refuses more addresses than the limit.
func networksOf(texts []string, most int64) ([]network, diag.Diagnostics) {
	var (
		networks []network
		diags    diag.Diagnostics
		total    = new(big.Int)
	)

	for i, text := range texts {
		if text == "" {
			continue
		}

		prefix, err := netip.ParsePrefix(text)
		if err != nil {
			diags.Append(tf.Diagnostic(invalidNetwork.At(
				finding.Root("networks").AtListIndex(i), finding.Args{"network": text})))

			continue
		}

		one := network{prefix.Masked()}
		networks = append(networks, one)
		total.Add(total, one.size())
	}

	if total.Cmp(big.NewInt(most)) > 0 {
		diags.Append(tf.Diagnostic(tooManyAddresses.At(
			finding.Root("networks"), finding.Args{"count": total, "limit": most})))

		return nil, diags
	}

	slices.SortFunc(networks, func(a, b network) int { return a.Addr().Compare(b.Addr()) })

	return networks, diags
}

// reserves reports whether the first and the last address are the network and broadcast addresses.
func (n network) reserves() bool { return n.Addr().Is4() && n.Bits() < 31 }

// size is how many addresses for machines a network has.
func (n network) size() *big.Int {
	size := new(big.Int).Lsh(big.NewInt(1), uint(n.Addr().BitLen()-n.Bits())) //nolint:gosec // a prefix is no longer than its address
	if n.reserves() {
		size.Sub(size, big.NewInt(2))
	}

	return size
}

func (n network) hosts() []netip.Addr {
	var hosts []netip.Addr

	for address := n.Addr(); address.IsValid() && n.Contains(address); address = address.Next() {
		hosts = append(hosts, address)
	}

	if n.reserves() {
		return hosts[1 : len(hosts)-1]
	}

	return hosts
}
