# A Terragrunt stack of two units: the cluster, and its workers, which get the handle of the cluster as an input. What both have in
# common is here; site.yaml has the machines.
#
#   terragrunt run --all apply

remote_state {
  backend = "local" # or s3, …: state has the secrets of the cluster, and so has what Terragrunt passes on between the units

  generate = {
    path      = "backend.tf"
    if_exists = "overwrite_terragrunt"
  }

  config = {
    path = "${get_terragrunt_dir()}/terraform.tfstate"
  }
}
