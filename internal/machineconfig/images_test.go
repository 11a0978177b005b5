package machineconfig

import (
	"errors"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"unicode"

	"github.com/google/go-cmp/cmp"

	"github.com/talosop/terraform-provider-talosop/internal/kubenames"
)

// otherImages are of every component, and in no configuration of the tests.
var otherImages = kubenames.Images{
	"kube-apiserver":          "registry.test:5000/k8s/kube-apiserver:v1.36.3",
	"kube-controller-manager": "registry.test:5000/k8s/kube-controller-manager:v1.36.3",
	"kube-scheduler":          "registry.test:5000/k8s/kube-scheduler:v1.36.3-slim",
	"kube-proxy":              "registry.test:5000/k8s/kube-proxy@sha256:" + strings.Repeat("a", 64),
	"kubelet":                 "registry.test:5000/k8s/kubelet:v1.36.3-fat",
}

func only(images kubenames.Images, names ...kubenames.Component) kubenames.Images {
	out := kubenames.Images{}
	for _, name := range names {
		out[name] = images[name]
	}

	return out
}

func imagesOf(t *testing.T, cfg []byte) kubenames.Images {
	t.Helper()

	images, err := Images(cfg)
	if err != nil {
		t.Fatalf("%v in\n%s", err, cfg)
	}

	return images
}

// dataOf is what a configuration says, image fields aside, without the library's understanding of it.
func dataOf(t *testing.T, cfg []byte) []any {
	t.Helper()

	chunks, err := split(string(cfg))
	if err != nil {
		t.Fatalf("%v in\n%s", err, cfg)
	}

	var all []any

	for _, c := range chunks {
		if c.node == nil {
			continue
		}

		content, err := decodeNode(c.node)
		if err != nil {
			t.Fatalf("%v in\n%s", err, cfg)
		}

		all = append(all, withoutImages(identify(c.node), content))
	}

	return all
}

// onlyImagesDiffer checks the promise of WithImages.
func onlyImagesDiffer(t *testing.T, before, after []byte) {
	t.Helper()

	if diff := cmp.Diff(dataOf(t, before), dataOf(t, after)); diff != "" {
		t.Errorf("more than images differs (-before +after):\n%s", diff)
	}

	if digest(t, string(before)) != digest(t, string(after)) {
		t.Error("the digest differs")
	}

	if changes, err := Diff(before, after); err != nil || len(changes) > 0 {
		t.Errorf("differences %v, %v", changes, err)
	}
}

// Every configuration of the tests, generated or by talosctl, gets other images and nothing else.
func TestWithImages_changesNothingElse(t *testing.T) {
	var files []string

	for _, folder := range []string{"golden", "talosctl"} {
		found, err := filepath.Glob(filepath.Join("testdata", folder, "*.yaml"))
		if err != nil || len(found) == 0 {
			t.Fatalf("no files in %s: %v", folder, err)
		}

		files = append(files, found...)
	}

	for _, file := range files {
		t.Run(filepath.Base(file), func(t *testing.T) {
			before, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}

			had := imagesOf(t, before)

			want := maps.Clone(otherImages)
			if strings.Contains(file, "worker") {
				want = only(otherImages, "kubelet")
			} else if strings.Contains(file, "everything") {
				delete(want, "kube-proxy") // disabled there
			}

			if diff := cmp.Diff(slices.Sorted(maps.Keys(want)), slices.Sorted(maps.Keys(had))); diff != "" {
				t.Errorf("components (-want +got):\n%s", diff)
			}

			after, err := WithImages(before, otherImages)
			if err != nil {
				t.Fatal(err)
			}

			if diff := cmp.Diff(want, imagesOf(t, after)); diff != "" {
				t.Errorf("images (-want +got):\n%s", diff)
			}

			onlyImagesDiffer(t, before, after)

			// Golden files have shortened keys, which the library does not load.
			if reboot, fields, err := NeedsReboot(before, after, "v1.13.6"); !errors.Is(err, ErrUnknownForm) && (reboot || err != nil) {
				t.Errorf("reboot for %v, %v", fields, err)
			}

			back, err := WithImages(after, had)
			if err != nil {
				t.Fatal(err)
			}

			if diff := cmp.Diff(had, imagesOf(t, back)); diff != "" {
				t.Errorf("images that are put back (-want +got):\n%s", diff)
			}
		})
	}
}

