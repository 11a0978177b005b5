# The second root module: pools of workers, for the cluster of the first one. Each pool is an object, so that one of them can be
# planned and applied alone (-target 'module.workers.talosop_worker.this["batch"]').

terraform {
  required_version = ">= 1.11"
}

variable "pools" {
  description = "Addresses of the machines by pool and name."
  type        = map(map(string))
}

# Where the first one keeps its state: here a file beside it, else a bucket (backend = "s3", …).
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
