# Tests of the module, which need neither clusters nor charts: tofu test, or terraform test.

mock_provider "talosop" {}

variables {
  clusters = {
    eu  = { labels = { tier = "prod", region = "eu" }, variables = { replicas = "3" } }
    us  = { labels = { tier = "prod", region = "us" }, variables = { replicas = "2" }, values = { ingress = "replicas: 5" } }
    dev = { labels = { tier = "test" } }
  }
  handles = {
    for name in ["eu", "us", "dev"] : name => { name = name, endpoint = "https://${name}.example.com:6443" }
  }
  addons = {
    metrics = { chart = "./metrics" }
    ingress = {
      chart    = "./ingress"
      selector = { match_labels = { tier = "prod" } }
      values   = "host: $${cluster}.example.com\nregion: $${labels.region}\nreplicas: $${variables.replicas}\n"
    }
    backup = { chart = "./backup", selector = { match_expressions = [{ key = "region", operator = "In", values = ["eu", "asia"] }] } }
    debug  = { chart = "./debug", selector = { match_expressions = [{ key = "tier", operator = "NotIn", values = ["prod"] }] } }
    global = { chart = "./global", selector = { match_expressions = [{ key = "region", operator = "DoesNotExist" }] } }
    local = {
      chart    = "./local"
      selector = { match_labels = { tier = "prod" }, match_expressions = [{ key = "region", operator = "Exists" }, { key = "region", operator = "NotIn", values = ["eu"] }] }
    }
  }
}

run "selectors" {
  assert {
    condition     = join(" ", keys(talosop_addon.this)) == "dev/debug dev/global dev/metrics eu/backup eu/ingress eu/metrics us/ingress us/local us/metrics"
    error_message = "Selected ${join(" ", keys(talosop_addon.this))}."
  }

  assert {
    condition     = output.releases.dev.debug.version != "" && length(output.releases.us) == 3
    error_message = "The releases are ${jsonencode(output.releases)}."
  }
}

run "values" {
  assert {
    condition     = talosop_addon.this["eu/ingress"].values == tolist(["host: eu.example.com\nregion: eu\nreplicas: 3\n"])
    error_message = "Found ${jsonencode(talosop_addon.this["eu/ingress"].values)}."
  }

  assert {
    condition     = talosop_addon.this["us/ingress"].values == tolist(["host: us.example.com\nregion: us\nreplicas: 2\n", "replicas: 5"])
    error_message = "Found ${jsonencode(talosop_addon.this["us/ingress"].values)}."
  }
}

run "a_label_changes" {
  variables {
    clusters = {
      eu  = { labels = { region = "eu" } }
      us  = { labels = { tier = "prod", region = "us" }, variables = { replicas = "2" } }
      dev = { labels = { tier = "prod", region = "asia" }, variables = { replicas = "1" } }
    }
  }

  assert {
    condition     = join(" ", keys(talosop_addon.this)) == "dev/backup dev/ingress dev/local dev/metrics eu/backup eu/debug eu/metrics us/ingress us/local us/metrics"
    error_message = "Selected ${join(" ", keys(talosop_addon.this))}."
  }
}

run "an_operator_is_refused" {
  command = plan

  variables {
    addons = { debug = { chart = "./debug", selector = { match_expressions = [{ key = "tier", operator = "Exists", values = ["prod"] }] } } }
  }

  expect_failures = [var.addons]
}
