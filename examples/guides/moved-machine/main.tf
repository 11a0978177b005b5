variable "cluster" {
  description = "The cluster handle."
  type        = any
  sensitive   = true
}

resource "talosop_machine" "plane" {
  for_each = { rack-1 = "10.0.0.11", cp-2 = "10.0.0.12", cp-3 = "10.0.0.13" } # rack-1 was cp-1

  cluster       = var.cluster
  name          = each.key
  role          = "controlplane"
  address       = each.value
  talos_version = "v1.14.1"
  install       = { disk = "/dev/sda" }
}

moved {
  from = talosop_machine.plane["cp-1"]
  to   = talosop_machine.plane["rack-1"]
}
