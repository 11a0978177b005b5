package talos

import (
	"context"
	"io"
	"strings"
	"testing"

	cosi "github.com/cosi-project/runtime/api/v1alpha1"
	"github.com/cosi-project/runtime/pkg/resource"
	"github.com/cosi-project/runtime/pkg/resource/protobuf"
	"github.com/cosi-project/runtime/pkg/state"
	cosiclient "github.com/cosi-project/runtime/pkg/state/protobuf/client"
	machineapi "github.com/siderolabs/talos/pkg/machinery/api/machine"
	configapi "github.com/siderolabs/talos/pkg/machinery/api/resource/config"
	"github.com/siderolabs/talos/pkg/machinery/resources/block"
	"github.com/siderolabs/talos/pkg/machinery/resources/config"
	"github.com/siderolabs/talos/pkg/machinery/resources/hardware"
	"github.com/siderolabs/talos/pkg/machinery/resources/k8s"
	"github.com/siderolabs/talos/pkg/machinery/resources/network"
	"github.com/siderolabs/talos/pkg/machinery/resources/runtime"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/anypb"

	"github.com/talosop/terraform-provider-talosop/internal/cluster"
	"github.com/talosop/terraform-provider-talosop/internal/cluster/step"
	"github.com/talosop/terraform-provider-talosop/internal/metakey"
)

// Any answer from the address of a machine is safe: in maintenance mode, or as a member that another client
// controls by now. There is no panic, and the result has the form that decisions need. `go test -fuzz=FuzzObserve
// ./internal/talos` looks for more; findings stay in testdata/fuzz. Endless answers have their own tests.

// largestFuzzed in bytes keeps one input from taking long.
const largestFuzzed = 64 << 10

// answering is a connection to a machine that says the same to the same question.
type answering func(method string, request any) []byte

func (a answering) Invoke(_ context.Context, method string, request, reply any, _ ...grpc.CallOption) error {
	return decoded(a(method, request), reply)
}

func (a answering) NewStream(
	ctx context.Context, _ *grpc.StreamDesc, method string, _ ...grpc.CallOption,
) (grpc.ClientStream, error) {
	return &answerOnce{ctx: ctx, answer: a(method, nil)}, nil
}

// decoded reads an answer as gRPC does.
func decoded(answer []byte, into any) error {
	if len(answer) == 0 {
		return status.Error(codes.NotFound, "there is none")
	}

	if err := proto.Unmarshal(answer, into.(proto.Message)); err != nil {
		return status.Error(codes.Internal, "the answer cannot be decoded")
	}

	return nil
}

// answerOnce is a stream with one message, sent twice.
type answerOnce struct {
	ctx      context.Context
	answer   []byte
	received int
}

func (s *answerOnce) Header() (metadata.MD, error) { return nil, nil } //nolint:nilnil // there is none
func (s *answerOnce) Trailer() metadata.MD         { return nil }
func (s *answerOnce) CloseSend() error             { return nil }
func (s *answerOnce) Context() context.Context     { return s.ctx }
func (s *answerOnce) SendMsg(any) error            { return nil }

func (s *answerOnce) RecvMsg(into any) error {
	if s.received++; s.received > 2 || len(s.answer) == 0 {
		return io.EOF
	}

	return decoded(s.answer, into)
}

// sessionOf is a session with a given server, on an unused connection.
func sessionOf(idle *session, a answering, access step.Access) *session {
	resources := cosi.NewStateClient(a)

	return &session{
		route: idle.route, peer: peer{access: access}, wire: idle.wire, conn: idle.conn,
		machine:   machineapi.NewMachineServiceClient(a),
		resources: resources,
		state:     state.WrapCore(cosiclient.NewAdapter(resources, cosiclient.WithDisableWatchRetry())),
	}
}

// sent is a resource as a machine sends it.
func sent(f *testing.F, r resource.Resource) []byte {
	f.Helper()

	encoded, err := protobuf.FromResource(r)
	if err != nil {
		f.Fatal(err)
	}

	message, err := encoded.Marshal()
	if err != nil {
		f.Fatal(err)
	}

	return encodedMessage(f, &cosi.GetResponse{Resource: message})
}

