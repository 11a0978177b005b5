package provider_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/hashicorp/terraform-plugin-go/tfprotov6"
	"github.com/hashicorp/terraform-plugin-go/tftypes"

	"github.com/talosop/terraform-provider-talosop/internal/clitest"
	"github.com/talosop/terraform-provider-talosop/internal/provider/sitetest"
	"github.com/talosop/terraform-provider-talosop/internal/provider/tftest"
	"github.com/talosop/terraform-provider-talosop/internal/record"
	"github.com/talosop/terraform-provider-talosop/internal/testenv"
)

// Later releases read what former ones stored. Below testdata/release there is, for each release, the state that it
// wrote of main.tf, with the files that belong to it, and its schema (tools/schema compares that). Values that
// differ between sites have a name between two @ there. `make record-release VERSION=v1.2.3` writes them.
const releases = "testdata/release"

// recordRelease is the environment variable with the version to write.
const recordRelease = "TALOSOP_RECORD_RELEASE"

// keptState is the part of a state file that these tests need.
type keptState struct {
	Resources []struct {
		Type, Name string
		Instances  []struct {
			Version         int64                      `json:"schema_version"`
			Attributes      json.RawMessage            `json:"attributes"`
			IdentityVersion int64                      `json:"identity_schema_version"`
			Identity        map[string]json.RawMessage `json:"identity"`
		}
	}
}

func stateIn(t *testing.T, text string) keptState {
	t.Helper()

	var state keptState

	tftest.Must(t, json.Unmarshal([]byte(text), &state))

	return state
}

// Each attribute of each kept state is read back unchanged.
func TestRelease_statesAreRead(t *testing.T) {
	t.Parallel()

	server := tftest.Server(t)
	read := map[string]bool{}
	identities, err := server.GetResourceIdentitySchemas(t.Context(), &tfprotov6.GetResourceIdentitySchemasRequest{})
	tftest.Must(t, err)

	for _, file := range releaseFiles(t, "state.json") {
		for _, r := range stateIn(t, tftest.ReadFile(t, file)).Resources {
			for _, one := range r.Instances {
				read[r.Type] = true

				resp, err := server.UpgradeResourceState(t.Context(), &tfprotov6.UpgradeResourceStateRequest{
					TypeName: r.Type, Version: one.Version, RawState: &tfprotov6.RawState{JSON: one.Attributes},
				})
				if err != nil || len(resp.Diagnostics) > 0 {
					t.Errorf("%s: %s.%s: %v %s", file, r.Type, r.Name, err, tftest.Show(resp.Diagnostics))

					continue
				}

				where, now := file+": "+r.Type+"."+r.Name, tftest.Decoded(t, tftest.TypeOf(t, r.Type), resp.UpgradedState)
				keepsAll(t, where, remembersAll(t, where, one.Attributes, now), tftest.Plain(t, now))

				if identity := identities.IdentitySchemas[r.Type]; one.Identity != nil {
					readsIdentity(t, server, where, r.Type, identity, one.IdentityVersion, one.Identity)
				}
			}
		}
	}

	// The others need a Kubernetes API, which the machines of this state do not have.
	for name := range tftest.Schemas(t).ResourceSchemas {
		if !read[name] && !strings.HasPrefix(name, "talosop_addon") && name != "talosop_etcd_backup_schedule" &&
			name != "talosop_unmanaged_workers" && !slices.Contains(operationNames, name) {
			t.Errorf("no state has a %s: put it into %s/main.tf", name, releases)
		}
	}
}

// readsIdentity checks that an identity is read back unchanged, and that one of the present version lacks no
// attribute, which OpenTofu refuses.
func readsIdentity(t *testing.T, server tfprotov6.ProviderServer, where, name string,
	schema *tfprotov6.ResourceIdentitySchema, version int64, was map[string]json.RawMessage,
) {
	t.Helper()

	if version == schema.Version {
		for _, a := range schema.IdentityAttributes {
			if _, has := was[a.Name]; !has {
				t.Errorf("%s: the identity of version %d lacks %s: raise clusterimport.IdentityVersion", where, version, a.Name)
			}
		}

		return
	}

	raw, err := json.Marshal(was)
	tftest.Must(t, err)

	resp, err := server.UpgradeResourceIdentity(t.Context(), &tfprotov6.UpgradeResourceIdentityRequest{
		TypeName: name, Version: version, RawIdentity: &tfprotov6.RawState{JSON: raw},
	})
	if err != nil || len(resp.Diagnostics) > 0 {
		t.Errorf("%s: identity of version %d: %v %s", where, version, err, tftest.Show(resp.Diagnostics))

		return
	}

	now, err := resp.UpgradedIdentity.IdentityData.Unmarshal(schema.ValueType())
	tftest.Must(t, err)
	keepsAll(t, where, raw, tftest.Plain(t, now))
}

