package machineconfig

import (
	"bytes"
	"cmp"
	"fmt"
	"reflect"
	"slices"

	coreconfig "github.com/siderolabs/talos/pkg/machinery/config"
	"github.com/siderolabs/talos/pkg/machinery/config/config"
	"github.com/siderolabs/talos/pkg/machinery/config/encoder"
	"github.com/siderolabs/talos/pkg/machinery/config/merge"
	"github.com/siderolabs/talos/pkg/machinery/config/types/block"
	"github.com/siderolabs/talos/pkg/machinery/config/types/cri"
	"github.com/siderolabs/talos/pkg/machinery/config/types/network"
	"github.com/siderolabs/talos/pkg/machinery/config/types/runtime"
	"github.com/siderolabs/talos/pkg/machinery/config/types/v1alpha1"
	"github.com/siderolabs/talos/pkg/machinery/constants"

	"github.com/talosop/terraform-provider-talosop/internal/machineconfig/places"
)

// Some settings have two forms: a field of the main document, and a document of their own. A contract decides which of
// them is generated, and a patch may use the other one. Talos refuses most of them together (machinery 1.14,
// V1Alpha1ConflictValidate of the documents), and of registries it takes the document (container.go). So what was
// generated in one form gives way to a patch in the other one. What a patch changed too is left to Talos.

// form is a setting that one of its forms says completely, so that the other one can go.
type form struct {
	places.Fact

	// keeps reports where the document stays beside the field.
	keeps func(*v1alpha1.Config) bool
}

var forms = []form{
	{places.Hostname, nil}, {places.StableHostname, nil}, {places.Discovery, needsIdentity}, {places.ImageCache, nil},
	{places.KubePrism, nil},
}

func (f form) document(d config.Document) bool { return d.Kind() == f.Document.Kind }

func is[D config.Document](document config.Document) bool {
	_, ok := document.(D)

	return ok
}

// orNew is the target of a pointer, or a temporary value.
func orNew[T any](pointer *T) *T {
	if pointer == nil {
		return new(T)
	}

	return pointer
}

// needsIdentity is whether the main document uses a discovery service. It then needs the identity of the cluster, too
// (machinery 1.14, v1alpha1_validation.go), and that is in a document which is no setting.
func needsIdentity(main *v1alpha1.Config) bool { return main.Cluster().Discovery().Enabled() }

// twoForms is a configuration whose settings may be in two forms.
type twoForms struct {
	// main and documents are the finished ones, main among documents. They may be changed: main is a copy, and documents
	// are exchanged.
	main      *v1alpha1.Config
	documents []config.Document
	// was and generated are those before any patch.
	was       *v1alpha1.Config
	generated []config.Document
}

// oneForm replaces generated settings that patches write in the other form.
func (g *Generator) oneForm(d *documents, m Machine) ([]config.Document, *v1alpha1.Config, error) {
	f := &twoForms{main: d.known.RawV1Alpha1().DeepCopy(), documents: slices.Clone(d.known.Documents()),
		was: d.generated.RawV1Alpha1(), generated: d.generated.Documents()}

	for i, document := range f.documents {
		if is[*v1alpha1.Config](document) {
			f.documents[i] = f.main
		}
	}

	for _, setting := range forms {
		if err := f.settle(setting); err != nil {
			return nil, nil, err
		}
	}

	// The stable name of the main document has a static one beside it.
	if named := slices.ContainsFunc(f.generated, is[*network.HostnameConfigV1Alpha1]); named && m.Hostname != "" &&
		orNew(f.main.MachineConfig.MachineFeatures).StableHostname != nil && f.main.Hostname() == "" &&
		!slices.ContainsFunc(f.documents, is[*network.HostnameConfigV1Alpha1]) {
		putHostname([]config.Document{f.main}, m.Hostname)
	}

	f.settleResolver()
	f.settleEncryption()

	if err := f.settleRegistries(); err != nil {
		return nil, nil, err
	}

	return f.documents, f.main, f.settleInstall(m.Install, g.contract)
}

