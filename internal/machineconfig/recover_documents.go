package machineconfig

import (
	"cmp"
	"regexp"
	"strconv"
	"strings"

	coreconfig "github.com/siderolabs/talos/pkg/machinery/config"
	"github.com/siderolabs/talos/pkg/machinery/config/types/k8s"
	"github.com/siderolabs/talos/pkg/machinery/config/types/runtime"
	"github.com/siderolabs/talos/pkg/machinery/constants"

	"github.com/talosop/terraform-provider-talosop/internal/machineconfig/places"
)

// recoverSwitches reads what documents of contract v1.14 say by being there.
func recoverSwitches(c *Cluster, p coreconfig.Provider) {
	if !p.Has(places.Discovery.Document.Kind) {
		c.Discovery = new(false)
	}

	// Control planes alone have documents for the rest.
	if !p.Machine().Type().IsControlPlane() {
		return
	}

	if node, ok := places.Document[*k8s.KubeNodeConfigV1Alpha1](p.Documents()); ok {
		_, tainted := node.TaintsConfig[constants.LabelNodeRoleControlPlane]
		c.AllowSchedulingOnControlPlanes = !tainted
	}

	if flannel := p.K8sFlannelCNIConfig(); flannel != nil {
		if args, policies := flannel.ExtraArgs(), flannel.KubeNetworkPoliciesEnabled(); len(args) > 0 || policies {
			c.CNI = CNI{Name: CNIFlannel, Flannel: &Flannel{ExtraArgs: args, KubeNetworkPolicies: policies}}
		}

		return
	}

	manifests := map[string]string{}
	for _, manifest := range p.K8sExternalManifestConfigs() {
		manifests[manifest.Name()] = manifest.URL()
	}

	for i := 0; manifests[cniManifest(i)] != ""; i++ {
		c.CNI.URLs = append(c.CNI.URLs, manifests[cniManifest(i)])
	}

	if c.CNI.Name = CNINone; len(c.CNI.URLs) > 0 {
		c.CNI.Name = CNICustom
	}
}

// installOf reads an installation back. A disk that is found by an expression which settings do not make is left out.
func installOf(own *runtime.UnattendedInstallConfigV1Alpha1) Install {
	install := Install{Image: own.Installer.Image, Wipe: own.VolumeWipe()}

	expression := own.ProvisioningSpec.DiskSelector.Match
	if expression.IsZero() {
		return install
	}

	text := expression.String()
	found := diskOf(text)

	// The same expression, or none.
	if again, err := found.expression(); err == nil && again.String() == text {
		install.Disk, install.DiskSelector = found.Disk, found.DiskSelector
	}

	return install
}

const quotedText = `"(?:[^"\\]|\\.)*"`

var (
	diskByName = regexp.MustCompile(`^disk\.dev_path == (` + quotedText + `)$|^(` + quotedText + `) in disk\.symlinks$`)
	diskTerm   = regexp.MustCompile(`disk\.size (==|>=|<=|>|<) (\d+)u|glob\((` + quotedText + `), disk\.(\w+)\)|` +
		`disk\.transport == "(\w+)"|(!?)disk\.rotational`)
)

// diskOf reads an expression as putUnattendedInstall and the library (v1alpha1, DiskMatchExpression) write it.
func diskOf(text string) Install {
	if named := diskByName.FindStringSubmatch(text); named != nil {
		disk, err := strconv.Unquote(cmp.Or(named[1], named[2]))
		if err != nil {
			return Install{}
		}

		return Install{Disk: disk}
	}

	selector := &DiskSelector{}
	texts := map[string]*string{
		"model": &selector.Model, "serial": &selector.Serial, "modalias": &selector.Modalias, "uuid": &selector.UUID,
		"wwid": &selector.WWID, "bus_path": &selector.BusPath,
	}

	for _, term := range diskTerm.FindAllStringSubmatch(text, -1) {
		switch {
		case term[1] != "":
			selector.Size = term[1] + " " + sizeText(term[2])
		case term[3] != "":
			pattern, err := strconv.Unquote(term[3])
			if into := texts[term[4]]; err == nil && into != nil {
				*into = pattern
			}
		case term[5] != "":
			selector.Type = strings.Replace(term[5], "mmc", "sd", 1)
		case term[6] != "":
			selector.Type = "ssd"
		default:
			selector.Type = "hdd"
		}
	}

	return Install{DiskSelector: selector}
}

// sizeText writes a number of bytes in the largest unit that it is a multiple of.
func sizeText(bytes string) string {
	size, err := strconv.ParseUint(bytes, 10, 64)
	if err != nil || size == 0 {
		return bytes
	}

	for _, unit := range []struct {
		name string
		size uint64
	}{{"TB", 1e12}, {"TiB", 1 << 40}, {"GB", 1e9}, {"GiB", 1 << 30}, {"MB", 1e6}, {"MiB", 1 << 20}} {
		if size%unit.size == 0 {
			return strconv.FormatUint(size/unit.size, 10) + unit.name
		}
	}

	return bytes
}