// operationNames are resource types that one of them represents.
var operationNames = []string{"talosop_rolling_restart", "talosop_machine_rollback", "talosop_machine_reset",
	"talosop_etcd_defragment", "talosop_service_restart", "talosop_bootstrap_manifests_sync", "talosop_support_bundle"}

// remembersAll checks that the observations of machines in a former state are kept, and returns the rest of the
// state.
func remembersAll(t *testing.T, where string, attributes []byte, now tftypes.Value) []byte {
	t.Helper()

	var was map[string]json.RawMessage

	tftest.Must(t, json.Unmarshal(attributes, &was))

	if _, has := was["record"]; has || was["observed"] == nil {
		return attributes
	}

	observed := was["observed"]
	if name, single := was["name"], was["role"] != nil; single {
		observed = fmt.Appendf(nil, "{%s: %s}", name, observed)
	}

	want, err := record.DecodeFormer(observed)
	tftest.Must(t, err)

	got := tftest.Remembered(t, now)
	if !reflect.DeepEqual(got, want) || len(want) == 0 {
		t.Errorf("%s observed %+v, and it is remembered as %+v", where, want, got)
	}

	if !tftest.Remember(t, now, got).Equal(now) {
		t.Errorf("%s shows %s of %+v", where, tftest.AttributeOf(t, now, "observed"), got)
	}

	delete(was, "observed")

	rest, err := json.Marshal(was)
	tftest.Must(t, err)

	return rest
}

// keepsAll reports which kept attributes are missing in a state. Absent is the same as null.
func keepsAll(t *testing.T, where string, attributes []byte, now any) {
	t.Helper()

	var kept any

	tftest.Must(t, json.Unmarshal(attributes, &kept))

	encoded, err := json.Marshal(now)
	tftest.Must(t, err)
	tftest.Must(t, json.Unmarshal(encoded, &now))

	var walk func(at string, kept, now any)

	walk = func(at string, kept, now any) {
		was, object := kept.(map[string]any)
		is, _ := now.(map[string]any)

		if !object {
			if !reflect.DeepEqual(kept, now) {
				t.Errorf("%s%s was %v, and is read as %v", where, at, kept, now)
			}

			return
		}

		for name, value := range was {
			if value != nil {
				walk(at+"."+name, value, is[name])
			}
		}
	}

	walk("", kept, now)
}

// releaseFiles are the files of a name of all releases.
func releaseFiles(t *testing.T, name string) []string {
	t.Helper()

	files, err := filepath.Glob(filepath.Join(releases, "*", name))
	if err != nil || len(files) == 0 {
		t.Fatalf("no release keeps a %s: %v", name, err)
	}

	return files
}

// releaseSite is the machines of main.tf, and their values by the placeholders in a kept state.
func releaseSite(t *testing.T) (s *sitetest.Site, places map[string]string) {
	t.Helper()

	s = sitetest.New(t, 2, 3)

	other, err := s.Endpoint()
	tftest.Must(t, err)

	places = map[string]string{"@endpoint@": s.URL, "@other-endpoint@": other}
	for _, m := range slices.Concat(s.ControlPlane, s.Workers) {
		places["@"+m.Name()+"@"], places["@uuid:"+m.Name()+"@"] = m.Address().String(), m.UUID()
	}

	return s, places
}

// owners adds the owner marks of the resources in a state to places.
func owners(t *testing.T, places map[string]string, state string) {
	t.Helper()

	for _, r := range stateIn(t, state).Resources {
		var attributes struct {
			Owner string `json:"owner_id"`
		}

		tftest.Must(t, json.Unmarshal(r.Instances[0].Attributes, &attributes))

		if attributes.Owner != "" {
			places["@owner:"+r.Type+"@"] = attributes.Owner
		}
	}
}

// placed puts the values of a site into a text, and named replaces them by placeholders. One address may be a prefix
// of another.
func placed(text string, places map[string]string) string {
	for name, value := range places {
		text = strings.ReplaceAll(text, name, value)
	}

	return text
}

func named(text string, places map[string]string) string {
	names := map[string]string{}
	for name, value := range places {
		names[value] = name
	}

	values := make([]string, 0, len(names))
	for value := range names {
		values = append(values, value)
	}

	slices.SortFunc(values, func(a, b string) int { return len(b) - len(a) })

	for _, value := range values {
		text = regexp.MustCompile(regexp.QuoteMeta(value)+`\b`).ReplaceAllString(text, names[value])
	}

	return text
}

