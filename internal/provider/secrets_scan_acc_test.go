package provider_test

import (
	"encoding/base64"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/talosop/terraform-provider-talosop/internal/backup/storetest"
	"github.com/talosop/terraform-provider-talosop/internal/clitest"
	"github.com/talosop/terraform-provider-talosop/internal/provider/sitetest"
	"github.com/talosop/terraform-provider-talosop/internal/provider/tftest"
	"github.com/talosop/terraform-provider-talosop/internal/sim"
	"github.com/talosop/terraform-provider-talosop/internal/testenv"
	"github.com/talosop/terraform-provider-talosop/internal/testenv/kubetest"
)

// scanned are the credentials of a scan by variable, besides the secrets of the cluster.
var scanned = map[string]string{
	"registry_password": "PASSWORD-OF-THE-REGISTRY-OF-IMAGES", "patch_secret": "SECRET-IN-A-PATCH",
	"own_secret": "SECRET-IN-A-PATCH-OF-ONE-MACHINE", "meta_secret": "SECRET-IN-META",
	"s3_secret": "SECRET-KEY-OF-THE-BUCKET", "passphrase": "PASSPHRASE-OF-SNAPSHOTS",
	"chart_password": "PASSWORD-OF-THE-CHARTS", "chart_value": "VALUE-OF-THE-CHART", "addon_token": "TOKEN-OF-AN-ADDON",
	"disk_passphrase": "PASSPHRASE-OF-THE-DISK", "next_passphrase": "NEXT-PASSPHRASE-OF-THE-DISK",
	"identity": "AGE-SECRET-KEY-1THISISNONEANDHASATYPO",
}

// tellingServer refuses every request, and repeats its content: headers as they are and decoded.
func tellingServer(t *testing.T) *httptest.Server {
	t.Helper()

	server := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		var output strings.Builder

		body, _ := io.ReadAll(r.Body)
		_ = r.Header.Write(&output)
		output.Write(body)

		for _, word := range strings.Fields(r.Header.Get("Authorization")) {
			if plain, err := base64.StdEncoding.DecodeString(word); err == nil {
				output.Write(plain)
			}
		}

		text := strings.ReplaceAll(output.String(), "\r\n", "; ")
		w.Header().Set("WWW-Authenticate", `Basic realm="`+strings.ReplaceAll(text, `"`, "'")+`"`)
		w.WriteHeader(http.StatusForbidden)
		_ = json.NewEncoder(w).Encode(map[string]any{"kind": "Status", "apiVersion": "v1", "status": "Failure",
			"message": text, "reason": "Forbidden", "code": http.StatusForbidden})
	}))
	server.Config.ErrorLog = log.New(io.Discard, "", 0)
	server.StartTLS()
	t.Cleanup(server.Close)

	return server
}

// scanHCL is resources with every possible credential: some of them fail.
func scanHCL(s *sitetest.Site, server *httptest.Server, secrets, settings string) string {
	text := sitetest.ProviderHCL
	for name := range scanned {
		text += fmt.Sprintf("variable %q {\n  ephemeral = %t\n  sensitive = true\n}\n", name,
			settings == "" || strings.Contains("s3_secret passphrase chart_password chart_value addon_token identity", name))
	}

	return text + s.ControlPlaneHCL(secrets+settings+"\n  allow_bootstrap = true\n") + s.WorkersHCL(`  timeouts = { create = "`+sitetest.Hanging+`" }`) + fmt.Sprintf(`
variable "failing" {
  default = 1
}

resource "talosop_etcd_backup" "this" {
  count   = var.failing
  cluster = talosop_control_plane.this.cluster
  s3 = {
    bucket = "backups", endpoint = %[1]q, region = "here", ca = file("ca.pem")
    access_key_id_wo = %[2]q, secret_access_key_wo = var.s3_secret
  }
  encryption = { passphrase_wo = var.passphrase }
}

resource "talosop_addon" "elsewhere" {
  count             = var.failing
  kubeconfig        = { cluster = "elsewhere" }
  name              = "simple"
  namespace         = "kube-system"
  chart             = "./simple-1.0.0.tgz"
  values_wo         = [yamlencode({ password = var.chart_value })]
  values_wo_version = "1"
  depends_on        = [talosop_control_plane.this]
}

variable "fetched" {
  default = 0
}

resource "talosop_addon" "fetched" {
  count      = var.fetched
  cluster    = talosop_control_plane.this.cluster
  name       = "fetched"
  namespace  = "kube-system"
  chart      = "simple"
  version    = "1.0.0"
  repository = %[1]q
  registry   = { username = "reader", password_wo = var.chart_password, ca = file("ca.pem") }
}
`, server.URL, storetest.AccessKey)
}

