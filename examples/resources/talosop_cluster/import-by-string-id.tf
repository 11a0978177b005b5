# The id contains the secrets and the addresses of the machines. The import reads everything else from the machines.
import {
  to = talosop_cluster.prod
  id = jsonencode({
    secrets       = "secrets.yaml"
    control_plane = { cp-1 = "10.0.0.11", cp-2 = "10.0.0.12", cp-3 = "10.0.0.13" }
    workers       = { batch = { w-1 = "10.0.0.21", w-2 = "10.0.0.22" } }
  })
}
