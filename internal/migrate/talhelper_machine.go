package migrate

import (
	"bytes"
	"cmp"
	"fmt"
	"maps"
	"strings"

	coreconfig "github.com/siderolabs/talos/pkg/machinery/config"
	"github.com/siderolabs/talos/pkg/machinery/config/configloader"
	"github.com/siderolabs/talos/pkg/machinery/config/encoder"
	"github.com/siderolabs/talos/pkg/machinery/config/generate"
	"github.com/siderolabs/talos/pkg/machinery/config/types/v1alpha1"
	"go.yaml.in/yaml/v4"

	"github.com/talosop/terraform-provider-talosop/internal/image"
	"github.com/talosop/terraform-provider-talosop/internal/image/schematic"
)

// machine makes the configuration of a node in the order of talhelper v3 (pkg/generate/config.go): the generated one,
// the settings of the node, CNI and manifests of the cluster, documents, the patches of role and node, the patches of
// all nodes, and additional documents.
func (r *talhelperReader) machine(input *generate.Input, node talhelperNode) ([]byte, error) {
	contract := input.Options.VersionContract

	provider, err := input.Config(Machine{ControlPlane: node.IsControlPlane}.role())
	if err != nil {
		return nil, err
	}

	main := provider.RawV1Alpha1()
	r.putNode(main, node, contract, input)

	if err := r.putImage(main, node); err != nil {
		return nil, err
	}

	if err := r.putTemplates(main, node); err != nil {
		return nil, err
	}

	if cni := r.config.CNI; cni != nil {
		main.ClusterConfig.ClusterNetwork.CNI = cni
	}

	if err := r.putContents(main, node); err != nil {
		return nil, err
	}

	made, err := provider.EncodeBytes(encoder.WithComments(encoder.CommentsDisabled))
	if err != nil {
		return nil, err
	}

	return r.patch(made, node, contract)
}

// patch applies the documents and patches of a node.
func (r *talhelperReader) patch(
	made []byte, node talhelperNode, contract *coreconfig.VersionContract,
) ([]byte, error) {
	documents, err := r.documents(node, contract)
	if err != nil {
		return nil, err
	}

	if made, err = patched(made, documents...); err != nil {
		return nil, fmt.Errorf("documents: %w", err)
	}

	for _, patches := range [][]string{node.Patches, r.config.Patches} {
		texts, err := r.patches(made, patches)
		if err != nil {
			return nil, err
		}

		if made, err = patched(made, texts...); err != nil {
			return nil, fmt.Errorf("patches: %w", err)
		}
	}

	for _, name := range node.ExtraManifests {
		texts, err := r.patches(made, []string{"@" + strings.TrimPrefix(name, "@")})
		if err != nil {
			return nil, err
		}

		made = append(append(made, "---\n"...), strings.Join(texts, "---\n")...)
	}

	return made, nil
}

// putNode writes the settings of a node that are fields of the main document.
func (r *talhelperReader) putNode(
	main *v1alpha1.Config, node talhelperNode, contract *coreconfig.VersionContract, input *generate.Input,
) {
	machine, aes := main.MachineConfig, input.Options.SecretsBundle.Secrets.AESCBCEncryptionSecret

	if contract.SecretboxEncryptionSupported() && aes != "" {
		main.ClusterConfig.ClusterAESCBCEncryptionSecret = aes
	}

	if !contract.MultidocNetworkConfigSupported() {
		putNetwork(machine, node)
	}

	if node.InstallDisk != "" {
		machine.MachineInstall.InstallDisk = node.InstallDisk
	}

	if node.DiskSelector != nil {
		machine.MachineInstall.InstallDiskSelector = node.DiskSelector
	}

	if len(node.Disks) > 0 {
		machine.MachineDisks = node.Disks
	}

	if len(node.KernelModules) > 0 {
		machine.MachineKernel = &v1alpha1.KernelConfig{KernelModules: node.KernelModules}
	}

	if node.Annotations != nil {
		machine.MachineNodeAnnotations = plainValues(node.Annotations)
	}

	if node.Labels != nil {
		machine.MachineNodeLabels = plainValues(node.Labels)
	}

	if node.Taints != nil {
		machine.MachineNodeTaints = node.Taints
	}

	// The machine starts without a bootloader's command line of its own with a UKI, where these have no effect.
	if arguments, _ := kernelArguments(node.Schematic); !node.Spec.UKI && !contract.GrubUseUKICmdlineDefault() {
		install := machine.MachineInstall
		install.InstallExtraKernelArgs = append(install.InstallExtraKernelArgs, arguments...)
	}

	machine.MachineCertSANs = append(machine.MachineCertSANs, node.CertSANs...)
}

func putNetwork(machine *v1alpha1.MachineConfig, node talhelperNode) {
	network := machine.MachineNetwork

	if !node.IgnoreHostname {
		network.NetworkHostname = node.Hostname
	}

	if len(node.Nameservers) > 0 {
		network.NameServers = node.Nameservers
	}

	if node.DisableSearchDomain {
		network.NetworkDisableSearchDomain = new(true)
	}

	if len(node.Interfaces) > 0 {
		network.NetworkInterfaces = node.Interfaces
	}
}

func kernelArguments(written map[string]any) ([]string, error) {
	parsed, err := parseSchematic(written)

	return parsed.Customization.ExtraKernelArgs, err
}

