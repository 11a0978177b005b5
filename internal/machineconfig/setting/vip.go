package setting

import (
	"cmp"
	"net/netip"
	"reflect"

	"github.com/siderolabs/talos/pkg/machinery/config/types/network"
	"github.com/siderolabs/talos/pkg/machinery/config/types/v1alpha1"

	"github.com/talosop/terraform-provider-talosop/internal/machineconfig/places"
)

// VIPConfig is a virtual IP.
type VIPConfig struct {
	Address string
	// Link is the name or the alias of the link that has it; empty for the one that has the address of the machine.
	Link string
}

// unknownLink stands for a link that the machine reports before its configuration is sent.
const unknownLink = "unknown"

// VIP is an address that one of the control planes has at a time: the one that holds the lease in etcd announces it.
var VIP = define(definition[*VIPConfig]{
	name:          "vip",
	controlPlanes: true,
	metal:         true,
	empty:         func(value *VIPConfig) bool { return value == nil },
	levels:        whole[*VIPConfig]{},

	put: func(c *Config, value *VIPConfig) {
		value = &VIPConfig{Address: value.Address, Link: cmp.Or(value.Link, c.Link, unknownLink)}

		if c.Contract.MultidocNetworkConfigSupported() {
			own := network.NewLayer2VIPConfigV1Alpha1(value.Address)
			own.LinkName = value.Link
			c.Documents = append(c.Documents, own)

			return
		}

		links := places.Make[v1alpha1.NetworkDeviceList](c.Documents, places.Interfaces)
		*links = append(*links, value.device())
	},

	read: func(c Config) *VIPConfig {
		if c.Contract.MultidocNetworkConfigSupported() {
			own, ok := places.Document[*network.Layer2VIPConfigV1Alpha1](c.Documents)
			if !ok {
				return nil
			}

			return &VIPConfig{Address: own.MetaName, Link: own.LinkName}
		}

		links := places.Value[v1alpha1.NetworkDeviceList](c.Documents, places.Interfaces)
		if links == nil {
			return nil
		}

		for _, device := range *links {
			if device.DeviceVIPConfig == nil {
				continue
			}

			value := &VIPConfig{Address: device.DeviceVIPConfig.SharedIP, Link: device.DeviceInterface}
			if reflect.DeepEqual(device, value.device()) {
				return value
			}
		}

		return nil
	},

	check: func(value *VIPConfig, found *problems, t Target) {
		if address, err := netip.ParseAddr(value.Address); (value.Address != "" || !t.Partial) &&
			(err != nil || address.Zone() != "") {
			found.add("vip.address", quoted(value.Address), "an IP address such as 10.0.0.100",
				"use a free address of the network of the control planes")
		}

		if value.Link == "" && !t.Partial && !t.FindsLinks {
			found.add("vip.link", "no link", "the name or alias of a link, such as enp1s0, because no machine is queried "+
				"here",
				"set it")
		}
	},
})

// device is the link with the address. One that is named in the main document has no DHCP unless that says so, which
// others have by default (Talos 1.14, network/operator_config.go).
func (v *VIPConfig) device() *v1alpha1.Device {
	return &v1alpha1.Device{DeviceInterface: v.Link, DeviceDHCP: new(true),
		DeviceVIPConfig: &v1alpha1.DeviceVIPConfig{SharedIP: v.Address}}
}
