# The id contains the secrets, the control planes and the name of the schedule. The next apply updates its objects to the configuration.
import {
  to = talosop_etcd_backup_schedule.nightly
  id = jsonencode({
    secrets       = "secrets.yaml"
    control_plane = { cp-1 = "10.0.0.11", cp-2 = "10.0.0.12", cp-3 = "10.0.0.13" } # list all control planes, for the handle
    namespace     = "talosop-backup"
    name          = "nightly"
  })
}
