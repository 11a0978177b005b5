// Package diagnostics answers diagnostic calls to a simulated machine: logs, processes, mounts, disks, containers,
// the graph of controllers. Logs have the events of services, and the lines that a test makes a program write.
package diagnostics

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"

	"github.com/cosi-project/runtime/pkg/resource"
	"github.com/siderolabs/talos/pkg/machinery/api/common"
	"github.com/siderolabs/talos/pkg/machinery/api/inspect"
	"github.com/siderolabs/talos/pkg/machinery/api/machine"
	"github.com/siderolabs/talos/pkg/machinery/constants"
	"github.com/siderolabs/talos/pkg/machinery/resources/config"
	"github.com/siderolabs/talos/pkg/machinery/resources/k8s"
	"google.golang.org/grpc"
	"google.golang.org/protobuf/types/known/emptypb"

	"github.com/talosop/terraform-provider-talosop/internal/sim/machined"
)

// Server answers for one boot.
type Server struct {
	machine.UnimplementedMachineServiceServer
	inspect.UnimplementedInspectServiceServer

	b *machined.Boot

	mu    sync.Mutex
	wrote map[string][]string
}

// New is for a boot.
func New(b *machined.Boot) *Server { return &Server{b: b, wrote: map[string][]string{}} }

// Write adds a line to the log of a service or, under the name of its pod without that of the machine, of a container.
func (s *Server) Write(log, line string) {
	s.mu.Lock()
	defer s.mu.Unlock()

	s.wrote[log] = append(s.wrote[log], line)
}

func (s *Server) written(log string) []string {
	s.mu.Lock()
	defer s.mu.Unlock()

	return slices.Clone(s.wrote[log])
}

// Dmesg returns the kernel log, with the log of Talos.
func (s *Server) Dmesg(_ *machine.DmesgRequest, stream grpc.ServerStreamingServer[common.Data]) error {
	lines := append([]string{"kern: info: [0.000000]: Command line: talos.platform=" + s.b.Platform.String()},
		s.written("dmesg")...)

	for _, service := range s.b.Services.List().GetServices() {
		lines = append(lines, events(service)...)
	}

	return send(stream, lines)
}

// Logs is what a service or a container wrote (Talos 1.14, v1alpha1_server.go/Logs).
func (s *Server) Logs(req *machine.LogsRequest, stream grpc.ServerStreamingServer[common.Data]) error {
	if req.GetNamespace() != constants.SystemContainerdNamespace && req.GetId() != "kubelet" {
		for _, c := range s.containers() {
			if c.GetId() == req.GetId() {
				return send(stream, append([]string{"started " + c.GetName()}, s.written(c.GetName())...))
			}
		}

		return fmt.Errorf("container %q not found", req.GetId())
	}

	if slices.Contains([]string{"controller-runtime", "dns-resolve-cache"}, req.GetId()) {
		return send(stream, append([]string{"started " + req.GetId()}, s.written(req.GetId())...))
	}

	for _, service := range s.b.Services.List().GetServices() {
		if service.GetId() == req.GetId() {
			return send(stream, append(events(service), s.written(req.GetId())...))
		}
	}

	return fmt.Errorf("log %q was not registered", req.GetId())
}

func events(service *machine.ServiceInfo) []string {
	var lines []string
	for _, e := range service.GetEvents().GetEvents() {
		lines = append(lines, fmt.Sprintf("[talos] service[%s](%s): %s", service.GetId(), e.GetState(), e.GetMsg()))
	}

	return lines
}

func send(stream grpc.ServerStreamingServer[common.Data], lines []string) error {
	return stream.Send(&common.Data{Bytes: []byte(strings.Join(lines, "\n") + "\n")})
}

// Containers are those of static pods, for requests of Kubernetes containers.
func (s *Server) Containers(
	_ context.Context, req *machine.ContainersRequest,
) (*machine.ContainersResponse, error) {
	list := &machine.Container{}
	if req.GetNamespace() == constants.K8sContainerdNamespace {
		list.Containers = s.containers()
	}

	return &machine.ContainersResponse{Messages: []*machine.Container{list}}, nil
}

