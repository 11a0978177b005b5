package provider

import (
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/hashicorp/terraform-plugin-go/tfprotov6"

	"github.com/talosop/terraform-provider-talosop/internal/pki"
	"github.com/talosop/terraform-provider-talosop/internal/sim/fault"
)

// rolesUsed lists what members of the cluster were asked for with each set of roles: methods, and resources by their
// type.
func (s *site) rolesUsed() map[string][]string {
	found := map[string][]string{}

	for _, c := range s.Calls() {
		if c.Personality != fault.Configured {
			continue
		}

		what := c.Method
		if kind, _, resource := strings.Cut(c.Detail, ".talos.dev"); resource {
			what, _, _ = strings.Cut(kind, ".")
		}

		if !slices.Contains(found[c.Roles], what) {
			found[c.Roles] = append(found[c.Roles], what)
		}
	}

	for _, calls := range found {
		slices.Sort(calls)
	}

	return found
}

// reads reads a data source.
func (s *site) reads(t *testing.T, name string, config configuration) {
	t.Helper()

	typ := schemas(t).DataSourceSchemas[name].ValueType()

	resp, err := serving(t, nil).ReadDataSource(t.Context(),
		&tfprotov6.ReadDataSourceRequest{TypeName: name, Config: dynamic(t, valueOf(t, typ, config))})
	if err != nil || len(resp.Diagnostics) > 0 {
		t.Fatal(err, show(resp.Diagnostics))
	}
}

// Each operation asks machines with the roles that the table gives it and needs all of them, os:admin and
// os:etcd:backup for what the table says they are for.
func TestAccess_rolesThatMachinesSee(t *testing.T) {
	t.Parallel()

	s := newSite(t, 1, 0)
	first := s.controlPlane[0].Address().String()

	config := baseControlPlane()
	config["name"], config["endpoint"], config["kubernetes_version"] = "test", s.endpoint, "v1.35.4"
	config["machines"] = configuration{s.controlPlane[0].Name(): configuration{"address": first}}
	handle := configuration{"name": "test", "endpoint": s.endpoint, "secrets": bundleOnce(),
		"kubernetes_version": "v1.35.4", "talos_endpoints": []any{first}}

	secrets := filepath.Join(t.TempDir(), "secrets.yaml")
	must(t, os.WriteFile(secrets, []byte(bundleOnce()), 0o600))

	plane := drive(t, "talosop_control_plane", nil)

	for _, op := range []struct {
		access pki.Access
		run    func()
		// more is what is asked for with the roles that are not os:reader.
		more []string
	}{
		{pki.Changing, func() { plane.apply(t, config).must(t) }, nil},
		{pki.Observing, func() {
			plane.refresh(t).must(t)
			plane.plan(t, config).must(t)
		}, []string{"MachineConfigs"}},
		{pki.Examining, func() {
			s.reads(t, "talosop_cluster_health", configuration{"cluster": handle})
			s.reads(t, "talosop_etcd_members", configuration{"cluster": handle})
		}, nil},
		{pki.Inspecting, func() {
			s.reads(t, "talosop_machine_info", configuration{"cluster": handle, "address": first})
		}, nil},
		{pki.BackingUp, func() {
			drive(t, "talosop_etcd_backup", nil).apply(t,
				configuration{"cluster": handle, "file": configuration{"path": t.TempDir()}}).must(t)
		}, []string{"EtcdSnapshot"}},
		{pki.Checking, func() { plane.plan(t, with(config, "v1.36.2", "kubernetes_version")).must(t) }, nil},
		{pki.Importing, func() {
			drive(t, "talosop_control_plane", nil).imports(t, encoded(t, configuration{
				"secrets": secrets, "machines": configuration{s.controlPlane[0].Name(): first}})).must(t)
		}, []string{"MachineConfigs"}},
	} {
		s.ForgetCalls()
		op.run()

		want := []string{strings.Join(op.access.Talos, ", ")}
		if len(op.access.Part.Roles) > 0 {
			want = append(want, strings.Join(op.access.Part.Roles, ", "))
		}

		used := s.rolesUsed()
		if got := slices.Collect(maps.Keys(used)); !slices.Equal(slices.Sorted(slices.Values(got)),
			slices.Sorted(slices.Values(want))) {
			t.Errorf("%s: asked %v, want %v", op.access.Operation, used, want)
		}

		if more := used[strings.Join(op.access.Part.Roles, ", ")]; op.more != nil && !slices.Equal(more, op.more) {
			t.Errorf("%s: asked for %v as %v, want %v", op.access.Operation, more, op.access.Part.Roles, op.more)
		}
	}
}
