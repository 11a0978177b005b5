package cluster_test

import (
	"slices"
	"strings"
	"unicode"

	"github.com/talosop/terraform-provider-talosop/internal/cluster"
	"github.com/talosop/terraform-provider-talosop/internal/cluster/step"
)

// refused checks that a refusal is right.
func (t *trial) refused(d cluster.Decision) {
	for _, r := range d.Refusals {
		t.say("refusal %s", r)

		b := t.meant[r.Machine]
		voters, _ := t.votes(nil)

		var ok bool

		switch text := r.Reason; {
		case strings.Contains(text, "not a machine of cluster"), strings.Contains(text, "responds as another machine"),
			strings.Contains(text, "which this apply removes"):
			ok = r.Machine == t.mistaken || b != nil && !b.up() && t.hasUnknownUUID()
		case strings.Contains(text, "waits in maintenance mode"):
			ok = b.impostor || b.wiped
		case strings.Contains(text, "no response from"):
			ok = t.at(t.machine(r.Machine).Address) == nil
		case strings.Contains(text, "it has the data of a running etcd"):
			ok = b.data
		case strings.Contains(text, "a cluster with these secrets already runs"):
			ok = t.api()
		case strings.Contains(text, "rolled the upgrade back"):
			ok = b.version != t.machine(r.Machine).TalosVersion || b.schematic != t.machine(r.Machine).Schematic
		case strings.Contains(text, "the image holds another Talos"):
			ok = b.version != t.machine(r.Machine).TalosVersion
		case strings.Contains(text, "cannot regain quorum"):
			ok = !t.quorum() && slices.ContainsFunc(t.boxes, func(b *box) bool { return b.pod != nil && b.pod.lost })
		case strings.Contains(text, "wanted is the older"):
			ok = !t.machine(r.Machine).AllowDowngrade
		case strings.Contains(text, "cannot join"), strings.Contains(text, "its pod contains its data"):
			ok = t.tooOldToJoin(t.machine(r.Machine))
		case strings.Contains(text, "waits for the maintenance window"):
			ok = t.refuses && t.atWindow().Closed && t.api() // what comes next is named
			t.say("refused outside of the window")
		case strings.Contains(text, "it is locked and cannot be removed"):
			ok = t.machine(r.Machine).Locked && slices.ContainsFunc(t.want.Removed,
				func(m cluster.Machine) bool { return m.Name == r.Machine })
		case strings.Contains(text, "two members"):
			ok = voters == 2
		case strings.Contains(text, "without etcd data"), strings.Contains(text, "no control plane has etcd data"):
			ok = !slices.ContainsFunc(t.boxes, func(b *box) bool {
				replaced := t.at(b.addr) != nil && t.at(b.addr) != b

				return b.controlPlane && b.data && b.life != maintenance && !replaced && !b.impostor
			})
		case strings.Contains(text, "no release is known"):
			ok = len(t.machine(r.Machine).Via) == 0
		default:
			ok = t.refusedKubernetes(text)
		}

		if !ok || t.whole && !t.refuses && voters != 2 {
			t.fail("unfounded refusal: %s", r)
		}
	}
}

// held checks that the holds at the end of a run have a real cause: each names it, or a machine whose own hold does.
func (t *trial) held(d cluster.Decision) {
	for _, h := range d.Holds {
		t.say("hold %s", h)
	}

	if len(d.Holds) == 0 {
		t.fail("a decision without anything in it, and not done")
	}

	if t.whole {
		t.fail("held, though nothing is wrong")
	}

	culprits := t.culprits()
	open := slices.Clone(d.Holds)

	for found := true; found; {
		found = false

		open = slices.DeleteFunc(open, func(h step.Hold) bool {
			justified := slices.ContainsFunc(culprits, func(c string) bool { return names(h.Machine+" "+h.Reason, c) })
			if justified && h.Machine != "" {
				culprits = append(culprits, h.Machine)
			}

			found = found || justified

			return justified
		})
	}

	for _, h := range open {
		t.fail("unfounded hold: %s (wrong are %v)", h, culprits)
	}
}

// hasUnknownUUID is true where a removed machine cannot be distinguished from a silent one at the same address.
func (t *trial) hasUnknownUUID() bool {
	return slices.ContainsFunc(t.want.Removed, func(m cluster.Machine) bool { return m.UUID == "" })
}

// hasStaleMember is true for a machine that lost the data of its member.
func (t *trial) hasStaleMember(b *box) bool {
	return slices.ContainsFunc(t.members, func(m *etcdMember) bool { return m.box == b && m.id != b.member })
}

// culprits are the names of what is really wrong.
func (t *trial) culprits() []string {
	var wrong []string

	for _, m := range t.want.Known() {
		if b := t.meant[m.Name]; b.life == off || b.sick || b.etcdBroken || b.stuck || b.foreign || b.impostor ||
			b.pod == nil && m.Address != b.addr && t.at(m.Address) == nil {
			wrong = append(wrong, m.Name)
		}
	}

	for _, m := range t.want.Machines {
		if b := t.meant[m.Name]; b.up() && !b.foreign && t.beyondHelp(m, b) {
			wrong = append(wrong, m.Name)
		}
	}

	wrong = append(wrong, t.lagging()...)

	for _, b := range t.boxes {
		waits := b.life == booting && b.controlPlane && (!b.data && (!t.joinable() || !t.admits(b)) || !t.quorum()) // for etcd
		if waits || b.up() && b.data && !t.etcdUp(b) || b.controlPlane && !t.well(b) && t.meant[b.name] != b ||
			t.hasStaleMember(b) || b.impostor {
			wrong = append(wrong, b.name, "peer/"+b.name)
		}
	}

	for _, n := range t.nodes {
		if !t.ready(n) && !t.noCNI || n.ours && t.unowned(n) {
			wrong = append(wrong, "node "+n.name)
		}
	}

	if !t.api() {
		wrong = append(wrong, "Kubernetes API")
	}

	known := slices.ContainsFunc(t.want.Known(), func(m cluster.Machine) bool {
		b := t.meant[m.Name]

		return t.etcdUp(b) && (b.pod != nil || t.at(m.Address) == b)
	})
	if !t.quorum() || !known {
		wrong = append(wrong, "etcd")
	}

	if t.alarm {
		wrong = append(wrong, "alarm")
	}

	if t.split {
		wrong = append(wrong, "different leaders")
	}

	return wrong
}

// names reports whether a text contains a name as a whole word.
func names(text, name string) bool {
	for {
		i := strings.Index(text, name)
		if i < 0 {
			return false
		}

		text = text[i+len(name):]
		if text == "" || !unicode.IsLetter(rune(text[0])) && !unicode.IsDigit(rune(text[0])) {
			return true
		}
	}
}
