# The id contains the connection to the cluster and the source of the chart. The import reads everything else from Helm's release record.
import {
  to = talosop_addon.shop
  id = jsonencode({
    secrets       = "secrets.yaml"
    control_plane = { cp-1 = "10.0.0.11", cp-2 = "10.0.0.12", cp-3 = "10.0.0.13" } # list all control planes, for the handle
    namespace     = "shop"
    name          = "shop"
    chart         = "oci://registry.example.com/charts/shop"
    version       = "2.4.1"
  })
}
