package talos

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	cosi "github.com/cosi-project/runtime/api/v1alpha1"
	"github.com/cosi-project/runtime/pkg/controller/generic"
	"github.com/cosi-project/runtime/pkg/resource"
	"github.com/cosi-project/runtime/pkg/safe"
	"github.com/cosi-project/runtime/pkg/state"
	configapi "github.com/siderolabs/talos/pkg/machinery/api/resource/config"
	k8sconfig "github.com/siderolabs/talos/pkg/machinery/config/types/k8s"
	"github.com/siderolabs/talos/pkg/machinery/resources/config"
	"github.com/siderolabs/talos/pkg/machinery/resources/hardware"
	"github.com/siderolabs/talos/pkg/machinery/resources/k8s"
	"github.com/siderolabs/talos/pkg/machinery/resources/runtime"
	"go.yaml.in/yaml/v4"
	"google.golang.org/protobuf/proto"

	"github.com/talosop/terraform-provider-talosop/internal/cluster/step"
	"github.com/talosop/terraform-provider-talosop/internal/expansion"
	"github.com/talosop/terraform-provider-talosop/internal/panics"
)

// Extension is a system extension of the booted image.
type Extension struct {
	Name, Version string
}

// Resources opens the resources of a member for reads of the caller, on a separate connection, which release
// closes. Nothing can be changed there: Talos takes no writes from clients (Talos 1.13, resources.AccessPolicy).
// The connection does not outlive a reboot of the machine, and is not replaced; errors of the reads have no class.
func (m *Machine) Resources(ctx context.Context) (resources state.State, release func(), err error) {
	s, err := m.reach(ctx)
	if err != nil {
		return nil, nil, fmt.Errorf("open the resources of %s: %w", m.address, err)
	}

	if err := s.expect(step.Member); err != nil {
		s.close()

		return nil, nil, fmt.Errorf("open the resources of %s: %w", m.address, err)
	}

	return s.state, s.close, nil
}

// get reads one resource. One that does not exist is ErrGone.
func get[T resource.Resource](
	ctx context.Context, s *session, namespace resource.Namespace, kind resource.Type, id resource.ID,
) (T, error) {
	var res T

	err := panics.Do(func() (err error) {
		res, err = safe.ReaderGet[T](ctx, s.state, resource.NewMetadata(namespace, kind, id, resource.VersionUndefined))

		return err
	})
	if err != nil {
		if state.IsNotFoundError(err) {
			err = fmt.Errorf("%w: the machine has no %s", ErrGone, kind)
		}

		return res, fmt.Errorf("read %s: %w", kind, s.failed(err))
	}

	return res, nil
}

// list reads all resources of a kind. Whatever answers, a malformed one is an error and no panic of the library, as in
// get.
func list[T generic.ResourceWithRD](ctx context.Context, s *session) (items safe.List[T], err error) {
	err = panics.Do(func() (err error) {
		items, err = safe.ReaderListAll[T](ctx, s.state)

		return err
	})
	if err != nil {
		return items, s.failed(err)
	}

	return items, nil
}

// optional turns ErrGone into nothing: the resource is known to be absent.
func optional(err error) error {
	if errors.Is(err, ErrGone) {
		return nil
	}

	return err
}

// machineStatus reads stage and readiness. A machine that has none yet is in
// [step.StageUnknown].
func (s *session) machineStatus(ctx context.Context) (stage step.Stage, ready bool, unmet []string, err error) {
	res, err := get[*runtime.MachineStatus](ctx, s, runtime.NamespaceName, runtime.MachineStatusType,
		runtime.MachineStatusID)
	if err != nil {
		return step.StageUnknown, false, nil, optional(err)
	}

	spec := res.TypedSpec()
	for _, c := range spec.Status.UnmetConditions {
		unmet = append(unmet, c.Name+": "+c.Reason)
	}

	return step.Stage(spec.Stage.String()), spec.Status.Ready, unmet, nil
}

