package machineconfig

import (
	"cmp"
	"fmt"
	"strings"
	"testing"

	coreconfig "github.com/siderolabs/talos/pkg/machinery/config"

	"github.com/talosop/terraform-provider-talosop/internal/machineconfig/system"
)

// spoken is what Talos reads of a configuration, in either form.
var spoken = map[string]func(coreconfig.Provider) string{
	"hostname": func(p coreconfig.Provider) string {
		return cmp.Or(p.NetworkHostnameConfig().Hostname(), p.NetworkHostnameConfig().AutoHostname().String())
	},
	"time": func(p coreconfig.Provider) string {
		found := p.NetworkTimeSyncConfig()

		return fmt.Sprint(found.Disabled(), found.Servers())
	},
	"discovery": func(p coreconfig.Provider) string {
		text := ""
		for _, found := range p.DiscoveryServiceConfigs() {
			text += found.Endpoint().String()
		}

		return text
	},
	"image cache": func(p coreconfig.Provider) string { return fmt.Sprint(p.ImageCacheConfig().LocalEnabled()) },
	"install": func(p coreconfig.Provider) string {
		image, disk := installationOf(p)

		return image + " " + strings.TrimSuffix(strings.TrimPrefix(disk.String(), `disk.dev_path == "`), `"`)
	},
	"mirror": func(p coreconfig.Provider) string {
		text := ""
		for _, endpoint := range p.RegistryMirrorConfigs()["docker.io"].Endpoints() {
			text += endpoint.Endpoint()
		}

		return text
	},
	"auth": func(p coreconfig.Provider) string { return p.RegistryAuthConfigs()["r.test"].Username() },
	"tls": func(p coreconfig.Provider) string {
		return fmt.Sprint(p.RegistryTLSConfigs()["r.test"].InsecureSkipVerify())
	},
	"encryption": func(p coreconfig.Provider) string {
		keys := []string{}

		if old := p.Machine().SystemDiskEncryption().Get("EPHEMERAL"); old != nil {
			for _, key := range old.Keys() {
				keys = append(keys, string(key.Static().Key()))
			}
		}

		if volume, ok := p.Volumes().ByName("EPHEMERAL"); ok && volume.Encryption() != nil {
			for _, key := range volume.Encryption().Keys() {
				keys = append(keys, string(key.Static().Key()))
			}
		}

		return fmt.Sprint(keys)
	},
	"kubeprism": func(p coreconfig.Provider) string { return fmt.Sprint(p.K8sKubePrismConfig().Port()) },
	"dns": func(p coreconfig.Provider) string {
		return fmt.Sprint(p.NetworkHostDNSConfig().ForwardKubeDNSToHost(), p.NetworkHostDNSConfig().ResolveMemberNames())
	},
}

// everySetting is a cluster and a machine with all that talosop writes beyond what talosctl generates.
func everySetting(contract string) (Cluster, Machine) {
	c, m := testCluster(contract), testMachine(ControlPlane)
	c.AirGapped, c.Discovery, c.ImageCache = true, new(true), true
	c.Registries = Registries{
		Mirrors: map[string]RegistryMirror{"docker.io": {Endpoints: []RegistryEndpoint{{URL: "https://setting.test"}}}},
		Auth:    map[string]RegistryAuth{"r.test": {Username: "setting", Password: "p"}},
		TLS:     map[string]RegistryTLS{"r.test": {InsecureSkipVerify: true}},
	}
	m.Hostname = "setting"
	m.Install.Image = "setting.test/installer:v1.14.1"
	m.System.Volumes = map[string]system.Volume{
		"EPHEMERAL": {EncryptionKeys: map[string]system.Key{"0": {Passphrase: "setting"}}}}

	return c, m
}

type twoFormsTest struct{ what, field, document, want string }

// own is the form in which a patch is merged with the setting, for lists that are appended.
func (t twoFormsTest) own(contract string) string {
	since := map[string]string{"mirror": "v1.12", "encryption": "v1.11"}[t.what]

	if t.what == "discovery" && t.want != "" && contract == "v1.14" {
		return "field" // the main document then needs the identity, which no setting is
	}

	switch {
	case since == "":
		return ""
	case contract >= since:
		return "document"
	default:
		return "field"
	}
}