func (s *Server) containers() []*machine.ContainerInfo {
	pods, err := s.b.Resources.List(s.b.Ctx, resource.NewMetadata(k8s.NamespaceName, k8s.StaticPodStatusType, "",
		resource.VersionUndefined))
	if err != nil {
		s.b.World.Logf("%s: list static pods: %v", s.b.Name(), err)

		return nil
	}

	s.b.Mu.Lock()
	node := s.b.NodeName
	s.b.Mu.Unlock()

	var found []*machine.ContainerInfo

	for _, pod := range pods.Items {
		id := pod.Metadata().ID()
		name := strings.TrimSuffix(strings.TrimPrefix(id, "kube-system/"), "-"+node)
		found = append(found,
			&machine.ContainerInfo{Namespace: constants.K8sContainerdNamespace, Id: id, PodId: id, Status: "SANDBOX_READY"},
			&machine.ContainerInfo{Namespace: constants.K8sContainerdNamespace, Id: id + ":" + name, PodId: id, Name: name,
				Pid: 1000, Status: "CONTAINER_RUNNING"})
	}

	return found
}

// Mounts are those that each machine has.
func (s *Server) Mounts(context.Context, *emptypb.Empty) (*machine.MountsResponse, error) {
	const size, free = 10 << 30, 8 << 30

	return &machine.MountsResponse{Messages: []*machine.Mounts{{Stats: []*machine.MountStat{
		{Filesystem: "/dev/loop0", Size: 80 << 20, MountedOn: "/"},
		{Filesystem: "/dev/sda4", Size: size, Available: free, MountedOn: "/var"},
	}}}}, nil
}

// DiskStats are those of the disks.
func (s *Server) DiskStats(context.Context, *emptypb.Empty) (*machine.DiskStatsResponse, error) {
	stats := &machine.DiskStats{Total: &machine.DiskStat{}}
	for _, disk := range s.b.Disks {
		stats.Devices = append(stats.Devices, &machine.DiskStat{Name: strings.TrimPrefix(disk.Path, "/dev/")})
	}

	return &machine.DiskStatsResponse{Messages: []*machine.DiskStats{stats}}, nil
}

// Processes are the services that run.
func (s *Server) Processes(context.Context, *emptypb.Empty) (*machine.ProcessesResponse, error) {
	list := &machine.Process{Processes: []*machine.ProcessInfo{{Pid: 1, State: "S", Threads: 8, Command: "init",
		Executable: "/sbin/init", Args: "/sbin/init"}}}

	for i, service := range s.b.Services.List().GetServices() {
		if service.GetState() == string(machined.ServiceRunning) {
			list.Processes = append(list.Processes, &machine.ProcessInfo{Pid: int32(i + 100), Ppid: 1, State: "S", Threads: 8,
				Command: service.GetId(), Executable: "/usr/bin/" + service.GetId(), Args: service.GetId()})
		}
	}

	return &machine.ProcessesResponse{Messages: []*machine.Process{list}}, nil
}

// ControllerRuntimeDependencies is a part of the graph that each machine has.
func (s *Server) ControllerRuntimeDependencies(
	context.Context, *emptypb.Empty,
) (*inspect.ControllerRuntimeDependenciesResponse, error) {
	edges := []*inspect.ControllerDependencyEdge{
		{ControllerName: "config.MachineTypeController", EdgeType: inspect.DependencyEdgeType_OUTPUT_EXCLUSIVE,
			ResourceType: config.MachineTypeType},
		{ControllerName: "config.MachineTypeController", EdgeType: inspect.DependencyEdgeType_INPUT_WEAK,
			ResourceNamespace: config.NamespaceName, ResourceType: config.MachineConfigType, ResourceId: config.ActiveID},
	}

	return &inspect.ControllerRuntimeDependenciesResponse{
		Messages: []*inspect.ControllerRuntimeDependency{{Edges: edges}},
	}, nil
}
