include "root" {
  path = find_in_parent_folders("root.hcl")
}

locals {
  site = yamldecode(file(find_in_parent_folders("site.yaml")))
}

terraform {
  source = "${dirname(find_in_parent_folders("root.hcl"))}/../modules//workers"
}

# Runs after the cluster, and is destroyed before it, so its machines leave a running cluster. There are no mock_outputs, because worker
# configurations need the secrets of their cluster. run --all apply plans each unit when its turn comes.
dependency "cluster" {
  config_path = "../cluster"
}

inputs = {
  cluster = dependency.cluster.outputs.cluster
  pools   = local.site.pools
}
