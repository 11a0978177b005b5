package rotation_test

import (
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/talosop/terraform-provider-talosop/internal/rotation"
)

const former, present = "aaaa", "bbbb"

func keys(trust rotation.Trust, token string) rotation.Keys {
	return rotation.Keys{Talos: trust, Kubernetes: trust, ClusterToken: token}
}

// site is a cluster whose machines are changed one by one, by resources that know only the rules.
type site struct {
	machines []rotation.Holder
	// talos and kubelet are what a worker really uses: the authorities from the control plane that signed its
	// certificate, and the authority of its kubelet's client certificate.
	talos   []rotation.Set
	kubelet []string
	random  *rand.Rand
}

func newSite(random *rand.Rand, controlPlanes, workers int) *site {
	s := &site{random: random}

	for i := range controlPlanes + workers {
		s.machines = append(s.machines, rotation.Holder{
			Name: fmt.Sprintf("m-%d", i), ControlPlane: i < controlPlanes, Settled: true,
			Keys: keys(rotation.Trust{Issuing: former}, former),
		})
		s.talos, s.kubelet = append(s.talos, former), append(s.kubelet, former)
	}

	return s
}

func (s *site) cluster() rotation.Cluster { return s.machines }

// phase is how far the bundle is in a rotation.
type phase int

const (
	ahead   phase = iota // the next key is prepared
	turned               // it is the present key, and the former one is accepted
	dropped              // the former key is gone
)

// wanted is what a bundle requires of a machine.
func wanted(controlPlane bool, p phase) rotation.Keys {
	if p == ahead {
		return keys(rotation.Trust{Issuing: former, Accepted: present}, former)
	}

	out := keys(rotation.Trust{Issuing: present}, present)

	if p == turned {
		out.Talos.Accepted = former
		if controlPlane {
			out.Kubernetes.Accepted = former
		}
	}

	return out
}

// move makes one safe move of a machine and reports whether there was one.
func (s *site) move(i int, p phase) bool {
	m := &s.machines[i]

	next := s.cluster().Next(m.Keys, wanted(m.ControlPlane, p), m.ControlPlane)
	if next == m.Keys {
		return false
	}

	m.Keys = next
	s.work(i)

	return true
}

// work does what a machine does with its new keys by itself.
func (s *site) work(i int) {
	m := s.machines[i]

	if !m.ControlPlane {
		signer := s.machines[s.random.IntN(s.controlPlanes())]
		s.talos[i] = signer.Keys.Talos.Accepted.With(signer.Keys.Talos.Issuing)
	}

	if !m.Keys.Kubernetes.Trusts(s.kubelet[i]) {
		// The controller manager signs with its issuing authority, on any control plane.
		s.kubelet[i] = s.machines[s.random.IntN(s.controlPlanes())].Keys.Kubernetes.Issuing
	}
}

func (s *site) controlPlanes() (count int) {
	for _, m := range s.machines {
		if m.ControlPlane {
			count++
		}
	}

	return count
}

// check fails the test if a machine rejects another one.
func (s *site) check(t *testing.T, trace []string) {
	t.Helper()

	for i, m := range s.machines {
		for _, other := range s.machines {
			if !other.ControlPlane {
				continue
			}

			if !m.Keys.Talos.Trusts(other.Keys.Talos.Issuing) {
				t.Fatalf("%v: %s refuses the Talos API of %s", trace, m.Name, other.Name)
			}

			if !m.ControlPlane && !s.talos[i].Has(other.Keys.Talos.Issuing) {
				t.Fatalf("%v: %s refuses clients of %s", trace, m.Name, other.Name)
			}

			if !m.Keys.Kubernetes.Trusts(other.Keys.Kubernetes.Issuing) {
				t.Fatalf("%v: the kubelet of %s refuses the API server of %s", trace, m.Name, other.Name)
			}

			if !m.ControlPlane && !other.Keys.Kubernetes.Trusts(s.kubelet[i]) {
				t.Fatalf("%v: the API server of %s refuses the kubelet of %s", trace, other.Name, m.Name)
			}

			if m.Keys.ClusterToken != other.Keys.ClusterToken && !m.ControlPlane && m.Keys.ClusterToken == present {
				t.Fatalf("%v: %s has a token that %s has not made a Secret of", trace, m.Name, other.Name)
			}
		}
	}
}

