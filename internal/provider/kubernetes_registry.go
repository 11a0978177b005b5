package provider

import (
	"context"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/hashicorp/terraform-plugin-framework/diag"

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
	images  []string
}

// releases lists what machines are brought to on a way, by the images that they want.
func releases(hops []machineconfig.KubernetesVersion, to machineconfig.KubernetesVersion, wanted map[string]cluster.Images) []release {
	var out []release

	for _, hop := range hops {
		found := release{version: hop}

		for _, name := range sortedNames(wanted) {
			for _, c := range []cluster.Component{cluster.KubeAPIServer, cluster.Kubelet} {
				reference := cluster.ImageAt(wanted[name][c], to.String(), hop.String())
				if reference != "" && !slices.Contains(found.images, reference) {
					found.images = append(found.images, reference)
				}
			}
		}

		out = append(out, found)
	}

	return out
}

// releasesOfCreate is what a create brings machines to. It needs no secrets.
func (p pool) releasesOfCreate() []release {
	to, err := machineconfig.ParseKubernetesVersion(p.settings.KubernetesVersion)
	if err != nil || p.unknown {
		return nil
	}

	generator, err := machineconfig.NewChecker(p.settings)
	if err != nil {
		return nil // the validation says what is wrong
	}

	wanted := map[string]cluster.Images{}
	if p.renderMachines(generator, func(name string, m renderedMachine) { wanted[name] = m.images }) != nil {
		return nil
	}

	return releases([]machineconfig.KubernetesVersion{to}, to, wanted)
}

// refuseUnpublished refuses versions whose images the registries of the machines do not have.
// Where machines reach no public registry, only mirrors are asked.
func (m *machinery) refuseUnpublished(ctx context.Context, p pool, planned []release) diag.Diagnostics {
	var (
		asking  sync.WaitGroup
		mu      sync.Mutex
		missing = map[string]bool{}
	)

	for _, r := range planned {
		for _, reference := range r.images {
			if p.settings.AirGapped && !mirrored(reference, p.settings.Registries) {
				continue
			}

			asking.Go(func() {
				lacks := m.registries.lacks(ctx, reference, p.settings.Registries)

				mu.Lock()
				defer mu.Unlock()

				missing[reference] = lacks
			})
		}
	}

	asking.Wait()

	var diags diag.Diagnostics

	for _, r := range planned {
		absent := slices.DeleteFunc(slices.Clone(r.images), func(reference string) bool { return !missing[reference] })
		if len(absent) == 0 {
			continue
		}

		remedy := "Choose a version that was released, or put its images there first"
		if r.version.String() != p.settings.KubernetesVersion {
			remedy = "Name another release to pass in kubernetes_upgrade_via, or put its images there first"
		}

		diags.Append(invalid(p.clusterPath("kubernetes_version"), "kubernetes_version", "found Kubernetes "+r.version.String()+" to run",
			"the registries that the machines use have no image "+strings.Join(absent, ", "), remedy))
	}

	return diags
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