// registry is the prefix of provider addresses in the states of a CLI.
var registry = regexp.MustCompile(`registry\.(terraform\.io|opentofu\.org)`)

// This test records what this build stores.
func TestAccRelease_recorded(t *testing.T) {
	version := os.Getenv(recordRelease)
	if version == "" {
		t.Skip("writes the state of a release down: make record-release VERSION=v1.2.3")
	}

	_, places := releaseSite(t)
	w := clitest.NewWorkspace(t, clitest.Any(t))
	folder := filepath.Join(releases, version)

	config := tftest.ReadFile(t, filepath.Join(releases, "main.tf"))
	w.Write("main.tf", placed(config, places))
	w.Init()
	w.MustRun("apply", "-auto-approve")

	if empty, output := w.PlanIsEmpty(); !empty {
		t.Fatalf("the plan of this build is not empty:\n%s", output)
	}

	state := w.Read("terraform.tfstate")
	owners(t, places, state)

	tftest.Must(t, os.MkdirAll(folder, 0o755))
	tftest.Must(t, os.WriteFile(filepath.Join(folder, "main.tf"), []byte(config), 0o644))
	tftest.Must(t, os.WriteFile(filepath.Join(folder, "state.json"),
		[]byte(named(registry.ReplaceAllString(state, "@registry@"), places)), 0o644))

	copied(t, filepath.Join(w.Dir, "backups"), filepath.Join(folder, "backups"))
}

// copied copies a file, or a folder with its content.
func copied(t *testing.T, from, to string) {
	t.Helper()

	tftest.Must(t, filepath.WalkDir(from, func(path string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}

		inside, err := filepath.Rel(from, path)
		if err != nil {
			return err
		}

		content, err := os.ReadFile(path)
		if err != nil {
			return err
		}

		target := filepath.Join(to, inside)

		return errors.Join(os.MkdirAll(filepath.Dir(target), 0o700), os.WriteFile(target, content, 0o600))
	}))
}

// This build has an empty plan for a cluster of a release, with the state and the files that the release wrote.
func TestAccRelease_plansNothing(t *testing.T) {
	testenv.BeforeRelease(t, "TestRelease_statesAreRead")
	t.Parallel()

	for _, file := range releaseFiles(t, "state.json") {
		folder := filepath.Dir(file)
		kept, config := tftest.ReadFile(t, file), tftest.ReadFile(t, filepath.Join(folder, "main.tf"))

		clitest.Each(t, func(t *testing.T, cli clitest.CLI) {
			_, places := releaseSite(t)
			places["@registry@"] = map[string]string{"terraform": "registry.terraform.io", "tofu": "registry.opentofu.org"}[cli.Name]

			w := clitest.NewWorkspace(t, cli)
			// The secrets of the release start another cluster here.
			w.Write("main.tf", strings.ReplaceAll(placed(config, places), "mode  ", "allow_bootstrap = true\n  mode  "))
			w.Write("terraform.tfstate", mixed(t, placed(kept, places), "", secretTypes))
			w.Init()
			w.MustRun("apply", "-auto-approve")
			w.Write("main.tf", placed(config, places))

			// From here on it is the cluster of the release.
			now := w.Read("terraform.tfstate")
			owners(t, places, now)
			w.Write("terraform.tfstate", mixed(t, now, placed(kept, places), passingTypes))
			copied(t, filepath.Join(folder, "backups"), filepath.Join(w.Dir, "backups"))

			if empty, output := w.PlanIsEmpty(); !empty {
				t.Errorf("%s: the plan is not empty:\n%s", folder, output)
			}
		})
	}
}

// secretTypes recreate the cluster of a release, and passingTypes end before the next release.
var (
	secretTypes  = []string{"talosop_secrets"}
	passingTypes = []string{"talosop_kubeconfig_file", "talosop_talosconfig_file"}
)

// mixed is a state with the resources of some types, and all others from another one.
func mixed(t *testing.T, text, others string, types []string) string {
	t.Helper()

	resources := func(text string, chosen bool) (state map[string]any, found []any) {
		if text == "" {
			return nil, nil
		}

		tftest.Must(t, json.Unmarshal([]byte(text), &state))

		all, _ := state["resources"].([]any)
		for _, r := range all {
			if one, _ := r.(map[string]any); slices.Contains(types, fmt.Sprint(one["type"])) == chosen {
				found = append(found, r)
			}
		}

		return state, found
	}

	state, found := resources(text, true)
	_, more := resources(others, false)
	state["resources"] = append(found, more...)

	encoded, err := json.Marshal(state)
	tftest.Must(t, err)

	return string(encoded)
}
