# terraform query lists members of the clusters in `clusters` of the provider, machines in maintenance mode, and machines of other
# clusters.
list "talosop_machine" "rack" {
  provider = talosop

  config {
    networks = ["10.0.0.0/24"]
  }
}

# terraform query -generate-config-out=prod.tf writes the members of a cluster with their import blocks.
list "talosop_machine" "prod" {
  provider         = talosop
  include_resource = true

  config {
    addresses   = ["10.0.0.11", "10.0.0.12", "10.0.0.13", "10.0.0.21"]
    cluster     = "prod"
    maintenance = false
  }
}
