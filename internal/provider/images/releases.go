package images

import (
	"cmp"
	"context"
	"net/http"
	"slices"

	"github.com/hashicorp/terraform-plugin-framework/types"
	"github.com/siderolabs/talos/pkg/machinery/constants"

	"github.com/talosop/terraform-provider-talosop/internal/finding"
	"github.com/talosop/terraform-provider-talosop/internal/image/assets"
	"github.com/talosop/terraform-provider-talosop/internal/image/factory"
	"github.com/talosop/terraform-provider-talosop/internal/image/registry"
	"github.com/talosop/terraform-provider-talosop/internal/machineconfig"
	"github.com/talosop/terraform-provider-talosop/internal/versions"
)

// kubeletRepository has an image of each release of Kubernetes that Talos supports. Talos uses it by default.
const kubeletRepository = constants.KubeletImage

// The products.
const (
	productTalos      = "talos"
	productKubernetes = "kubernetes"
)

// releases are the releases that a data source lists.
type releases struct {
	product string
	filter  versions.Filter
	// talos supports the releases of Kubernetes.
	talos machineconfig.TalosVersion
	// factory is asked for releases of Talos, if there is no repository.
	factory    string
	repository *registry.Repository
}

// choose reads the configuration without I/O. The checks skip unknown values.
func (m versionsModel) choose() (releases, finding.List) {
	r := releases{product: m.Product.ValueString(), factory: cmp.Or(m.FactoryURL.ValueString(), assets.PublicFactory),
		filter: versions.Filter{
			Minor:       machineconfig.CanonicalVersion(m.Minor.ValueString()),
			UpTo:        machineconfig.CanonicalVersion(m.UpTo.ValueString()),
			NewerThan:   machineconfig.CanonicalVersion(m.NewerThan.ValueString()),
			Prereleases: m.Prereleases.ValueBool(),
		}}

	diags := append(m.checkBounds(r.filter), m.checkSource()...)

	repository := m.Repository.ValueString()
	if repository == "" && r.product == productKubernetes {
		repository = kubeletRepository
	}

	if repository != "" {
		parsed, err := registry.Parse(repository)
		if err != nil {
			diags.Append(invalidRepository.At(finding.Root("repository"), finding.Args{"cause": err.Error()}))
		}

		r.repository = &parsed
	}

	if text := m.TalosVersion.ValueString(); text != "" {
		talos, err := machineconfig.ParseTalosVersion(machineconfig.CanonicalVersion(text))
		if err != nil {
			diags.Append(finding.MistakesAt(finding.Root("talos_version"), err)...)
		}

		r.talos = talos
	}

	return r, diags
}

// checkBounds checks the versions of a filter.
func (m versionsModel) checkBounds(f versions.Filter) finding.List {
	var diags finding.List

	for _, bound := range []struct {
		name, value string
		given       types.String
		valid       bool
		allowed     string
	}{
		{"minor", f.Minor, m.Minor, versions.IsMinor(f.Minor), "a minor version, such as v1.14"},
		{"up_to", f.UpTo, m.UpTo, versions.IsMinor(f.UpTo) || versions.IsRelease(f.UpTo),
			"a version such as v1.14.1, or a minor version such as v1.14"},
		{"newer_than", f.NewerThan, m.NewerThan, versions.IsRelease(f.NewerThan), "a version, such as v1.14.0"},
	} {
		if !bound.given.IsNull() && !bound.given.IsUnknown() && !bound.valid {
			diags.Append(invalidVersionBound.At(finding.Root(bound.name),
				finding.Args{"found": bound.value, "allowed": bound.allowed}))
		}
	}

	return diags
}

// checkSource checks what is asked, and whom.
func (m versionsModel) checkSource() finding.List {
	var diags finding.List

	kubernetes := m.Product.ValueString() == productKubernetes

	switch {
	case m.Product.IsUnknown():
		return nil
	case !slices.Contains([]string{productTalos, productKubernetes}, m.Product.ValueString()):
		return finding.List{invalidProduct.At(finding.Root("product"), finding.Args{"found": m.Product.ValueString()})}
	case kubernetes && m.TalosVersion.IsNull():
		diags.Append(talosVersionMissing.At(finding.Root("talos_version"), nil))
	case !kubernetes && !m.TalosVersion.IsNull():
		diags.Append(talosVersionUnused.At(finding.Root("talos_version"), nil))
	}

	switch wrong := (assets.Image{Factory: m.FactoryURL.ValueString()}).Check(); {
	case m.FactoryURL.IsNull():
	case kubernetes || !m.Repository.IsNull():
		diags.Append(factoryUnused.At(finding.Root("factory_url"), finding.Args{"kubernetes": kubernetes}))
	case wrong != nil && !m.FactoryURL.IsUnknown():
		diags.Append(invalidImage.At(finding.Root(wrong.Field),
			finding.Args{"found": wrong.Found, "allowed": wrong.Allowed}))
	}

	return diags
}

// list asks the server for the releases.
func (r releases) list(ctx context.Context) ([]string, finding.List) {
	var (
		tags []string
		err  error
		at   = r.factory
		from = "factory_url"
	)

	if r.repository == nil {
		tags, err = factory.Client{Base: r.factory, HTTP: http.DefaultClient}.Versions(ctx)
	} else {
		at, from = r.repository.URL(), "repository"
		tags, err = r.repository.Tags(ctx)
	}

	if err != nil {
		if cause := context.Cause(ctx); cause != nil {
			err = cause
		}

		return nil, finding.List{releasesNotListed.At(finding.Root(from), finding.Args{
			"product": r.title(), "url": at, "cause": err.Error()})}
	}

	return slices.DeleteFunc(r.filter.Choose(tags), func(version string) bool { return !r.supports(version) }), nil
}

// title is the name of the product.
func (r releases) title() string {
	if r.product == productKubernetes {
		return "Kubernetes"
	}

	return "Talos"
}

// supports reports whether this build configures a version.
func (r releases) supports(version string) bool {
	if r.product == productKubernetes {
		kubernetes, err := machineconfig.ParseKubernetesVersion(version)

		return err == nil && machineconfig.CheckKubernetesSupported(r.talos, kubernetes) == nil
	}

	talos, err := machineconfig.ParseTalosVersion(version)

	return err == nil && talos.Known()
}
