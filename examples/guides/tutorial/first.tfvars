talos_version = "v1.14.0"
pool          = ["worker-1"]
