# The id says where the secrets and the machine are; everything else is read from the machines.
import {
  for_each = local.workers # and local.control_planes, to talosop_machine.control_plane

  to = talosop_machine.worker[each.key]
  id = jsonencode({
    secrets       = "secrets.yaml"
    control_plane = local.control_planes # a machine that is among them is imported as a control plane
    machines      = { (each.key) = each.value }
  })
}
