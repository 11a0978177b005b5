package addon_test

import (
	"encoding/json"
	"testing"
	"time"

	"github.com/talosop/terraform-provider-talosop/internal/addon"
	"github.com/talosop/terraform-provider-talosop/internal/addon/postrender"
)

func TestInputs(t *testing.T) {
	t.Parallel()

	base := func() addon.Spec {
		return addon.Spec{
			Name:    addon.Name{Namespace: "prod", Name: "web"},
			Values:  map[string]any{"replicas": int64(1000000), "list": []any{"1", int64(2)}},
			Patches: []postrender.Patch{{Patch: "a"}},
		}
	}
	mark := addon.Inputs(base(), "sha256:aa")

	if len(mark) != 40 {
		t.Errorf("%q cannot be a label", mark)
	}

	for name, change := range map[string]func(s *addon.Spec){
		"values":       func(s *addon.Spec) { s.Values["replicas"] = int64(2) },
		"text":         func(s *addon.Spec) { s.Values["list"] = []any{int64(1), int64(2)} },
		"patch":        func(s *addon.Spec) { s.Patches[0].Patch = "b" },
		"target":       func(s *addon.Spec) { s.Patches[0].Target = &postrender.Target{Kind: "Pod"} },
		"include crds": func(s *addon.Spec) { s.Options.IncludeCRDs = true },
		"dns":          func(s *addon.Spec) { s.Options.EnableDNS = true },
		"notes":        func(s *addon.Spec) { s.Options.SubNotes = true },
		"reuse":        func(s *addon.Spec) { s.Options.Reuse = addon.ReuseValues },
	} {
		spec := base()
		change(&spec)

		if addon.Inputs(spec, "sha256:aa") == mark {
			t.Errorf("%s: the same mark", name)
		}
	}

	if addon.Inputs(base(), "sha256:bb") == mark {
		t.Error("another chart: the same mark")
	}

	// How it is done changes nothing of what is made.
	spec := base()
	spec.Options = addon.Options{
		Wait: true, WaitForJobs: true, Timeout: time.Hour, RollbackOnFailure: true, UpgradeCRDs: true, DisableHooks: true, TakeOwnership: true,
		Force: true, CleanupOnFail: true, MaxHistory: 3, Description: "x", CreateNamespace: true, SkipSchemaValidation: true,
	}

	if addon.Inputs(spec, "sha256:aa") != mark {
		t.Error("options of the run: another mark")
	}

	// Helm's record has the numbers as JSON gives them.
	text, err := json.Marshal(base().Values)
	if err != nil {
		t.Fatal(err)
	}

	spec = base()
	spec.Values = nil

	if err := json.Unmarshal(text, &spec.Values); err != nil {
		t.Fatal(err)
	}

	if addon.Inputs(spec, "sha256:aa") != mark {
		t.Error("values as they are recorded: another mark")
	}
}