// A member keeps its images while it gets a configuration for another version, and machines see the very bytes that
// they would have been given otherwise.
func TestWithImages_writesWhatGenerateWrites(t *testing.T) {
	for _, contract := range contracts {
		for _, role := range []Role{ControlPlane, Worker} {
			older, newer := everything(contract), everything(contract)
			older.KubeProxy, newer.KubeProxy = nil, nil
			newer.KubernetesVersion = "v1.34.4"

			want := generated(t, newer, everyMachine(role, contract))

			got, err := WithImages(generated(t, older, everyMachine(role, contract)).Bytes, imagesOf(t, want.Bytes))
			if err != nil {
				t.Fatal(err)
			}

			if diff := cmp.Diff(string(want.Bytes), string(got)); diff != "" {
				t.Errorf("%s %s (-want +got):\n%s", contract, role, diff)
			}
		}
	}
}

func TestWithImages_ofUnusualConfigurations(t *testing.T) {
	const future = "apiVersion: v9\nkind: Future\nlist: [1,   {a: b}] # kept\n"

	kubelet, all := only(otherImages, "kubelet"), otherImages

	for name, test := range map[string]struct {
		before string
		want   kubenames.Images
		// after is the whole result, where it matters.
		after string
	}{
		"a worker without a section": {"machine: {type: worker}\n", kubelet,
			"machine: {type: worker, kubelet: {image: 'registry.test:5000/k8s/kubelet:v1.36.3-fat'}}\n"},
		"an unnamed role is worker": {"machine:\n    token: a\n", kubelet,
			"machine:\n    token: a\n    kubelet:\n        image: registry.test:5000/k8s/kubelet:v1.36.3-fat\n"},
		"a control plane without": {"machine:\n  type: controlplane\ncluster:\n  clusterName: x\n", all, ""},
		"the first control plane": {"machine: {type: init}\ncluster: {}\n", all, ""},
		"sections that are null": {"machine: {type: controlplane, kubelet: ~}\ncluster:\n  apiServer:\n  proxy: null\n",
			all, ""},
		"an image that is null": {"machine: {type: worker, kubelet: {image: ~, extraArgs: {a: b}}}\n", kubelet, ""},
		"a newer form": {
			"machine: {type: worker, future: {image: x}, kubelet: {future: 1}}\ncluster: {scheduler: {image: y}}\n", kubelet,
			""},
		"among other documents": {
			"# a comment\n---\n" + future + "---\nmachine: {type: worker, kubelet: {image: a}} # lost\n---\n" + future +
				"--- # more\n" + future, kubelet,
			"# a comment\n---\n" + future +
				"---\nmachine: {type: worker, kubelet: {image: 'registry.test:5000/k8s/kubelet:v1.36.3-fat'}}\n---\n" + future +
				"--- # more\n" + future,
		},
		"a separator first": {"--- # x\nmachine: {type: worker}\n---\n" + future, kubelet, ""},
		"a directive":       {"%YAML 1.1\n---\nmachine: {type: worker}\n---\n" + future, kubelet, ""},
		"line breaks":       {"machine:\r\n  type: worker\r\n---\r\nkind: X\r\ntext: |\r\n  a\r\n  b\r\n", kubelet, ""},
		"a shared section": {
			"machine: {type: controlplane}\ncluster:\n  apiServer: &a {image: a, extraArgs: {b: c}}\n  scheduler: *a\n  " +
				"other: *a\n", all, "",
		},
		"numbers and dates": {"machine: {type: worker, files: [{permissions: 0o600, a: 1.0, b: 2020-01-01, c: " +
			"010, d: !!binary YQ==, e: 'on', f: on}]}\n", kubelet, ""},
		"long texts": {
			"machine:\n  type: worker\n  a: |\n    x \n\n     y\n  b: >-\n    " + strings.Repeat("word ", 60) +
				"\n    end\n  c: \"tab\\t\\u00a0\"\n", kubelet, ""},
		"blanks in front": {
			"machine:\n  type: worker\n  a: |2-\n\n     0\n  b: \"\\n 0\"\n  c: >2\n\n    y\n     z\n", kubelet, ""},
		"the image in quotes": {"machine: {type: worker, kubelet: {image: \"a:v1\", extraArgs: {image: a}}}\n",
			kubelet, ""},
		"no kube-proxy": {"machine: {type: controlplane}\ncluster: {proxy: {disabled: yes, image: kept}}\n",
			only(all, "kube-apiserver", "kube-controller-manager", "kube-scheduler", "kubelet"), ""},
		"a kube-proxy that is switched": {"machine: {type: controlplane}\ncluster: {proxy: {disabled: false}}\n", all, ""},
		"static pods that are elsewhere": {
			"machine: {type: controlplane, controlPlane: {controllerManager: {disabled: true}, scheduler: {disabled: " +
				"true}}}\ncluster: {}\n", only(all, "kube-apiserver", "kube-proxy", "kubelet"), "",
		},
	} {
		t.Run(name, func(t *testing.T) {
			after, err := WithImages([]byte(test.before), otherImages)
			if err != nil {
				t.Fatal(err)
			}

			if diff := cmp.Diff(test.want, imagesOf(t, after)); diff != "" {
				t.Errorf("images (-want +got):\n%s\n%s", diff, after)
			}

			if test.after != "" {
				if diff := cmp.Diff(test.after, string(after)); diff != "" {
					t.Errorf("text (-want +got):\n%s", diff)
				}
			}

			onlyImagesDiffer(t, []byte(test.before), after)
		})
	}
}

