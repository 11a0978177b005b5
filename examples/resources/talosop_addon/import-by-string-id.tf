# The id says how the cluster is reached and where the chart comes from; everything else is read from Helm's record of the release.
import {
  to = talosop_addon.shop
  id = jsonencode({
    secrets       = "secrets.yaml"
    control_plane = { cp-1 = "10.0.0.11", cp-2 = "10.0.0.12", cp-3 = "10.0.0.13" } # all of them: they are in the handle
    namespace     = "shop"
    name          = "shop"
    chart         = "oci://registry.example.com/charts/shop"
    version       = "2.4.1"
  })
}
