package tftest

import (
	"maps"
)

// WrittenHandle is a handle that is written by hand. No server listens at its Kubernetes API.
func WrittenHandle(endpoints ...any) Config {
	return Config{"name": "prod", "endpoint": "https://127.0.0.1:1", "secrets": Bundle(),
		"talos_endpoints": endpoints}
}

// Certificate is a certificate in PEM that no authority signed.
const Certificate = `-----BEGIN CERTIFICATE-----
MIIBejCCASGgAwIBAgIUJcPsW8jJ0dPgGmH0y9bHkFvVqjwwCgYIKoZIzj0EAwIw
-----END CERTIFICATE-----
`

// BaseMachine is a valid configuration of talosop_machine: a control plane that bootstraps etcd, in a cluster that
// is described by hand.
func BaseMachine() Config {
	base := BaseWorker()
	delete(base, "machines")

	With(base, []any{"10.0.0.11", "10.0.0.12"}, "cluster", "talos_endpoints")
	maps.Copy(base, Config{"role": "controlplane", "name": "cp-1", "address": "10.0.0.11", "bootstrap": true})

	return base
}

// BaseControlPlane is a valid configuration of talosop_control_plane.
func BaseControlPlane() Config {
	return Config{
		"mode": "metal", "name": "prod", "endpoint": "https://10.0.0.10:6443", "secrets": Bundle(),
		"talos_version": "v1.13.0", "kubernetes_version": "v1.35.2",
		"install": Config{"disk": "/dev/sda"},
		"machines": Config{
			"cp-1": Config{"address": "10.0.0.11"},
			"cp-2": Config{"address": "10.0.0.12"},
			"cp-3": Config{"address": "10.0.0.13"},
		},
	}
}

// BaseWorker is a valid configuration of talosop_worker, with a handle written by hand.
func BaseWorker() Config {
	return Config{
		"talos_version": "v1.13.0",
		"install":       Config{"disk": "/dev/sda"},
		"cluster": Config{
			"name": "prod", "endpoint": "https://10.0.0.10:6443", "secrets": Bundle(), "kubernetes_version": "v1.35.2",
			"version_contract": "v1.13", "talos_endpoints": []any{"10.0.0.11"},
		},
		"machines": Config{"w-1": Config{"address": "10.0.0.21"}, "w-2": Config{"address": "10.0.0.22"}},
	}
}

// BaseCluster is a valid configuration of talosop_cluster.
func BaseCluster() Config {
	base := BaseControlPlane()

	base["control_plane"] = Config{"install": base["install"], "machines": base["machines"]}
	base["workers"] = Config{
		"batch": Config{
			"install": Config{"disk": "/dev/sda"},
			"machines": Config{"w-1": Config{"address": "10.0.0.21"},
				"w-2": Config{"address": "10.0.0.22"}},
		},
		"gpu": Config{
			"install":       Config{"disk": "/dev/nvme0n1"},
			"talos_version": "v1.13.0",
			"machines":      Config{"w-1": Config{"address": "10.0.0.31"}},
		},
	}

	delete(base, "install")
	delete(base, "machines")

	return base
}

// BaseSecrets is secrets in a state.
func BaseSecrets(protection any) Config {
	return Config{
		"id": "aW4gc3RhdGU=", "cluster_id": "aW4gc3RhdGU=", "bundle": Bundle(), "authorities": Config{},
		"deletion_protection": protection,
	}
}

// BaseMachineConfig is a valid configuration of talosop_machine_config, with a handle written by hand.
func BaseMachineConfig() Config {
	base := BaseWorker()
	delete(base, "machines")

	return base
}

// RestoringFrom restores a snapshot of a bucket; without a key it restores nothing.
func RestoringFrom(config Config, key any) Config {
	return With(config, Config{"s3": Config{"bucket": "backups", "key": key,
		"region": "eu-central-1"}},
		"restore_from")
}