// What is not given stays, and nothing to do is no work.
func TestWithImages_thatChangeNothing(t *testing.T) {
	const (
		worker = "# a comment\nmachine: {type: worker, kubelet: {image: \"kubelet:v1\"}}\ncluster: {apiServer: {image: a}}\n"
		none   = "apiVersion: v1alpha1\nkind: HostnameConfig\nhostname: a\n"
	)

	for name, test := range map[string]struct {
		cfg    string
		images kubenames.Images
	}{
		"no images":             {worker, nil},
		"the same image":        {worker, kubenames.Images{"kubelet": "kubelet:v1"}},
		"an empty image":        {worker, kubenames.Images{"kubelet": ""}},
		"of control planes":     {worker, only(otherImages, "kube-apiserver", "kube-proxy")},
		"an unknown component":  {worker, kubenames.Images{"etcd": "a"}},
		"no main document":      {none, otherImages},
		"no document":           {"# x\n", otherImages},
		"no role":               {"machine: {type: unknown}\n", otherImages},
		"a role of later Talos": {"machine: {type: arbiter}\n", otherImages},
		"no cluster": {"machine: {type: controlplane}\ncluster: ~\n",
			only(otherImages, "kube-apiserver", "kube-proxy")},
	} {
		cfg := []byte(test.cfg)

		got, err := WithImages(cfg, test.images)
		if err != nil || &got[0] != &cfg[0] || len(got) != len(cfg) {
			t.Errorf("%s: %v\n%s", name, err, got)
		}
	}

	before := "machine: {type: controlplane, kubelet: {image: a}}\ncluster: {apiServer: {image: b}}\n"

	after, err := WithImages([]byte(before), kubenames.Images{"kube-apiserver": "c"})
	if err != nil {
		t.Fatal(err)
	}

	if diff := cmp.Diff(strings.Replace(before, "image: b", "image: c", 1), string(after)); diff != "" {
		t.Error(diff)
	}
}

func TestImages_refuseWhatIsNone(t *testing.T) {
	const secret = "hunter2hunter2"

	for text, want := range map[string]string{
		"machine: {token: " + secret + ", type: worker, kubelet: " + secret + "}": "machine.kubelet: not a section",
		"machine: {token: " + secret + ", a: [":                                   "not YAML",
		"machine: &a {token: " + secret + ", b: *a}":                              "too large after expansion",
		"machine: {token: " + secret + ", type: worker, <<: {kubelet: {}}}":       "merged keys",
	} {
		_, err := WithImages([]byte(text), otherImages)
		if err == nil || !strings.Contains(err.Error(), want) || strings.Contains(err.Error(), secret) {
			t.Errorf("%q: %v, want %q", text, err, want)
		}
	}
}

// What the YAML library would write as another text is not written at all.
func TestWithImages_readsWhatItWrote(t *testing.T) {
	_, err := WithImages([]byte("machine: {0}"), kubenames.Images{"kubelet": "0"})
	if !errors.Is(err, errNotSame) {
		t.Errorf("%v, want %v", err, errNotSame)
	}
}

// Without an image in the configuration, a machine takes the default of the Talos that it runs, which this build does
// not know.
func TestImages_thatAreNotWritten(t *testing.T) {
	got := imagesOf(t, []byte("machine: {type: controlplane, kubelet: {}}\ncluster: {apiServer: {image: a}, proxy: "+
		"{image: \"\"}, scheduler: {image: ~}}\n"))
	if diff := cmp.Diff(kubenames.Images{"kube-apiserver": "a"}, got); diff != "" {
		t.Error(diff)
	}
}

