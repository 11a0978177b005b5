package addon_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/hashicorp/terraform-plugin-go/tfprotov6"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/util/retry"

	"github.com/talosop/terraform-provider-talosop/internal/helm/release"
	"github.com/talosop/terraform-provider-talosop/internal/kubernetes"
	"github.com/talosop/terraform-provider-talosop/internal/provider/providerdata"
	"github.com/talosop/terraform-provider-talosop/internal/provider/tftest"
	"github.com/talosop/terraform-provider-talosop/internal/testenv/kubetest"
)

func TestMain(m *testing.M) { kubetest.Run(m) }

// realAddons is a provider whose addons use a real Kubernetes, charts in a real repository and a real registry, and
// the real helm.
type realAddons struct {
	*kubetest.Cluster

	repository *kubetest.Repository
	registry   *kubetest.Registry
	helm       func(args ...string) (stdout, stderr string, err error)
	machine    *providerdata.ProviderData
}

const (
	chartUser     = "reader"
	chartPassword = "only-the-reader-knows"
)

// chartCredentials are the credentials that chart servers require.
var chartCredentials = kubetest.ServerOptions{Username: chartUser, Password: chartPassword}

func newRealAddons(t *testing.T) *realAddons {
	t.Helper()

	r := &realAddons{
		Cluster: kubetest.Shared(t), repository: kubetest.NewRepository(t, chartCredentials),
		registry: kubetest.NewRegistry(t, chartCredentials),
		machine:  tftest.QuickProviderData(),
	}
	r.helm = kubetest.Helm(t, r.Cluster)
	r.repository.Add(t, kubetest.Simple.Package("1.0.0"), kubetest.Simple.Package("1.1.0"), kubetest.AllValues.Package("1.0.0"),
		kubetest.Broken.Package("1.0.0"), kubetest.NeedsKubernetes.Package("1.0.0"), kubetest.WithSchema.Package("1.0.0"),
		kubetest.WithHooks.Package("1.0.0"))
	r.registry.Push(t, kubetest.Simple.Package("1.0.0"))

	r.machine.Addons.UnreachableTimeout = time.Second
	r.machine.Addons.Open = func(_ context.Context, api *kubernetes.Client) providerdata.ReleaseKeeper {
		return &release.Cluster{API: api, Pause: 50 * time.Millisecond}
	}

	return r
}

// drive is an addon without state, in a provider process that all of them share.
func (r *realAddons) drive(t *testing.T) *tftest.Driven {
	t.Helper()

	d := tftest.Drive(t, resourceType, nil)
	d.Server = tftest.ServeWith(t, r.machine, nil)

	return d
}

// process is another process of the provider, without cached answers of registries.
func (r *realAddons) process(t *testing.T) tfprotov6.ProviderServer {
	t.Helper()

	m := tftest.QuickProviderData()
	m.Addons.Open = r.machine.Addons.Open

	return tftest.ServeWith(t, m, nil)
}

// chart is a configuration of a chart in the repository.
func (r *realAddons) chart(t *testing.T, namespace string, sample kubetest.Sample, version string) tftest.Config {
	t.Helper()

	return tftest.Config{
		"cluster": tftest.Config{"name": "prod", "endpoint": r.Endpoint(), "secrets": r.Secrets(t),
			"kubernetes_version": "v1.36.3"},
		"name":      string(sample),
		"namespace": namespace, "chart": string(sample), "repository": r.repository.URL, "version": version, "wait_timeout": "5m",
		"registry": tftest.Config{"username": chartUser, "password_wo": chartPassword, "ca": r.repository.CA},
	}
}

// All tests with a cluster share one, in separate namespaces, because a real API server starts slowly.
func TestAccAddon_onACluster(t *testing.T) {
	t.Parallel()

	r := newRealAddons(t)

	for name, test := range map[string]func(*testing.T){
		"life": r.testLife, "registry": r.testRegistry, "folder": r.testFolder, "values": r.testValues,
		"import": r.testImport, "found by the plan": r.testFoundByThePlan,
		"failures": r.testFailures, "silence": r.testSilence, "twenty": r.testTwenty,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			test(t)
		})
	}
}

