package lifecycle_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/talosop/terraform-provider-talosop/internal/sim"
)

// withDocuments gives the machines of a site configurations of contract v1.14.
func (s *site) withDocuments(patches ...string) {
	s.t.Helper()

	for i, m := range s.want.Machines {
		config := s.renderFor(m.Role, "v1.14", talos114, patches...)
		s.configs[m.Name], s.want.Machines[i].ConfigDigest = config.Bytes, config.Digest
		s.want.Machines[i].TalosVersion = talos114
	}
}

// Machines of Talos 1.14 install what a document says while their stage is booting, reboot, and become a cluster. Each
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

// A machine whose disk is not found says so, and installs when the configuration is corrected.
func TestDocuments_diskThatIsNotThere(t *testing.T) {
	t.Parallel()

	s := newSite(t, 1, 0, sim.Options{TalosVersion: talos114})
	s.withDocuments("apiVersion: v1alpha1\nkind: UnattendedInstallConfig\n" +
		"provisioning: {diskSelector: {match: 'disk.dev_path == \"/dev/nosuch\"'}}\n")

	_, err := s.convergeUntil(func(_ string, fields map[string]any) bool {
		reason, _ := fields["reason"].(string)

		return strings.Contains(reason, "no disk matched the selector")
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

// Machines of a Talos before 1.14 refuse documents that they do not know.
func TestDocuments_onOlderTalos(t *testing.T) {
	t.Parallel()

	s := newSite(t, 1, 0, sim.Options{})
	s.withDocuments()
	s.want.Machines[0].TalosVersion = "v1.13.0"

	_, err := s.runner().Converge(bounded(t), s.want)
	if err == nil || !strings.Contains(err.Error(), "not registered") {
		t.Errorf("got %v", err)
	}

	if m := s.sim.Machine("cp-1"); m.Configured() {
		t.Error("it took the configuration")
	}
}
