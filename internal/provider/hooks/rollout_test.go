package hooks_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/talosop/terraform-provider-talosop/internal/kubernetes"
	"github.com/talosop/terraform-provider-talosop/internal/kubernetes/objects"
	"github.com/talosop/terraform-provider-talosop/internal/provider/sitetest"
	"github.com/talosop/terraform-provider-talosop/internal/provider/tftest"
	"github.com/talosop/terraform-provider-talosop/internal/sim"
	"github.com/talosop/terraform-provider-talosop/internal/sim/fault"
)

// flags are a ConfigMap whose values hooks set.
const flags = "flags"

// set is a part of a hook that sets a flag.
func set(name, value string) tftest.Config {
	return tftest.Config{"patch": tftest.Config{"api_version": "v1", "kind": "ConfigMap", "namespace": "kube-system",
		"name": flags, "patch": fmt.Sprintf("data: { %s: %q }", name, value)}}
}

var flagsReference = objects.Reference{APIVersion: "v1", Kind: "ConfigMap", Namespace: "kube-system", Name: flags}

// withFlags makes them.
func withFlags(t *testing.T, api *kubernetes.Client) {
	t.Helper()

	_, err := api.CoreV1().ConfigMaps("kube-system").Create(t.Context(), &corev1.ConfigMap{
		ObjectMeta: metav1.ObjectMeta{Name: flags}, Data: map[string]string{"noout": "false"}}, metav1.CreateOptions{})
	tftest.Must(t, err)
}

func flag(ctx context.Context, t *testing.T, api *kubernetes.Client) string {
	t.Helper()

	found, err := api.CoreV1().ConfigMaps("kube-system").Get(ctx, flags, metav1.GetOptions{})
	if err != nil {
		t.Error(err)

		return ""
	}

	return found.Data["noout"]
}

// atReboots records the flag at each reboot.
func atReboots(t *testing.T, s *sim.Simulator, api *kubernetes.Client) func() []string {
	t.Helper()

	var (
		mu   sync.Mutex
		seen []string
	)

	s.SetOnCall(func(c fault.Call) error {
		if c.Method == "Reboot" {
			mu.Lock()
			defer mu.Unlock()

			seen = append(seen, flag(context.Background(), t, api))
		}

		return nil
	})

	return func() []string {
		mu.Lock()
		defer mu.Unlock()

		return seen
	}
}

const (
	runs = "run the hook noout before the first machine goes out of service, and after the last one is back"
	ends = "end the hook noout, which an earlier apply began"
)

// A plan lists the hook. The apply sets the flag before the reboot and unsets it afterward. What a killed apply left
// is in the next plan, and its apply undoes it.
func TestHooks_enclosesARollout(t *testing.T) {
	t.Parallel()

	s := sitetest.New(t, 1, 0)
	config := tftest.With(tftest.BaseControlPlane(),
		tftest.Config{s.ControlPlane[0].Name(): tftest.Config{"address": s.ControlPlane[0].Address().String()}}, "machines")
	config["name"], config["endpoint"], config["kubernetes_version"] = "test", s.URL, "v1.36.2"
	config["hooks"] = tftest.Config{"noout": tftest.Config{"scope": "rollout", "before": set("noout", "true"),
		"after": set("noout", "false")}}

	d := tftest.Drive(t, "talosop_control_plane", nil)
	d.Apply(t, config).Must(t)

	api := s.Kubernetes(t, tftest.Bundle())
	withFlags(t, api)

	seen := atReboots(t, s.Simulator, api)
	planned := func() []string {
		return tftest.TextsOf(t, tftest.AttributeOf(t, d.Plan(t, config).Must(t).Value, "operations"))
	}

	config["config_patches"] = []any{"machine: { env: { CHANGED: \"yes\" } }"}

	if lines := planned(); len(lines) < 2 || lines[0] != runs {
		t.Errorf("planned: %q", lines)
	}

	d.Apply(t, config).Must(t)
	d.ExpectEmpty(t, "after the change", config)

	if now := flag(t.Context(), t, api); !slices.Equal(seen(), []string{"true"}) || now != "false" {
		t.Errorf("the flag was %q at reboots, and is %q", seen(), now)
	}

	// What a killed apply leaves.
	owner := tftest.Text(t, d.State, "owner_id")
	lease, err := api.CoordinationV1().Leases("kube-system").Get(t.Context(), "talosop", metav1.GetOptions{})
	tftest.Must(t, err)

	lease.Annotations = map[string]string{"talosop.dev/hooks": fmt.Sprintf(
		`{"%s/noout": {"owner": %q, "name": "noout", "scope": "rollout", "after": {}}}`, owner, owner)}
	_, err = api.CoordinationV1().Leases("kube-system").Update(t.Context(), lease, metav1.UpdateOptions{})
	tftest.Must(t, err)
	tftest.Must(t, api.PatchObject(t.Context(), flagsReference, []byte(`{"data":{"noout":"true"}}`)))

	d.Refresh(t).Must(t)

	if lines := planned(); !slices.Equal(lines, []string{ends}) {
		t.Errorf("after a killed apply planned: %q", lines)
	}

	d.Apply(t, config).Must(t)
	d.ExpectEmpty(t, "after the apply that ended the hook", config)

	if now := flag(t.Context(), t, api); len(seen()) != 1 || now != "false" {
		t.Errorf("after %d reboots, the flag is %q", len(seen()), now)
	}

	// Changed hooks touch no machine.
	config["hooks"] = tftest.Config{"other": tftest.Config{"after": set("noout", "true")}}

	if lines := planned(); len(lines) > 0 {
		t.Errorf("other hooks plan %q", lines)
	}

	d.Apply(t, config).Must(t)
}

