# A Terragrunt stack of two units: the cluster, and its workers, which get the cluster handle as an input. This file has the common
# settings, and site.yaml has the machines.
#
#   terragrunt run --all apply

remote_state {
  backend = "local" # or s3, …; state and the data that Terragrunt passes between units contain the secrets of the cluster

  generate = {
    path      = "backend.tf"
    if_exists = "overwrite_terragrunt"
  }

  config = {
    path = "${get_terragrunt_dir()}/terraform.tfstate"
  }
}

# Follow a unit with `tail -f cluster/progress.jsonl.txt`.
generate "provider" {
  path      = "provider.tf"
  if_exists = "overwrite_terragrunt"

  contents = <<-EOT
    provider "talosop" {
      progress_file = "${get_terragrunt_dir()}/progress.jsonl"
    }
  EOT
}
