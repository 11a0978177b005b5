terraform import talosop_cluster.prod \
  '{"secrets": "secrets.yaml", "control_plane": {"cp-1": "10.0.0.11"}, "workers": {"batch": {"w-1": "10.0.0.21", "w-2": "10.0.0.22"}}}'
