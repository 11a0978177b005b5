# Addons for several clusters. Labels of the clusters select the addons of each, as label selectors of Kubernetes select objects, and
# templates give each cluster its own values. A cluster whose labels no longer match loses the addon.

terraform {
  required_version = ">= 1.11"
  required_providers {
    talosop = { source = "talosop/talosop" }
  }
}

locals {
  # One release for each addon and cluster that its selector matches.
  releases = merge([
    for addon, a in var.addons : {
      for cluster, c in var.clusters : "${cluster}/${addon}" => { addon = addon, cluster = cluster, settings = a }
      if !contains(concat(
        [for key, value in a.selector.match_labels : try(c.labels[key], null) == value],
        [
          for e in a.selector.match_expressions : {
            In           = try(contains(e.values, c.labels[e.key]), false)
            NotIn        = !try(contains(e.values, c.labels[e.key]), false)
            Exists       = can(c.labels[e.key])
            DoesNotExist = !can(c.labels[e.key])
          }[e.operator]
        ],
      ), false)
    }
  ]...)
}

resource "talosop_addon" "this" {
  for_each = local.releases

  cluster    = var.handles[each.value.cluster]
  name       = coalesce(each.value.settings.release, each.value.addon)
  namespace  = each.value.settings.namespace
  chart      = each.value.settings.chart
  repository = each.value.settings.repository
  version    = each.value.settings.version
  adopt      = each.value.settings.adopt

  # The template of the addon, then what the cluster has for it. Later values win.
  values = concat(
    each.value.settings.values == null ? [] : [
      templatestring(each.value.settings.values, {
        cluster   = each.value.cluster
        labels    = var.clusters[each.value.cluster].labels
        variables = var.clusters[each.value.cluster].variables
      })
    ],
    [for addon, values in var.clusters[each.value.cluster].values : values if addon == each.value.addon],
  )
}