// An addon is installed, upgraded, changed by hand, repaired and removed.
func (r *realAddons) testLife(t *testing.T) {
	// A separate repository: requests of the other tests would be counted too.
	repository := kubetest.NewRepository(t, chartCredentials)
	repository.Add(t, kubetest.Simple.Package("1.0.0"), kubetest.Simple.Package("1.1.0"))

	namespace := "life"
	config := r.chart(t, namespace, kubetest.Simple, "1.0.0")
	config = tftest.With(tftest.With(config, repository.URL, "repository"), repository.CA, "registry", "ca")
	d := r.drive(t)

	d.Plan(t, config).Must(t).Tells(t, "life/simple", "4 objects added", "Deployment life/simple")
	d.Apply(t, config).Must(t)
	d.ExpectEmpty(t, "after the create", config)

	if got := tftest.Text(t, d.State, "status") + " " + tftest.Text(t, d.State, "revision") + " " +
		tftest.Text(t, d.State, "chart_version"); got != "deployed 1 1.0.0" {
		t.Errorf("it is %s", got)
	}

	repository.Forget()
	d.ExpectEmpty(t, "once more", config)

	if n := repository.Requests("/simple-"); n > 0 {
		t.Errorf("a plan that does nothing fetched the chart %d times", n)
	}

	// A change of no input runs no Helm.
	config = tftest.With(tftest.With(config, "2m", "wait_timeout"), 3, "max_history")
	d.Apply(t, config).Must(t)

	if revision := tftest.Text(t, d.State, "revision"); revision != "1" {
		t.Errorf("the revision is %s", revision)
	}

	changed := tftest.With(tftest.With(config, "1.1.0", "version"), []any{"message: changed\nreplicas: 2\n"}, "values")
	d.Plan(t, changed).Must(t).Tells(t, "[addon_changes_objects]", "life/simple", "ConfigMap life/simple",
		"data.message", "spec.replicas")
	d.Apply(t, changed).Must(t)
	d.ExpectEmpty(t, "after the upgrade", changed)

	r.alter(t, namespace)

	read := d.Refresh(t).Must(t)
	read.Tells(t, `ConfigMap life/simple: data.message is "by hand"`, "Service life/simple is missing")
	d.Apply(t, changed).Must(t)
	d.ExpectEmpty(t, "after the repair", changed)

	live, err := r.API().CoreV1().ConfigMaps(namespace).Get(t.Context(), "simple", metav1.GetOptions{})
	if err != nil || live.Data["message"] != "changed" {
		t.Errorf("the ConfigMap is %v, %v", live, err)
	}

	if _, stderr, err := r.helm("upgrade", "simple", "simple", "-n", namespace, "--repo", r.repository.URL, "--ca-file",
		r.repository.CAFile,
		"--username", chartUser, "--password", chartPassword, "--version", "1.0.0", "--set", "replicas=5"); err != nil {
		t.Fatal(err, stderr)
	}

	d.Refresh(t).Must(t).Tells(t, "revision is 4 instead of 3", "replicas",
		"chart is simple 1.0.0 instead of simple 1.1.0")
	d.Apply(t, changed).Must(t)
	d.ExpectEmpty(t, "after helm was undone", changed)

	d.Apply(t, nil).Must(t)
	r.nothingLeft(t, namespace)
}

// alter changes an object and removes another one.
func (r *realAddons) alter(t *testing.T, namespace string) {
	t.Helper()

	maps := r.API().CoreV1().ConfigMaps(namespace)

	tftest.Must(t, retry.RetryOnConflict(retry.DefaultRetry, func() error {
		live, err := maps.Get(t.Context(), "simple", metav1.GetOptions{})
		if err != nil {
			return err
		}

		live.Data["message"] = "by hand"
		_, err = maps.Update(t.Context(), live, metav1.UpdateOptions{})

		return err
	}))
	tftest.Must(t, r.API().CoreV1().Services(namespace).Delete(t.Context(), "simple", metav1.DeleteOptions{}))
}

