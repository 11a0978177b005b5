package restore_test

import (
	"context"
	"crypto/sha256"
	"fmt"
	"io"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/hashicorp/terraform-plugin-framework/providerserver"
	"github.com/hashicorp/terraform-plugin-go/tfprotov6"
	"github.com/hashicorp/terraform-plugin-testing/helper/resource"
	"github.com/hashicorp/terraform-plugin-testing/knownvalue"
	"github.com/hashicorp/terraform-plugin-testing/plancheck"
	"github.com/hashicorp/terraform-plugin-testing/statecheck"
	"github.com/hashicorp/terraform-plugin-testing/tfjsonpath"

	"github.com/talosop/terraform-provider-talosop/internal/backup"
	"github.com/talosop/terraform-provider-talosop/internal/backup/file"
	"github.com/talosop/terraform-provider-talosop/internal/clitest"
	"github.com/talosop/terraform-provider-talosop/internal/pki"
	"github.com/talosop/terraform-provider-talosop/internal/provider"
	"github.com/talosop/terraform-provider-talosop/internal/provider/sitetest"
	"github.com/talosop/terraform-provider-talosop/internal/provider/tftest"
	"github.com/talosop/terraform-provider-talosop/internal/sim"
	"github.com/talosop/terraform-provider-talosop/internal/testenv"
)

// restorable is a site with a folder for snapshots, and secrets that outlive resources.
type restorable struct {
	*sitetest.Site

	Folder, Secrets string
	// keys were written to etcd before the first backup.
	keys map[string]string
}

func newRestorable(t *testing.T, opts sim.Options, controlPlanes int) *restorable {
	t.Helper()

	r := &restorable{Site: sitetest.NewWith(t, opts, controlPlanes, 0), Folder: t.TempDir()}

	r.Secrets = filepath.Join(r.Folder, "secrets.yaml")
	if err := os.WriteFile(r.Secrets, []byte(tftest.Bundle()), 0o600); err != nil {
		t.Fatal(err)
	}

	return r
}

// plane is the control plane, with a snapshot that it starts with unless that is empty.
func (r *restorable) plane(restoreFrom string) string {
	extra := ""
	if restoreFrom != "" {
		extra = "  restore_from = {\n" + restoreFrom + "\n  }\n"
	}

	return strings.Replace(r.ControlPlaneHCL(extra), "talosop_secrets.this.bundle", fmt.Sprintf("file(%q)", r.Secrets), 1)
}

// backup keeps a snapshot in the folder, encrypted for a recipient.
func (r *restorable) backup(recipient string) string {
	return fmt.Sprintf(`
resource "talosop_etcd_backup" "this" {
  cluster     = talosop_control_plane.this.cluster
  file        = { path = %q }
  compression = "zstd"
  encryption  = { recipients = [%q] }
}
`, r.Folder, recipient)
}

// listed is the backups of the folder, for a cluster that cannot be asked.
func (r *restorable) listed() string {
	return fmt.Sprintf(`
data "talosop_etcd_backups" "this" {
  cluster = { name = "test", endpoint = %q, secrets = file(%q), kubernetes_version = "v1.36.2" }
  file    = { path = %q }
}
`, r.URL, r.Secrets, r.Folder)
}

// latest is the newest backup of the folder.
func (r *restorable) latest(opened string) string {
	return fmt.Sprintf("    file = { path = \"%s/${data.talosop_etcd_backups.this.latest}\" }\n    %s", r.Folder, opened)
}

// Fill writes keys into etcd.
func (r *restorable) Fill(t *testing.T, count int) {
	t.Helper()

	r.keys = map[string]string{}
	for i := range count {
		r.keys[fmt.Sprintf("/test/%05d", i)] = fmt.Sprintf("value %d", i)
	}

	if err := r.ControlPlane[0].PutEtcdKeys(t.Context(), r.keys); err != nil {
		t.Fatal(err)
	}
}

// forget writes a key that is in no snapshot.
func (r *restorable) forget(t *testing.T) {
	t.Helper()

	if err := r.ControlPlane[0].PutEtcdKeys(t.Context(), map[string]string{"/test/late": "after the backup"}); err != nil {
		t.Fatal(err)
	}
}

