package provider

import (
	"context"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/hashicorp/terraform-plugin-framework/diag"
	"github.com/hashicorp/terraform-plugin-framework/path"

	"github.com/talosop/terraform-provider-talosop/internal/cluster"
	"github.com/talosop/terraform-provider-talosop/internal/image"
	"github.com/talosop/terraform-provider-talosop/internal/image/registry"
	"github.com/talosop/terraform-provider-talosop/internal/machineconfig"
)

// registryPatience is how long a plan waits for registries. One that does not answer by then
// says nothing: machines may well reach what the computer that runs Terraform does not.
const registryPatience = 3 * time.Second

// registries asks registries whether they have images, each of them once: a process is one
// plan or apply, and many of its resources go to the same version.
type registries struct {
	// ask is registry.Exists; nil asks nobody.
	ask func(ctx context.Context, reference string, o registry.Options) (bool, error)

	mu      sync.Mutex
	answers map[string]func() (bool, error)
}

// lacks reports whether the registries of machines have no such image, by their own word.
func (r *registries) lacks(ctx context.Context, reference string, settings machineconfig.Registries) bool {
	if r == nil || r.ask == nil {
		return false
	}

	text, err := json.Marshal(settings)
	if err != nil {
		return false
	}

	// What is asked is kept without the passwords of the registries.
	key := fmt.Sprintf("%s %x", reference, sha256.Sum256(text))

	r.mu.Lock()

	if r.answers == nil {
		r.answers = map[string]func() (bool, error){}
	}

	if r.answers[key] == nil {
		r.answers[key] = sync.OnceValues(func() (bool, error) {
			ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), registryPatience)
			defer cancel()

			return r.ask(ctx, reference, registry.Options{Registries: settings, Timeout: registryPatience})
		})
	}

	answer := r.answers[key]
	r.mu.Unlock()

	exists, err := answer()

	return err == nil && !exists
}

// release is a version of Kubernetes that a plan brings machines to, and images of it: those
// of the components without which nothing begins.
type release struct {
	version machineconfig.KubernetesVersion
	images  []pulled
}

// pulled is an image and the registries by which machines pull it.
type pulled struct {
	reference  string
	registries machineconfig.Registries
}

// releases lists what machines are brought to on a way, by the images that they want. Of
// machines whose registries cannot be read nothing is asked.
func releases(hops []machineconfig.KubernetesVersion, to machineconfig.KubernetesVersion, files rendered) []release {
	settings := map[string]machineconfig.Registries{}

	if len(hops) > 0 {
		for name, config := range files.configs {
			if read, err := machineconfig.RegistriesOf(config); err == nil {
				settings[name] = read
			}
		}
	}

	var out []release

	for _, hop := range hops {
		found := release{version: hop}

		for _, name := range sortedNames(settings) {
			for _, c := range []cluster.Component{cluster.KubeAPIServer, cluster.Kubelet} {
				image := pulled{reference: cluster.ImageAt(files.images[name][c], to.String(), hop.String()), registries: settings[name]}
				if image.reference != "" && !slices.ContainsFunc(found.images, func(other pulled) bool { return reflect.DeepEqual(image, other) }) {
					found.images = append(found.images, image)
				}
			}
		}

		out = append(out, found)
	}

	return out
}

// releasesOf lists what an update brings the machines of a pool to: the versions on the way,
// or the wanted one where only images change, as they do on a way back.
func (p pool) releasesOf(path kubernetesPath, recorded recordedPool, files rendered) []release {
	hops := path.hops()

	change := slices.ContainsFunc(p.members(recorded), func(m cluster.Machine) bool {
		have := recorded.machines[m.Name].Images

		return have != nil && !maps.Equal(have, files.images[m.Name])
	})
	if len(hops) == 0 && change {
		hops = []machineconfig.KubernetesVersion{path.to}
	}

	return releases(hops, path.to, files)
}

// filesOfCreate is the configurations of a create, as far as they say anything of
// Kubernetes. They need no secrets.
func (p pool) filesOfCreate() rendered {
	files := rendered{configs: map[string][]byte{}, images: map[string]cluster.Images{}}

	generator, err := machineconfig.NewChecker(p.settings)
	if err != nil || p.unknown {
		return rendered{} // the validation says what is wrong
	}

	if p.renderMachines(generator, func(name string, m renderedMachine) { files.configs[name], files.images[name] = m.Bytes, m.images }) != nil {
		return rendered{}
	}

	return files
}

// refuseUnpublished refuses versions whose images the registries of the machines do not have.
// Where machines reach no public registry, only mirrors are asked, and nobody where they bring
// their images along.
func (m *machinery) refuseUnpublished(ctx context.Context, p pool, planned []release) diag.Diagnostics {
	var (
		asking  sync.WaitGroup
		mu      sync.Mutex
		missing = map[string]bool{}
	)

	for _, r := range planned {
		for _, image := range r.images {
			if p.settings.ImageCache || p.settings.AirGapped && !mirrored(image.reference, image.registries) {
				continue
			}

			asking.Go(func() {
				lacks := m.registries.lacks(ctx, image.reference, image.registries)

				mu.Lock()
				defer mu.Unlock()

				missing[image.reference] = missing[image.reference] || lacks
			})
		}
	}

	asking.Wait()

	var diags diag.Diagnostics

	for _, r := range planned {
		var absent []string

		for _, image := range r.images {
			if missing[image.reference] && !slices.Contains(absent, image.reference) {
				absent = append(absent, image.reference)
			}
		}

		if len(absent) > 0 {
			diags.Append(p.unpublished(r.version, absent))
		}
	}

	return diags
}

// unpublished is the error about a version that registries do not have.
func (p pool) unpublished(version machineconfig.KubernetesVersion, absent []string) diag.Diagnostic {
	at, name, remedy := p.clusterPath("kubernetes_version"), "kubernetes_version", "Choose a version that was released, or put its images there first"

	if version.String() != p.settings.KubernetesVersion {
		remedy = "Name another release to pass in kubernetes_upgrade_via, or put its images there first"

		chosen := func(v machineconfig.KubernetesVersion) bool { return v.EQ(version.Version) }
		if i := slices.IndexFunc(p.changes.kubernetesVia, chosen); i >= 0 {
			at, name = path.Root("kubernetes_upgrade_via").AtListIndex(i), "kubernetes_upgrade_via"
		}
	}

	return invalid(at, name, "found Kubernetes "+version.String()+" to run",
		"the registries that the machines use have no image "+strings.Join(absent, ", "), remedy)
}

// mirrored reports whether an image comes from a mirror.
func mirrored(reference string, settings machineconfig.Registries) bool {
	parsed, err := image.ParseReference(reference)
	if err != nil {
		return false
	}

	_, own := settings.Mirrors[parsed.Registry]
	_, all := settings.Mirrors["*"]

	return own || all
}
