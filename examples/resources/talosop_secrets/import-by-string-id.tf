# The id is the path of a file from `talosctl gen secrets`, or of the configuration of a control plane machine.
import {
  to = talosop_secrets.prod
  id = "secrets.yaml"
}
