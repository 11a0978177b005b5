package machineset

import (
	"github.com/talosop/terraform-provider-talosop/internal/cluster"
	"github.com/talosop/terraform-provider-talosop/internal/finding"
)

// otherFirmware warns about machines whose firmware does not match secure_boot. No apply can repair that: it is
// switched on and off, and keys are enrolled, at the console.
func otherFirmware(p Set, want cluster.Spec, have cluster.Snapshot) finding.List {
	var off, on []string

	for _, m := range want.Machines {
		verifies := have.Machines[m.Name].SecureBoot
		if verifies == nil {
			continue
		}

		switch wanted, known := p.Machines[m.Name].signed(); {
		case wanted && !*verifies:
			off = append(off, m.Name)
		case known && !wanted && *verifies:
			on = append(on, m.Name)
		}
	}

	var diags finding.List

	if len(off) > 0 {
		diags.Append(secureBootOff.With(finding.Args{"machines": off}))
	}

	if len(on) > 0 {
		diags.Append(secureBootOn.With(finding.Args{"machines": on}))
	}

	return diags
}

// signed reports whether the installer image of a machine is signed for Secure Boot; known is false if the image does
// not show it.
func (m Machine) signed() (signed, known bool) {
	if _, own := m.installImage(); m.Group.SecureBoot || !own {
		return m.Group.SecureBoot, true
	}

	reference, ok := m.ownInstaller()
	if !ok {
		return false, false
	}

	installer, known := reference.Installer()

	return installer.SecureBoot, known
}