// settle replaces a generated field by a document, and a document by a field.
func (f *twoForms) settle(setting form) error {
	now, was := places.Field(f.main, setting.Main.Path, false), places.Field(f.was, setting.Main.Path, false)
	if !now.IsValid() {
		return nil
	}

	switch inDocument := slices.ContainsFunc(f.generated, setting.document); {
	case !inDocument && slices.ContainsFunc(f.documents, setting.document) &&
		was.IsValid() && reflect.DeepEqual(now.Interface(), was.Interface()):
		now.SetZero()
	case inDocument && !now.IsZero() && (setting.keeps == nil || !setting.keeps(f.main)):
		return f.drop(setting.document)
	}

	return nil
}

// drop removes documents that no patch changed.
func (f *twoForms) drop(is func(config.Document) bool) error {
	var kept []config.Document

	for _, document := range f.documents {
		if is(document) {
			same, err := f.isGenerated(document)
			if err != nil {
				return err
			}

			if same {
				continue
			}
		}

		kept = append(kept, document)
	}

	f.documents = kept

	return nil
}

// isGenerated reports whether a document is as it was generated.
func (f *twoForms) isGenerated(document config.Document) (bool, error) {
	for _, before := range f.generated {
		if identityOf(before) != identityOf(document) {
			continue
		}

		was, err := encodedDocument(before)
		if err != nil {
			return false, err
		}

		now, err := encodedDocument(document)

		return bytes.Equal(was, now), err
	}

	return false, nil
}

func encodedDocument(document config.Document) ([]byte, error) {
	encoded, err := encoder.NewEncoder(document, encoder.WithComments(encoder.CommentsDisabled)).Encode()
	if err != nil {
		return nil, fmt.Errorf("encode %s: %w", document.Kind(), err)
	}

	return encoded, nil
}

// settleResolver moves the generated settings of host DNS to a document that has some and leaves the others open.
func (f *twoForms) settleResolver() {
	features, was := f.main.MachineConfig.MachineFeatures, f.was.MachineConfig.MachineFeatures
	if features == nil || was == nil || was.HostDNSSupport == nil ||
		!reflect.DeepEqual(features.HostDNSSupport, was.HostDNSSupport) {
		return
	}

	for i, document := range f.documents {
		found, ok := document.(*network.ResolverConfigV1Alpha1)
		if !ok || reflect.ValueOf(found.ResolverHostDNS).IsZero() {
			continue
		}

		settled := found.DeepCopy()
		dns := &settled.ResolverHostDNS
		dns.HostDNSEnabled = cmp.Or(dns.HostDNSEnabled, was.HostDNSSupport.HostDNSConfigEnabled)
		dns.HostDNSForwardKubeDNSToHost = cmp.Or(dns.HostDNSForwardKubeDNSToHost,
			was.HostDNSSupport.HostDNSForwardKubeDNSToHost)
		dns.HostDNSResolveMemberNames = cmp.Or(dns.HostDNSResolveMemberNames, was.HostDNSSupport.HostDNSResolveMemberNames)
		f.documents[i], features.HostDNSSupport = settled, nil
	}
}

// settleEncryption is about the keys of STATE and EPHEMERAL: the rest of their documents has no other form.
func (f *twoForms) settleEncryption() {
	now := orNew(f.main.MachineConfig.MachineSystemDiskEncryption)
	was := orNew(f.was.MachineConfig.MachineSystemDiskEncryption)

	for _, volume := range []struct {
		name string
		now  **v1alpha1.EncryptionConfig
		was  *v1alpha1.EncryptionConfig
	}{
		{constants.StatePartitionLabel, &now.StatePartition, was.StatePartition},
		{constants.EphemeralPartitionLabel, &now.EphemeralPartition, was.EphemeralPartition},
	} {
		i, before := encrypted(f.documents, volume.name), encrypted(f.generated, volume.name)
		if *volume.now == nil || i < 0 {
			continue
		}

		if before < 0 {
			if reflect.DeepEqual(*volume.now, volume.was) {
				*volume.now = nil
			}

			continue
		}

		settled := f.documents[i].Clone().(*block.VolumeConfigV1Alpha1) //nolint:forcetypeassert,errcheck // encrypted looks for these
		if reflect.DeepEqual(settled.EncryptionSpec,
			f.generated[before].(*block.VolumeConfigV1Alpha1).EncryptionSpec) { //nolint:forcetypeassert,errcheck // as above
			settled.EncryptionSpec = block.EncryptionSpec{}
			f.documents[i] = settled
		}
	}
}

