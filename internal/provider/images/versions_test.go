package images_test

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/hashicorp/terraform-plugin-go/tfprotov6"
	"github.com/hashicorp/terraform-plugin-go/tftypes"

	"github.com/talosop/terraform-provider-talosop/internal/provider/tftest"
	"github.com/talosop/terraform-provider-talosop/internal/testenv/factorytest"
)

// listed reads the results of talosop_versions.
func listed(t *testing.T, config tftest.Config) (versions []string, newest string, patches map[string]string) {
	t.Helper()

	state, diags := tftest.ReadData(t, "talosop_versions", config)
	if len(diags) > 0 {
		t.Fatal(tftest.Show(diags))
	}

	var minors map[string]tftypes.Value
	tftest.Must(t, tftest.AttributeOf(t, state, "newest_patches").As(&minors))

	patches = map[string]string{}

	for minor, value := range minors {
		var text string
		tftest.Must(t, value.As(&text))

		patches[minor] = text
	}

	return tftest.TextsOf(t, tftest.AttributeOf(t, state, "versions")), tftest.TextsIn(t, state, "newest")["newest"], patches
}

func TestVersions_ofTalos(t *testing.T) {
	t.Parallel()

	f := factorytest.New(t)

	for name, test := range map[string]struct {
		config  tftest.Config
		want    []string
		newest  string
		patches map[string]string
	}{
		"all": {tftest.Config{}, []string{"v1.12.4", "v1.13.0", "v1.13.2", "v1.14.1"}, "v1.14.1",
			map[string]string{"v1.12": "v1.12.4", "v1.13": "v1.13.2", "v1.14": "v1.14.1"}},
		"two behind": {tftest.Config{"minor": "1.13", "newer_than": "1.13.0"}, []string{"v1.13.2"}, "v1.13.2",
			map[string]string{"v1.13": "v1.13.2"}},
		"up to a minor": {tftest.Config{"up_to": "v1.13"}, []string{"v1.12.4", "v1.13.0", "v1.13.2"}, "v1.13.2",
			map[string]string{"v1.12": "v1.12.4", "v1.13": "v1.13.2"}},
		"pre-releases": {tftest.Config{"prereleases": true, "minor": "v1.14"}, []string{"v1.14.0-rc.0", "v1.14.1"},
			"v1.14.1", map[string]string{"v1.14": "v1.14.1"}},
		"none": {tftest.Config{"minor": "v1.11"}, []string{}, "", map[string]string{}},
	} {
		test.config["product"], test.config["factory_url"] = "talos", f.URL

		versions, newest, patches := listed(t, test.config)
		if diff := cmp.Diff(test.want, versions) + cmp.Diff(test.newest, newest) + cmp.Diff(test.patches, patches); diff != "" {
			t.Errorf("%s:\n%s", name, diff)
		}
	}
}

// serveTags serves the tags of a repository.
func serveTags(t *testing.T, tags ...string) (repository string) {
	t.Helper()

	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path != "/v2/siderolabs/image/tags/list" {
			http.NotFound(w, r)

			return
		}

		_ = json.NewEncoder(w).Encode(map[string]any{"tags": tags})
	}))
	t.Cleanup(server.Close)

	return server.URL + "/siderolabs/image"
}

// Talos 1.13 supports Kubernetes 1.31 to 1.36.
func TestVersions_ofARegistry(t *testing.T) {
	t.Parallel()

	kubelets := serveTags(t, "v1.37.0", "v1.36.3", "v1.36.10", "v1.30.1", "v1.35.4", "v1.36.3-fat", "sha256-ab.sig")

	versions, newest, patches := listed(t, tftest.Config{"product": "kubernetes", "talos_version": "1.13.0",
		"repository": kubelets})
	if diff := cmp.Diff([]string{"v1.35.4", "v1.36.3", "v1.36.10"}, versions) + cmp.Diff("v1.36.10", newest) +
		cmp.Diff(map[string]string{"v1.35": "v1.35.4", "v1.36": "v1.36.10"}, patches); diff != "" {
		t.Error(diff)
	}

	// Releases that this build does not support are not listed.
	versions, _, _ = listed(t, tftest.Config{"product": "talos", "repository": serveTags(t, "v1.13.2", "v1.9.5", "v1.99.0",
		"v2.0.0")})
	if diff := cmp.Diff([]string{"v1.13.2"}, versions); diff != "" {
		t.Error(diff)
	}
}

