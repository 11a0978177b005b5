package sitetest

import (
	"fmt"
	"slices"
	"strings"

	"github.com/talosop/terraform-provider-talosop/internal/sim"
)

// MachinesHCL lists machines as the argument does.
func MachinesHCL(machines []*sim.Machine) string {
	var b strings.Builder
	for _, m := range machines {
		fmt.Fprintf(&b, "    %s = { address = %q }\n", m.Name(), m.Address())
	}

	return b.String()
}

// SecretsHCL is secrets without protection.
const SecretsHCL = `
resource "talosop_secrets" "this" {
  deletion_protection = false
}
`

// ControlPlaneHCL is a control plane without protection; extra is additional arguments.
func (s *Site) ControlPlaneHCL(extra string) string {
	return s.ControlPlaneOf(s.ControlPlane, extra)
}

// ControlPlaneOf is ControlPlaneHCL with the given machines of the site.
func (s *Site) ControlPlaneOf(machines []*sim.Machine, extra string) string {
	protection := "  deletion_protection = false\n"
	if strings.Contains(extra, "deletion_protection") {
		protection = ""
	}

	return fmt.Sprintf(`
resource "talosop_control_plane" "this" {
  mode               = "metal"
  name               = "test"
  endpoint           = %q
  secrets            = talosop_secrets.this.bundle
  talos_version      = "v1.13.0"
  kubernetes_version = "v1.36.2"
  install            = { disk = "/dev/sda" }
  machines = {
%s  }
%s%s
}
`, s.URL, MachinesHCL(machines), protection, extra)
}

// WorkersHCL is a pool of workers on the control plane of the configuration.
func (s *Site) WorkersHCL(extra string) string {
	return s.WorkersOf(s.Workers, extra)
}

// WorkersOf is WorkersHCL with the given machines of the site.
func (s *Site) WorkersOf(machines []*sim.Machine, extra string) string {
	return fmt.Sprintf(`
resource "talosop_worker" "this" {
  cluster       = talosop_control_plane.this.cluster
  talos_version = "v1.13.0"
  install       = { disk = "/dev/sda" }
  machines = {
%s  }
%s
}
`, MachinesHCL(machines), extra)
}

// ReplaceMachines puts text into the empty map of machines in a configuration.
func ReplaceMachines(config, machines string) string {
	return strings.Replace(config, "machines = {\n", "machines = {\n    "+machines+"\n", 1)
}

// WholeCluster is secrets, control plane and workers.
func (s *Site) WholeCluster() string {
	return SecretsHCL + s.ControlPlaneHCL("") + s.WorkersHCL("")
}

// ProviderHCL is the source of the provider for a root module.
const ProviderHCL = `
terraform {
  required_providers {
    talosop = { source = "talosop/talosop" }
  }
}
`

// TheCluster is the address of the resource of ClusterHCL.
const TheCluster = "talosop_cluster.this"

// PoolHCL is a pool of workers of talosop_cluster.
func PoolHCL(name string, machines []*sim.Machine, extra string) string {
	return fmt.Sprintf(`
    %s = {
      install  = { disk = "/dev/sda" }
      machines = {
%s      }
      %s
    }
`, name, MachinesHCL(machines), extra)
}

// ClusterHCL is a whole cluster in one resource, without protection.
func (s *Site) ClusterHCL(pools, extra string) string {
	return fmt.Sprintf(`
resource "talosop_cluster" "this" {
  mode                = "metal"
  name                = "test"
  endpoint            = %q
  secrets             = talosop_secrets.this.bundle
  talos_version       = "v1.13.0"
  kubernetes_version  = "v1.36.2"
  deletion_protection = false
  control_plane = {
    install  = { disk = "/dev/sda" }
    machines = {
%s    }
  }
  workers = {
%s  }
%s
}
`, s.URL, MachinesHCL(s.ControlPlane), pools, extra)
}

// Hanging is the timeout of runs in which a machine hangs: enough for the other machines, also on a busy computer.
const Hanging = "20s"

// Talos114 is a version whose configurations have documents in place of fields of the main document.
const Talos114 = "v1.14.1"

// OneByOneHCL is a resource for each machine, in a cluster that is described by hand: the first control plane
// bootstraps etcd.
func OneByOneHCL(s *Site, machines []*sim.Machine) string {
	var endpoints, list strings.Builder

	for _, m := range s.ControlPlane {
		fmt.Fprintf(&endpoints, "%q, ", m.Address())
	}

	for _, m := range machines {
		role := "worker"
		if slices.Contains(s.ControlPlane, m) {
			role = "controlplane"
		}

		fmt.Fprintf(&list, "    %s = { role = %q, address = %q }\n", m.Name(), role, m.Address())
	}

	return SecretsHCL + fmt.Sprintf(`
locals {
  cluster = {
    name               = "test"
    endpoint           = %q
    secrets            = talosop_secrets.this.bundle
    talos_endpoints    = [%s]
    kubernetes_version = "v1.36.2"
    version_contract   = "v1.13"
  }
  machines = {
%s  }
}

resource "talosop_machine" "this" {
  for_each      = local.machines
  cluster       = local.cluster
  name          = each.key
  role          = each.value.role
  address       = each.value.address
  bootstrap     = each.key == %q
  talos_version = "v1.13.0"
  install       = { disk = "/dev/sda" }

  deletion_protection = false
}
`, s.URL, endpoints.String(), list.String(), s.ControlPlane[0].Name())
}

// RegistryPatch is a patch with a secret, RegistryPassword.
const (
	RegistryPassword = "PASSWORD-OF-THE-REGISTRY"
	RegistryPatch    = "machine: { registries: { config: { registry.test: { auth: { username: me, password: " +
		RegistryPassword + " } } } } }"
)

// ThePlane is the address of the resource of ControlPlaneHCL.
const ThePlane = "talosop_control_plane.this"

// TwoPools is all workers of a site: the first in a separate pool.
func TwoPools(s *Site, extra string) string {
	return PoolHCL("batch", s.Workers[:1], extra) + PoolHCL("gpu", s.Workers[1:], `talos_version = "v1.13.0"`)
}
