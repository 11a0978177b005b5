package sim_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/siderolabs/talos/pkg/machinery/api/common"
	"github.com/siderolabs/talos/pkg/machinery/api/machine"
	"github.com/siderolabs/talos/pkg/machinery/client"
	machinetype "github.com/siderolabs/talos/pkg/machinery/config/machine"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/talosop/terraform-provider-talosop/internal/backup"
	filestore "github.com/talosop/terraform-provider-talosop/internal/backup/file"
	"github.com/talosop/terraform-provider-talosop/internal/sim"
	"github.com/talosop/terraform-provider-talosop/internal/sim/fault"
)

// tookSnapshot is a snapshot of the machine's etcd.
func tookSnapshot(t *testing.T, talos *client.Client) []byte {
	t.Helper()

	stream, err := talos.MachineClient.EtcdSnapshot(within(t, time.Minute), &machine.EtcdSnapshotRequest{})
	check(t, err)

	data, err := readAll(stream)
	check(t, err)

	return data
}

func readAll(stream machine.MachineService_EtcdSnapshotClient) ([]byte, error) {
	var data []byte

	for {
		part, err := stream.Recv()
		if errors.Is(err, io.EOF) {
			return data, nil
		}

		if err != nil {
			return data, err
		}

		data = append(data, part.GetBytes()...)
	}
}

// upload is EtcdRecover with a snapshot in pieces of 32 KiB.
func upload(ctx context.Context, talos *client.Client, snapshot []byte) error {
	stream, err := talos.MachineClient.EtcdRecover(ctx)
	if err != nil {
		return err
	}

	for part := range slices.Chunk(snapshot, 32<<10) {
		if stream.Send(&common.Data{Bytes: part}) != nil {
			break // CloseAndRecv knows why
		}
	}

	_, err = stream.CloseAndRecv()

	return err
}

// recover uploads a snapshot and bootstraps from it, as soon as the machine is far enough.
func (c *testCluster) recover(m *sim.Machine, snapshot []byte) {
	c.t.Helper()

	eventually(c.t, "upload", func(ctx context.Context) error { return upload(ctx, c.secure(m), snapshot) })
	eventually(c.t, "bootstrap from the snapshot", func(ctx context.Context) error {
		return c.secure(m).Bootstrap(ctx, &machine.BootstrapRequest{RecoverEtcd: true})
	})
}

// awaitEtcd waits for a state of the service and a text in what Talos says of it.
func (c *testCluster) awaitEtcd(m *sim.Machine, state, text string) {
	c.t.Helper()

	eventually(c.t, fmt.Sprintf("etcd %s with %q", state, text), func(ctx context.Context) error {
		services, err := c.secure(m).ServiceInfo(ctx, "etcd")
		if err != nil {
			return err
		}

		if len(services) == 0 {
			return errors.New("there is no etcd")
		}

		etcd := services[0].Service
		events := etcd.GetEvents().GetEvents()

		if message := events[len(events)-1].GetMsg(); etcd.GetState() != state || !strings.Contains(message, text) {
			return fmt.Errorf("etcd is %s: %s", etcd.GetState(), message)
		}

		return nil
	})
}

// blank wipes a control plane and configures it again; its etcd waits then.
func (c *testCluster) blank(m *sim.Machine) {
	c.t.Helper()
	m.Wipe()
	m.PowerOn()
	check(c.t, m.AwaitStage(within(c.t, time.Minute), sim.StageMaintenance))
	c.apply(m, machinetype.TypeControlPlane)
	c.awaitEtcd(m, "Preparing", "")
}

// begin bootstraps a machine and waits for its etcd only.
func (c *testCluster) begin(m *sim.Machine) {
	c.t.Helper()
	c.apply(m, machinetype.TypeControlPlane)
	c.bootstrap(m)
	c.awaitEtcd(m, "Running", "Health check successful")
}

func manyKeys(n int) map[string]string {
	values := map[string]string{}
	for i := range n {
		values[fmt.Sprintf("/test/%04d", i)] = strings.Repeat(fmt.Sprint(i), 20)
	}

	return values
}

// bothEtcds runs a test with the stand-in and with the real thing, which a test of objects needs with real API servers.
func bothEtcds(t *testing.T, onlyEtcd bool, test func(t *testing.T, opts sim.Options)) {
	t.Helper()
	t.Run("stand-in", func(t *testing.T) { test(t, sim.Options{}) })
	t.Run("real", func(t *testing.T) {
		t.Parallel()
		test(t, sim.Options{Assets: filepath.Dir(asset(t, "etcdutl")), OnlyEtcd: onlyEtcd})
	})
}

