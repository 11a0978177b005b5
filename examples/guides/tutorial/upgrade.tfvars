talos_version = "v1.14.1"
pool          = ["worker-1", "worker-2"]
