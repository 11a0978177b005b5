# The id says where the secrets and the machines are; everything else is read from the machines.
import {
  to = talosop_worker.batch
  id = jsonencode({
    secrets       = "secrets.yaml"
    name          = "batch"
    control_plane = { cp-1 = "10.0.0.11", cp-2 = "10.0.0.12", cp-3 = "10.0.0.13" } # all of them: they are in the handle
    machines      = { batch-1 = "10.0.0.21", batch-2 = "10.0.0.22" }
  })
}
