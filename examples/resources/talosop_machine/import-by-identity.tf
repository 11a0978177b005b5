import {
  to = talosop_machine.worker["w-1"]
  identity = {
    cluster       = "prod"
    control_plane = ["10.0.0.11", "10.0.0.12", "10.0.0.13"]
    machines      = ["w-1=10.0.0.21"]
  }
}
