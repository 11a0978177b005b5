# The cluster handle: an output of the stack that creates the control plane, or talosop_control_plane.prod.cluster.
variable "cluster" {
  type      = any
  sensitive = true
}

variable "batch_nodes" {
  description = "Addresses of the workers by name."
  type        = map(string)
}

resource "talosop_worker" "batch" {
  cluster       = var.cluster
  name          = "batch"
  talos_version = "v1.14.1"

  machines = {
    for name, address in var.batch_nodes : name => {
      address = address
      meta    = { user_1 = "batch" } # survives resets, and clients can read it in maintenance mode
    }
  }

  # Any NVMe disk of sufficient size.
  install = { disk_selector = { type = "nvme", size = ">= 500GB" } }

  labels  = { "example.com/pool" = "batch" }
  sysctls = { "vm.max_map_count" = "262144" }

  lifecycle {
    postcondition {
      condition     = self.phase == "Ready"
      error_message = "The workers are ${self.phase}. Apply again to continue."
    }
  }
}