func TestRecover_keepsKeysAndObjects(t *testing.T) {
	t.Parallel()
	bothEtcds(t, false, func(t *testing.T, opts sim.Options) {
		simulator := sim.ForTest(t, opts)
		cps := addMachines(t, simulator, "cp", 2)
		cluster := newTestCluster(t, simulator)
		cluster.create(cps[:1], nil)

		keys := manyKeys(300)
		check(t, cps[0].PutEtcdKeys(t.Context(), keys))

		note := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "note"}, Data: map[string]string{"a": "b"}}
		check(t, second(cluster.kubernetes(cps[0]).CoreV1().ConfigMaps("default").Create(t.Context(), note,
			metav1.CreateOptions{})))

		before := memberIDs(t, cluster.secure(cps[0]))[cps[0].Address().String()]
		snapshot := tookSnapshot(t, cluster.secure(cps[0]))

		cluster.blank(cps[0])
		cluster.recover(cps[0], snapshot)
		check(t, cps[0].AwaitReady(within(t, time.Minute)))

		// The other machines join the restored cluster.
		cluster.apply(cps[1], machinetype.TypeControlPlane)
		check(t, cps[1].AwaitReady(within(t, time.Minute)))

		for _, m := range cps {
			got, err := m.EtcdKeys(t.Context(), "/test/")
			check(t, err)

			if !maps.Equal(got, keys) {
				t.Errorf("%s has %d keys, want the %d that were backed up", m.Name(), len(got), len(keys))
			}
		}

		restored, err := cluster.kubernetes(cps[0]).CoreV1().ConfigMaps("default").Get(t.Context(), "note",
			metav1.GetOptions{})
		if err != nil || !maps.Equal(restored.Data, note.Data) {
			t.Errorf("the object is %v (%v)", restored, err)
		}

		if after := memberIDs(t, cluster.secure(cps[0]))[cps[0].Address().String()]; after == before ||
			simulator.EtcdClusters() != 1 {
			t.Errorf("member %x before and %x after, %d clusters", before, after, simulator.EtcdClusters())
		}

		if calls := simulator.CallsTo("Bootstrap"); calls[len(calls)-1].Detail != "recover" {
			t.Errorf("the last bootstrap is %q", calls[len(calls)-1])
		}

		// The file is gone: a second recovery has nothing to begin with.
		cluster.blank(cps[0])
		check(t, cluster.secure(cps[0]).Bootstrap(t.Context(), &machine.BootstrapRequest{RecoverEtcd: true}))
		cluster.awaitEtcd(cps[0], "Failed",
			"Failed to run pre stage: error verifying snapshot: stat /var/lib/etcd.snapshot: no such file or directory")
	})
}

// TestSnapshot_agreesWithEtcdutl: a backup reports the same about a snapshot as etcd's own tool, for real members
// and for the stand-in.
func TestSnapshot_agreesWithEtcdutl(t *testing.T) {
	t.Parallel()

	etcdutl := asset(t, "etcdutl")

	bothEtcds(t, true, func(t *testing.T, opts sim.Options) {
		simulator := sim.ForTest(t, opts)
		m := addMachines(t, simulator, "cp", 1)[0]
		cluster := newTestCluster(t, simulator)
		cluster.begin(m)
		check(t, m.PutEtcdKeys(t.Context(), manyKeys(1000)))

		snapshot := tookSnapshot(t, cluster.secure(m))
		file := filepath.Join(t.TempDir(), "snapshot")
		check(t, os.WriteFile(file, snapshot, 0o600))

		output, err := exec.CommandContext(t.Context(), etcdutl, "snapshot", "status", file, "--write-out=json").Output()
		check(t, err)

		var status struct {
			Hash      uint32
			Revision  int64
			TotalKey  int
			TotalSize int64
			Version   string
		}

		check(t, json.Unmarshal(output, &status))

		archive := backup.Archive{Store: filestore.Store{Path: t.TempDir()}, Cluster: "prod", Mark: "0123456789abcdef"}
		record, err := archive.Take(t.Context(), backup.Request{At: time.Now(),
			Source: func(_ context.Context, to io.Writer) error {
				_, err := to.Write(snapshot)

				return err
			}})
		check(t, err)

		want := backup.Database{Revision: status.Revision, Hash: status.Hash, Size: status.TotalSize, Version: status.Version}
		if record.Database != want || status.TotalKey < 1000 {
			t.Errorf("a backup reports %+v, etcdutl %+v", record.Database, status)
		}
	})
}