// scanProvider is the provider of a scan: with all secrets of the cluster, and those of another one for an addon.
func scanProvider(server *httptest.Server, cluster string) string {
	return fmt.Sprintf(`
provider "talosop" {
  clusters = {
    elsewhere = { kubeconfig = yamlencode({
      apiVersion = "v1", kind = "Config", current-context = "here"
      contexts = [{ name = "here", context = { cluster = "one", user = "me" } }]
      clusters = [{ name = "one", cluster = { server = %q, certificate-authority-data = filebase64("ca.pem") } }]
      users    = [{ name = "me", user = { token = var.addon_token } }]
    }) }
%s  }
}
`, server.URL, cluster)
}

const (
	patchOfScan = `"machine: { env: { ONE: ${var.patch_secret} } }"`
	ownOfScan   = `"machine: { env: { TWO: ${var.own_secret} } }"`
	diskOfScan  = `"apiVersion: v1alpha1\nkind: VolumeConfig\nname: EPHEMERAL\nencryption: { provider: luks2, keys: ` +
		`[{ slot: 0, static: { passphrase: '${var.disk_passphrase}' } }] }"`
)

// No output, log or displayed value contains a secret of the cluster or of a service with credentials, even after
// failures, servers that repeat requests, or crashes. When the provider block has all secrets, state and plans
// contain none. When resources have them, only marked attributes contain them.
func TestAccSecrets_scan(t *testing.T) {
	t.Parallel()

	clis := clitest.All(t)

	for i, cli := range clis {
		for _, provided := range []bool{true, false} {
			// A change is scanned under each CLI and with the secrets in each place, a release with every combination.
			if len(clis) > 1 && provided != (i == 0) && !testenv.Everything() {
				continue
			}

			t.Run(cli.Name+map[bool]string{true: " in the provider block", false: " in state"}[provided], func(t *testing.T) {
				t.Parallel()
				scanEverything(t, cli, provided)
			})
		}
	}
}