// isBack checks that etcd has what it had before the backup, on every machine, and nothing
// else.
func (r *restorable) isBack(t *testing.T) {
	t.Helper()

	for _, m := range r.ControlPlane {
		keys, err := m.EtcdKeys(t.Context(), "/test/")
		if err != nil {
			t.Fatal(err)
		}

		if !maps.Equal(keys, r.keys) {
			t.Errorf("%s has %d keys, and %d were written before the backup", m.Name(), len(keys), len(r.keys))
		}
	}

	if etcds := r.EtcdClusters(); etcds != 1 {
		t.Errorf("there are %d etcd clusters", etcds)
	}
}

// bySelf takes a snapshot with talosctl.
func (r *restorable) bySelf(t *testing.T, to string) {
	t.Helper()

	bundle, err := pki.Parse([]byte(tftest.Bundle()))
	if err != nil {
		t.Fatal(err)
	}

	address := r.ControlPlane[0].Address().String()

	text, err := bundle.Talosconfig(
		pki.TalosconfigInput{Context: "test", Endpoints: []string{address}, Roles: []string{"os:admin"}, TTL: time.Hour})
	if err != nil {
		t.Fatal(err)
	}

	config := filepath.Join(t.TempDir(), "talosconfig")
	if err := os.WriteFile(config, text, 0o600); err != nil {
		t.Fatal(err)
	}

	ctx, cancel := context.WithTimeout(t.Context(), 3*time.Minute)
	defer cancel()

	out, err := exec.CommandContext(ctx, clitest.Asset(t, "talosctl"), "--talosconfig", config, "--endpoints", address,
		"--nodes", address,
		"etcd", "snapshot", to).CombinedOutput()
	if err != nil {
		t.Fatalf("talosctl etcd snapshot: %v\n%s", err, out)
	}
}

// slowProviders is a provider with long timeouts for machines with real parts.
func slowProviders() map[string]func() (tfprotov6.ProviderServer, error) {
	m := tftest.NewProviderData()
	m.Interval = 100 * time.Millisecond

	return map[string]func() (tfprotov6.ProviderServer, error){
		"talosop": providerserver.NewProtocol6WithError(provider.NewOf("test", m)),
	}
}

// restoredFrom checks the snapshot in a state that etcd started with.
func restoredFrom(check knownvalue.Check) []statecheck.StateCheck {
	return []statecheck.StateCheck{
		sitetest.PhaseIs(sitetest.ThePlane, "Ready"), statecheck.ExpectKnownValue(sitetest.ThePlane, tfjsonpath.New("restored_from"), check),
	}
}

var again = resource.ConfigPlanChecks{PostApplyPostRefresh: []plancheck.PlanCheck{plancheck.ExpectEmptyPlan()}}

// plansRestore checks that the plan restores, and that the next one is empty.
func plansRestore() resource.ConfigPlanChecks {
	checks := again
	checks.PreApply = []plancheck.PlanCheck{sitetest.OperationsAre(sitetest.ThePlane,
		`apply configuration to cp-1: .*`, `apply configuration to cp-2: .*`, `apply configuration to cp-3: .*`,
		`restore etcd on cp-1 from .*`)}

	return checks
}

// With a real etcd: all control planes lose their data and come back with the data before the backup, from an
// encrypted one; and a new resource starts from it, from a file of talosctl.
func TestAccRestore_ofRealEtcd(t *testing.T) {
	t.Parallel()

	sitetest.InOneCLI(t, func(t *testing.T, cli clitest.CLI) {
		r := newRestorable(t, sim.Options{Assets: filepath.Dir(clitest.Asset(t, "etcd")), OnlyEtcd: true}, 3)
		plain := filepath.Join(r.Folder, "plain.snapshot")

		identity := sitetest.NewIdentity(t)
		encrypted := r.listed() + r.plane(r.latest(fmt.Sprintf("identities_wo = [%q]", identity)))
		byHand := r.plane(known(plain))

		sitetest.UnitTest(t, cli, resource.TestCase{
			ProtoV6ProviderFactories: slowProviders(),
			Steps: []resource.TestStep{
				{Config: r.plane(""), ConfigStateChecks: restoredFrom(knownvalue.Null())},
				{PreConfig: func() { r.Fill(t, 10_000) }, Config: r.plane("") + r.backup(identity.Recipient().String())},
				{
					PreConfig: func() {
						r.bySelf(t, plain)
						r.forget(t)
						r.Wipe(t)
					},
					Config: encrypted, ConfigPlanChecks: plansRestore(),
					ConfigStateChecks: restoredFrom(knownvalue.StringRegexp(sitetest.Message("/test/etcd-snapshot-"))),
				},
				{PreConfig: func() { r.isBack(t) }, Config: r.listed()},
				{Config: byHand, ConfigPlanChecks: plansRestore(), ConfigStateChecks: restoredFrom(knownvalue.StringExact(plain))},
				{PreConfig: func() { r.isBack(t) }, Config: r.plane(""), ConfigPlanChecks: again,
					ConfigStateChecks: restoredFrom(knownvalue.NotNull())},
			},
		})

		// For the last wiped resource, and for the new one.
		if uploads := r.CallsTo("EtcdRecover"); len(uploads) != 2 {
			t.Errorf("since the last wipe a snapshot was uploaded %d times", len(uploads))
		}
	})
}

