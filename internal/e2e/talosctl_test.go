package e2e

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/talosop/terraform-provider-talosop/internal/clitest"
	"github.com/talosop/terraform-provider-talosop/internal/pki"
	"github.com/talosop/terraform-provider-talosop/internal/record"
)

// talosctl is the client of Talos, which judges what the provider reports.
type talosctl struct {
	t      *testing.T
	path   string
	config string
}

func (s site) talosctl(t *testing.T, b *pki.Bundle) talosctl {
	t.Helper()

	text, err := b.Talosconfig(pki.TalosconfigInput{Context: "e2e", Endpoints: s.controlPlanes,
		Roles: []string{"os:admin"}, TTL: time.Hour})
	if err != nil {
		t.Fatal(err)
	}

	config := filepath.Join(t.TempDir(), "talosconfig")
	if err := os.WriteFile(config, text, 0o600); err != nil {
		t.Fatal(err)
	}

	return talosctl{t: t, path: clitest.Asset(t, "talosctl"), config: config}
}

// ask runs a command on one machine.
func (c talosctl) ask(machine string, args ...string) string {
	c.t.Helper()

	ctx, cancel := context.WithTimeout(c.t.Context(), 3*time.Minute)
	defer cancel()

	args = append([]string{"--talosconfig", c.config, "--endpoints", machine, "--nodes", machine}, args...)

	out, err := exec.CommandContext(ctx, c.path, args...).CombinedOutput()
	if err != nil {
		c.t.Fatalf("talosctl %s: %v\n%s", strings.Join(args, " "), err, out)
	}

	return string(out)
}

// agrees compares the state with what talosctl reads: the member list, versions and stages.
func (s site) agrees(t *testing.T, w *clitest.Workspace) {
	t.Helper()

	resources := observed(t, w)
	c := s.talosctl(t, bundle(t, w))

	var members []string

	for _, m := range resources["talosop_control_plane.this"] {
		members = append(members, m.MemberID)
	}

	// The first line is the heading; the second column is the ID.
	var listed []string

	for _, line := range strings.Split(strings.TrimSpace(c.ask(s.controlPlanes[0], "etcd", "members")), "\n")[1:] {
		listed = append(listed, strings.Fields(line)[1])
	}

	slices.Sort(members)
	slices.Sort(listed)

	if !slices.Equal(members, listed) {
		t.Errorf("the state has the etcd members %v, talosctl lists %v", members, listed)
	}

	for i, address := range s.controlPlanes {
		agreesOn(t, c, address, resources["talosop_control_plane.this"][fmt.Sprintf("cp-%d", i+1)])
	}

	for i, address := range s.workers {
		agreesOn(t, c, address, resources["talosop_worker.this"][fmt.Sprintf("worker-%d", i+1)])
	}
}

// agreesOn compares one machine.
func agreesOn(t *testing.T, c talosctl, address string, m record.Machine) {
	t.Helper()

	if version := c.ask(address, "version", "--short"); m.TalosVersion == "" ||
		!strings.Contains(version, m.TalosVersion) {
		t.Errorf("the state says that %s runs Talos %q, talosctl says:\n%s", address, m.TalosVersion, version)
	}

	if status := c.ask(address, "get", "machinestatus", "-o", "yaml"); m.Stage == "" ||
		!strings.Contains(status, "stage: "+string(m.Stage)) {
		t.Errorf("the state says that %s is %q, talosctl says:\n%s", address, m.Stage, status)
	}
}
