import {
  to = talosop_worker.batch
  identity = {
    cluster       = "prod"
    name          = "batch"
    control_plane = ["10.0.0.11", "10.0.0.12", "10.0.0.13"]
    machines      = ["batch-1=10.0.0.21", "batch-2=10.0.0.22"]
  }
}
