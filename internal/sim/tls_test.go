package sim_test

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"net"
	"strings"
	"testing"
	"time"

	talosx509 "github.com/siderolabs/crypto/x509"
	"github.com/siderolabs/talos/pkg/machinery/client"
	machinetype "github.com/siderolabs/talos/pkg/machinery/config/machine"
	"github.com/siderolabs/talos/pkg/machinery/constants"
	"github.com/siderolabs/talos/pkg/machinery/role"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/talosop/terraform-provider-talosop/internal/sim"
)

// peer is the certificate a machine shows.
func peer(t *testing.T, m *sim.Machine) *x509.Certificate {
	t.Helper()

	var cert *x509.Certificate

	eventually(t, "handshake with "+m.Name(), func(ctx context.Context) error {
		conn, err := (&tls.Dialer{Config: &tls.Config{InsecureSkipVerify: true}}).DialContext(ctx, "tcp", m.Endpoint()) //nolint:gosec // looks only
		if err != nil {
			return err
		}

		cert = conn.(*tls.Conn).ConnectionState().PeerCertificates[0]

		return conn.Close()
	})

	return cert
}

func TestMaintenance_certificateIsNewAtEveryBoot(t *testing.T) {
	_, m, _ := newMaintenanceMachine(t, sim.Options{})
	first := peer(t, m)

	if first.Subject.CommonName != constants.MaintenanceServiceCommonName ||
		first.VerifyHostname(m.Address().String()) != nil {
		t.Errorf("certificate of %q for %v", first.Subject.CommonName, first.IPAddresses)
	}

	m.PowerOff()
	m.PowerOn()
	check(t, m.AwaitStage(within(t, time.Minute), sim.StageMaintenance))

	if talosx509.SPKIFingerprint(first).Equal(talosx509.SPKIFingerprint(peer(t, m))) {
		t.Error("the fingerprint survived a boot")
	}
}

func TestTLS_refusesTheWrongKindOfClient(t *testing.T) {
	simulator := sim.ForTest(t, sim.Options{})
	cps := addMachines(t, simulator, "cp", 1)
	waiting := addMachines(t, simulator, "spare", 1)[0]
	cluster, other := newTestCluster(t, simulator), newTestCluster(t, simulator)
	cluster.create(cps, nil)

	for name, test := range map[string]struct {
		client *client.Client
		want   string
	}{
		"secure against maintenance":     {cluster.secure(waiting), "certificate signed by unknown authority"},
		"insecure against configured":    {insecure(t, cps[0]), "tls: certificate required"},
		"another cluster's certificates": {other.secure(cps[0]), "certificate signed by unknown authority"},
	} {
		t.Run(name, func(t *testing.T) {
			eventually(t, "refusal", func(ctx context.Context) error {
				_, err := test.client.Version(ctx)
				if err == nil || status.Code(err) != codes.Unavailable {
					t.Fatalf("got %v, want Unavailable", err)
				}

				if !strings.Contains(err.Error(), test.want) {
					return err
				}

				return nil
			})
		})
	}
}

func TestTLS_workersNeedAControlPlaneThatSigns(t *testing.T) {
	simulator := sim.ForTest(t, sim.Options{})
	cp, worker := addMachines(t, simulator, "cp", 1)[0], addMachines(t, simulator, "worker", 1)[0]
	cluster := newTestCluster(t, simulator)
	cluster.apply(worker, machinetype.TypeWorker)

	check(t, worker.AwaitStage(within(t, time.Minute), sim.StageRunning))

	if conn, err := net.Dial("tcp", worker.Endpoint()); err == nil {
		t.Error("a worker without a control plane has no certificate, but answers")
		check(t, conn.Close())
	}

	cluster.apply(cp, machinetype.TypeControlPlane)
	eventually(t, "version of the worker", func(ctx context.Context) error {
		_, err := cluster.secure(worker, role.Reader).Version(ctx)

		return err
	})
}

func TestTLS_nodesAreReachedThroughControlPlanesOnly(t *testing.T) {
	simulator := sim.ForTest(t, sim.Options{})
	cps, workers := addMachines(t, simulator, "cp", 1), addMachines(t, simulator, "worker", 2)
	cluster := newTestCluster(t, simulator)
	cluster.create(cps, workers)

	workers[1].PowerOff()

	here, gone := workers[0].Address().String(), workers[1].Address().String()
	through := cluster.secure(cps[0])

	resp, err := through.Version(client.WithNodes(within(t, time.Minute), here, gone))
	if len(resp.GetMessages()) != 1 || resp.GetMessages()[0].GetMetadata().GetHostname() != here {
		t.Errorf("answers %v, want one of %s", resp.GetMessages(), here)
	}

	var node *client.NodeError
	if !errors.As(err, &node) || node.Node != gone || status.Code(node.Err) != codes.Unavailable {
		t.Errorf("got %v, want the dead node's own error", err)
	}

	if _, err := through.Version(client.WithNode(t.Context(), here)); err != nil {
		t.Error(err)
	}

	_, err = cluster.secure(workers[0]).Version(client.WithNode(t.Context(), cps[0].Address().String()))
	if status.Code(err) != codes.PermissionDenied {
		t.Errorf("forwarding through a worker: %v", err)
	}
}
