# The second root module: worker pools for the cluster of the first one. Each pool is a separate object, so you can plan and apply
# one pool alone (-target 'module.workers.talosop_worker.this["batch"]').

terraform {
  required_version = ">= 1.11"
  required_providers {
    talosop = { source = "talosop/talosop" }
  }
}

provider "talosop" {
  progress_file = "${path.root}/progress.jsonl" # tail -f progress.jsonl.txt shows the progress of an apply
}

variable "pools" {
  description = "Addresses of the machines by pool and name."
  type        = map(map(string))
}

# The state of the first root module: here a local file, otherwise a bucket (backend = "s3", …).
data "terraform_remote_state" "cluster" {
  backend = "local"
  config  = { path = "../cluster/terraform.tfstate" }
}

module "workers" {
  source = "../../../modules/workers"

  cluster = data.terraform_remote_state.cluster.outputs.cluster
  pools   = var.pools
}

output "phases" {
  value = module.workers.phases
}
