package machineconfig

import (
	"strings"

	"github.com/talosop/terraform-provider-talosop/internal/machineconfig/network"
)

// checkMachine looks at all settings but the patches, which are checked when they are parsed.
func checkMachine(found *problems, c Cluster, m Machine, s strictness) {
	switch m.Role {
	case ControlPlane, Worker:
	case "":
		if s == complete {
			found.add("machine.role", "no role", "controlplane or worker", "set one")
		}
	default:
		found.add("machine.role", quoted(string(m.Role)), "controlplane or worker", "choose one of them")
	}

	switch m.Mode {
	case "", Metal, Container:
	default:
		found.add("machine.mode", quoted(string(m.Mode)), "metal or container", "choose one of them")
	}

	checkHostname(found, m.Hostname)

	for i, san := range m.CertSANs {
		checkSAN(found, at("machine.cert_sans", i), san, s)
	}

	if m.Mode == Container {
		checkNoInstall(found, m.Install)
	} else {
		checkInstall(found, m.Install, s)
		checkKernelArgs(found, c.Contract, m.Install)
	}

	checkSystem(found, c, m, s)
	checkSettings(found, level{"pool.", m.PoolSettings}, c, m.Role == Worker, s)
	checkSettings(found, level{"machine.", m.Settings}, c, m.Role == Worker, s)
}

// checkKernelArgs refuses what has no place in a document for the installation: the installer takes the arguments that
// are built into its image then (Talos 1.14, runtime/unattended_install.go, WithGrubUseUKICmdline).
func checkKernelArgs(found *problems, contract string, install Install) {
	parsed, err := parseContract(contract)
	if err != nil || !parsed.UnattendedInstallConfig() || len(install.ExtraKernelArgs) == 0 {
		return
	}

	found.add("machine.install.extra_kernel_args", "kernel arguments with contract "+contract,
		"none: the installer uses the kernel arguments of its image",
		"put them in the schematic of the image (customization.extraKernelArgs)")
}

func checkHostname(found *problems, hostname string) {
	if hostname != "" && !network.IsDNSName(hostname) {
		found.add("machine.hostname", quoted(hostname),
			"a host name in lower case, of letters, digits and dashes, with or without a domain",
			"Kubernetes uses it as the node name")
	}
}

func checkInstall(found *problems, install Install, s strictness) {
	const field = "machine.install"

	if install.Disk != "" && install.DiskSelector != nil {
		found.add(field+".disk_selector", "a disk selector together with the disk "+quoted(install.Disk), "either of them",
			"remove one; Talos would ignore the disk")
	}

	if install.Disk != "" && !strings.HasPrefix(install.Disk, "/dev/") {
		found.add(field+".disk", quoted(install.Disk), "a device, such as /dev/sda or /dev/disk/by-id/…",
			"write the whole path")
	}

	if install.DiskSelector != nil {
		checkDiskSelector(found, field+".disk_selector", *install.DiskSelector, s)
	}

	if strings.ContainsAny(install.Image, " \t\r\n") {
		found.add(field+".image", quoted(install.Image), "an image reference", "remove the spaces")
	}

	for i, arg := range install.ExtraKernelArgs {
		if (arg == "" && s == complete) || strings.ContainsAny(arg, " \t\r\n") {
			found.add(at(field+".extra_kernel_args", i), quoted(arg), "one argument without spaces, such as console=ttyS0",
				"use a separate entry for each argument")
		}
	}
}

func checkDiskSelector(found *problems, field string, selector DiskSelector, s strictness) {
	if selector == (DiskSelector{}) && s == complete {
		found.add(field, "no property", "at least one property of the disk",
			"without one, it matches any disk; set the disk instead")
	}

	switch selector.Type {
	case "", "ssd", "hdd", "nvme", "sd":
	default:
		found.add(field+".type", quoted(selector.Type), "ssd, hdd, nvme or sd", "choose one of them")
	}

	if _, err := selector.config(); err != nil {
		*found = append(*found, err)
	}
}
