# The id contains the secrets and the address of the machine. The import reads everything else from the machines.
import {
  for_each = local.workers # and local.control_planes, to talosop_machine.control_plane

  to = talosop_machine.worker[each.key]
  id = jsonencode({
    secrets       = "secrets.yaml"
    control_plane = local.control_planes # machines in this map become control planes, others become workers
    machines      = { (each.key) = each.value }
  })
}
