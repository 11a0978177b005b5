package machines_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/talosop/terraform-provider-talosop/internal/containers"
	"github.com/talosop/terraform-provider-talosop/internal/hostcluster/workload"
	"github.com/talosop/terraform-provider-talosop/internal/provider/tftest"
	"github.com/talosop/terraform-provider-talosop/internal/sim/fault"
	"github.com/talosop/terraform-provider-talosop/internal/wait"
)

// moments report to a test each change of the machines of a namespace before it happens: "host Replace cp-0" and
// "talos dev-cp-0-0 Bootstrap", with the detail of the call where it has one.
type moments struct {
	Mu   sync.Mutex
	hear func(moment string)
	// Seen are the changes, in order.
	Seen []string
}

func (m *moments) tell(moment string) {
	m.Mu.Lock()
	defer m.Mu.Unlock()

	m.Seen = append(m.Seen, moment)

	if m.hear != nil {
		m.hear(moment)
	}
}

// listen calls hear for every later moment, one at a time, and forgets the earlier ones.
func (m *moments) listen(hear func(moment string)) {
	m.Mu.Lock()
	defer m.Mu.Unlock()

	m.hear, m.Seen = hear, nil
}

// with are the moments that start with prefix.
func (m *moments) with(prefix string) (found []string) {
	m.Mu.Lock()
	defer m.Mu.Unlock()

	for _, moment := range m.Seen {
		if strings.HasPrefix(moment, prefix) {
			found = append(found, strings.TrimPrefix(moment, prefix))
		}
	}

	return found
}

// heard are the moments of all namespaces of the shared host, whose simulator has one hook.
var heard sync.Map

// momentsOf starts to report the machines of a site. Drivers made before it do not report the host.
func momentsOf(t *testing.T, s *hostSite) *moments {
	t.Helper()

	m := &moments{}
	heard.Store(s.namespace, m)
	t.Cleanup(func() { heard.Delete(s.namespace) })

	s.Sim().SetOnCall(func(call fault.Call) error {
		namespace, pod, _ := strings.Cut(call.Machine, ".")
		if of, ok := heard.Load(namespace); ok && call.Mutates() {
			of.(*moments).tell(strings.TrimSpace("talos " + pod + " " + call.Method + " " + call.Detail))
		}

		return nil
	})

	s.wrap = func(h containers.Host) containers.Host { return &telling{Host: h, To: m} }

	return m
}

// telling is a host that reports changes before it makes them.
type telling struct {
	containers.Host

	To *moments
}

func (h *telling) Replace(ctx context.Context, s workload.Spec, machine string) error {
	h.To.tell("host Replace " + machine)

	return h.Host.Replace(ctx, s, machine)
}

func (h *telling) Restart(ctx context.Context, s workload.Spec, machine string) error {
	h.To.tell("host Restart " + machine)

	return h.Host.Restart(ctx, s, machine)
}

func (h *telling) Wipe(ctx context.Context, s workload.Spec, machine string) error {
	h.To.tell("host Wipe " + machine)

	return h.Host.Wipe(ctx, s, machine)
}

func (h *telling) Remove(ctx context.Context, s workload.Spec, machine string) error {
	h.To.tell("host Remove " + machine)

	return h.Host.Remove(ctx, s, machine)
}

// watchPlanes fails the test when a control plane of a cluster is taken down while another one is.
func (s *hostSite) watchPlanes(t *testing.T, m *moments, name string, planes int) {
	t.Helper()

	m.listen(func(moment string) {
		words := strings.Fields(moment)
		machine, down := words[1], strings.HasSuffix(moment, "ApplyConfiguration reboot")

		if words[0] == "host" {
			machine, down = name+"-"+words[2]+"-0", true
		}

		for i := range planes {
			pod := fmt.Sprintf("%s-cp-%d-0", name, i)
			if !down || pod == machine {
				continue
			}

			if ready, why := s.Machine(s.namespace, pod).Ready(); !ready {
				t.Errorf("%s: while %s is not ready: %v", moment, pod, why)
			}
		}
	})
}

// expectEtcd checks that the members of etcd are the control planes of a cluster, and that it was bootstrapped once.
func (s *hostSite) expectEtcd(t *testing.T, name string, planes int) {
	t.Helper()

	var want []string
	for i := range planes {
		want = append(want, fmt.Sprintf("%s-cp-%d", name, i))
	}

	ctx, cancel := context.WithTimeout(t.Context(), 3*time.Minute)
	defer cancel()

	// This also asks clusters of other tests, which come and go.
	if err := wait.Until(ctx, 50*time.Millisecond, func(ctx context.Context) error {
		members, err := s.Sim().EtcdMembers(ctx)
		members = slices.DeleteFunc(members, func(member string) bool { return !strings.HasPrefix(member, name+"-") })

		if !slices.Equal(members, want) {
			return errors.Join(err, fmt.Errorf("members of etcd are %v, want %v", members, want))
		}

		return nil
	}); err != nil {
		t.Error(err)
	}

	if got := s.bootstraps(); got != 1 {
		t.Errorf("etcd was bootstrapped %d times", got)
	}
}

// claimUIDs distinguish the volumes of a namespace from their replacements.
func (s *hostSite) claimUIDs(t *testing.T) map[string]types.UID {
	t.Helper()

	list, err := s.API().CoreV1().PersistentVolumeClaims(s.namespace).List(t.Context(), metav1.ListOptions{})
	tftest.Must(t, err)

	uids := map[string]types.UID{}
	for _, claim := range list.Items {
		uids[claim.Name] = claim.UID
	}

	return uids
}