func encodedMessage(f *testing.F, message proto.Message) []byte {
	f.Helper()

	encoded, err := proto.Marshal(message)
	if err != nil {
		f.Fatal(err)
	}

	return encoded
}

// secretOfFuzz is in the configuration of the seeds.
const secretOfFuzz = "very-secret-token"

// seedsOfObserve are what a machine says to: its status, its hardware, its configuration, other reads, lists, calls.
func seedsOfObserve(f *testing.F) {
	f.Helper()

	stage := runtime.NewMachineStatus()
	stage.TypedSpec().Stage, stage.TypedSpec().Status.Ready = runtime.MachineStageMaintenance, true

	booting := runtime.NewMachineStatus()
	booting.TypedSpec().Stage = runtime.MachineStageBooting
	booting.TypedSpec().Status.UnmetConditions = []runtime.UnmetCondition{{Name: "services", Reason: "etcd"}}

	system := hardware.NewSystemInformation(hardware.SystemInformationID)
	system.TypedSpec().UUID = "03000200-0400-0500-0006-000700080009"

	other := hardware.NewSystemInformation(hardware.SystemInformationID)
	other.TypedSpec().UUID = " 6F9619FF-8B86-D011-B42D-00CF4FC964FF"

	configuration := encodedMessage(f, &cosi.GetResponse{Resource: &cosi.Resource{
		Metadata: &cosi.Metadata{Namespace: config.NamespaceName, Type: config.MachineConfigType, Id: config.ActiveID,
			Version: "1", Phase: "running"},
		Spec: &cosi.Spec{ProtoSpec: encodedMessage(f, &configapi.MachineConfigSpec{YamlMarshalled: []byte(
			"machine: {type: controlplane, token: " + secretOfFuzz + ", kubelet: {registerWithFQDN: true}}")})},
	}})

	name := k8s.NewNodename(k8s.NamespaceName, k8s.NodenameID)
	name.TypedSpec().Nodename = "cp-1"

	host := network.NewHostnameStatus(network.NamespaceName, network.HostnameID)
	host.TypedSpec().Hostname = "cp-1"

	pod := k8s.NewStaticPod(k8s.NamespaceName, "kube-apiserver")
	pod.TypedSpec().Pod = map[string]any{"metadata": map[string]any{"name": "kube-apiserver", "annotations": nil}}

	extension := runtime.NewExtensionStatus(runtime.NamespaceName, "a")
	extension.TypedSpec().Metadata.Name = schematicName

	version := encodedMessage(f, &machineapi.VersionResponse{Messages: []*machineapi.Version{{
		Version: &machineapi.VersionInfo{Tag: "v1.13.0"}, Platform: &machineapi.PlatformInfo{Name: "metal"}}}})
	services := encodedMessage(f, &machineapi.ServiceListResponse{Messages: []*machineapi.ServiceList{{
		Services: []*machineapi.ServiceInfo{{Id: "etcd", State: "Failed", Events: &machineapi.ServiceEvents{
			Events: []*machineapi.ServiceEvent{{Msg: "no", State: "Failed"}}}}}}}})

	meta := runtime.NewMetaKey(runtime.NamespaceName, runtime.MetaKeyTagToID(metakey.Network))
	meta.TypedSpec().Value = "x"

	event := encodedMessage(f, &machineapi.Event{Id: "1", Data: &anypb.Any{
		TypeUrl: "talos/runtime/machine.ServiceStateEvent", Value: encodedMessage(f, &machineapi.ServiceStateEvent{Service: "etcd"})}})

	f.Add(true, sent(f, stage), sent(f, other), configuration, sent(f, name), []byte{}, services)
	f.Add(true, sent(f, stage), sent(f, other), configuration, sent(f, name), sent(f, meta), event)
	f.Add(true, sent(f, stage), sent(f, other), configuration, sent(f, name), sent(f, block.NewDisk(block.NamespaceName, "sda")),
		encodedMessage(f, &machineapi.EtcdMemberListResponse{Messages: []*machineapi.EtcdMembers{{Members: []*machineapi.EtcdMember{{Id: 1}}}}}))
	f.Add(false, sent(f, stage), sent(f, system), []byte{}, []byte{}, []byte{}, version)
	f.Add(true, sent(f, booting), sent(f, other), configuration, sent(f, name), sent(f, extension), services)
	f.Add(true, sent(f, booting), sent(f, other), configuration, sent(f, host), sent(f, pod), version)
	f.Add(true, sent(f, stage), sent(f, stage), sent(f, stage), sent(f, system), sent(f, name), []byte{10, 0})
	f.Add(false, []byte{10, 0}, []byte{10, 2, 10, 0}, []byte{10, 0}, []byte{10, 0}, []byte{10, 0}, []byte{10, 0})
}

