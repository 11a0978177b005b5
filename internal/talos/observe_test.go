package talos_test

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	machinetype "github.com/siderolabs/talos/pkg/machinery/config/machine"
	"github.com/siderolabs/talos/pkg/machinery/resources/block"
	"google.golang.org/grpc/codes"

	"github.com/talosop/terraform-provider-talosop/internal/cluster"
	"github.com/talosop/terraform-provider-talosop/internal/cluster/step"
	"github.com/talosop/terraform-provider-talosop/internal/kubenames"
	"github.com/talosop/terraform-provider-talosop/internal/machineconfig"
	"github.com/talosop/terraform-provider-talosop/internal/sim"
	"github.com/talosop/terraform-provider-talosop/internal/sim/fault"
	"github.com/talosop/terraform-provider-talosop/internal/sim/machined"
	"github.com/talosop/terraform-provider-talosop/internal/talos"
	"github.com/talosop/terraform-provider-talosop/internal/wipe"
)

func TestObserve_maintenance(t *testing.T) {
	t.Parallel()

	tests := map[string]struct {
		options sim.MachineOptions
		version string
		uuid    bool
	}{
		"1.13":      {options: sim.MachineOptions{TalosVersion: "v1.13.0"}, version: "v1.13.0", uuid: true},
		"1.12":      {options: sim.MachineOptions{TalosVersion: "v1.12.6"}, uuid: true},
		"container": {options: sim.MachineOptions{Platform: machined.Container}, version: sim.DefaultTalosVersion},
		"no usable uuid": {options: sim.MachineOptions{UUID: "03000200-0400-0500-0006-000700080009"},
			version: sim.DefaultTalosVersion},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()

			simulator := site(t, sim.Options{})
			m := add(t, simulator, test.options)

			got := newOwner(t, simulator).fleet(t, nil).Machine(wanted(m)).Observe(t.Context())
			if got.Access != step.Maintenance || got.Stage != step.StageMaintenance || got.TalosVersion != test.version {
				t.Errorf("state %+v", got)
			}

			if want := map[bool]string{true: m.UUID()}[test.uuid]; got.UUID != want {
				t.Errorf("uuid %q, want %q", got.UUID, want)
			}

			if n := len(simulator.Calls()); n > 3 {
				t.Errorf("%d calls, want 3 at most", n)
			}
		})
	}
}

