include "root" {
  path = find_in_parent_folders("root.hcl")
}

locals {
  site = yamldecode(file(find_in_parent_folders("site.yaml")))
}

terraform {
  source = "${dirname(find_in_parent_folders("root.hcl"))}/../modules//workers"
}

# Applied after the cluster, and destroyed before it: its machines leave a cluster that lives. It has no mock_outputs: the configurations
# of workers need the secrets of their cluster, and so each unit is planned when it is its turn in run --all apply.
dependency "cluster" {
  config_path = "../cluster"
}

inputs = {
  cluster = dependency.cluster.outputs.cluster
  pools   = local.site.pools
}