// A hook that fails stops the apply before a machine goes. With on_failure continue, the apply warns.
func TestHooks_failure(t *testing.T) {
	t.Parallel()

	s := sitetest.New(t, 1, 0)
	machine := s.ControlPlane[0]
	config := tftest.With(tftest.BaseControlPlane(),
		tftest.Config{machine.Name(): tftest.Config{"address": machine.Address().String()}}, "machines")
	config["name"], config["endpoint"], config["kubernetes_version"] = "test", s.URL, "v1.36.2"

	hooks := func(onFailure any) tftest.Config {
		return tftest.Config{"noout": tftest.Config{"timeout": "300ms", "on_failure": onFailure,
			"before": set("noout", "true")}}
	}
	config["hooks"] = hooks(nil)

	d := tftest.Drive(t, "talosop_control_plane", nil)
	d.Apply(t, config).Must(t)

	boots := machine.Boots()
	config["config_patches"] = []any{"machine: { env: { CHANGED: \"yes\" } }"}

	// There is no ConfigMap.
	done := d.Apply(t, config)
	if text := tftest.Show(done.Diagnostics); !done.Failed() || machine.Boots() != boots || !strings.Contains(text,
		"hook noout: its `before` did not succeed within 300ms: patch ConfigMap kube-system/flags") {
		t.Errorf("after %d reboots said %s", machine.Boots()-boots, text)
	}

	config["hooks"] = hooks("continue")

	done = d.Apply(t, config).Must(t)
	if text := tftest.Show(done.Diagnostics); machine.Boots() != boots+1 || !strings.Contains(text, "[hooks_failed]") {
		t.Errorf("after %d reboots said %s", machine.Boots()-boots, text)
	}

	d.ExpectEmpty(t, "after the change", config)
}

// Mistakes in a hook are reported on their attribute before anything is planned.
func TestHooks_mistakesOfAConfiguration(t *testing.T) {
	t.Parallel()

	const at = `AttributeName("hooks").ElementKeyString("it")`

	part := func(kind string, value any) tftest.Config {
		return tftest.Config{"before": tftest.Config{kind: value}}
	}
	patch := func(change tftest.Config) tftest.Config {
		all := tftest.Config{"api_version": "v1", "kind": "ConfigMap", "name": "flags", "patch": "data: { a: b }"}
		for name, value := range change {
			all[name] = value
		}

		return part("patch", all)
	}
	rollout := func(hook tftest.Config) tftest.Config {
		hook["scope"] = "rollout"

		return hook
	}

	const before = at + `.AttributeName("before")`

	for name, test := range map[string]struct {
		hook tftest.Config
		at   string
		says []string
	}{
		"nothing": {tftest.Config{"timeout": "1m"}, at, []string{"[hook_without_part]"}},
		"no action": {tftest.Config{"after": tftest.Config{}}, at + `.AttributeName("after")`,
			[]string{"[hook_action]", "none"}},
		"two actions": {tftest.Config{"before": tftest.Config{"job": tftest.Unknown{}, "http": tftest.Config{"url": "http://x"}}},
			before, []string{"[hook_action]", "http and job"}},
		"a scope": {tftest.Config{"scope": "cluster", "before": tftest.Config{"http": tftest.Config{"url": "http://x"}}},
			at + `.AttributeName("scope")`, []string{`"cluster"`}},
		"on_failure": {tftest.Config{"on_failure": "ignore", "before": tftest.Config{"http": tftest.Config{"url": "http://x"}}},
			at + `.AttributeName("on_failure")`, []string{`"ignore"`}},
		"a job": {part("job", "kind: Pod"), before + `.AttributeName("job")`, []string{"[invalid_job]"}},
		"a URL": {part("http", tftest.Config{"url": "ftp://x"}), before + `.AttributeName("http").AttributeName("url")`,
			[]string{"http:// or https://"}},
		"a method": {part("http", tftest.Config{"url": "http://x", "method": "LOOK"}),
			before + `.AttributeName("http").AttributeName("method")`, []string{`"LOOK"`}},
		"a patch": {patch(tftest.Config{"patch": "text"}), before + `.AttributeName("patch").AttributeName("patch")`,
			[]string{"[invalid_object_patch]", "expected a mapping"}},
		"operations": {patch(tftest.Config{"patch": "[{ op: put, path: /a }]"}),
			before + `.AttributeName("patch").AttributeName("patch")`, []string{"[invalid_object_patch]", "operation 1"}},
		"a secret": {patch(tftest.Config{"kind": "Secret"}), before + `.AttributeName("patch").AttributeName("kind")`,
			[]string{"Secret"}},
		"a machine in a rollout": {rollout(patch(tftest.Config{"name": "{{node}}"})),
			before + `.AttributeName("patch").AttributeName("name")`, []string{"[hook_placeholder]"}},
		"a timeout": {tftest.Config{"timeout": "soon", "before": tftest.Config{"http": tftest.Config{"url": "http://x"}}},
			at + `.AttributeName("timeout")`, []string{`"soon"`}},
		"a pool": {tftest.Config{"pools": []any{"none"}, "before": tftest.Config{"http": tftest.Config{"url": "http://x"}}},
			at + `.AttributeName("pools").ElementKeyInt(0)`, []string{"[hook_pool]", `"none"`}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()

			for resource, config := range map[string]tftest.Config{
				"talosop_control_plane": tftest.BaseControlPlane(), "talosop_cluster": tftest.BaseCluster(),
			} {
				config["hooks"] = tftest.Config{"it": test.hook}
				tftest.ExpectMistake(t, tftest.Validate(t, resource, config), test.at, test.says, false)
			}
		})
	}
}
