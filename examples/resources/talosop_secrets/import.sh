terraform import talosop_secrets.prod secrets.yaml