// TestRecover_brokenSnapshotFailsAfterTheAnswer: Talos answers a Bootstrap before it looks at the
// snapshot. What it says then are etcd's own words, and what it leaves is etcd's as well.
func TestRecover_brokenSnapshotFailsAfterTheAnswer(t *testing.T) {
	t.Parallel()
	bothEtcds(t, true, func(t *testing.T, opts sim.Options) {
		simulator := sim.ForTest(t, opts)
		m := addMachines(t, simulator, "cp", 1)[0]
		cluster := newTestCluster(t, simulator)
		cluster.begin(m)
		check(t, m.PutEtcdKeys(t.Context(), manyKeys(300)))
		whole := tookSnapshot(t, cluster.secure(m))

		wrongSum := slices.Clone(whole)
		wrongSum[len(wrongSum)-1] ^= 1

		for name, test := range map[string]struct {
			snapshot []byte
			want     string
			data     bool // the data directory is not empty any more
		}{
			"wrong sum": {wrongSum, "error recovering from the snapshot: expected sha256 [", true},
			"no sum": {whole[:len(whole)-32],
				"error recovering from the snapshot: snapshot missing hash but --skip-hash-check=false", true},
			"no database": {[]byte(strings.Repeat("no database ", 10000)), "error verifying snapshot: invalid database", false},
		} {
			cluster.blank(m)
			cluster.recover(m, test.snapshot)
			cluster.awaitEtcd(m, "Failed", "Failed to run pre stage: "+test.want)

			err := cluster.secure(m).Bootstrap(t.Context(), &machine.BootstrapRequest{RecoverEtcd: true})
			if (status.Code(err) == codes.AlreadyExists) != test.data {
				t.Errorf("%s: bootstrap after the failed one: %v", name, err)
			}
		}

		// Nothing but a wipe helps a machine with such data: not a reboot either.
		cluster.blank(m)
		cluster.recover(m, wrongSum)
		cluster.awaitEtcd(m, "Failed", "expected sha256")
		m.PowerOff()
		m.PowerOn()
		eventually(t, "an etcd that runs and does not serve", func(ctx context.Context) error {
			services, err := cluster.secure(m).ServiceInfo(ctx, "etcd")
			if err == nil && (len(services) == 0 || services[0].Service.GetState() != "Running" ||
				services[0].Service.GetHealth().GetHealthy()) {
				err = fmt.Errorf("etcd is %v", services)
			}

			return err
		})

		// A copy of the database itself has no sum, and the client says that it knows.
		cluster.blank(m)
		check(t, upload(t.Context(), cluster.secure(m), whole[:len(whole)-32]))
		check(t, cluster.secure(m).Bootstrap(t.Context(),
			&machine.BootstrapRequest{RecoverEtcd: true, RecoverSkipHashCheck: true}))
		cluster.awaitEtcd(m, "Running", "Health check successful")

		if keys, err := m.EtcdKeys(t.Context(), "/test/"); err != nil || len(keys) != 300 {
			t.Errorf("%d keys, %v", len(keys), err)
		}
	})
}

// Half a snapshot takes the machine down: what Talos looks at it with does not survive
// pages that are missing.
func TestRecover_halfASnapshotTakesTheMachineDown(t *testing.T) {
	t.Parallel()
	bothEtcds(t, true, func(t *testing.T, opts sim.Options) {
		simulator := sim.ForTest(t, opts)
		m := addMachines(t, simulator, "cp", 1)[0]
		cluster := newTestCluster(t, simulator)
		cluster.begin(m)
		check(t, m.PutEtcdKeys(t.Context(), manyKeys(2000)))
		whole := tookSnapshot(t, cluster.secure(m))

		cluster.blank(m)
		check(t, upload(t.Context(), cluster.secure(m), whole[:len(whole)/2]))

		// The answer may get lost on the way down.
		err := cluster.secure(m).Bootstrap(t.Context(), &machine.BootstrapRequest{RecoverEtcd: true})
		if code := status.Code(err); code != codes.OK && code != codes.Unavailable {
			t.Errorf("bootstrap: %v", err)
		}

		check(t, m.AwaitStage(within(t, time.Minute), sim.StageUnknown))

		m.PowerOn()
		cluster.awaitEtcd(m, "Preparing", "")
		cluster.recover(m, whole)
		cluster.awaitEtcd(m, "Running", "Health check successful")
	})
}

