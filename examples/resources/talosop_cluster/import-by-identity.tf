import {
  to = talosop_cluster.prod
  identity = {
    cluster       = "prod"
    control_plane = ["cp-1=10.0.0.11", "cp-2=10.0.0.12", "cp-3=10.0.0.13"]
    workers       = ["batch/w-1=10.0.0.21", "batch/w-2=10.0.0.22"]
  }
}
