removed {
  from = talosop_control_plane.this
  lifecycle {
    destroy = false
  }
}
