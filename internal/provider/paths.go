package provider

import (
	"errors"
	"fmt"

	"github.com/hashicorp/terraform-plugin-framework/path"

	"github.com/talosop/terraform-provider-talosop/internal/machineconfig"
)

// fieldError is a mistake in a setting, with the attribute it is in.
type fieldError struct {
	at    path.Path
	field *machineconfig.FieldError
}

func (e *fieldError) Error() string { return e.at.String() + ": " + e.field.Error() }
func (e *fieldError) Unwrap() error { return e.field }

// problems finds the attributes of an error of internal/machineconfig, about a
// machine or, without one, about the cluster.
func (p pool) problems(machine string, err error) error {
	return p.problemsIn(p.groupOf(machine), machine, err)
}

// problemsIn is problems for settings of a group as well.
func (p pool) problemsIn(g *group, machine string, err error) error {
	if err == nil {
		return nil
	}

	fields := machineconfig.FieldErrors(err)
	if len(fields) == 0 {
		if machine == "" {
			return err
		}

		return fmt.Errorf("machine %s: %w", machine, err)
	}

	var problems []error
	for _, f := range fields {
		problems = append(problems, &fieldError{at: p.locate(f, g, machine), field: f})
	}

	return errors.Join(problems...)
}

// locate finds the attribute that holds a setting. machine is the machine the
// setting was read for; settings of the cluster have none.
func (p pool) locate(field *machineconfig.FieldError, g *group, machine string) path.Path {
	steps := field.Steps()
	if len(steps) == 0 {
		return p.machinePath(machine)
	}

	switch steps[0] {
	case "machine":
		return p.locateMachine(steps[1:], machine)
	case "pool":
		return along(g.at.AtName("config_patches"), steps[min(2, len(steps)):])
	case "talos_version":
		return g.versionAt
	case "patches":
		if p.inHandle {
			return along(path.Root("cluster").AtName("config_patches"), steps[1:])
		}

		return along(path.Root("cluster_config_patches"), steps[1:])
	case "talos_version_contract":
		steps[0] = "version_contract"
	}

	if p.inHandle {
		return along(path.Root("cluster"), steps)
	}

	return along(path.Empty(), steps)
}

// locateMachine finds a setting of one machine. Install settings that the machine
// does not have itself are those of its group.
func (p pool) locateMachine(steps []any, machine string) path.Path {
	at := p.machinePath(machine)

	switch {
	case len(steps) == 0:
		return at
	case p.host != nil && steps[0] == "patches":
		return along(p.machines[machine].group.at.AtName("replica_config_patches").AtMapKey(p.machines[machine].key), steps[1:])
	case p.host != nil:
		return at // nothing else is said of single machines
	case steps[0] == "patches":
		return along(at.AtName("config_patches"), steps[1:])
	case steps[0] == "install" && !p.machines[machine].ownInstall:
		return along(p.machines[machine].group.at, steps)
	default:
		return along(at, steps)
	}
}

func (p pool) machinePath(machine string) path.Path {
	if p.single != nil {
		return path.Empty()
	}

	if machine == "" && p.host != nil {
		return path.Root("replicas")
	}

	if machine == "" {
		return path.Root("machines")
	}

	m := p.machines[machine]

	if p.host != nil {
		return m.group.at.AtName("replicas")
	}

	return m.group.at.AtName("machines").AtMapKey(m.key)
}

// along extends a path by the steps of a field.
func along(at path.Path, steps []any) path.Path {
	for _, step := range steps {
		switch step := step.(type) {
		case string:
			at = at.AtName(step)
		case int:
			at = at.AtListIndex(step)
		case machineconfig.Key:
			at = at.AtMapKey(string(step))
		}
	}

	return at
}