func FuzzObserve(f *testing.F) {
	seedsOfObserve(f)

	fleet, err := NewFleet(Options{Restores: true})
	if err != nil {
		f.Fatal(err)
	}

	idle, err := newSession(route{address: "10.0.0.1"}, &wire{}, peer{})
	if err != nil {
		f.Fatal(err)
	}

	f.Cleanup(func() { _ = idle.conn.Close() })

	f.Fuzz(func(t *testing.T, member bool, stage, system, configuration, read, listed, called []byte) {
		if len(stage)+len(system)+len(configuration)+len(read)+len(listed)+len(called) > largestFuzzed {
			return
		}

		answers := answering(func(method string, request any) []byte {
			kind, ok := request.(*cosi.GetRequest)

			switch {
			case ok && kind.GetType() == runtime.MachineStatusType:
				return stage
			case ok && kind.GetType() == hardware.SystemInformationType:
				return system
			case ok && kind.GetType() == config.MachineConfigType:
				return configuration
			case ok:
				return read
			case strings.HasPrefix(method, "/cosi."):
				return listed
			default:
				return called
			}
		})

		access := step.Maintenance
		if member {
			access = step.Member
		}

		m := &Machine{fleet: fleet, name: "cp-1", address: "10.0.0.1",
			wanted: cluster.Machine{Meta: map[uint8]string{metakey.Network: "x"}}}
		s := sessionOf(idle, answers, access)

		out, err := m.observe(t.Context(), s)
		checkObserved(t, out, err, access, strings.Contains(string(stage)+string(system)+string(read)+string(listed)+
			string(called), secretOfFuzz))

		asked(t.Context(), m, s)
	})
}

// checkObserved checks what is decided by: the identity and the stage of a machine.
func checkObserved(t *testing.T, out step.MachineState, err error, access step.Access, mayQuote bool) {
	t.Helper()

	if err != nil {
		if strings.Contains(err.Error(), secretOfFuzz) && !mayQuote {
			t.Errorf("the error quotes the configuration: %v", err)
		}

		return
	}

	if out.Access != access || out.UUID != usableUUID(out.UUID) {
		t.Errorf("it is %s with the UUID %q", out.Access, out.UUID)
	}

	if access == step.Maintenance && (out.Stage != step.StageMaintenance || out.Role != "" || out.BootID != "") {
		t.Errorf("in maintenance mode it is %+v", out)
	}
}

// asked makes all other calls to a machine; the test only expects that they return.
func asked(ctx context.Context, m *Machine, s *session) {
	_ = s.inspect(ctx, &Info{})

	out := step.MachineState{Role: step.ControlPlane, EtcdService: step.ServiceFailed}
	_ = m.observeNodeName(ctx, s, &machineSection{}, &out)
	_ = m.observeStaticPods(ctx, s, &out)
	_ = m.observeEtcd(ctx, s, &out)
	_ = m.observeEtcdFailure(ctx, s, &out)

	_, _ = m.etcdView(ctx, s)
	_, _ = s.memberName(ctx)
	_, _ = s.nextConfig(ctx)
	_, _ = s.meta(ctx)
	_, _ = s.disks(ctx)
	_, _ = s.startedAt(ctx)
	_, _ = s.readBootID(ctx)
	_, _ = s.bootstrapRequested(ctx)
	_, _ = s.renderedManifests(ctx)
	_, _ = s.extraManifests(ctx)
	_, _ = s.manifests(ctx)
}