// encrypted is the index of the document that encrypts a volume; negative where there is none.
func encrypted(documents []config.Document, volume string) int {
	return slices.IndexFunc(documents, func(document config.Document) bool {
		found, ok := document.(*block.VolumeConfigV1Alpha1)

		return ok && found.MetaName == volume && found.Encryption() != nil
	})
}

// settleRegistries drops documents of registries that the main document has, too: there patches have put them.
func (f *twoForms) settleRegistries() error {
	registries := f.main.MachineConfig.MachineRegistries

	return f.drop(func(document config.Document) bool {
		switch found := document.(type) {
		case *cri.RegistryMirrorConfigV1Alpha1:
			return registries.RegistryMirrors[found.MetaName] != nil
		case *cri.RegistryAuthConfigV1Alpha1:
			host := registries.RegistryConfig[found.MetaName]

			return host != nil && host.RegistryAuth != nil
		case *cri.RegistryTLSConfigV1Alpha1:
			host := registries.RegistryConfig[found.MetaName]

			return host != nil && host.RegistryTLS != nil
		}

		return false
	})
}

// settleInstall writes an installation in the form of the patch. What the patch leaves open comes from the settings, as
// it does in the form of the contract.
func (f *twoForms) settleInstall(install Install, contract *coreconfig.VersionContract) error {
	var (
		now       = f.main.MachineConfig.MachineInstall
		was       = f.was.MachineConfig.MachineInstall
		documents = is[*runtime.UnattendedInstallConfigV1Alpha1]
	)

	// The disk of a patch goes before the selector of the settings, which Talos would take.
	if now != nil && was != nil && now.InstallDisk != was.InstallDisk &&
		reflect.DeepEqual(now.InstallDiskSelector, was.InstallDiskSelector) {
		now.InstallDiskSelector = nil
	}

	i := slices.IndexFunc(f.documents, documents)

	switch {
	case now == nil || i < 0:
		return nil
	case slices.ContainsFunc(f.generated, documents):
		return f.installByField(install, contract, documents)
	case len(install.ExtraKernelArgs) > 0 || !reflect.DeepEqual(now, was):
		return nil // the document has no such arguments, or both are of patches
	}

	made, err := putUnattendedInstall(nil, install)
	if err != nil || len(made) == 0 {
		return err
	}

	patched := f.documents[i].Clone()
	if err := merge.Merge(made[0], patched); err != nil {
		return fmt.Errorf("merge %s: %w", patched.Kind(), err)
	}

	f.documents[i], f.main.MachineConfig.MachineInstall = made[0], nil

	return nil
}

// installByField replaces the generated document of an installation by the field that a patch sets.
func (f *twoForms) installByField(
	install Install, contract *coreconfig.VersionContract, documents func(config.Document) bool,
) error {
	patched := f.main.MachineConfig.MachineInstall

	before := len(f.documents)
	if err := f.drop(documents); err != nil || len(f.documents) == before {
		return err
	}

	if patched.InstallDisk != "" {
		install.DiskSelector = nil
	}

	if len(patched.InstallExtraKernelArgs) > 0 {
		install.ExtraKernelArgs = nil // lists are appended
	}

	made := &v1alpha1.InstallConfig{}
	if err := install.put(made, contract); err != nil {
		return err
	}

	if err := merge.Merge(made, patched); err != nil {
		return fmt.Errorf("merge machine.install: %w", err)
	}

	f.main.MachineConfig.MachineInstall = made

	return nil
}
