package machineset

import "github.com/talosop/terraform-provider-talosop/internal/finding"

// otherFirmware warns about machines whose firmware does not match secure_boot. No apply can repair that: it is
// switched on and off, and keys are enrolled, at the console. verifies reports whether the firmware of a machine
// verifies what it starts.
func (p Set) otherFirmware(verifies map[string]bool) finding.List {
	var off, on []string

	for _, name := range p.Names() {
		verified, observed := verifies[name]

		switch wanted, known := p.Machines[name].signed(); {
		case !observed:
		case wanted && !verified:
			off = append(off, name)
		case known && !wanted && verified:
			on = append(on, name)
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