func TestVersions_refuses(t *testing.T) {
	t.Parallel()

	slow := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() }))
	t.Cleanup(slow.Close)

	talos := func(more tftest.Config) tftest.Config {
		more["product"] = "talos"

		return more
	}

	for name, test := range map[string]struct {
		config tftest.Config
		at     string
		says   []string
	}{
		"product": {tftest.Config{"product": "k3s"}, `AttributeName("product")`, []string{"[invalid_product]", `"k3s"`}},
		"minor":   {talos(tftest.Config{"minor": "v1.14.1"}), `AttributeName("minor")`, []string{"[invalid_version_bound]"}},
		"up to":   {talos(tftest.Config{"up_to": "latest"}), `AttributeName("up_to")`, []string{"[invalid_version_bound]"}},
		"newer": {talos(tftest.Config{"newer_than": "v1.14"}), `AttributeName("newer_than")`,
			[]string{"[invalid_version_bound]"}},
		"Kubernetes without Talos": {tftest.Config{"product": "kubernetes"}, `AttributeName("talos_version")`,
			[]string{"[kubernetes_without_talos_version]"}},
		"Talos with Talos": {talos(tftest.Config{"talos_version": "v1.14.1"}), `AttributeName("talos_version")`,
			[]string{"[talos_version_unused]"}},
		"Talos version": {tftest.Config{"product": "kubernetes", "talos_version": "1.14"}, `AttributeName("talos_version")`,
			[]string{`"v1.14"`}},
		"factory and repository": {talos(tftest.Config{"factory_url": "https://f.example.com", "repository": "a.io/b"}),
			`AttributeName("factory_url")`, []string{"[factory_url_unused]", "`repository`"}},
		"factory of Kubernetes": {tftest.Config{"product": "kubernetes", "talos_version": "v1.14.1",
			"factory_url": "https://f.example.com"}, `AttributeName("factory_url")`, []string{"[factory_url_unused]"}},
		"factory": {talos(tftest.Config{"factory_url": "f.example.com"}), `AttributeName("factory_url")`,
			[]string{"https://factory.talos.dev"}},
		"repository": {talos(tftest.Config{"repository": "a.io/b:v1"}), `AttributeName("repository")`,
			[]string{"[invalid_release_repository]", "tag"}},
		"offline factory": {talos(tftest.Config{"factory_url": "http://127.0.0.1:1"}), `AttributeName("factory_url")`,
			[]string{"[releases_not_listed]", "http://127.0.0.1:1", "connection refused", "`repository`", "`check`"}},
		"offline registry": {talos(tftest.Config{"repository": "http://127.0.0.1:1/a"}), `AttributeName("repository")`,
			[]string{"[releases_not_listed]", "http://127.0.0.1:1/v2/a/tags/list", "connection refused"}},
		"silent factory": {talos(tftest.Config{"factory_url": slow.URL, "timeouts": tftest.Config{"read": "50ms"}}),
			`AttributeName("factory_url")`, []string{"[releases_not_listed]", "timed out after 50ms (`timeouts.read`)"}},
		"timeout": {talos(tftest.Config{"timeouts": tftest.Config{"read": "0s"}}), `AttributeName("timeouts")`,
			[]string{"[invalid_read_timeout]"}},
	} {
		t.Run(name, func(t *testing.T) {
			_, diags := tftest.ReadData(t, "talosop_versions", test.config)
			if name == "timeout" {
				if !strings.Contains(tftest.Show(diags), test.says[0]) {
					t.Error(tftest.Show(diags))
				}

				return
			}

			tftest.ExpectMistake(t, diags, test.at, test.says, false)
		})
	}
}

// An unknown value is checked once it is known.
func TestVersions_unknown(t *testing.T) {
	t.Parallel()

	unknown := tftest.Unknown{}
	typ := tftest.Schemas(t).DataSourceSchemas["talosop_versions"].ValueType()

	for _, product := range []any{"talos", "kubernetes", unknown} {
		config := tftest.Config{"product": product, "minor": unknown, "up_to": unknown, "newer_than": unknown,
			"prereleases": unknown, "repository": unknown}
		if product != "talos" {
			config["talos_version"] = unknown
		}

		resp, err := tftest.Server(t).ValidateDataResourceConfig(t.Context(), &tfprotov6.ValidateDataResourceConfigRequest{
			TypeName: "talosop_versions", Config: tftest.Dynamic(t, tftest.ValueOf(t, typ, config))})
		tftest.Must(t, err)

		if len(resp.Diagnostics) > 0 {
			t.Errorf("%v: %s", product, tftest.Show(resp.Diagnostics))
		}
	}
}