// Settings of talosop yield to those of patches, in the form of the contract and in the other one.
func TestSettle_bothForms(t *testing.T) {
	const document = "apiVersion: v1alpha1\nkind: "

	for _, test := range []twoFormsTest{
		{"hostname", "machine: {network: {hostname: patch}}", "HostnameConfig\nhostname: patch\nauto: 'off'\n", "patch"},
		{"hostname", "", "HostnameConfig\nauto: stable\n", "stable"},
		{"hostname", "machine: {features: {stableHostname: true}}", "", "setting"},
		{"time", "machine: {time: {servers: [patch.test]}}", "TimeSyncConfig\nntp: {servers: [patch.test]}\n",
			"false [patch.test]"},
		{"discovery", "cluster: {discovery: {enabled: true, registries: {service: {endpoint: 'https://patch.test/'}}}}",
			"DiscoveryServiceConfig\nname: default\nendpoint: https://patch.test/\n", "https://patch.test/"},
		{"discovery", "cluster: {discovery: {enabled: false}}", "", ""},
		{"image cache", "machine: {features: {imageCache: {localEnabled: false}}}",
			"ImageCacheConfig\nlocal: {enabled: false}\n", "false"},
		{"install", "machine: {install: {image: 'patch.test/installer:v1.14.1'}}",
			"UnattendedInstallConfig\ninstaller: {image: 'patch.test/installer:v1.14.1'}\n",
			"patch.test/installer:v1.14.1 /dev/sda"},
		{"mirror", "machine: {registries: {mirrors: {docker.io: {endpoints: [https://patch.test]}}}}",
			"RegistryMirrorConfig\nname: docker.io\nendpoints: [{url: https://patch.test}]\n", "https://patch.test"},
		{"auth", "machine: {registries: {config: {r.test: {auth: {username: patch, password: p}}}}}",
			"RegistryAuthConfig\nname: r.test\nusername: patch\npassword: p\n", "patch"},
		{"tls", "machine: {registries: {config: {r.test: {tls: {insecureSkipVerify: false}}}}}",
			"RegistryTLSConfig\nname: r.test\ninsecureSkipVerify: false\n", "false"},
		{"encryption",
			"machine: {systemDiskEncryption: {ephemeral: {provider: luks2, keys: [{slot: 0, static: {passphrase: patch}}]}}}",
			"VolumeConfig\nname: EPHEMERAL\nencryption: {provider: luks2, keys: [{slot: 0, static: {passphrase: patch}}]}\n",
			"[patch]"},
		{"kubeprism", "machine: {features: {kubePrism: {enabled: true, port: 7777}}}",
			"KubePrismConfig\nport: 7777\n",
			"7777"},
		{"dns", "", "ResolverConfig\nhostDNS: {enabled: true, forwardKubeDNSToHost: true, resolveMemberNames: true}\n",
			"true true"},
	} {
		for _, contract := range []string{"v1.10", "v1.11", "v1.12", "v1.13", "v1.14"} {
			for form, patch := range map[string]string{"field": test.field, "document": document + test.document} {
				if patch == "" || patch == document || form == test.own(contract) {
					continue
				}

				t.Run(test.what+" as "+form+" with "+contract, func(t *testing.T) {
					c, m := everySetting(contract)
					c.Patches = []string{patch}

					config, err := Generate(c, m, testBundle(t))
					if err != nil {
						t.Fatal(err)
					}

					provider, err := knownIn(config.Bytes)
					if err != nil {
						t.Fatal(err)
					}

					if got := spoken[test.what](provider); got != test.want {
						t.Errorf("Talos reads %q, want %q", got, test.want)
					}
				})
			}
		}
	}
}

// A patch that names a disk goes before the selector of the settings, which Talos would take where both are there.
func TestSettle_diskBeforeSelector(t *testing.T) {
	for _, contract := range []string{"v1.11", "v1.13", "v1.14"} {
		c, m := testCluster(contract), testMachine(Worker)
		m.Install = Install{DiskSelector: &DiskSelector{Type: "ssd"}, Wipe: true}
		c.Patches = []string{"machine: {install: {disk: /dev/sdb}}"}

		provider, err := knownIn(generated(t, c, m).Bytes)
		if err != nil {
			t.Fatal(err)
		}

		install := provider.Machine().Install()
		if _, disk := installationOf(provider); disk.String() != "/dev/sdb" || !install.Zero() {
			t.Errorf("%s: disk %s, wipe %t", contract, disk, install.Zero())
		}
	}
}