func parseSchematic(written map[string]any) (schematic.Schematic, error) {
	if written == nil {
		return schematic.Schematic{}, nil
	}

	text, err := yaml.Marshal(written)
	if err != nil {
		return schematic.Schematic{}, err
	}

	return schematic.Parse(string(text))
}

func (r *talhelperReader) putImage(main *v1alpha1.Config, node talhelperNode) error {
	reference := node.TalosImage + ":" + r.version

	if node.TalosImage == "" {
		var err error
		if reference, err = r.installer(node); err != nil {
			return err
		}
	}

	main.MachineConfig.MachineInstall.InstallImage = reference

	return nil
}

// installer is the image of a factory, whose name a template may give.
func (r *talhelperReader) installer(node talhelperNode) (string, error) {
	parsed, err := parseSchematic(node.Schematic)
	if err != nil {
		return "", err
	}

	id, err := parsed.ID()
	if err != nil {
		return "", err
	}

	factory := r.config.ImageFactory
	if factory.Installer == "" {
		return image.Installer{Version: r.version, Schematic: id, Platform: node.Spec.Mode,
			SecureBoot: node.Spec.SecureBoot, Registry: factory.Registry}.Reference()
	}

	text, err := r.rendered("installerURLTmpl", []byte(factory.Installer),
		map[string]any{"RegistryURL": cmp.Or(factory.Registry, image.FactoryRegistry), "ID": id, "Version": r.version,
			"Mode": cmp.Or(node.Spec.Mode, image.DefaultPlatform), "Secureboot": node.Spec.SecureBoot})

	return string(text), err
}

func isTemplate(text string) bool {
	return strings.Contains(text, "{{") || strings.Contains(text, "}}")
}

// plainValues are the labels that are no templates.
func plainValues(labels map[string]string) map[string]string {
	plain := maps.Clone(labels)
	maps.DeleteFunc(plain, func(_, value string) bool { return isTemplate(value) })

	return plain
}

// putTemplates writes the labels and annotations that are templates. Each sees the configuration without the others.
func (r *talhelperReader) putTemplates(main *v1alpha1.Config, node talhelperNode) error {
	data := main.DeepCopy()

	for _, part := range []struct {
		from, into map[string]string
	}{
		{node.Labels, main.MachineConfig.MachineNodeLabels},
		{node.Annotations, main.MachineConfig.MachineNodeAnnotations},
	} {
		for key, value := range part.from {
			if !isTemplate(value) {
				continue
			}

			text, err := r.rendered(key, []byte(value), data)
			if err != nil {
				return err
			}

			// talhelper reads the first word of the result.
			words := strings.Fields(string(text))
			if len(words) == 0 {
				return fmt.Errorf("%s: the template %s makes no text", key, value)
			}

			part.into[key] = words[0]
		}
	}

	return nil
}

// putContents writes the manifests of the cluster and the files of a node, whose contents may be in files.
func (r *talhelperReader) putContents(main *v1alpha1.Config, node talhelperNode) error {
	for _, manifest := range r.config.InlineManifests {
		text, err := r.content(manifest.InlineManifestContents, manifest.SkipSubstitution)
		if err != nil {
			return fmt.Errorf("inlineManifests %s: %w", manifest.InlineManifestName, err)
		}

		manifest.InlineManifestContents = text
		section := main.ClusterConfig
		section.ClusterInlineManifests = append(section.ClusterInlineManifests, manifest.ClusterInlineManifest)
	}

	for i := range node.Files {
		file := node.Files[i].MachineFile

		text, err := r.content(file.FileContent, node.Files[i].SkipSubstitution)
		if err != nil {
			return fmt.Errorf("machineFiles %s: %w", file.FilePath, err)
		}

		file.FileContent = text
		main.MachineConfig.MachineFiles = append(main.MachineConfig.MachineFiles, &file)
	}

	return nil
}

// content is a text of talconfig.yaml, or that of the file that it names.
func (r *talhelperReader) content(text string, asIs bool) (string, error) {
	name, inFile := strings.CutPrefix(text, "@")
	if !inFile {
		return text, nil
	}

	content, err := r.Options.read(strings.TrimSpace(name))
	if err == nil && !asIs {
		content, err = r.substituted(content)
	}

	return string(content), err
}

// patches are the texts of patches. Each may be a template of the configuration so far; one of a file may have
// variables, too.
func (r *talhelperReader) patches(made []byte, written []string) (texts []string, err error) {
	if len(written) == 0 {
		return nil, nil
	}

	provider, err := configloader.NewFromBytes(made)
	if err != nil {
		return nil, err
	}

	for _, text := range written {
		content := []byte(text)

		name, inFile := strings.CutPrefix(text, "@")
		if name = strings.TrimSpace(name); inFile {
			if content, err = r.Options.read(name); err != nil {
				return nil, fmt.Errorf("patch %s: %w", name, err)
			}

			if len(bytes.TrimSpace(content)) == 0 {
				continue
			}
		}

		if content, err = r.rendered("patch", content, provider.RawV1Alpha1()); err != nil {
			return nil, fmt.Errorf("patch %s: %w", name, err)
		}

		if inFile {
			if content, err = r.substituted(content); err != nil {
				return nil, fmt.Errorf("patch %s: %w", name, err)
			}
		}

		texts = append(texts, string(content))
	}

	return texts, nil
}