func TestRecover_snapshotFileIsOnEphemeral(t *testing.T) {
	t.Parallel()

	simulator := sim.ForTest(t, sim.Options{})
	m := addMachines(t, simulator, "cp", 1)[0]
	cluster := newTestCluster(t, simulator)
	cluster.create([]*sim.Machine{m}, nil)
	check(t, m.PutEtcdKeys(t.Context(), manyKeys(10)))
	snapshot := tookSnapshot(t, cluster.secure(m))

	// It outlives a reboot.
	cluster.blank(m)
	check(t, upload(t.Context(), cluster.secure(m), snapshot))
	m.PowerOff()
	m.PowerOn()
	eventually(t, "bootstrap", func(ctx context.Context) error {
		return cluster.secure(m).Bootstrap(ctx, &machine.BootstrapRequest{RecoverEtcd: true})
	})
	check(t, m.AwaitReady(within(t, time.Minute)))

	if keys, err := m.EtcdKeys(t.Context(), "/test/"); err != nil || len(keys) != 10 {
		t.Errorf("%d keys, %v", len(keys), err)
	}

	// It does not outlive the reset of EPHEMERAL, nor a later upload that breaks off.
	check(t, upload(t.Context(), cluster.secure(m), snapshot))
	cluster.reset(m, false)
	check(t, m.AwaitStage(within(t, time.Minute), sim.StageMaintenance))
	cluster.blank(m)
	check(t, cluster.secure(m).Bootstrap(t.Context(), &machine.BootstrapRequest{RecoverEtcd: true}))
	cluster.awaitEtcd(m, "Failed", "no such file or directory")

	check(t, upload(t.Context(), cluster.secure(m), snapshot))
	m.SetFault(fault.Fault{Method: "EtcdRecover", After: len(snapshot) / 2, Cut: true})

	if err := upload(t.Context(), cluster.secure(m), snapshot); status.Code(err) != codes.Unavailable {
		t.Errorf("an upload that was cut: %v", err)
	}

	check(t, cluster.secure(m).Bootstrap(t.Context(), &machine.BootstrapRequest{RecoverEtcd: true}))
	cluster.awaitEtcd(m, "Failed", "no such file or directory")
}

func TestRecover_refused(t *testing.T) {
	t.Parallel()

	simulator := sim.ForTest(t, sim.Options{})
	cps, workers := addMachines(t, simulator, "cp", 1), addMachines(t, simulator, "worker", 1)
	fresh := addMachines(t, simulator, "fresh", 1)[0]
	cluster := newTestCluster(t, simulator)
	cluster.create(cps, workers)
	snapshot := tookSnapshot(t, cluster.secure(cps[0]))

	for name, test := range map[string]struct {
		talos *client.Client
		code  codes.Code
		text  string
	}{
		"worker": {cluster.secure(workers[0]), codes.Unimplemented,
			"etcd recover is only available on control plane nodes"},
		"maintenance": {insecure(t, fresh), codes.PermissionDenied, "not authorized"},
	} {
		err := upload(t.Context(), test.talos, snapshot)
		if status.Code(err) != test.code || !strings.Contains(err.Error(), test.text) {
			t.Errorf("%s: %v", name, err)
		}
	}

	// A member accepts the file, and no bootstrap.
	check(t, upload(t.Context(), cluster.secure(cps[0]), snapshot))

	err := cluster.secure(cps[0]).Bootstrap(t.Context(), &machine.BootstrapRequest{RecoverEtcd: true})
	if status.Code(err) != codes.AlreadyExists {
		t.Errorf("bootstrap of a member: %v", err)
	}
}

func TestSnapshot_faultsInTheMiddle(t *testing.T) {
	t.Parallel()

	simulator := sim.ForTest(t, sim.Options{})
	m := addMachines(t, simulator, "cp", 1)[0]
	cluster := newTestCluster(t, simulator)
	cluster.create([]*sim.Machine{m}, nil)
	check(t, m.PutEtcdKeys(t.Context(), manyKeys(2000)))
	whole := tookSnapshot(t, cluster.secure(m))

	for name, test := range map[string]struct {
		fault fault.Fault
		code  codes.Code
	}{
		"cut":        {fault.Fault{Cut: true}, codes.Unavailable},
		"error":      {fault.Fault{Code: codes.Internal}, codes.Internal},
		"ends early": {fault.Fault{EndEarly: true}, codes.OK},
		"dies":       {fault.Fault{Crash: true}, codes.Unavailable},
	} {
		test.fault.Method, test.fault.After = "EtcdSnapshot", len(whole)/2
		m.SetFault(test.fault)

		stream, err := cluster.secure(m).MachineClient.EtcdSnapshot(within(t, time.Minute), &machine.EtcdSnapshotRequest{})
		check(t, err)

		got, err := readAll(stream)
		if status.Code(err) != test.code || len(got) == 0 || len(got) >= len(whole)*3/4 {
			t.Errorf("%s: %d of %d bytes, %v", name, len(got), len(whole), err)
		}

		m.ClearFaults()
		m.PowerOn()
		check(t, m.AwaitReady(within(t, time.Minute)))
	}
}