// installation reads whether an unattended installation runs, and why it does not get on.
func (s *session) installation(ctx context.Context) (under bool, problem string, err error) {
	res, err := get[*runtime.UnattendedInstallStatus](ctx, s, runtime.NamespaceName, runtime.UnattendedInstallStatusType,
		runtime.UnattendedInstallStatusID)
	if err != nil {
		return false, "", optional(err)
	}

	spec := res.TypedSpec()
	if spec.Error != "" {
		problem = fmt.Sprintf("installation %s: %s", spec.Phase, spec.Error)
	}

	return spec.Phase != runtime.UnattendedInstallPhaseInstalled, problem, nil
}

// hardwareUUID reads the SMBIOS UUID; empty where there is none, as in containers.
func (s *session) hardwareUUID(ctx context.Context) (string, error) {
	res, err := get[*hardware.SystemInformation](ctx, s, hardware.NamespaceName, hardware.SystemInformationType,
		hardware.SystemInformationID)
	if err != nil {
		return "", optional(err)
	}

	return usableUUID(res.TypedSpec().UUID), nil
}

// placeholders are UUIDs that boards are shipped with by the thousand, so that
// they identify nothing.
var placeholders = []string{
	"00000000-0000-0000-0000-000000000000",
	"ffffffff-ffff-ffff-ffff-ffffffffffff",
	"03000200-0400-0500-0006-000700080009",
}

func usableUUID(uuid string) string {
	uuid = strings.ToLower(strings.TrimSpace(uuid))
	if slices.Contains(placeholders, uuid) {
		return ""
	}

	return uuid
}

// nodename reads the name the machine registers in Kubernetes with; empty as long
// as it has none.
func (s *session) nodename(ctx context.Context) (string, error) {
	res, err := get[*k8s.Nodename](ctx, s, k8s.NamespaceName, k8s.NodenameType, k8s.NodenameID)
	if err != nil {
		return "", optional(err)
	}

	return res.TypedSpec().Nodename, nil
}

// schematicName is the extension that Image Factory adds to every image, with the
// schematic's id as its version.
const schematicName = "schematic"

// kernelModules is the extension that the imager makes of the kernel modules of all others (Talos 1.13,
// internal/pkg/extensions/kernel_modules.go).
const kernelModules = "modules.dep"

// bootedImage is the source of the booted image.
type bootedImage struct {
	// schematic is empty for an image that no factory made.
	schematic string
	// extensions are the names of the system extensions, in order.
	extensions []string
}

// booted is the image that was booted. One without anything in it is not kept: early in a boot Talos has not listed it.
func (s *session) booted(ctx context.Context) (*bootedImage, error) {
	return once(ctx, s, &s.known.image, func(ctx context.Context) (*bootedImage, error) {
		all, schematic, err := s.extensions(ctx)
		if err != nil || len(all) == 0 && schematic == "" {
			return nil, err
		}

		image := &bootedImage{schematic: schematic}
		for _, extension := range all {
			if extension.Name != kernelModules {
				image.extensions = append(image.extensions, extension.Name)
			}
		}

		slices.Sort(image.extensions)

		return image, nil
	})
}

// extensions lists the system extensions of the booted image and the schematic it
// was made from; empty for an image that no factory made.
func (s *session) extensions(ctx context.Context) (found []Extension, schematic string, err error) {
	items, err := list[*runtime.ExtensionStatus](ctx, s)
	if err != nil {
		return nil, "", fmt.Errorf("list %s: %w", runtime.ExtensionStatusType, err)
	}

	for item := range items.All() {
		meta := item.TypedSpec().Metadata
		if meta.Name == schematicName {
			schematic = meta.Version

			continue
		}

		found = append(found, Extension{Name: meta.Name, Version: meta.Version})
	}

	return found, schematic, nil
}

