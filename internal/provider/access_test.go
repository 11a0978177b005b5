package provider

import (
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/hashicorp/terraform-plugin-go/tfprotov6"
	coordinationv1 "k8s.io/api/coordination/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/talosop/terraform-provider-talosop/internal/backup/schedule"
	"github.com/talosop/terraform-provider-talosop/internal/kubernetes/api"
	"github.com/talosop/terraform-provider-talosop/internal/machineconfig"
	"github.com/talosop/terraform-provider-talosop/internal/machineset"
	"github.com/talosop/terraform-provider-talosop/internal/pki"
	"github.com/talosop/terraform-provider-talosop/internal/provider/providerdata"
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

// The guide to credentials has the table as it is.
func TestAccess_tableOfTheGuide(t *testing.T) {
	t.Parallel()

	rows := pki.Accesses()
	rows = append(rows, pki.Access{Operation: "CronJob of `talosop_etcd_backup_schedule`", Talos: []string{schedule.Role},
		Kubernetes: pki.KubernetesAccess{None: true}})

	table := "| operation | Talos API | Kubernetes API |\n|---|---|---|\n"
	for _, a := range rows {
		table += fmt.Sprintf("| %s | %s | %s |\n", a.Operation, talosInGuide(a), kubernetesInGuide(a.Kubernetes))
	}

	guide, err := os.ReadFile("../../templates/guides/credentials.md.tmpl")
	must(t, err)

	if !strings.Contains(string(guide), "\n\n"+table+"\n") {
		t.Errorf("templates/guides/credentials.md.tmpl has another table than\n\n%s", table)
	}
}

func talosInGuide(a pki.Access) string {
	if len(a.Talos) == 0 {
		return "none"
	}

	text := "`" + strings.Join(a.Talos, "`, `") + "`"
	if a.Part.Of != "" {
		text += "; `" + strings.Join(a.Part.Roles, "`, `") + "` for " + a.Part.Of
	}

	return text
}

func kubernetesInGuide(k pki.KubernetesAccess) string {
	switch {
	case k.None:
		return "none"
	case k.All:
		return "everything"
	}

	text := "reads, but no Secrets"
	if k.Secrets {
		text = "reads"
	}

	if k.DryRuns {
		text += ", dry runs"
	}

	if len(k.Writes) > 0 {
		text += "; writes `" + strings.Join(k.Writes, "`, `") + "`"
	}

	return text
}

// A client of the Kubernetes API sends what the table has, and nothing else.
func TestAccess_limitsOfKubernetes(t *testing.T) {
	t.Parallel()

	s := newSite(t, 1, 0)
	config := baseControlPlane()
	config["name"], config["endpoint"], config["kubernetes_version"] = "test", s.endpoint, "v1.36.2"
	config["machines"] = configuration{s.controlPlane[0].Name(): configuration{
		"address": s.controlPlane[0].Address().String()}}

	drive(t, "talosop_control_plane", nil).apply(t, config).must(t)

	bundle, err := pki.Parse([]byte(bundleOnce()))
	must(t, err)

	for _, access := range pki.Accesses() {
		if access.Kubernetes.None {
			continue
		}

		api, err := providerdata.KubernetesOf(t.Context(), access,
			machineset.Set{Settings: machineconfig.Cluster{Endpoint: s.endpoint}}, bundle, api.Options{})
		must(t, err)
		t.Cleanup(api.Close)

		if left := time.Until(api.ValidUntil); left > pki.OperationLifetime {
			t.Errorf("%s: credentials last %s", access.Operation, left)
		}

		_, err = api.CoreV1().Nodes().List(t.Context(), metav1.ListOptions{})
		passes(t, access, "lists nodes", err, true)

		_, err = api.CoreV1().Secrets("kube-system").List(t.Context(), metav1.ListOptions{})
		passes(t, access, "lists Secrets", err, access.Kubernetes.All || access.Kubernetes.Secrets)

		_, err = api.CoordinationV1().Leases("default").Create(t.Context(),
			&coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{GenerateName: "a-"}}, metav1.CreateOptions{})
		passes(t, access, "makes a Lease", err, access.Kubernetes.All || slices.Contains(access.Kubernetes.Writes, "leases"))

		err = api.CoreV1().Nodes().Delete(t.Context(), "nobody", metav1.DeleteOptions{})
		passes(t, access, "deletes a node", err, access.Kubernetes.All)
	}
}

func passes(t *testing.T, access pki.Access, what string, err error, may bool) {
	t.Helper()

	if errors.Is(err, api.ErrBeyondLimit) == may {
		t.Errorf("%s %s: %v", access.Operation, what, err)
	}
}

// Machines are asked with certificates that are made for one operation and end with it.
func TestAccess_certificatesAreMadeForEachOperation(t *testing.T) {
	t.Parallel()

	s := newSite(t, 1, 0)
	config := baseControlPlane()
	config["name"], config["endpoint"], config["kubernetes_version"] = "test", s.endpoint, "v1.35.4"
	config["machines"] = configuration{s.controlPlane[0].Name(): configuration{
		"address": s.controlPlane[0].Address().String()}}
	config["timeouts"] = configuration{"create": "40m"}

	plane := drive(t, "talosop_control_plane", nil)
	before := map[string]string{} // serial numbers, and by whom

	for _, op := range []struct {
		name  string
		run   func()
		lasts time.Duration
	}{
		{"create", func() { plane.apply(t, config).must(t) }, 45 * time.Minute},
		{"refresh", func() { plane.refresh(t).must(t) }, pki.OperationLifetime},
		{"another refresh", func() { plane.refresh(t).must(t) }, pki.OperationLifetime},
	} {
		s.ForgetCalls()

		began := time.Now().Truncate(time.Second)
		op.run()

		used := map[string]string{}

		for _, c := range s.Calls() {
			if c.Personality != fault.Configured {
				continue
			}

			if by := before[c.Client]; by != "" || c.Client == "" {
				t.Errorf("%s used the certificate %q of %s", op.name, c.Client, by)
			}

			// A plan is an operation of its own.
			if c.ClientEnds.Before(c.Time) || c.ClientEnds.Before(began.Add(pki.OperationLifetime)) ||
				c.ClientEnds.After(time.Now().Add(op.lasts)) {
				t.Errorf("%s used a certificate until %s, begun at %s", op.name, c.ClientEnds, began)
			}

			used[c.Client] = op.name
		}

		if len(used) == 0 {
			t.Errorf("%s asked nobody", op.name)
		}

		for serial, by := range used {
			before[serial] = by
		}
	}
}