// nothingLeft checks that no objects, records or Lease are left.
func (r *realAddons) nothingLeft(t *testing.T, namespace string) {
	t.Helper()

	if _, err := r.API().CoreV1().ConfigMaps(namespace).Get(t.Context(), "simple",
		metav1.GetOptions{}); !apierrors.IsNotFound(err) {
		t.Errorf("the ConfigMap is left: %v", err)
	}

	secrets, err := r.API().CoreV1().Secrets(namespace).List(t.Context(), metav1.ListOptions{LabelSelector: "owner=helm"})
	tftest.Must(t, err)

	if len(secrets.Items) > 0 {
		t.Errorf("%d records are left", len(secrets.Items))
	}
}

// A chart in an OCI registry, and new content under its tag.
func (r *realAddons) testRegistry(t *testing.T) {
	config := r.chart(t, "registry", kubetest.Simple, "1.0.0")
	config["chart"], config["registry"] = r.registry.URL+"/simple",
		tftest.Config{"username": chartUser, "password_wo": chartPassword, "ca": r.registry.CA}
	delete(config, "repository")

	d := r.drive(t)
	d.Apply(t, config).Must(t)
	d.ExpectEmpty(t, "after the create", config)

	files := kubetest.Simple.Files("1.0.0")
	files["templates/more.yaml"] = "apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: more\n"
	r.registry.Push(t, kubetest.Chart("simple", "1.0.0", files))

	d.Server = r.process(t)
	d.Plan(t, config).Must(t).Tells(t, "[addon_chart_new_content]", tftest.Text(t, d.State, "chart_digest"),
		"ConfigMap registry/more")
	d.Apply(t, config).Must(t)
	d.ExpectEmpty(t, "after the new content", config)
	d.Apply(t, nil).Must(t)
}

// A chart in a folder, whose files decide.
func (r *realAddons) testFolder(t *testing.T) {
	folder := t.TempDir()

	write := func(files map[string]string) {
		for name, content := range files {
			at := filepath.Join(folder, filepath.FromSlash(name))
			tftest.Must(t, os.MkdirAll(filepath.Dir(at), 0o700))
			tftest.Must(t, os.WriteFile(at, []byte(content), 0o600))
		}
	}
	write(kubetest.Simple.Files("1.0.0"))

	config := r.chart(t, "folder", kubetest.Simple, "1.0.0")
	config["chart"] = folder

	for _, name := range []string{"repository", "version", "registry"} {
		delete(config, name)
	}

	d := r.drive(t)
	d.Apply(t, config).Must(t)
	d.ExpectEmpty(t, "after the create", config)

	write(map[string]string{"templates/more.yaml": "apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: more\n"})
	d.Plan(t, config).Must(t).Tells(t, "[addon_chart_new_content]", "ConfigMap folder/more")
	d.Apply(t, config).Must(t)
	d.ExpectEmpty(t, "after the change", config)
	d.Apply(t, nil).Must(t)
}

// Values reach the templates with the types that helm install -f gives them.
func (r *realAddons) testValues(t *testing.T) {
	values := "list: [1, two, 3.5]\nbig: 1000000\nzero: \"007\"\ntruth: \"true\"\nversion: \"1.10\"\nexponent: " +
		"\"1e3\"\ntext: |\n  one\n\n    two\n" +
		"unicode: Grüße ☃ 日本\nempty: \"\"\nnested: {a: {b: [x, {y: \"0x1F\"}]}}\nlong: 12345678901234567\n"
	config := tftest.With(r.chart(t, "values", kubetest.AllValues, "1.0.0"), []any{values}, "values")

	d := r.drive(t)
	d.Apply(t, config).Must(t)
	d.ExpectEmpty(t, "after the create", config)

	live, err := r.API().CoreV1().ConfigMaps("values").Get(t.Context(), "echo", metav1.GetOptions{})
	tftest.Must(t, err)

	for name, want := range map[string]string{
		"big": "float64 1e+06", "zero": "string 007", "truth": "string true", "version": "string 1.10",
		"exponent": "string 1e3",
		"text":     "string one\n\n  two\n",
		"unicode":  "string Grüße ☃ 日本", "empty": "string ", "long": "float64 1.2345678901234568e+16",
	} {
		if got := live.Data[name]; got != want {
			t.Errorf("%s arrives as %q, want %q", name, got, want)
		}
	}

	if got := live.Data["nested"]; !strings.Contains(got, "0x1F") {
		t.Errorf("nested arrives as %q", got)
	}

	d.Apply(t, nil).Must(t)
}