func (s *site) done(p phase) bool {
	for _, m := range s.machines {
		if m.Keys != wanted(m.ControlPlane, p) {
			return false
		}
	}

	return true
}

func TestNext_neverLocksOut(t *testing.T) {
	for seed := range uint64(3000) {
		random := rand.New(rand.NewPCG(seed, 16))
		s := newSite(random, 1+random.IntN(5), random.IntN(6))

		var trace []string

		// The provider may be given either phase first.
		at := phase(random.IntN(2))

		for range 1000 {
			if at == dropped && s.done(at) {
				break
			}

			// The bundle may advance before all machines are done.
			if at != dropped && (s.done(at) || random.IntN(30) == 0) {
				at++
			}

			i := random.IntN(len(s.machines))
			if s.move(i, at) {
				trace = append(trace, fmt.Sprintf("%s: %s", s.machines[i].Name, s.machines[i].Keys))
			}

			s.check(t, trace)
		}

		if !s.done(dropped) {
			t.Fatalf("seed %d: not done after 1000 turns: %v", seed, trace)
		}
	}
}

func TestNext_waitsForMachinesOfWhichNothingIsKnown(t *testing.T) {
	s := newSite(rand.New(rand.NewPCG(1, 1)), 3, 1)
	s.machines = append(s.machines, rotation.Holder{Name: "theirs", Settled: true})
	s.talos, s.kubelet = append(s.talos, ""), append(s.kubelet, "")

	for range 20 {
		for i := range 4 {
			s.move(i, turned)
		}
	}

	for _, m := range s.machines[:4] {
		if m.Keys.Talos.Issuing != former || m.Keys.Kubernetes.Issuing != former ||
			!m.Keys.Talos.Accepted.Has(present) || !m.Keys.Kubernetes.Accepted.Has(present) {
			t.Errorf("%s carries %s", m.Name, m.Keys)
		}
	}
}

func TestNext_machineThatJoinsBeginsWithWhatTheOthersHave(t *testing.T) {
	s := newSite(rand.New(rand.NewPCG(1, 1)), 3, 1)

	for _, controlPlane := range []bool{true, false} {
		got := s.cluster().Next(rotation.Keys{}, wanted(controlPlane, turned), controlPlane)
		if got.Talos.Issuing != former || got.Kubernetes.Issuing != former || !got.Talos.Accepted.Has(present) ||
			!got.Kubernetes.Accepted.Has(present) {
			t.Errorf("control plane %t begins with %s", controlPlane, got)
		}

		if !controlPlane && got.ClusterToken != former {
			t.Errorf("a worker begins with the tokens %s", got)
		}
	}

	if got := (rotation.Cluster{}).Next(rotation.Keys{}, wanted(true, turned), true); got != wanted(true, turned) {
		t.Errorf("the first machine of a cluster begins with %s", got)
	}
}

func TestKeys_roundTrip(t *testing.T) {
	want := rotation.Keys{
		Talos:      rotation.Trust{Issuing: "11", Accepted: rotation.SetOf("33", "22")},
		Kubernetes: rotation.Trust{Issuing: "44"}, Aggregator: "55", ServiceAccount: "66", ClusterToken: "88",
	}

	if got := rotation.ParseKeys(want.String() + " later=99"); got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}

func TestChanges_namesEachKind(t *testing.T) {
	has := keys(rotation.Trust{Issuing: former}, former)
	accepts := has
	accepts.Talos.Accepted = present
	uses := accepts
	uses.Talos = rotation.Trust{Issuing: present, Accepted: former}
	drops := uses
	drops.Talos.Accepted = ""

	for _, c := range []struct {
		from, to rotation.Keys
		want     string
	}{
		{has, accepts, "[accept new Talos CA]"},
		{accepts, uses, "[use new Talos CA]"},
		{uses, drops, "[drop former Talos CA]"},
		{has, has, "[]"},
	} {
		if got := fmt.Sprint(rotation.Changes(c.from, c.to)); got != c.want {
			t.Errorf("from %s to %s: %s, want %s", c.from, c.to, got, c.want)
		}
	}
}