func scanEverything(t *testing.T, cli clitest.CLI, provided bool) {
	t.Helper()

	s, server := sitetest.New(t, 1, 2), tellingServer(t)
	bundle := tftest.Bundle()
	w := clitest.NewWorkspace(t, cli).KeepTrace()

	first := s.ControlPlane[0].Address().String()

	if provided {
		w.Write("provider.tf", "variable \"bundle\" {\n  ephemeral = true\n}\n"+scanProvider(server, `    test = {
      secrets        = var.bundle
      config_patches = [`+patchOfScan+`, "machine: { registries: { config: { registry.test: { auth: { username: me, password: `+
			`${var.registry_password} } } } } }", `+diskOfScan+`]
      machines = { cp-1 = { meta = { user_1 = var.meta_secret }, config_patches = [`+ownOfScan+`] } }
    }
`))
		w.Write("main.tf", strings.Replace(scanHCL(s, server, "", ""), "  secrets            = talosop_secrets.this.bundle\n",
			"", 1))
		w.Setenv("TF_VAR_bundle", bundle)
	} else {
		w.Write("provider.tf", scanProvider(server, "")+"variable \"bundle\" {\n  sensitive = true\n}\n")
		w.Write("main.tf", strings.NewReplacer("talosop_secrets.this.bundle", "var.bundle", `address = "`+first+`"`,
			`address = "`+first+`", meta = { user_1 = var.meta_secret }, config_patches = [`+ownOfScan+`]`).Replace(
			scanHCL(s, server, "", `
  cluster_config_patches = [`+patchOfScan+`]
  registries             = { auth = { "registry.test" = { username = "me", password = var.registry_password } } }
  system_volumes         = { EPHEMERAL = { encryption_keys = { 0 = { passphrase = var.disk_passphrase } } } }
`)))
		w.Setenv("TF_VAR_bundle", bundle)
	}

	w.Write("ca.pem", string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: server.Certificate().Raw})))
	w.Write("simple-1.0.0.tgz", string(kubetest.Simple.Package("1.0.0")))

	for name, value := range scanned {
		w.Setenv("TF_VAR_"+name, value)
	}

	w.Init()
	s.Workers[1].HangNextReboot()

	shown, file := w.SavedPlan("create.plan", "-var", "failing=0")
	plans := []string{shown}
	failed := w.Run("apply", "create.plan")
	output := failed.Output()
	states := []string{w.Read("terraform.tfstate")}
	visibleState := sitetest.VisibleValues(t, w.State())

	s.Workers[1].PowerOff()
	s.Workers[1].PowerOn()

	refused := w.Run("apply", "-auto-approve")
	output += refused.Output()
	states = append(states, w.Read("terraform.tfstate*"))

	if refused.Exit != 1 || w.Attribute("talosop_worker.this", "phase") != "Ready" {
		t.Errorf("the apply with servers that refuse ended with %d:\n%s", refused.Exit, refused.Output())
	}

	for _, m := range s.Machines() {
		if !strings.Contains(string(m.Config()), scanned["registry_password"]) {
			t.Errorf("%s has not got the password of the registry", m.Name())
		}
	}

	if !strings.Contains(string(s.ControlPlane[0].Config()), scanned["disk_passphrase"]) {
		t.Error("the disk has no passphrase")
	}

	if got := s.ControlPlane[0].Meta()[0x0c]; got != scanned["meta_secret"] {
		t.Errorf("META is %q", got)
	}

	output += sitetest.Fails(t, w, "plan", "-var", "failing=0", "-var", "fetched=1").Output()

	w.Setenv("TF_VAR_disk_passphrase", scanned["next_passphrase"])

	locked := w.Run("plan", "-var", "failing=0")
	output += locked.Output()

	if !provided {
		sitetest.Says(t, locked, "all of its encryption keys would change")
	}

	w.Setenv("TF_VAR_disk_passphrase", scanned["disk_passphrase"])

	w.Write("restore_override.tf", `resource "talosop_control_plane" "this" {
  restore_from = { file = { path = "none.age" }, identities_wo = [var.identity] }
}
`)

	mistaken := sitetest.Fails(t, w, "plan", "-var", "failing=0")
	sitetest.Says(t, mistaken, "none.age is not restored")
	w.Write("restore_override.tf", "")

	output += mistaken.Output() + crashed(t, s, w)

	shown, _ = w.SavedPlan("destroy.plan", "-destroy", "-var", "failing=0")
	plans = append(plans, shown)
	output += w.MustRun("destroy", "-auto-approve").Output()

	texts := map[string]string{"output": output, "log": w.Trace(), "what state shows": visibleState}

	if provided {
		texts["state"], texts["plans"], texts["a plan file"] = strings.Join(states, "\n"), strings.Join(plans, "\n"), file
		texts["private state"] = sitetest.PrivateIn(t, states[0])
	} else {
		for _, plan := range plans {
			texts["plans"] += sitetest.WithoutSensitive(t, withoutVariables(t, plan))
		}
	}

	sitetest.HoldsNone(t, bundle, texts)

	for where, text := range texts {
		for name, secret := range scanned {
			if i := strings.Index(text, secret); i >= 0 {
				t.Errorf("%s holds %s: …%s…", where, name, text[max(0, i-200):i])
			}
		}

		if strings.Contains(text, "PRIVATE KEY") {
			t.Errorf("%s shows a private key", where)
		}
	}

	if !strings.Contains(w.Trace(), "goroutine ") {
		t.Error("nothing crashed")
	}
}

// crashed changes the machines until the provider crashes midway, with the full output of the Go runtime.
func crashed(t *testing.T, s *sitetest.Site, w *clitest.Workspace) string {
	t.Helper()

	s.Workers[1].HangNextReboot()

	p := w.Start("apply", "-auto-approve", "-var", "failing=0", "-replace=talosop_worker.this")
	tftest.Must(t, s.Workers[0].AwaitStage(t.Context(), sim.StageMaintenance))
	p.CrashProvider()

	result := p.Wait()
	if result.Exit == 0 {
		t.Errorf("an apply survived a crash:\n%s", result.Output())
	}

	s.Workers[1].PowerOff()
	s.Workers[1].PowerOn()

	return result.Output()
}

// withoutVariables is a plan in JSON without the variables, which the CLIs show as they are.
func withoutVariables(t *testing.T, shown string) string {
	t.Helper()

	var plan map[string]any
	tftest.Must(t, json.Unmarshal([]byte(shown), &plan))
	delete(plan, "variables")

	return tftest.JSON(t, plan)
}
