output "releases" {
  description = "The releases by cluster and addon, with their status and the version of their chart."
  value = {
    for cluster in keys(var.clusters) : cluster => {
      for key, release in local.releases : release.addon => {
        status  = talosop_addon.this[key].status
        version = talosop_addon.this[key].chart_version
      } if release.cluster == cluster
    }
  }
}
