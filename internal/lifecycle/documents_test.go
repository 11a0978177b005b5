package lifecycle_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/talosop/terraform-provider-talosop/internal/lifecycle"
	"github.com/talosop/terraform-provider-talosop/internal/rotation"
	"github.com/talosop/terraform-provider-talosop/internal/sim"
	"github.com/talosop/terraform-provider-talosop/internal/sim/images"
)

// withDocuments gives the machines of a site configurations of contract v1.14.
func (s *site) withDocuments(patches ...string) {
	s.t.Helper()

	s.contract, s.talos = "v1.14", talos114

	for i, m := range s.want.Machines {
		config := s.render(m.Role, patches...)
		s.configs[m.Name], s.want.Machines[i].ConfigDigest = config.Bytes, config.Digest
		s.want.Machines[i].TalosVersion = talos114
	}
}

// Machines of Talos 1.14 install from a document while their stage is booting, reboot, and become a cluster. Each
// installs once, and etcd is bootstrapped once.
func TestDocuments_install(t *testing.T) {
	t.Parallel()

	s := newSite(t, 3, 1, sim.Options{TalosVersion: talos114})
	s.withDocuments()
	s.create()

	if got := len(s.sim.CallsTo("Bootstrap")); got != 1 {
		t.Errorf("etcd was bootstrapped %d times", got)
	}

	for _, m := range s.sim.Machines() {
		if !m.Installed() || m.Boots() != 2 {
			t.Errorf("%s: installed %t, %d boots", m.Name(), m.Installed(), m.Boots())
		}
	}

	if again := s.converge(); len(again.Done) > 0 {
		t.Errorf("a second run did %v", again.Done)
	}
}

// A machine whose disk is not found reports it, and installs when the configuration is corrected.
func TestDocuments_diskThatIsNotThere(t *testing.T) {
	t.Parallel()

	s := newSite(t, 1, 0, sim.Options{TalosVersion: talos114})
	s.withDocuments("apiVersion: v1alpha1\nkind: UnattendedInstallConfig\n" +
		"provisioning: {diskSelector: {match: 'disk.dev_path == \"/dev/nosuch\"'}}\n")

	_, err := s.convergeUntil(func(e lifecycle.Event) bool {
		return strings.Contains(e.Reason, "no disk matched the selector")
	})
	if !errors.Is(err, errNoTimeLeft) {
		t.Fatalf("a machine without its disk: %v", err)
	}

	s.withDocuments()
	s.converge()

	if !s.sim.Machine("cp-1").Installed() {
		t.Error("it is not installed to the corrected disk")
	}
}

// The machine itself retries a failed installer, and reports it meanwhile.
func TestDocuments_installerThatFails(t *testing.T) {
	t.Parallel()

	const installer = "ghcr.io/siderolabs/installer:" + talos114

	s := newSite(t, 1, 0, sim.Options{TalosVersion: talos114})
	s.withDocuments()

	if err := s.sim.SetImage(installer, images.Image{InstallFails: true}); err != nil {
		t.Fatal(err)
	}

	_, err := s.convergeUntil(func(e lifecycle.Event) bool {
		return strings.Contains(e.Reason, "installation failed")
	})
	if !errors.Is(err, errNoTimeLeft) {
		t.Fatalf("an installer that fails: %v", err)
	}

	if err := s.sim.SetImage(installer, images.Image{}); err != nil {
		t.Fatal(err)
	}

	s.converge()
}

// A machine with reboots disabled continues its boot.
func TestDocuments_withoutAReboot(t *testing.T) {
	t.Parallel()

	s := newSite(t, 1, 0, sim.Options{TalosVersion: talos114})
	s.withDocuments("apiVersion: v1alpha1\nkind: UnattendedInstallConfig\nreboot: false\n")
	s.create()

	if m := s.sim.Machine("cp-1"); !m.Installed() || m.Boots() != 1 {
		t.Errorf("installed %t, %d boots", m.Installed(), m.Boots())
	}
}

// Machines of a Talos before 1.14 reject unknown documents. If they report their version, they are sent nothing.
func TestDocuments_onOlderTalos(t *testing.T) {
	t.Parallel()

	for least, want := range map[string]string{"": "not registered", "v1.14": "Boot it from a medium of Talos v1.14"} {
		s := newSite(t, 1, 0, sim.Options{})
		s.withDocuments()
		s.want.Machines[0].LeastTalos = least

		_, err := s.runner().Converge(bounded(t), s.want)
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("got %v, want %q", err, want)
		}

		if sent := len(s.sim.CallsTo("ApplyConfiguration")); s.sim.Machine("cp-1").Configured() || least != "" && sent > 0 {
			t.Errorf("it was configured, by %d calls", sent)
		}
	}
}

// Keys in documents are rotated in the same steps as keys in fields, without a reboot.
func TestDocuments_turnKeysOver(t *testing.T) {
	t.Parallel()

	s := newSite(t, 3, 1, sim.Options{TalosVersion: talos114})
	s.withDocuments()
	s.create()

	s.boots = map[string]int{}
	for _, m := range s.sim.Machines() {
		s.boots[m.Name()] = m.Boots()
	}

	s.turnOver(rotation.Kinds()...)

	w := s.writesAs(t, s.clientOf(false))
	s.converge()
	w.progress()
	s.carriesWhatIsWanted()

	s.becomes(s.bundle.Advance())
	s.converge()
	s.former = nil
	s.carriesWhatIsWanted()
}
