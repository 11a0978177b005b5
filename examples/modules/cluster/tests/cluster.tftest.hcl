# Tests of the module. The first runs only plan and need no machines. The last run creates a cluster on the given machines,
# and destroys it, which wipes them:
#
#   tofu test -var 'endpoint=https://192.168.1.11:6443' -var 'control_planes={"cp-1":{"address":"192.168.1.11"}}'

variables {
  name                = "test"
  deletion_protection = false
}

run "virtual_ip_is_the_endpoint" {
  command = plan

  variables {
    endpoint       = null
    virtual_ip     = { address = "192.0.2.10", link = "eth0" }
    control_planes = { for n in [1, 2, 3] : "cp-${n}" => { address = "192.0.2.1${n}" } }
    workers        = { batch = { w-1 = { address = "192.0.2.21", uuid = "4c4c4544-0000-2010-8020-80c04f202020" } } }
  }

  assert {
    condition     = talosop_cluster.this.endpoint == "https://192.0.2.10:6443"
    error_message = "The endpoint is ${talosop_cluster.this.endpoint}."
  }

  assert {
    condition     = talosop_cluster.this.control_plane.vip.address == "192.0.2.10"
    error_message = "No control plane holds the virtual IP."
  }

  assert {
    condition     = contains(talosop_cluster.this.operations, "bootstrap etcd on cp-1")
    error_message = "The plan is ${jsonencode(talosop_cluster.this.operations)}."
  }
}

run "an_even_number_is_refused" {
  command = plan

  variables {
    endpoint       = "https://192.0.2.10:6443"
    control_planes = { for n in [1, 2] : "cp-${n}" => { address = "192.0.2.1${n}" } }
  }

  expect_failures = [var.control_planes]
}

run "two_endpoints_are_refused" {
  command = plan

  variables {
    endpoint       = "https://192.0.2.10:6443"
    virtual_ip     = { address = "192.0.2.10", link = "eth0" }
    control_planes = { cp-1 = { address = "192.0.2.11" } }
  }

  expect_failures = [var.virtual_ip]
}

run "cluster" {
  assert {
    condition     = output.phase == "Ready" && length(output.nodes) == length(talosop_cluster.this.control_plane.machines)
    error_message = "The cluster is ${output.phase}, with ${jsonencode(output.nodes)}."
  }
}
