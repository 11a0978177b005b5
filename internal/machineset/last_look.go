package machineset

import (
	"maps"
	"slices"
	"strings"

	"github.com/talosop/terraform-provider-talosop/internal/cluster"
	"github.com/talosop/terraform-provider-talosop/internal/cluster/step"
	"github.com/talosop/terraform-provider-talosop/internal/finding"
)

// LookAt is the LastLook of a snapshot.
func LookAt(want cluster.Spec, have cluster.Snapshot) LastLook {
	look := LastLook{Unseen: []string{}}

	for _, m := range want.Machines {
		if have.Machines[m.Name].Access != step.Member {
			look.Unseen = append(look.Unseen, m.Name)
		}
	}

	return look
}

// lastAnswers has the machine that identified itself at each address in the last read, under its current name. It has
// only machines that stay.
type lastAnswers struct {
	byAddress, byUUID map[string]string
}

// lastAnswersOf is the lastAnswers of the recorded state; empty where state has none, as after the provider was
// killed.
func lastAnswersOf(p, prior Set, record Record, recorded PriorState) lastAnswers {
	out := lastAnswers{map[string]string{}, map[string]string{}}
	if p.LastLook == nil || p.Platform().Identified || p.Unknown.Has(UnknownAddresses) {
		return out
	}

	for name, state := range record.Machines {
		now := recorded.nameNow(name)

		_, stays := p.Machines[now]
		if _, listed := prior.Machines[name]; !stays || !listed || state.Access != step.Member ||
			slices.Contains(p.LastLook.Unseen, name) {
			continue
		}

		address := record.Seen[name].Address
		if address == "" {
			address = prior.Machines[name].Address
		}

		if host, err := CanonicalHost(address); err == nil {
			out.byAddress[host] = now
		}

		if state.UUID != "" {
			out.byUUID[strings.ToLower(state.UUID)] = now
		}
	}

	return out
}

// nameNow is the current name of a recorded machine: another key, or the one under which it leaves.
func (r PriorState) nameNow(name string) string {
	for _, names := range []map[string]string{r.Renamed, r.Replaced} {
		for now, before := range names {
			if before == name {
				return now
			}
		}
	}

	return name
}

// refuseTakenPlaces refuses machines at the address, or with the UUID, of another machine that answered there in the
// last read: the apply would find that one.
func refuseTakenPlaces(p, prior Set, record Record, recorded PriorState) finding.List {
	var addresses, uuids takenPlaces

	last := lastAnswersOf(p, prior, record, recorded)

	for _, name := range slices.Sorted(maps.Keys(p.Machines)) {
		m := p.Machines[name]

		host, err := CanonicalHost(m.Address)
		if other := last.byAddress[host]; err == nil && other != "" && other != name {
			addresses.add(name, p.AddressPath(name), m.Address+", where "+other+" answered")

			continue
		}

		if other := last.byUUID[strings.ToLower(m.UUID)]; m.UUID != "" && other != "" && other != name {
			uuids.add(name, p.machinePath(name).AtName("uuid"), m.UUID+", which "+other+" reported")
		}
	}

	return append(addresses.refuse(addressOfOther), uuids.refuse(uuidOfOther)...)
}

// takenPlaces are machines with the address or the UUID of another one.
type takenPlaces struct {
	machines, places []string
	at               []finding.Path
}

func (t *takenPlaces) add(machine string, at finding.Path, place string) {
	t.machines, t.at = append(t.machines, machine), append(t.at, at)
	t.places = append(t.places, machine+": "+place)
}

// refuse is one error about all of them, at the attribute if there is one.
func (t *takenPlaces) refuse(message finding.Message) finding.List {
	if len(t.machines) == 0 {
		return nil
	}

	return finding.List{message.At(finding.Common(t.at), finding.Args{"machines": t.machines, "places": t.places})}
}

// AnsweredAt are the machines that stay and identified themselves in the last read, with those addresses.
func AnsweredAt(p, prior Set, record Record, recorded PriorState) []cluster.Machine {
	var machines []cluster.Machine

	answers := lastAnswersOf(p, prior, record, recorded).byAddress
	for _, host := range slices.Sorted(maps.Keys(answers)) {
		machines = append(machines, cluster.Machine{Name: answers[host], Wanted: cluster.Wanted{Address: host}})
	}

	return machines
}

// AddressPath is the attribute with the address of a machine.
func (p Set) AddressPath(name string) finding.Path { return p.machinePath(name).AtName("address") }
