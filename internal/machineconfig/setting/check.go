package setting

import (
	"fmt"
	"strconv"

	coreconfig "github.com/siderolabs/talos/pkg/machinery/config"
)

// Problem is one error in settings, with the fields of machineconfig.FieldError.
type Problem struct{ Field, Found, Allowed, Fix string }

type problems []Problem

func (p *problems) add(field, found, allowed, fix string) {
	*p = append(*p, Problem{Field: field, Found: found, Allowed: allowed, Fix: fix})
}

// Target is the target of settings.
type Target struct {
	// Contract is nil while it is not known.
	Contract *coreconfig.VersionContract
	// Container is true for machines in containers.
	Container bool
	// Worker is true for settings of workers alone.
	Worker bool
	// FindsLinks is true where the machine is asked which link has its address.
	FindsLinks bool
	// Partial is true while some values may be missing because they are not known yet; they are empty.
	Partial bool
}

// Check reports all errors in the settings of one level.
func (v Values) Check(t Target) []Problem {
	var found problems

	for _, s := range v.sorted() {
		switch {
		case s.ControlPlanes && t.Worker:
			found.add(s.Name, s.Name+" for a worker", "it on control planes", "remove it here")
		case s.Metal && t.Container:
			found.add(s.Name, s.Name, "none for a container", "remove it; it has no effect in a container")
		default:
			s.check(v[s], &found, t)
		}
	}

	return found
}

// under is the field of an element of a map.
func under(name, key string) string { return fmt.Sprintf("%s[%q]", name, key) }

func quoted(text string) string { return strconv.Quote(text) }