func TestObserve_followsAMachine(t *testing.T) {
	t.Parallel()

	simulator := site(t, sim.Options{})
	o := newOwner(t, simulator)
	m := add(t, simulator, sim.MachineOptions{Hostname: "cp-one", Schematic: "376567988ad3"})
	api := o.fleet(t, nil).Machine(wanted(m))
	configuration := o.config(t, machinetype.TypeControlPlane)

	must(t, api.ApplyConfig(t.Context(), configuration, step.Maintenance, m.UUID()))

	waiting := observed(t, api, "waited for its bootstrap", waitsForBootstrap)
	if waiting.Stage != step.StageBooting || waiting.Ready || len(waiting.Unmet) == 0 || waiting.BootstrapRequested {
		t.Errorf("before bootstrap: %+v", waiting)
	}

	must(t, api.Bootstrap(t.Context()))

	got := observed(t, api, "became ready", settled)

	digest, err := machineconfig.Digest(configuration)
	must(t, err)

	want := step.MachineState{
		Access: step.Member, Stage: step.StageRunning, Ready: true, UUID: m.UUID(), TalosVersion: "v1.13.0",
		Schematic: "376567988ad3", Platform: "metal", Role: step.ControlPlane, NodeName: "cp-one", ConfigDigest: digest,
	}
	if got.ConfigDigest != want.ConfigDigest || got.NodeName != want.NodeName || got.Role != want.Role ||
		got.UUID != want.UUID ||
		got.TalosVersion != want.TalosVersion || got.Schematic != want.Schematic || got.Platform != want.Platform {
		t.Errorf("got  %+v\nwant %+v", got, want)
	}

	members, err := api.EtcdMembers(t.Context())
	if err != nil || len(members) != 1 || members[0].Name != "cp-one" || members[0].Learner || len(members[0].ID) != 16 {
		t.Errorf("members %+v, error %v", members, err)
	}

	// A new process observes the machine that is at rest with seven calls, and then with four, because the boot of a
	// connection stays the same, and with it the version and the extensions.
	again := o.fleet(t, nil).Machine(wanted(m))

	for _, most := range []int{7, 4} {
		simulator.ForgetCalls()

		state := again.Observe(t.Context())
		if state.NodeName != want.NodeName || state.ConfigDigest != digest || state.BootID != m.BootID() || !settled(state) {
			t.Errorf("observed again: %+v", state)
		}

		if calls := simulator.Calls(); len(calls) != most {
			t.Errorf("%d calls, want %d: %v", len(calls), most, calls)
		}
	}

	// A read that only reports takes four.
	simulator.ForgetCalls()

	recorded := wanted(m)
	recorded.NodeName = want.NodeName

	state := o.fleet(t, func(o *talos.Options) { o.TrustNodeNames = true }).Machine(recorded).Observe(t.Context())
	if calls := simulator.Calls(); len(calls) != 4 || !settled(state) || state.UUID != want.UUID || state.BootID != "" {
		t.Errorf("%d calls, want 4: %v; %+v", len(calls), calls, state)
	}

	// Whether its firmware verifies what it starts is one more, for whom it matters.
	m.SetSecureBoot(true)
	must(t, api.Reboot(t.Context(), m.UUID()))
	observed(t, api, "became ready again", func(s step.MachineState) bool { return settled(s) && s.BootID != got.BootID })

	firmware := o.fleet(t, func(o *talos.Options) { o.SecureBoot = true }).Machine(recorded).Observe(t.Context())
	if firmware.SecureBoot == nil || !*firmware.SecureBoot || state.SecureBoot != nil {
		t.Errorf("Secure Boot is %v, and %v without a request", firmware.SecureBoot, state.SecureBoot)
	}
}

// The images are read from the active configuration, without an extra call.
func TestObserve_images(t *testing.T) {
	t.Parallel()

	simulator := site(t, sim.Options{})
	o := newOwner(t, simulator)
	m, api, config := waiting(t, simulator, o, o.fleet(t, nil))

	if got := api.Observe(t.Context()); got.Images != nil {
		t.Errorf("images %v, without a request", got.Images)
	}

	images := func(read func([]byte) (kubenames.Images, error)) *talos.Machine {
		return o.fleet(t, func(o *talos.Options) { o.Digest, o.Images = nil, read }).Machine(wanted(m))
	}

	simulator.ForgetCalls()

	got := images(func(active []byte) (kubenames.Images, error) {
		return kubenames.Images{kubenames.Kubelet: string(active)}, nil
	}).Observe(t.Context())
	if got.Images[kubenames.Kubelet] != string(config) {
		t.Errorf("images %v", got.Images)
	}

	reads := 0

	for _, call := range simulator.Calls() {
		if strings.HasPrefix(call.Detail, "MachineConfigs") {
			reads++
		}
	}

	if reads != 1 {
		t.Errorf("%d reads of the configuration, want 1", reads)
	}

	got = images(func([]byte) (kubenames.Images, error) { return nil, errors.New("a document of the future") }).Observe(
		t.Context())
	if got.Access != step.Unreachable ||
		!strings.Contains(got.Cause, "images of Kubernetes in the machine configuration: a document of the future") {
		t.Errorf("images thatcannot read : %+v", got)
	}
}

func TestObserve_worker(t *testing.T) {
	t.Parallel()

	simulator := site(t, sim.Options{})
	o := newOwner(t, simulator)
	f := o.fleet(t, nil)
	_, worker := member(t, simulator, o, f, machinetype.TypeWorker)

	// Without a control plane a worker gets no certificate and its API is closed.
	closed := observed(t, worker, "closed its API",
		func(s step.MachineState) bool { return s.Access == step.Unreachable })
	if closed.Cause == "" || closed.Stage != "" {
		t.Errorf("state %+v, want a cause and nothing else", closed)
	}

	_, first := member(t, simulator, o, f, machinetype.TypeControlPlane)
	observed(t, first, "waited for its bootstrap", waitsForBootstrap)

	joined := observed(t, worker, "joined", func(s step.MachineState) bool { return s.Access == step.Member })
	if joined.Role != step.Worker || joined.EtcdService != "" || joined.BootstrapRequested {
		t.Errorf("state %+v", joined)
	}

	if _, err := worker.EtcdMembers(t.Context()); !errors.Is(err, talos.ErrUnsupported) {
		t.Errorf("etcd members of a worker: %v", err)
	}
}