// A worker that joined after the snapshot has lost its node, and is registered again without manual steps.
func TestAccRestore_olderThanAWorker(t *testing.T) {
	testenv.BeforeRelease(t, "TestRestore_ofAnOlderSnapshot", "TestAccRestore_ofRealEtcd")
	t.Parallel()

	sitetest.InOneCLI(t, func(t *testing.T, cli clitest.CLI) {
		r := newRestorable(t, sim.Options{}, 1)
		snapshot := filepath.Join(r.Folder, "before.snapshot")

		late, err := r.AddMachines(t.Context(), "w", 1, sim.MachineOptions{})
		tftest.Must(t, err)

		m := tftest.QuickProviderData()
		m.Policy.RegisterTimeout = 2 * time.Second

		whole := r.plane("") + r.WorkersOf(late, "")

		sitetest.UnitTest(t, cli, resource.TestCase{
			ProtoV6ProviderFactories: sitetest.ProvidersWith(m),
			Steps: []resource.TestStep{
				{Config: r.plane("")},
				{PreConfig: func() { r.bySelf(t, snapshot) }, Config: whole},
				{
					PreConfig: func() { r.Wipe(t) },
					Config:    r.plane(known(snapshot)) + r.WorkersOf(late, ""),

					ExpectNonEmptyPlan: true, // only now does a refresh read Kubernetes
				},
				{
					Config: whole,
					ConfigPlanChecks: resource.ConfigPlanChecks{
						PreApply: []plancheck.PlanCheck{
							sitetest.OperationsAre("talosop_worker.this", `restart the kubelet of w-1 to register its missing node`),
						},
						PostApplyPostRefresh: []plancheck.PlanCheck{plancheck.ExpectEmptyPlan()},
					},
					ConfigStateChecks: []statecheck.StateCheck{
						sitetest.PhaseIs(sitetest.ThePlane, "Ready"), sitetest.PhaseIs("talosop_worker.this", "Ready"),
					},
				},
			},
		})
	})
}

