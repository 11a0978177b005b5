package machines_test

import (
	"context"
	"errors"
	"net"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/hashicorp/terraform-plugin-go/tftypes"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clientgo "k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"github.com/talosop/terraform-provider-talosop/internal/clitest"
	"github.com/talosop/terraform-provider-talosop/internal/helm/release"
	"github.com/talosop/terraform-provider-talosop/internal/kubernetes"
	"github.com/talosop/terraform-provider-talosop/internal/pki"
	"github.com/talosop/terraform-provider-talosop/internal/provider/providerdata"
	"github.com/talosop/terraform-provider-talosop/internal/provider/tftest"
	"github.com/talosop/terraform-provider-talosop/internal/testenv/hosttest"
	"github.com/talosop/terraform-provider-talosop/internal/testenv/kubetest"
)

// Resources inside a cluster reach it by its handle alone, through the host: an addon in its Kubernetes and
// snapshots of its etcd, both real ones.
func TestAccContainer_addonAndBackup(t *testing.T) {
	t.Parallel()

	s := siteOn(t, hosttest.New(t, hosttest.Options{Assets: filepath.Dir(clitest.Asset(t, "kube-apiserver"))}))
	m := s.ProviderData()
	m.Addons.Open = func(_ context.Context, api *kubernetes.Client) providerdata.ReleaseKeeper {
		return &release.Cluster{API: api, Pause: 50 * time.Millisecond}
	}

	server := tftest.ServeWith(t, m, nil)
	drive := func(name string) *tftest.Driven {
		d := tftest.Drive(t, name, nil)
		d.Server = server

		return d
	}

	plane, secrets := drive("talosop_control_plane"), tftest.NewBundle(t)
	config := s.container("dev", secrets)
	config["replicas"] = 1

	plane.Ready(t, config)
	plane.ExpectEmpty(t, "after the create", config)

	handle := tftest.AttributeOf(t, plane.State, "cluster")

	takesAddon(t, drive("talosop_addon"), handle, s.inside(t, secrets, "dev-cp-0-0"))
	takesBackups(t, drive("talosop_etcd_backup"), handle)

	s.destroy(t, plane, "dev")
}

// inside is the Kubernetes API of a cluster as the machine in a pod serves it, by a route that talosop does not use.
func (s *hostSite) inside(t *testing.T, secrets, pod string) clientgo.Interface {
	t.Helper()

	bundle, err := pki.Parse([]byte(secrets))
	tftest.Must(t, err)

	admin, err := bundle.KubernetesClient("test", []string{"system:masters"}, time.Hour)
	tftest.Must(t, err)

	api, err := clientgo.NewForConfig(&rest.Config{
		Host:    "https://" + net.JoinHostPort(s.Machine(s.namespace, pod).Address().String(), "6443"),
		Timeout: 20 * time.Second,
		TLSClientConfig: rest.TLSClientConfig{ServerName: "localhost", CAData: admin.CA, CertData: admin.Certificate,
			KeyData: admin.Key},
	})
	tftest.Must(t, err)

	return api
}

// takesAddon is the lifecycle of an addon.
func takesAddon(t *testing.T, d *tftest.Driven, handle tftypes.Value, api clientgo.Interface) {
	t.Helper()

	chart := filepath.Join(t.TempDir(), "echo-1.0.0.tgz")
	tftest.Must(t, os.WriteFile(chart, kubetest.AllValues.Package("1.0.0"), 0o600))

	config := func(greeting string) tftest.Config {
		return tftest.Config{"cluster": handle, "name": "echo", "namespace": "echo", "chart": chart,
			"values": []any{"greeting: " + greeting}, "wait_timeout": "1m"}
	}

	d.Plan(t, config("hello")).Must(t).Tells(t, "[addon_changes_objects]", "1 object added")

	for _, greeting := range []string{"hello", "goodbye"} {
		d.Apply(t, config(greeting)).Must(t)
		d.ExpectEmpty(t, "after it said "+greeting, config(greeting))

		found, err := api.CoreV1().ConfigMaps("echo").Get(t.Context(), "echo", metav1.GetOptions{})
		if err != nil || found.Data["greeting"] != "string "+greeting {
			t.Errorf("the addon says %q: %v", found.Data["greeting"], err)
		}
	}

	d.Apply(t, nil).Must(t)

	if _, err := api.CoreV1().ConfigMaps("echo").Get(t.Context(), "echo",
		metav1.GetOptions{}); !apierrors.IsNotFound(err) {
		t.Errorf("the addon is left: %v", err)
	}
}

// takesBackups is the lifecycle of a backup.
func takesBackups(t *testing.T, d *tftest.Driven, handle tftypes.Value) {
	t.Helper()

	folder := t.TempDir()
	config := func(run string) tftest.Config {
		return tftest.Config{"cluster": handle, "file": tftest.Config{"path": folder}, "triggers": tftest.Config{"run": run},
			"delete_on_destroy": true}
	}

	var files []string

	for _, run := range []string{"first", "second"} {
		d.Apply(t, config(run)).Must(t)
		d.ExpectEmpty(t, "after the "+run+" snapshot", config(run))

		if status, member := tftest.Text(t, d.State, "status"),
			tftest.Text(t, d.State, "member"); status != "stored" || member != "dev-cp-0" {
			t.Errorf("the %s snapshot is %s, of %s", run, status, member)
		}

		files = append(files, filepath.Join(folder, tftest.Text(t, d.State, "key")))
	}

	for _, file := range files {
		if found, err := os.Stat(file); err != nil || found.Size() == 0 || files[0] == files[1] {
			t.Errorf("of %v there is no %s: %v", files, file, err)
		}
	}

	d.Apply(t, nil).Must(t)

	if _, err := os.Stat(files[1]); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("the last snapshot is left: %v", err)
	}
}
