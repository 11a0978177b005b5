package controllers

import (
	"github.com/siderolabs/talos/pkg/machinery/resources/k8s"

	"github.com/talosop/terraform-provider-talosop/internal/sim/machined"
)

// components are the configurations of what runs in static pods.
type components struct {
	api       k8s.APIServerConfigSpec
	manager   k8s.ControllerManagerConfigSpec
	scheduler k8s.SchedulerConfigSpec
}

// component is the input for rendering one static pod.
type component struct {
	id, version, image string
	enabled            bool
	command            []string
}

// publishComponents writes the configurations of the components. From Talos 1.14 on, it also writes their final
// forms with whole command lines, from which the pods are rendered (k8s/control_plane_final.go).
func (c *Controllers) publishComponents(all components) {
	c.publishAs("", all)

	if !c.Since(1, 14) {
		return
	}

	all.api.Args, all.api.ExtraArgs = command(k8s.APIServerID, all.api.ExtraArgs), nil

	all.manager = k8s.ControllerManagerConfigSpec{
		Enabled: all.manager.Enabled, Image: all.manager.Image, ExtraVolumes: all.manager.ExtraVolumes,
		EnvironmentVariables: all.manager.EnvironmentVariables, Resources: all.manager.Resources,
		Args: command(k8s.ControllerManagerID, all.manager.ExtraArgs),
	}
	if !all.manager.Enabled {
		all.manager = k8s.ControllerManagerConfigSpec{}
	}

	all.scheduler.Args, all.scheduler.ExtraArgs = command(k8s.SchedulerID, all.scheduler.ExtraArgs), nil
	if !all.scheduler.Enabled {
		all.scheduler = k8s.SchedulerConfigSpec{}
	}

	c.publishAs(k8s.FinalPrefix, all)
}

func (c *Controllers) publishAs(prefix string, all components) {
	machined.Modify(c.Boot, k8s.NewAPIServerConfig(prefix+k8s.APIServerConfigID),
		func(r *k8s.APIServerConfig) { *r.TypedSpec() = all.api })
	machined.Modify(c.Boot, k8s.NewControllerManagerConfig(prefix+k8s.ControllerManagerConfigID),
		func(r *k8s.ControllerManagerConfig) { *r.TypedSpec() = all.manager })
	machined.Modify(c.Boot, k8s.NewSchedulerConfig(prefix+k8s.SchedulerConfigID),
		func(r *k8s.SchedulerConfig) { *r.TypedSpec() = all.scheduler })
}

// rendered is what the static pods are rendered from now: kube-apiserver, kube-controller-manager, kube-scheduler.
func (c *Controllers) rendered() (all [3]component, err error) {
	prefix := ""
	if c.Since(1, 14) {
		prefix = k8s.FinalPrefix
	}

	api, manager, scheduler := &all[0], &all[1], &all[2]

	api.version, err = machined.Read(c.Boot, k8s.NewAPIServerConfig(prefix+k8s.APIServerConfigID),
		func(r *k8s.APIServerConfig) {
			spec := r.TypedSpec()
			api.id, api.enabled, api.image = k8s.APIServerID, true, spec.Image
			api.command = commandOf(api.id, spec.Args, spec.ExtraArgs)
		})
	if err != nil {
		return all, err
	}

	manager.version, err = machined.Read(c.Boot, k8s.NewControllerManagerConfig(prefix+k8s.ControllerManagerConfigID),
		func(r *k8s.ControllerManagerConfig) {
			spec := r.TypedSpec()
			manager.id, manager.enabled, manager.image = k8s.ControllerManagerID, spec.Enabled, spec.Image
			manager.command = commandOf(manager.id, spec.Args, spec.ExtraArgs)
		})
	if err != nil {
		return all, err
	}

	scheduler.version, err = machined.Read(c.Boot, k8s.NewSchedulerConfig(prefix+k8s.SchedulerConfigID),
		func(r *k8s.SchedulerConfig) {
			spec := r.TypedSpec()
			scheduler.id, scheduler.enabled, scheduler.image = k8s.SchedulerID, spec.Enabled, spec.Image
			scheduler.command = commandOf(scheduler.id, spec.Args, spec.ExtraArgs)
		})

	return all, err
}

// commandOf is the command line of a configuration, whole or to be made of its arguments.
func commandOf(id string, whole []string, extra map[string]k8s.ArgValues) []string {
	if whole != nil {
		return whole
	}

	return command(id, extra)
}

func command(id string, extra map[string]k8s.ArgValues) []string {
	args := make(map[string][]string, len(extra))
	for name, v := range extra {
		args[name] = v.Values
	}

	return append([]string{"/usr/local/bin/" + id}, flags(args)...)
}