// A restore that cannot succeed is refused at its attribute before any machine is touched, and nothing is stored.
// Once the mistake is corrected, the same machines start with the snapshot.
func TestAccRestore_isRefused(t *testing.T) {
	testenv.BeforeRelease(t, "TestRestore_refusesASnapshotOfAnotherCluster", "TestRestore_takesExactlyOneSource",
		"TestFetch_refusesASnapshotOfAnotherCluster")
	t.Parallel()

	sitetest.InOneCLI(t, func(t *testing.T, cli clitest.CLI) {
		r := newRestorable(t, sim.Options{}, 1)
		plain := filepath.Join(r.Folder, "plain.snapshot")
		cut := filepath.Join(r.Folder, "cut.snapshot")
		forgedKey := "test/etcd-snapshot-2099-01-02T03-00-00Z-" + tftest.MarkOf(t, tftest.Bundle()) + "-zzzzzz.db.age"

		identity, other := sitetest.NewIdentity(t), sitetest.NewIdentity(t)

		encrypted := func(opened string) string { return r.listed() + r.plane(r.latest(opened)) }
		file := func(path string) string { return r.plane(known(path)) }
		right := encrypted(fmt.Sprintf("identities_wo = [%q]", identity))
		foreign := sitetest.SecretsHCL + strings.ReplaceAll(right, fmt.Sprintf("secrets            = file(%q)", r.Secrets),
			"secrets            = talosop_secrets.this.bundle")

		refused := func(config, says string) resource.TestStep {
			return resource.TestStep{Config: config, ExpectError: sitetest.Message(says)}
		}

		sitetest.UnitTest(t, cli, resource.TestCase{
			ProtoV6ProviderFactories: sitetest.QuickProviders(),
			Steps: []resource.TestStep{
				{Config: r.plane("")},
				{PreConfig: func() { r.Fill(t, 10) }, Config: r.plane("") + r.backup(identity.Recipient().String())},
				{
					PreConfig: func() {
						r.bySelf(t, plain)
						cutShort(t, plain, cut)
					},
					Config: r.listed(),
				},
				{
					PreConfig:   r.ForgetCalls,
					Config:      encrypted(fmt.Sprintf("identities_wo = [%q]", other)),
					ExpectError: sitetest.Message("none of the identities opens it"),
				},
				refused(encrypted(`passphrase_wo = "correct horse battery staple"`), "the passphrase does not open it"),
				refused(encrypted(""), "Set `identities_wo` if it was encrypted"),
				refused(r.plane(fmt.Sprintf("    file = { path = %q }", filepath.Join(r.Folder, "none"))), "there is no such file"),
				// The refusal contains the line that allows it.
				refused(r.plane(fmt.Sprintf("    file = { path = %q }", plain)), "set `sha256 = \""),
				refused(r.plane(known(plain)+"\n    passphrase_wo = \"correct horse\""), "the snapshot is not encrypted"),
				refused(r.plane(fmt.Sprintf("    file = { path = %q }\n    sha256 = %q", plain, strings.Repeat("0", 64))),
					"SHA-256 checksum does not match the given one"),
				{
					// Newer than all others, with a matching record, and for a recipient whose key is public.
					PreConfig:   func() { r.forge(t, plain, forgedKey, identity.Recipient().String()) },
					Config:      strings.ReplaceAll(right, "${data.talosop_etcd_backups.this.latest}", forgedKey),
					ExpectError: sitetest.Message("its record is unsigned or signed with another key"),
				},
				refused(file(cut), "the snapshot is incomplete"),
				refused(strings.ReplaceAll(right, "\"v1.36.2\"\n  install", "\"v1.35.2\"\n  install"),
					"Kubernetes v1.36.2 wrote it"),
				refused(foreign, "Snapshot of another cluster:"),
				{
					PreConfig: func() { r.ExpectNothingSent(t) }, Config: right, ConfigPlanChecks: again,
					ConfigStateChecks: append(restoredFrom(knownvalue.NotNull()), statecheck.ExpectKnownValue(sitetest.ThePlane,
						tfjsonpath.New("restore_from").AtMapKey("identities_wo"), knownvalue.Null())),
				},
				{
					PreConfig: func() {
						r.isBack(t)
						r.ForgetCalls()
					},
					Config: file(plain), ExpectError: sitetest.Message("it has the data of a running etcd"),
				},
				{PreConfig: func() { r.ExpectNothingSent(t) }, Config: right, ConfigPlanChecks: again},
			},
		})
	})
}

// known is a file that its owner declares trusted.
func known(path string) string {
	return fmt.Sprintf("    file   = { path = %q }\n    sha256 = filesha256(%q)", path, path)
}

// forge puts a snapshot there as a client can that may write to the folder and has no key of the cluster.
func (r *restorable) forge(t *testing.T, from, key, recipient string) {
	t.Helper()

	data, err := os.ReadFile(from)
	tftest.Must(t, err)

	elsewhere := t.TempDir()
	a := backup.Archive{Store: file.Store{Path: elsewhere}, Cluster: "test", Mark: tftest.MarkOf(t, tftest.Bundle())}

	record, err := a.Take(t.Context(), backup.Request{
		At: time.Now(), Sealing: backup.Sealing{Recipients: []string{recipient}},
		Source: func(_ context.Context, to io.Writer) error { _, err := to.Write(data); return err },
	})
	tftest.Must(t, err)

	for _, ending := range []string{"", ".json"} {
		stored, err := os.ReadFile(filepath.Join(elsewhere, record.Key) + ending)
		tftest.Must(t, err)

		if ending != "" {
			text, _, _ := strings.Cut(strings.ReplaceAll(string(stored), record.Key, key), ",\n  \"sum\"")
			stored = fmt.Appendf(nil, "%s,\n  \"sum\": \"%x\"\n}\n", text, sha256.Sum256([]byte(text)))
		}

		tftest.Must(t, os.WriteFile(filepath.Join(r.Folder, key)+ending, stored, 0o600))
	}
}

// cutShort copies a file without its last byte.
func cutShort(t *testing.T, from, to string) {
	t.Helper()

	content, err := os.ReadFile(from)
	if err != nil {
		t.Fatal(err)
	}

	if err := os.WriteFile(to, content[:len(content)-1], 0o600); err != nil {
		t.Fatal(err)
	}
}
