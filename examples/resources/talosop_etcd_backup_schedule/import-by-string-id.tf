# The id says where the secrets and the control planes are, and which schedule it is. The next apply makes its objects what the configuration says.
import {
  to = talosop_etcd_backup_schedule.nightly
  id = jsonencode({
    secrets       = "secrets.yaml"
    control_plane = { cp-1 = "10.0.0.11", cp-2 = "10.0.0.12", cp-3 = "10.0.0.13" } # all of them: they are in the handle
    namespace     = "talosop-backup"
    name          = "nightly"
  })
}
