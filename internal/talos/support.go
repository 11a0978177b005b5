package talos

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"path"
	"slices"
	"strings"

	"github.com/siderolabs/go-talos-support/support/collectors"
	inspectapi "github.com/siderolabs/talos/pkg/machinery/api/inspect"
	"github.com/siderolabs/talos/pkg/machinery/client"
	"github.com/siderolabs/talos/pkg/machinery/formatters"
	"github.com/siderolabs/talos/pkg/machinery/resources/cri"
	"github.com/siderolabs/talos/pkg/machinery/resources/files"
	"github.com/siderolabs/talos/pkg/machinery/resources/k8s"
	"github.com/siderolabs/talos/pkg/machinery/resources/network"
	"github.com/siderolabs/talos/pkg/machinery/resources/runtime"
	"go.yaml.in/yaml/v4"
	"google.golang.org/protobuf/types/known/emptypb"

	"github.com/talosop/terraform-provider-talosop/internal/cluster/step"
)

// SupportFiles hands over what talosctl support collects of a member, one file after the other: logs of the kernel, of
// services and of pods of kube-system, resources, mounts, processes. missing says of each file that could not be had
// why; the error is that the machine does not answer, or is what file gave back.
//
// Resources that Talos takes for sensitive are left out where the role is os:reader, and lose their content otherwise;
// so do those of [withheld].
func (m *Machine) SupportFiles(
	ctx context.Context, file func(name string, content []byte) error,
) (missing map[string]error, err error) {
	// Nothing is read twice: earlier results stay.
	s, err := m.dial(ctx)
	if err == nil {
		err = s.expect(step.Member)
	}

	if err == nil {
		missing, err = s.supportFiles(ctx, file)
	}

	if err != nil {
		return missing, fmt.Errorf("collect support data from %s: %w", m.address, err)
	}

	return missing, nil
}

func (s *session) supportFiles(
	ctx context.Context, file func(name string, content []byte) error,
) (map[string]error, error) {
	missing := map[string]error{}
	asked := &client.Client{MachineClient: s.machine, COSI: s.state}

	all, err := collectors.GetTalosNodeCollectors(ctx, func(string, ...any) {}, asked)
	if err != nil {
		if !s.alive() {
			return nil, s.failed(err)
		}

		missing["lists of logs and resources"] = s.failed(err)
	}

	for _, c := range all {
		name := strings.TrimPrefix(c.String(), "collect ")
		if name == dependencies {
			// A client that was not made by its constructor cannot ask for it.
			c = collectors.NewCollector(name, func() ([]byte, error) { return s.dependencies(ctx, asked) })
		}

		into := &supportArchive{file: file}
		err := c.Run(into)

		switch {
		case into.err != nil:
			return missing, into.err
		case errors.Is(s.failed(err), ErrNotAuthorized):
			// Sensitive resources, and files of the machine, which only os:admin reads.
		case err != nil && !s.alive():
			return missing, s.failed(err)
		case err != nil && context.Cause(ctx) != nil:
			return missing, context.Cause(ctx)
		case err != nil:
			missing[name] = s.failed(err)
		}
	}

	return missing, nil
}

// dependencies is the file with the graph of controllers and resources.
const dependencies = "dependencies.dot"

func (s *session) dependencies(ctx context.Context, asked *client.Client) ([]byte, error) {
	graph, err := inspectapi.NewInspectServiceClient(s.conn).ControllerRuntimeDependencies(ctx, &emptypb.Empty{})
	if err != nil {
		return nil, err
	}

	var out bytes.Buffer
	err = formatters.RenderGraph(ctx, asked, graph, &out, true)

	return out.Bytes(), err
}

// supportArchive receives the files of collectors.
type supportArchive struct {
	file func(name string, content []byte) error
	// err is why a file was not taken.
	err error
}

// Write implements bundle.Archive.
func (a *supportArchive) Write(name string, content []byte) error {
	folder, kind := path.Base(path.Dir(name)), strings.TrimSuffix(path.Base(name), ".yaml")
	if folder == "resources" && slices.Contains(withheld, kind) {
		var err error
		if content, err = withoutSpecs(content); err != nil {
			return err
		}
	}

	a.err = a.file(name, content)

	return a.err
}

// Close implements bundle.Archive.
func (a *supportArchive) Close() error { return nil }

// withheld are types of resources, as their definitions are called, that hold secrets and that Talos 1.13 or 1.14
// does not mark as sensitive. The bootstrap token is in a manifest
// (pkg/controllers/k8s/internal/k8stemplates/kubelet.go). The environment, manifests, arguments and files come
// from a user's configuration, and any client may write META.
var withheld = func() []string {
	var names []string

	for _, kind := range []string{
		k8s.ManifestType, k8s.ExtraManifestsConfigType, k8s.StaticPodType,
		k8s.AdmissionControlConfigType, k8s.ControllerManagerConfigType, k8s.SchedulerConfigType,
		k8s.AuditPolicyConfigType, k8s.AuthorizationConfigType, k8s.KubeletConfigType, k8s.KubeletSpecType,
		k8s.NodeAnnotationSpecType, runtime.EnvironmentType, runtime.MetaKeyType, runtime.UniqueMachineTokenType,
		runtime.ExtensionServiceConfigType, files.EtcFileSpecType, cri.RegistriesConfigType, cri.BaseRuntimeSpecConfigType,
		network.LinkSpecType, network.OperatorSpecType, "ContainerSpecs.containers.talos.dev",
		"ContainerInstanceSpecs.containers.talos.dev", "KubeletKubeconfigs.kubernetes.talos.dev",
	} {
		names = append(names, strings.ToLower(kind))
	}

	return names
}()

// withoutSpecs keeps only the names of resources in YAML.
func withoutSpecs(content []byte) ([]byte, error) {
	var out bytes.Buffer

	decoder, encoder := yaml.NewDecoder(bytes.NewReader(content)), yaml.NewEncoder(&out)

	for {
		var resource struct {
			Metadata yaml.Node `yaml:"metadata"`
			Spec     string    `yaml:"spec"`
		}

		if err := decoder.Decode(&struct {
			Metadata *yaml.Node `yaml:"metadata"`
		}{&resource.Metadata}); errors.Is(err, io.EOF) {
			return out.Bytes(), encoder.Close()
		} else if err != nil {
			return nil, err
		}

		resource.Spec = hidden

		if err := encoder.Encode(&resource); err != nil {
			return nil, err
		}
	}
}