// Images and sections that only had them are no part of a digest; other settings beside them are.
func TestDigest_ignoresImagesOfKubernetes(t *testing.T) {
	const base = "machine: {type: controlplane, token: a}\ncluster: {clusterName: x}\n"

	for name, same := range map[string]string{
		"a section with an image": "machine: {type: controlplane, token: a}\ncluster: {clusterName: x, scheduler: {image: " +
			"y}}\n",
		"an empty section": "machine: {type: controlplane, token: a, kubelet: {}}\ncluster: {clusterName: x, " +
			"scheduler: {}}\n",
		"all of them": "machine: {type: controlplane, token: a, kubelet: {image: b}}\n" +
			"cluster: {clusterName: x, apiServer: {image: a}, controllerManager: {image: b}, proxy: {image: c}, scheduler: " +
			"{image: y}}\n",
	} {
		if digest(t, same) != digest(t, base) {
			t.Errorf("%s changes the digest", name)
		}
	}

	for name, other := range map[string]string{
		"an argument": "machine: {type: controlplane, token: a}\ncluster: {clusterName: x, scheduler: {image: y, " +
			"extraArgs: {a: b}}}\n",
		"a switch": "machine: {type: controlplane, token: a}\ncluster: {clusterName: x, proxy: {image: y, " +
			"disabled: true}}\n",
		"an image of Talos":  "machine: {type: controlplane, token: a, install: {image: y}}\ncluster: {clusterName: x}\n",
		"an image of others": "machine: {type: controlplane, token: a}\ncluster: {clusterName: x, coreDNS: {image: y}}\n",
		"another document":   base + "---\nkind: X\ncluster: {scheduler: {image: y}}\n",
	} {
		if digest(t, other) == digest(t, base) {
			t.Errorf("%s does not change the digest", name)
		}
	}

	before, after := "kind: X\ncluster: {scheduler: {image: y}}\n", "kind: X\ncluster: {scheduler: {image: z}}\n"
	if digest(t, before) == digest(t, after) {
		t.Error("images of an unknown document are ignored")
	}
}

func FuzzWithImages(f *testing.F) {
	f.Add("machine: {type: worker}\n---\napiVersion: v9\nkind: X\n", "a:v1")
	f.Add("machine: {type: controlplane, kubelet: &a {image: x}}\ncluster: {scheduler: *a, proxy: *a}\n", "a: b # c")
	f.Add("machine:\n  type: controlplane\n  a: |+\n    x\n\ncluster: ~\n...\n---\n# x\n", "\n- \t'\"")
	f.Add("%YAML 1.1\n---\n{machine: {? type : init}}\n", "0x10")
	f.Add("machine:\n  type: worker\n  a: |2-\n\n     0\n  b: \"\\n 0\"\n", "a")
	f.Add("machine: {type: worker, a: [.nan, 2020-01-01, 0o600, !x y, 1_000, 'on', ~]}", "~")

	f.Fuzz(func(t *testing.T, text, image string) {
		before, err := Digest([]byte(text))
		if err != nil || strings.ContainsFunc(image, func(r rune) bool { return unicode.IsSpace(r) || !unicode.IsPrint(r) }) {
			return // no reference of an image
		}

		images := kubenames.Images{}
		for name := range otherImages {
			images[name] = image
		}

		cfg, err := WithImages([]byte(text), images)
		if err != nil {
			return
		}

		if after, err := Digest(cfg); err != nil || after != before {
			t.Fatalf("%q becomes %q: %s, then %s, %v", text, cfg, before, after, err)
		}

		got, err := Images(cfg)
		if err != nil {
			t.Fatalf("%q becomes %q: %v", text, cfg, err)
		}

		for name, read := range got {
			if image != "" && read != image {
				t.Fatalf("%q becomes %q: %s is %q, not %q", text, cfg, name, read, image)
			}
		}

		if again, err := WithImages(cfg, images); err != nil || len(cfg) > 0 && &again[0] != &cfg[0] {
			t.Fatalf("%q becomes %q, then %q, %v", text, cfg, again, err)
		}
	})
}

// BenchmarkWithImages is the work for one machine; a plan does it for each.
func BenchmarkWithImages(b *testing.B) {
	config, err := Generate(everything("v1.13"), everyMachine(ControlPlane, "v1.13"), testBundle(b))
	if err != nil {
		b.Fatal(err)
	}

	for b.Loop() {
		if _, err := WithImages(config.Bytes, otherImages); err != nil {
			b.Fatal(err)
		}
	}
}