func TestObserve_foreign(t *testing.T) {
	t.Parallel()

	simulator := site(t, sim.Options{})
	theirs, ours := ownerOf(t, simulator, theirSecrets), newOwner(t, simulator)
	m, api := member(t, simulator, theirs, theirs.fleet(t, nil), machinetype.TypeControlPlane)
	observed(t, api, "joined the other cluster", waitsForBootstrap)
	simulator.ForgetCalls()

	foreign := ours.fleet(t, nil).Machine(wanted(m))
	if got := foreign.Observe(t.Context()); got.Access != step.Foreign ||
		!strings.Contains(got.Cause, "not signed by the Talos CA of this cluster") {
		t.Errorf("state %+v", got)
	}

	configuration := ours.config(t, machinetype.TypeControlPlane)
	for what, err := range map[string]error{
		"apply as to a new machine": foreign.ApplyConfig(t.Context(), configuration, step.Maintenance, ""),
		"apply as to a member":      foreign.ApplyConfig(t.Context(), configuration, step.Member, ""),
		"bootstrap":                 foreign.Bootstrap(t.Context()),
		"reset":                     foreign.Reset(t.Context(), false, wipe.Reset{}),
	} {
		if !errors.Is(err, talos.ErrForeign) {
			t.Errorf("%s: %v, want a foreign machine", what, err)
		}
	}

	info, err := talos.Inspect(t.Context(), m.Address().String(), "", talos.Options{Timeouts: patiently})
	if !errors.Is(err, talos.ErrForeign) || info.Access != step.Foreign || info.Hostname == "" ||
		info.Fingerprint == "" {
		t.Errorf("inspect without credentials: %+v %v", info, err)
	}

	if calls := simulator.Calls(); len(calls) != 0 {
		t.Errorf("a machine of another cluster was sent %v", calls)
	}
}

func TestFingerprint_mustMatch(t *testing.T) {
	t.Parallel()

	simulator := site(t, sim.Options{})
	o := newOwner(t, simulator)
	m := add(t, simulator, sim.MachineOptions{})
	configuration := o.config(t, machinetype.TypeWorker)

	info, err := talos.Inspect(t.Context(), m.Address().String(), "", talos.Options{Timeouts: patiently})
	must(t, err)
	simulator.ForgetCalls()

	pinned := wanted(m)
	pinned.Fingerprint = "bm90IHRoaXMgb25l"

	wrong := o.fleet(t, nil).Machine(pinned)
	if got := wrong.Observe(t.Context()); got.Access != step.Foreign || !strings.Contains(got.Cause, info.Fingerprint) {
		t.Errorf("state %+v, want the fingerprint that was shown", got)
	}

	if err := wrong.ApplyConfig(t.Context(), configuration, step.Maintenance, ""); !errors.Is(err, talos.ErrForeign) {
		t.Errorf("apply: %v", err)
	}

	if calls := simulator.Calls(); len(calls) != 0 {
		t.Errorf("a machine with another fingerprint was sent %v", calls)
	}

	pinned.Fingerprint = info.Fingerprint
	right := o.fleet(t, nil).Machine(pinned)
	must(t, right.ApplyConfig(t.Context(), configuration, step.Maintenance, ""))
}

