package lifecycle_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/talosop/terraform-provider-talosop/internal/machineconfig"
	"github.com/talosop/terraform-provider-talosop/internal/pki"
	"github.com/talosop/terraform-provider-talosop/internal/rotation"
	"github.com/talosop/terraform-provider-talosop/internal/sim"
)

// becomes gives the site another bundle, as a plan does. State keeps the former one until the run is over.
func (s *site) becomes(b *pki.Bundle) {
	s.t.Helper()

	s.former, s.bundle, s.want.Rotates = s.bundle, b, true

	for i, m := range s.want.Machines {
		config := s.render(m.Role)

		keys, err := machineconfig.Keys(config.Bytes)
		if err != nil {
			s.t.Fatal(err)
		}

		s.configs[m.Name] = config.Bytes
		s.want.Machines[i].ConfigDigest, s.want.Machines[i].Keys = config.Digest, keys
	}
}

// turnOver gives the site new keys that it must use at once.
func (s *site) turnOver(kinds ...rotation.Kind) {
	s.t.Helper()

	turned, err := s.bundle.Rotate(kinds...)
	if err != nil {
		s.t.Fatal(err)
	}

	s.becomes(turned.Advance())
}

// carriesWhatIsWanted checks the end of a rotation: every machine has the wanted keys, its node reports them, none
// rebooted, and nothing is left to do.
func (s *site) carriesWhatIsWanted() {
	s.t.Helper()

	s.sim.ForgetCalls()

	result, err := s.runner().Converge(bounded(s.t), s.want)
	if err != nil {
		s.t.Fatal(err)
	}

	if changes := s.changes(); len(changes) > 0 {
		s.t.Errorf("a second run makes %v", changes)
	}

	for _, m := range s.want.Machines {
		if got := result.Snapshot.Machines[m.Name].Keys; got != m.Keys {
			s.t.Errorf("%s carries %s, want %s", m.Name, got, m.Keys)
		}

		if node, ok := result.Snapshot.NodeOf(m); !ok || !node.Ready || node.Keys != m.Keys {
			s.t.Errorf("the node of %s is ready: %t, and tells %s, want %s", m.Name, node.Ready, node.Keys, m.Keys)
		}

		if boots := s.sim.Machine(m.Name).Boots(); boots != s.boots[m.Name] {
			s.t.Errorf("%s booted %d times more", m.Name, boots-s.boots[m.Name])
		}
	}
}

// refuses checks that no API server accepts a client.
func (w *writer) refuses() {
	w.t.Helper()
	w.stop()
	<-w.done

	for i, api := range w.clients {
		_, err := api.ConfigMaps("default").List(bounded(w.t), metav1.ListOptions{})
		if err == nil || !apierrors.IsUnauthorized(err) && !strings.Contains(err.Error(), "connection refused") {
			w.t.Errorf("server %d answers former credentials: %v", i, err)
		}
	}
}

// clientOf is a Kubernetes client that trusts every authority of the site, with a certificate of the present or of
// the former authority.
func (s *site) clientOf(former bool) pki.Credentials {
	s.t.Helper()

	client, err := s.bundle.Knowing(s.former).KubernetesClient("writer", []string{"system:masters"}, time.Hour)
	if err != nil {
		s.t.Fatal(err)
	}

	if former {
		client.Certificate, client.Key = client.Former[0].Certificate, client.Former[0].Key
	}

	return client
}

func newRotation(t *testing.T) *site {
	t.Helper()

	s := newSite(t, 3, 1, sim.Options{})
	s.create()

	s.boots = map[string]int{}
	for _, m := range s.sim.Machines() {
		s.boots[m.Name()] = m.Boots()
	}

	s.sim.ForgetCalls()

	return s
}

func TestRotation_ofEveryKeyWhileAClientWrites(t *testing.T) {
	t.Parallel()

	s := newRotation(t)
	s.turnOver(rotation.Kinds()...)

	old := s.writesAs(t, s.clientOf(true))
	old.progress()
	s.converge()
	old.progress() // its certificate is accepted beside the new ones
	s.carriesWhatIsWanted()

	if lost := old.lost(); len(lost) > 0 {
		t.Errorf("%d of %d acknowledged writes are lost", len(lost), len(old.acked))
	}

	s.becomes(s.bundle.Advance())

	fresh := s.writesAs(t, s.clientOf(false))
	fresh.progress()
	s.converge()
	fresh.progress()
	s.carriesWhatIsWanted()
	s.former = nil // state no longer has it
	s.carriesWhatIsWanted()
	old.refuses()
}

// rotationFailPoints is how many calls of a rotation fail. Each kind of failure occurs once in three rotations.
const rotationFailPoints = 3

// rotations are the two applies of a rotation, by what the second one finds.
func rotations() map[string]func(*site) {
	return map[string]func(*site){
		"turn over": func(s *site) { s.turnOver(rotation.Kinds()...) },
		"drop": func(s *site) {
			s.turnOver(rotation.Kinds()...)
			s.converge()
			s.becomes(s.bundle.Advance())
		},
		// The bundle lost the former keys before any machine was changed; state still had them.
		"all at once": func(s *site) {
			s.turnOver(rotation.Kinds()...)
			before := s.former
			s.becomes(s.bundle.Advance())
			s.former = before
		},
	}
}

func TestRotation_survivesFailures(t *testing.T) {
	t.Parallel()

	for name, change := range rotations() {
		t.Run(name, func(t *testing.T) {
			t.Parallel()

			undisturbed := newRotation(t)
			change(undisturbed)
			undisturbed.sim.ForgetCalls()
			undisturbed.converge()

			// How many more configurations a machine gets depends on which one is ready first.
			points := slices.DeleteFunc(undisturbed.points(), func(p point) bool { return p.n > 2 })
			undisturbed.carriesWhatIsWanted()
			t.Logf("calls that change machines: %v", points)

			for i, at := range some(points, rotationFailPoints) {
				for _, disturbance := range inTurn(i, disturbances()) {
					t.Run(fmt.Sprintf("%s at %s", disturbance.name, at), func(t *testing.T) {
						s := newRotation(t)
						change(s)
						s.sim.ForgetCalls()

						w := s.writesAs(t, s.clientOf(false))
						disturbance.disturb(s, at, converge)
						s.converge()
						w.progress()
						s.carriesWhatIsWanted()
					})
				}
			}
		})
	}
}

// A machine is sent nothing if its wanted key is neither in the secrets nor on the machine.
func TestRotation_withoutTheKeyOfTheOthers(t *testing.T) {
	t.Parallel()

	s := newRotation(t)
	s.turnOver(rotation.TalosCA)
	s.becomes(s.bundle.Advance())
	s.former = nil

	_, err := s.runner().Converge(bounded(t), s.want)
	if err == nil {
		t.Fatal("machines of an unused key were changed")
	}

	if changes := s.changes(); len(changes) > 0 {
		t.Errorf("machines got %v", changes)
	}

}
