include "root" {
  path = find_in_parent_folders("root.hcl")
}

locals {
  site = yamldecode(file(find_in_parent_folders("site.yaml")))
}

terraform {
  source = "${dirname(find_in_parent_folders("root.hcl"))}/../modules//cluster"
}

inputs = {
  name                = local.site.name
  endpoint            = local.site.endpoint
  control_planes      = local.site.control_planes
  deletion_protection = local.site.deletion_protection
}
