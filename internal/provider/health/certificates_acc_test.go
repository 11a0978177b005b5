package health_test

import (
	"strings"
	"testing"
	"time"

	"github.com/hashicorp/terraform-plugin-go/tftypes"
	"github.com/siderolabs/talos/pkg/machinery/config"
	"github.com/siderolabs/talos/pkg/machinery/config/generate/secrets"
	"github.com/siderolabs/talos/pkg/machinery/constants"

	"github.com/talosop/terraform-provider-talosop/internal/clitest"
	"github.com/talosop/terraform-provider-talosop/internal/pki"
	"github.com/talosop/terraform-provider-talosop/internal/provider/sitetest"
	"github.com/talosop/terraform-provider-talosop/internal/provider/tftest"
	"github.com/talosop/terraform-provider-talosop/internal/testenv"
)

// bundleThatEnds has authorities that expire then: ten years after they were issued.
func bundleThatEnds(t *testing.T, then time.Time) string {
	t.Helper()

	made := then.Add(-constants.KubernetesDefaultCertificateValidityDuration * 10)

	generated, err := secrets.NewBundle(secrets.NewFixedClock(made), config.TalosVersion1_6)
	tftest.Must(t, err)

	bundle, err := pki.Wrap(generated)
	tftest.Must(t, err)

	content, err := bundle.YAML()
	tftest.Must(t, err)

	return string(content)
}

// certificateIn is the certificate of a name and a server in the state of talosop_cluster_health.
func certificateIn(t *testing.T, state tftypes.Value, name string) map[string]tftypes.Value {
	t.Helper()

	var all []tftypes.Value

	tftest.Must(t, tftest.FieldsOf(t, state)["certificates"].As(&all))

	for _, c := range all {
		var fields map[string]tftypes.Value

		tftest.Must(t, c.As(&fields))

		if fields["name"].Equal(tftypes.NewValue(tftypes.String, name)) {
			return fields
		}
	}

	t.Fatalf("there is no %s in %s", name, tftest.FieldsOf(t, state)["certificates"])

	return nil
}

// An authority is reported before it expires, as early as configured. After it expired no machine can be asked,
// which is a result, too.
func TestClusterHealth_authoritiesThatEnd(t *testing.T) {
	t.Parallel()

	day := 24 * time.Hour
	ends := time.Now().Add(40 * day).UTC().Truncate(time.Second)

	for what, test := range map[string]struct {
		ends   time.Time
		within any
		due    bool
		says   string
	}{
		"later than a month":  {ends: ends},
		"sooner than wanted":  {ends: ends, within: "1000h", due: true},
		"sooner than a month": {ends: ends.Add(-20 * day), due: true},
		"it has ended": {ends: ends.Add(-50 * day), due: true, within: "0s",
			says: "the Talos CA ended at " + ends.Add(-50*day).Format(time.RFC3339)},
	} {
		t.Run(what, func(t *testing.T) {
			t.Parallel()

			handle := tftest.With(tftest.WrittenHandle("10.0.0.1"), bundleThatEnds(t, test.ends), "secrets")
			state, diagnostics := tftest.ReadSilent(t, "talosop_cluster_health", tftest.Config{"cluster": handle,
				"expires_within": test.within, "timeouts": tftest.Config{"read": "200ms"}})

			for _, name := range []string{"Talos CA", "Kubernetes CA", "etcd CA", "aggregator CA"} {
				c := certificateIn(t, state, name)
				if !c["due"].Equal(tftypes.NewValue(tftypes.Bool, test.due)) || !c["server"].IsNull() ||
					!c["not_after"].Equal(tftypes.NewValue(tftypes.String, test.ends.Format(time.RFC3339))) {
					t.Errorf("%s is %v, want due %t, until %s", name, c, test.due, test.ends)
				}
			}

			summary := tftest.Text(t, state, "summary")
			condition := "CertificatesValid is False (Talos CA is valid until " + test.ends.Format(time.RFC3339)

			if strings.Contains(summary, condition) != test.due {
				t.Errorf("the summary is %s", summary)
			}

			if shown := tftest.Show(diagnostics); len(diagnostics) != 1 || !strings.Contains(shown, test.says) {
				t.Errorf("diagnostics are %s", shown)
			}
		})
	}
}

// A machine whose own certificate has expired is not trusted. The refresh and the health report it, an apply that
// needs the machine names it, and the next one continues once Talos has issued a new one. Nothing is lost meanwhile.
func TestAccCertificates_ofMachinesEnd(t *testing.T) {
	testenv.BeforeRelease(t, "TestObserve_certificates", "TestClusterHealth_authoritiesThatEnd")
	t.Parallel()

	sitetest.InOneCLI(t, func(t *testing.T, cli clitest.CLI) {
		s := sitetest.New(t, 3, 1)
		w := s.Quickstart(t, cli, map[string]any{"deletion_protection": false})
		w.Write("health.tf", healthHCL)
		w.MustRun("apply", "-auto-approve")
		expectConditions(t, w, map[string]string{"CertificatesValid": "True: no certificate expires soon"})

		if seen, _ := w.Attribute(healthAddress, "certificates").([]any); len(seen) < 4+3+1 {
			t.Errorf("certificates are %s", tftest.JSON(t, seen))
		}

		cp3, w1 := s.ControlPlane[2], s.Workers[0]
		tftest.Must(t, cp3.ExpireCertificate())
		tftest.Must(t, w1.ExpireCertificate())

		refresh := w.MustRun("apply", "-refresh-only", "-auto-approve")
		sitetest.Says(t, refresh, "w-1", "its certificate expired at", "Talos renews it every 12 hours")
		expectConditions(t, w, map[string]string{
			"CertificatesValid": "False: Talos API of cp-3 (" + cp3.Address().String() + ") is valid until",
			"TalosAPIReachable": "False: cp-3 (" + cp3.Address().String() + ") does not respond",
		})
		sitetest.ExpectNoChanges(t, w, "while certificates have ended")

		w.Write("override.tf", `resource "talosop_worker" "this" {
  config_patches = [yamlencode({ machine = { nodeLabels = { rack = "b2" } } })]
  timeouts       = { update = "5s" }
}`)
		s.ForgetCalls()

		result := w.Run("apply", "-auto-approve")
		if result.Exit != 1 {
			t.Fatalf("exit %d:\n%s", result.Exit, result.Output())
		}

		sitetest.Says(t, result, "w-1", "its certificate expired at")
		s.ExpectNothingSent(t)

		tftest.Must(t, cp3.RenewCertificate())
		tftest.Must(t, w1.RenewCertificate())

		w.MustRun("apply", "-auto-approve")
		sitetest.ExpectNoChanges(t, w, "after the renewal")
		expectConditions(t, w, map[string]string{"CertificatesValid": "True"})
		s.ExpectUntouched(t)
	})
}