func TestObserve_afterReboot(t *testing.T) {
	t.Parallel()

	simulator := site(t, sim.Options{})
	o := newOwner(t, simulator)
	m, api := member(t, simulator, o, o.fleet(t, nil), machinetype.TypeControlPlane)
	observed(t, api, "waited for its bootstrap", waitsForBootstrap)

	for range 3 {
		m.PowerOff()

		if got := api.Observe(t.Context()); got.Access != step.Unreachable ||
			!strings.Contains(got.Cause, "connection refused") {
			t.Errorf("switched off: %+v", got)
		}

		m.PowerOn()
		observed(t, api, "came back", waitsForBootstrap)
	}
}

func TestObserve_unavailable(t *testing.T) {
	t.Parallel()

	simulator := site(t, sim.Options{})
	o := newOwner(t, simulator)
	m, api := member(t, simulator, o, o.fleet(t, nil), machinetype.TypeControlPlane)
	observed(t, api, "waited for its bootstrap", waitsForBootstrap)

	for name, fault := range map[string]fault.Fault{
		"unavailable": {Code: codes.Unavailable, Message: "machined is restarting", Count: -1},
		"cut off":     {Cut: true, Count: -1},
	} {
		m.SetFault(fault)

		if got := api.Observe(t.Context()); got.Access != step.Unreachable || got.Cause == "" ||
			fault.Message != "" && !strings.Contains(got.Cause, fault.Message) {
			t.Errorf("%s: %+v", name, got)
		}

		m.ClearFaults()

		if got := api.Observe(t.Context()); got.Access != step.Member {
			t.Errorf("after %s: %+v", name, got)
		}
	}

	// One call that fails is made good by a second attempt on another connection.
	m.SetFault(fault.Fault{Method: "Get", Cut: true})

	if got := api.Observe(t.Context()); got.Access != step.Member {
		t.Errorf("after one lost call: %+v", got)
	}
}

// The certificate of a machine is known as long as it answers, and is why it does not once it has ended.
func TestObserve_certificate(t *testing.T) {
	t.Parallel()

	simulator := site(t, sim.Options{})
	o := newOwner(t, simulator)
	m, api := member(t, simulator, o, o.fleet(t, nil), machinetype.TypeControlPlane)

	got := observed(t, api, "waited for its bootstrap", waitsForBootstrap)
	if got.Certificate.NotAfter.Before(time.Now()) || !got.Certificate.NotBefore.Before(time.Now()) {
		t.Errorf("the certificate is %+v", got.Certificate)
	}

	if err := m.ExpireCertificate(); err != nil {
		t.Fatal(err)
	}

	// An existing connection continues.
	if got := api.Observe(t.Context()); got.Access != step.Member {
		t.Errorf("on a connection that was there: %+v", got)
	}

	ended := o.fleet(t, nil).Machine(cluster.Machine{Name: "later", Wanted: cluster.Wanted{Address: m.Address().String()}})

	got = ended.Observe(t.Context())
	if got.Access != step.Unreachable || !got.Certificate.Known() || got.Certificate.NotAfter.After(time.Now()) ||
		!strings.HasPrefix(got.Cause, "its certificate expired at "+got.Certificate.NotAfter.Format(time.RFC3339)) {
		t.Errorf("with a certificate that has ended: %+v", got)
	}

	if err := m.RenewCertificate(); err != nil {
		t.Fatal(err)
	}

	if got := ended.Observe(t.Context()); got.Access != step.Member || got.Certificate.NotAfter.Before(time.Now()) {
		t.Errorf("with a new certificate: %+v", got)
	}
}

func TestObserve_isBoundedAndCanceled(t *testing.T) {
	t.Parallel()

	simulator := site(t, sim.Options{})
	o := newOwner(t, simulator)
	m := add(t, simulator, sim.MachineOptions{})
	m.SetFault(fault.Fault{Method: "Version", Latency: time.Hour, Count: -1})

	slow := o.fleet(t, func(o *talos.Options) {
		o.Timeouts.Call, o.Timeouts.Observe = 200*time.Millisecond, 300*time.Millisecond
	})
	if got := slow.Machine(wanted(m)).Observe(t.Context()); got.Access != step.Unreachable ||
		!strings.Contains(got.Cause, "response") {
		t.Errorf("with a call that hangs: %+v", got)
	}

	ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
	defer cancel()

	endless := o.fleet(t, func(o *talos.Options) { o.Timeouts.Call, o.Timeouts.Observe = time.Hour, time.Hour })
	if got := endless.Machine(wanted(m)).Observe(ctx); got.Access != step.Unreachable {
		t.Errorf("canceled: %+v", got)
	}
}

