terraform import talosop_control_plane.prod \
  '{"secrets": "secrets.yaml", "machines": {"cp-1": "10.0.0.11", "cp-2": "10.0.0.12", "cp-3": "10.0.0.13"}}'
