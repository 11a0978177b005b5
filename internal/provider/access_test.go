package provider_test

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
	"github.com/talosop/terraform-provider-talosop/internal/provider/sitetest"
	"github.com/talosop/terraform-provider-talosop/internal/provider/tftest"
	"github.com/talosop/terraform-provider-talosop/internal/sim/fault"
)

// reads reads a data source.
func reads(t *testing.T, s *sitetest.Site, name string, config tftest.Config) {
	t.Helper()

	typ := tftest.Schemas(t).DataSourceSchemas[name].ValueType()

	resp, err := tftest.Serve(t, nil).ReadDataSource(t.Context(),
		&tfprotov6.ReadDataSourceRequest{TypeName: name, Config: tftest.Dynamic(t, tftest.ValueOf(t, typ, config))})
	if err != nil || len(resp.Diagnostics) > 0 {
		t.Fatal(err, tftest.Show(resp.Diagnostics))
	}
}

// Each operation asks machines with the roles in the table and needs all of them. os:admin and os:etcd:backup are
// needed for the purposes in the table.
func TestAccess_rolesThatMachinesSee(t *testing.T) {
	t.Parallel()

	s := sitetest.New(t, 1, 0)
	first := s.ControlPlane[0].Address().String()

	config := tftest.BaseControlPlane()
	config["name"], config["endpoint"], config["kubernetes_version"] = "test", s.URL, "v1.35.4"
	config["machines"] = tftest.Config{s.ControlPlane[0].Name(): tftest.Config{"address": first}}
	handle := tftest.Config{"name": "test", "endpoint": s.URL, "secrets": tftest.Bundle(),
		"kubernetes_version": "v1.35.4", "talos_endpoints": []any{first}}

	secrets := filepath.Join(t.TempDir(), "secrets.yaml")
	tftest.Must(t, os.WriteFile(secrets, []byte(tftest.Bundle()), 0o600))

	plane := tftest.Drive(t, "talosop_control_plane", nil)

	for _, op := range []struct {
		access pki.Access
		run    func()
		// more is requested with other roles than os:reader.
		more []string
	}{
		{pki.Changing, func() { plane.Apply(t, config).Must(t) }, nil},
		{pki.Observing, func() {
			plane.Refresh(t).Must(t)
			plane.Plan(t, config).Must(t)
		}, []string{"MachineConfigs"}},
		{pki.Examining, func() {
			reads(t, s, "talosop_cluster_health", tftest.Config{"cluster": handle})
			reads(t, s, "talosop_etcd_members", tftest.Config{"cluster": handle})
		}, nil},
		{pki.Inspecting, func() {
			reads(t, s, "talosop_machine_info", tftest.Config{"cluster": handle, "address": first})
		}, nil},
		{pki.BackingUp, func() {
			tftest.Drive(t, "talosop_etcd_backup", nil).Apply(t,
				tftest.Config{"cluster": handle, "file": tftest.Config{"path": t.TempDir()}}).Must(t)
		}, []string{"EtcdSnapshot"}},
		{pki.Checking, func() { plane.Plan(t, tftest.With(config, "v1.36.2", "kubernetes_version")).Must(t) }, nil},
		{pki.Importing, func() {
			tftest.Drive(t, "talosop_control_plane", nil).Import(t, tftest.JSON(t, tftest.Config{
				"secrets": secrets, "machines": tftest.Config{s.ControlPlane[0].Name(): first}})).Must(t)
		}, []string{"MachineConfigs"}},
	} {
		s.ForgetCalls()
		op.run()

		want := []string{strings.Join(op.access.Talos, ", ")}
		if len(op.access.Part.Roles) > 0 {
			want = append(want, strings.Join(op.access.Part.Roles, ", "))
		}

		used := s.RolesUsed()
		if got := slices.Collect(maps.Keys(used)); !slices.Equal(slices.Sorted(slices.Values(got)),
			slices.Sorted(slices.Values(want))) {
			t.Errorf("%s: asked %v, want %v", op.access.Operation, used, want)
		}

		if more := used[strings.Join(op.access.Part.Roles, ", ")]; op.more != nil && !slices.Equal(more, op.more) {
			t.Errorf("%s: asked for %v as %v, want %v", op.access.Operation, more, op.access.Part.Roles, op.more)
		}
	}
}

// The table in the guide to credentials is up to date.
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
	tftest.Must(t, err)

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

// A client of the Kubernetes API sends exactly the requests in the table.
func TestAccess_limitsOfKubernetes(t *testing.T) {
	t.Parallel()

	s := sitetest.New(t, 1, 0)
	config := tftest.BaseControlPlane()
	config["name"], config["endpoint"], config["kubernetes_version"] = "test", s.URL, "v1.36.2"
	config["machines"] = tftest.Config{s.ControlPlane[0].Name(): tftest.Config{
		"address": s.ControlPlane[0].Address().String()}}

	tftest.Drive(t, "talosop_control_plane", nil).Apply(t, config).Must(t)

	bundle, err := pki.Parse([]byte(tftest.Bundle()))
	tftest.Must(t, err)

	for _, access := range pki.Accesses() {
		if access.Kubernetes.None {
			continue
		}

		api, err := providerdata.KubernetesOf(t.Context(), access,
			machineset.Set{Settings: machineconfig.Cluster{Endpoint: s.URL}}, bundle, api.Options{})
		tftest.Must(t, err)
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

// Machines are asked with certificates that are issued for one operation and end with it.
func TestAccess_certificatesAreMadeForEachOperation(t *testing.T) {
	t.Parallel()

	s := sitetest.New(t, 1, 0)
	config := tftest.BaseControlPlane()
	config["name"], config["endpoint"], config["kubernetes_version"] = "test", s.URL, "v1.35.4"
	config["machines"] = tftest.Config{s.ControlPlane[0].Name(): tftest.Config{
		"address": s.ControlPlane[0].Address().String()}}
	config["timeouts"] = tftest.Config{"create": "40m"}

	plane := tftest.Drive(t, "talosop_control_plane", nil)
	before := map[string]string{} // serial numbers, and their operation

	for _, op := range []struct {
		name  string
		run   func()
		lasts time.Duration
	}{
		{"create", func() { plane.Apply(t, config).Must(t) }, 45 * time.Minute},
		{"refresh", func() { plane.Refresh(t).Must(t) }, pki.OperationLifetime},
		{"another refresh", func() { plane.Refresh(t).Must(t) }, pki.OperationLifetime},
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

			// A plan is a separate operation.
			if c.ClientEnds.Before(c.Time) || c.ClientEnds.Before(began.Add(pki.OperationLifetime)) ||
				c.ClientEnds.After(time.Now().Add(op.lasts)) {
				t.Errorf("%s used a certificate until %s, begun at %s", op.name, c.ClientEnds, began)
			}

			used[c.Client] = op.name
		}

		if len(used) == 0 {
			t.Errorf("%s asked no machine", op.name)
		}

		for serial, by := range used {
			before[serial] = by
		}
	}
}
