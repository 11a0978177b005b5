package release_test

import (
	"encoding/json"
	"testing"
	"time"

	"github.com/talosop/terraform-provider-talosop/internal/helm/postrender"
	"github.com/talosop/terraform-provider-talosop/internal/helm/release"
)

func TestInputs_change(t *testing.T) {
	t.Parallel()

	base := func() release.Spec {
		return release.Spec{
			Name:    release.Name{Namespace: "prod", Name: "web"},
			Values:  map[string]any{"replicas": int64(1000000), "list": []any{"1", int64(2)}},
			Patches: []postrender.Patch{{Patch: "a"}},
		}
	}
	mark := release.Inputs(base(), "sha256:aa")

	if len(mark) != 40 {
		t.Errorf("%q cannot be a label", mark)
	}

	for name, change := range map[string]func(s *release.Spec){
		"values":       func(s *release.Spec) { s.Values["replicas"] = int64(2) },
		"text":         func(s *release.Spec) { s.Values["list"] = []any{int64(1), int64(2)} },
		"patch":        func(s *release.Spec) { s.Patches[0].Patch = "b" },
		"target":       func(s *release.Spec) { s.Patches[0].Target = &postrender.Target{Kind: "Pod"} },
		"include crds": func(s *release.Spec) { s.Options.IncludeCRDs = true },
		"dns":          func(s *release.Spec) { s.Options.EnableDNS = true },
		"notes":        func(s *release.Spec) { s.Options.SubNotes = true },
		"reuse":        func(s *release.Spec) { s.Options.Reuse = release.ReuseValues },
	} {
		spec := base()
		change(&spec)

		if release.Inputs(spec, "sha256:aa") == mark {
			t.Errorf("%s: the same mark", name)
		}
	}

	if release.Inputs(base(), "sha256:bb") == mark {
		t.Error("another chart: the same mark")
	}

	// The way of the installation does not change the inputs.
	spec := base()
	spec.Options = release.Options{
		Wait: true, WaitForJobs: true, Timeout: time.Hour, RollbackOnFailure: true, UpgradeCRDs: true, DisableHooks: true,
		TakeOwnership: true,
		Force:         true, CleanupOnFail: true, MaxHistory: 3, Description: "x", CreateNamespace: true,
		SkipSchemaValidation: true,
	}

	if release.Inputs(spec, "sha256:aa") != mark {
		t.Error("options of the run: another mark")
	}

	// Helm's record has the numbers of JSON.
	text, err := json.Marshal(base().Values)
	if err != nil {
		t.Fatal(err)
	}

	spec = base()
	spec.Values = nil

	if err := json.Unmarshal(text, &spec.Values); err != nil {
		t.Fatal(err)
	}

	if release.Inputs(spec, "sha256:aa") != mark {
		t.Error("values as they are recorded: another mark")
	}
}
