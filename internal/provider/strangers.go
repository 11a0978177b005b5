package provider

import (
	"fmt"
	"maps"
	"strings"

	"github.com/talosop/terraform-provider-talosop/internal/cluster"
)

// withoutStrangers is the snapshot in which a machine that answers as another one than
// is meant is foreign, and nothing of what it says is left. An address that moved, or
// hardware that was exchanged behind it, must not put another UUID into the record:
// from then on the machine at that address would be the one meant.
func withoutStrangers(want cluster.Spec, have cluster.Snapshot) cluster.Snapshot {
	machines := maps.Clone(have.Machines)
	names := namesByUUID(want, have)

	for _, m := range want.Known() {
		if cause := strangeness(m, have.Machines[m.Name], names); cause != "" {
			machines[m.Name] = cluster.MachineState{Access: cluster.Foreign, Cause: cause}
		}
	}

	have.Machines = machines

	return have
}

// strangeness says why an answer is not that of the machine meant; empty when it is.
func strangeness(m cluster.Machine, s cluster.MachineState, names map[string][]string) string {
	same := names[strings.ToLower(s.UUID)]

	switch {
	case !answers(s):
		return ""
	case s.Access == cluster.Member && s.Role != "" && s.Role != m.Role:
		return fmt.Sprintf("answers as a %s, expected a %s", s.Role, m.Role)
	case s.UUID == "":
		return ""
	case m.UUID == "" && len(same) > 1:
		return fmt.Sprintf("%s answer as the same machine: UUID %s", describe(same), s.UUID)
	case m.UUID != "" && !m.MayReport(s.UUID):
		return fmt.Sprintf("answers as another machine: UUID %s, expected %s", s.UUID, m.UUID)
	default:
		return ""
	}
}

// namesByUUID lists under which names each machine answers.
func namesByUUID(want cluster.Spec, have cluster.Snapshot) map[string][]string {
	names := map[string][]string{}

	for _, m := range want.Machines {
		if s := have.Machines[m.Name]; answers(s) && s.UUID != "" {
			uuid := strings.ToLower(s.UUID)
			names[uuid] = append(names[uuid], m.Name)
		}
	}

	return names
}

// answers is true for machines that told something about themselves.
func answers(s cluster.MachineState) bool {
	return s.Access == cluster.Member || s.Access == cluster.Maintenance
}
