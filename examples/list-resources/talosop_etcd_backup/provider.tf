variable "prod_secrets" {
  type      = string
  sensitive = true
}

provider "talosop" {
  clusters = { prod = { secrets = var.prod_secrets } }
}