// A release of the real helm is imported with an empty plan.
func (r *realAddons) testImport(t *testing.T) {
	if _, stderr, err := r.helm("install", "simple", "simple", "-n", "import", "--create-namespace", "--repo",
		r.repository.URL,
		"--ca-file", r.repository.CAFile, "--username", chartUser, "--password", chartPassword, "--version", "1.0.0", "--set",
		"replicas=2,message=theirs"); err != nil {
		t.Fatal(err, stderr)
	}

	config := r.chart(t, "import", kubetest.Simple, "1.0.0")
	for _, name := range []string{"cluster", "registry", "wait_timeout"} {
		delete(config, name)
	}

	config["kubeconfig"], config["values"] = tftest.Config{"path": r.Kubeconfig()},
		[]any{"# as helm has them\nmessage: theirs\nreplicas: 2\n"}

	d := r.drive(t)
	id := tftest.JSON(t, map[string]any{
		"kubeconfig": map[string]string{"path": r.Kubeconfig()}, "namespace": "import", "name": "simple", "chart": "simple",
		"repository": r.repository.URL,
		"version":    "1.0.0",
	})

	// The repository needs credentials, which an import does not have.
	d.Import(t, id).Must(t).Tells(t, "[addon_chart_trusted]")

	read := d.Refresh(t).Must(t)
	planned := d.Plan(t, config).Must(t)

	if !planned.Value.Equal(d.State) || len(read.Diagnostics) > 0 {
		differences, _ := d.State.Diff(planned.Value)
		t.Errorf("the plan after the import is not empty: %v, %s", differences, tftest.Show(read.Diagnostics))
	}

	d.Apply(t, tftest.With(config, []any{"message: ours\n"}, "values")).Tells(t, "[addon_chart_not_found]", "registry.ca")

	config["registry"] = tftest.Config{"username": chartUser, "password_wo": chartPassword, "ca": r.repository.CA}
	d.Apply(t, tftest.With(config, []any{"message: ours\n"}, "values")).Must(t)

	if got := tftest.Text(t, d.State, "revision"); got != "2" {
		t.Errorf("the revision is %s", got)
	}

	for _, wrong := range []string{"simple", "a/b/c", `{"name": ""}`, "import/nothing"} {
		if failed := r.drive(t).Import(t, wrong); !failed.Failed() {
			t.Errorf("%s is imported", wrong)
		}
	}

	d.Apply(t, nil).Must(t)
}

// Many addons share only a download.
func (r *realAddons) testTwenty(t *testing.T) {
	// Others count requests to the shared repository, and start again from zero.
	own := *r
	r = &own
	r.repository = kubetest.NewRepository(t, chartCredentials)
	r.repository.Add(t, kubetest.AllValues.Package("2.0.0"))

	server := r.process(t)

	t.Run("addons", func(t *testing.T) {
		for i := range 20 {
			name := fmt.Sprintf("echo-%d", i)

			t.Run(name, func(t *testing.T) {
				t.Parallel()

				config := tftest.With(tftest.With(r.chart(t, "twenty", kubetest.AllValues, "2.0.0"), name, "name"),
					[]any{"message: " + name + "\n"},
					"values")

				d := r.drive(t)
				d.Server = server
				d.Apply(t, config).Must(t)
				d.ExpectEmpty(t, "after the create", config)
			})
		}
	})

	for i := range 20 {
		name := fmt.Sprintf("echo-%d", i)

		live, err := r.API().CoreV1().ConfigMaps("twenty").Get(t.Context(), name, metav1.GetOptions{})
		if err != nil || live.Data["message"] != "string "+name {
			t.Errorf("%s has %v, %v", name, live, err)
		}
	}

	if n := r.repository.Requests("/echo-2.0.0.tgz"); n != 1 {
		t.Errorf("the chart was fetched %d times", n)
	}
}
