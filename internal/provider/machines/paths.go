package machines

import (
	"errors"
	"fmt"

	"github.com/hashicorp/terraform-plugin-framework/path"

	"github.com/talosop/terraform-provider-talosop/internal/machineconfig"
	"github.com/talosop/terraform-provider-talosop/internal/provider/tf"
)

// problems finds the attributes of an error of internal/machineconfig, about a
// machine or, without one, about the cluster.
func (p Pool) problems(machine string, err error) error {
	return p.problemsIn(p.groupOf(machine), machine, err)
}

// problemsIn is problems for settings of a group as well.
func (p Pool) problemsIn(g *Group, machine string, err error) error {
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
		problems = append(problems, &tf.FieldError{At: p.locate(f, g, machine), Field: f})
	}

	return errors.Join(problems...)
}

// locate finds the attribute that holds a setting. machine is the machine the
// setting was read for; settings of the cluster have none.
func (p Pool) locate(field *machineconfig.FieldError, g *Group, machine string) path.Path {
	steps := field.Steps()
	if len(steps) == 0 {
		return p.machinePath(machine)
	}

	switch steps[0] {
	case "machine":
		return p.locateMachine(steps[1:], machine)
	case "pool":
		return tf.Along(g.At.AtName("config_patches"), steps[min(2, len(steps)):])
	case "talos_version":
		return g.versionAt
	case "patches":
		if p.inHandle {
			return tf.Along(path.Root("cluster").AtName("config_patches"), steps[1:])
		}

		return tf.Along(path.Root("cluster_config_patches"), steps[1:])
	case "talos_version_contract":
		steps[0] = "version_contract"
	}

	if p.inHandle {
		return tf.Along(path.Root("cluster"), steps)
	}

	return tf.Along(path.Empty(), steps)
}

// locateMachine finds a setting of one machine. Install settings that the machine
// does not have itself are those of its group.
func (p Pool) locateMachine(steps []any, machine string) path.Path {
	at := p.machinePath(machine)

	switch {
	case len(steps) == 0:
		return at
	case p.Host != nil && steps[0] == "patches":
		return tf.Along(p.Machines[machine].Group.At.AtName("replica_config_patches").AtMapKey(p.Machines[machine].key), steps[1:])
	case p.Host != nil:
		return at // nothing else is said of single machines
	case steps[0] == "patches":
		return tf.Along(at.AtName("config_patches"), steps[1:])
	case steps[0] == "install" && !p.Machines[machine].ownInstall:
		return tf.Along(p.Machines[machine].Group.At, steps)
	default:
		return tf.Along(at, steps)
	}
}

func (p Pool) machinePath(machine string) path.Path {
	if p.single != nil {
		return path.Empty()
	}

	if machine == "" && p.Host != nil {
		return path.Root("replicas")
	}

	if machine == "" {
		return path.Root("machines")
	}

	m := p.Machines[machine]

	if p.Host != nil {
		return m.Group.At.AtName("replicas")
	}

	return m.Group.At.AtName("machines").AtMapKey(m.key)
}
