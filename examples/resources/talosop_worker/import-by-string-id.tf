# The id contains the secrets and the addresses of the machines. The import reads everything else from the machines.
import {
  to = talosop_worker.batch
  id = jsonencode({
    secrets       = "secrets.yaml"
    name          = "batch"
    control_plane = { cp-1 = "10.0.0.11", cp-2 = "10.0.0.12", cp-3 = "10.0.0.13" } # list all control planes, for the handle
    machines      = { batch-1 = "10.0.0.21", batch-2 = "10.0.0.22" }
  })
}