func TestInspect_maintenanceAndMember(t *testing.T) {
	t.Parallel()

	simulator := site(t, sim.Options{})
	o := newOwner(t, simulator)
	m := add(t, simulator, sim.MachineOptions{
		Hostname: "rack-7", Schematic: "376567988ad3",
		Disks: []machined.Disk{{Path: "/dev/nvme0n1", Size: 64 << 30, Model: "FAST", Serial: "S1", Transport: "nvme"}},
	})

	check := func(info talos.Info, access step.Access) {
		t.Helper()

		role := map[step.Access]step.Role{step.Member: step.ControlPlane}[access]
		if info.Access != access || info.Role != role || info.UUID != m.UUID() || info.Hostname != "rack-7" || info.Schematic != "376567988ad3" ||
			info.TalosVersion != "v1.13.0" || info.Platform != "metal" || info.Fingerprint == "" {
			t.Errorf("info %+v", info)
		}

		if len(info.Disks) != 1 || info.Disks[0].Path != "/dev/nvme0n1" || info.Disks[0].Size != 64<<30 ||
			info.Disks[0].Transport != "nvme" {
			t.Errorf("disks %+v", info.Disks)
		}

		if len(info.Addresses) != 1 || info.Addresses[0] != m.Address().String() {
			t.Errorf("addresses %v, want %s", info.Addresses, m.Address())
		}
	}

	info, err := talos.Inspect(t.Context(), m.Address().String(), "", talos.Options{Timeouts: patiently})
	must(t, err)
	check(info, step.Maintenance)

	api := o.fleet(t, nil).Machine(wanted(m))
	must(t, api.ApplyConfig(t.Context(),
		replaced(t, o.config(t, machinetype.TypeControlPlane), "/dev/sda", "/dev/nvme0n1"), step.Maintenance, ""))
	observed(t, api, "waited for its bootstrap", waitsForBootstrap)

	info, err = talos.Inspect(t.Context(), m.Address().String(),
		"", talos.Options{Credentials: o.credentials(t), Timeouts: patiently})
	must(t, err)
	check(info, step.Member)

	m.PowerOff()

	if _, err := talos.Inspect(t.Context(), m.Address().String(), "", talos.Options{Timeouts: patiently}); !errors.Is(err,
		talos.ErrUnreachable) {
		t.Errorf("switched off: %v", err)
	}
}

// What the wanted configuration finds of the disks is asked while Talos is on none of them, as long as the machine waits.
func TestObserve_disks(t *testing.T) {
	t.Parallel()

	simulator := site(t, sim.Options{})
	o := newOwner(t, simulator)
	m := add(t, simulator, sim.MachineOptions{})

	var seen []string

	api := o.fleet(t, func(options *talos.Options) {
		options.DiskProblem = func(machine string, disks []*block.Disk) (string, error) {
			for _, disk := range disks {
				seen = append(seen, machine+" "+disk.TypedSpec().DevPath)
			}

			return "it is too small", nil
		}
	}).Machine(wanted(m))

	if got := api.Observe(t.Context()).DiskProblem; got != "it is too small" ||
		!slices.Equal(seen, []string{m.Name() + " /dev/sda"}) {
		t.Errorf("it says %q of %q", got, seen)
	}

	// A reset leaves Talos on its disk.
	must(t, api.ApplyConfig(t.Context(), o.config(t, machinetype.TypeControlPlane), step.Maintenance, m.UUID()))
	observed(t, api, "waited for its bootstrap", waitsForBootstrap)
	must(t, api.Reset(t.Context(), false, wipe.Reset{}))

	again := observed(t, api, "waited again", func(s step.MachineState) bool { return s.Access == step.Maintenance })
	if again.DiskProblem != "" {
		t.Errorf("with Talos on its disk it says %q", again.DiskProblem)
	}
}