// machineType reads the role of the machine without its configuration, which less than os:admin may.
func (s *session) machineType(ctx context.Context) (step.Role, error) {
	res, err := get[*config.MachineType](ctx, s, config.NamespaceName, config.MachineTypeType, config.MachineTypeID)
	if err != nil {
		return "", err
	}

	if res.MachineType().IsControlPlane() {
		return step.ControlPlane, nil
	}

	return step.Worker, nil
}

// activeConfig reads the configuration that the machine runs with, byte for byte.
// It is not decoded on the way, so that documents this build does not know pass.
func (s *session) activeConfig(ctx context.Context) ([]byte, error) {
	return s.machineConfig(ctx, config.ActiveID)
}

// nextConfig reads the configuration that the machine starts with the next time. As long as
// nothing was applied since it started, only the active one may be there (Talos 1.13,
// config.PersistentID).
func (s *session) nextConfig(ctx context.Context) ([]byte, error) {
	next, err := s.machineConfig(ctx, config.PersistentID)
	if errors.Is(err, ErrGone) {
		return s.activeConfig(ctx)
	}

	return next, err
}

func (s *session) machineConfig(ctx context.Context, id resource.ID) ([]byte, error) {
	answer, err := s.resources.Get(ctx, &cosi.GetRequest{
		Namespace: config.NamespaceName,
		Type:      config.MachineConfigType,
		Id:        id,
		Options:   &cosi.GetOptions{},
	})
	if err != nil {
		return nil, fmt.Errorf("read the machine configuration: %w", s.failed(err))
	}

	var spec configapi.MachineConfigSpec
	if err := proto.Unmarshal(answer.GetResource().GetSpec().GetProtoSpec(), &spec); err != nil {
		return nil, fmt.Errorf("read the machine configuration: %w", err)
	}

	return spec.GetYamlMarshalled(), nil
}

// machineSection is the part of a configuration that is read here.
type machineSection struct {
	Type    string `yaml:"type"`
	Kubelet struct {
		RegisterWithFQDN bool `yaml:"registerWithFQDN"`
	} `yaml:"kubelet"`
}

// role of the machine. Talos parses an empty type and the former "join" as worker;
// "init" is a control plane of former days.
func (s machineSection) role() step.Role {
	if s.Type == "controlplane" || s.Type == "init" {
		return step.ControlPlane
	}

	return step.Worker
}

// machineSectionOf finds the machine section in a configuration of any number of documents. Settings with a
// separate document replace those of the section (KubeNodeConfig, since Talos 1.14). The error never quotes the
// configuration.
func machineSectionOf(configuration []byte) (machineSection, error) {
	if err := expansion.CheckYAML(configuration); err != nil {
		return machineSection{}, fmt.Errorf("read the machine configuration: %w", err)
	}

	decoder := yaml.NewDecoder(bytes.NewReader(configuration))

	var (
		found    *machineSection
		withFQDN *bool
	)

	for {
		var document struct {
			Kind     string    `yaml:"kind"`
			Machine  yaml.Node `yaml:"machine"`
			WithFQDN yaml.Node `yaml:"registerWithFQDN"`
		}

		err := decoder.Decode(&document)
		if errors.Is(err, io.EOF) {
			break
		}

		switch {
		case err != nil:
		case document.Kind == k8sconfig.KubeNodeConfig && !document.WithFQDN.IsZero():
			err = document.WithFQDN.Decode(&withFQDN)
		case document.Kind == "" && found == nil && !document.Machine.IsZero():
			err = document.Machine.Decode(&found)
		}

		if err != nil {
			return machineSection{}, errors.New("read the machine configuration: it cannot be decoded")
		}
	}

	switch {
	case found == nil:
		return machineSection{}, errors.New("read the machine configuration: it has no machine section")
	case withFQDN != nil:
		found.Kubelet.RegisterWithFQDN = *withFQDN
	}

	return *found, nil
}
