import {
  to = talosop_control_plane.prod
  identity = {
    cluster  = "prod"
    machines = ["cp-1=10.0.0.11", "cp-2=10.0.0.12", "cp-3=10.0.0.13"]
  }
}
