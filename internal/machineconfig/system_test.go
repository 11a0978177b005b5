package machineconfig

import (
	"bytes"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/talosop/terraform-provider-talosop/internal/machineconfig/system"
)

func ofSystem(volumes map[string]system.Volume) system.Settings {
	return system.Settings{Volumes: volumes}
}

func withSystem(role Role, s system.Settings) Machine {
	m := testMachine(role)
	m.System = s

	return m
}

var (
	secretKey = map[string]system.Key{"0": {Passphrase: "open sesame"}}
	sealedKey = map[string]system.Key{"0": {TPM: &system.TPM{}}, "1": {NodeID: true}}

	everySystem = system.Settings{
		Volumes: map[string]system.Volume{
			"STATE": {EncryptionKeys: map[string]system.Key{"0": {TPM: &system.TPM{CheckSecureBoot: true, PCRs: []int{}}},
				"10": {KMSEndpoint: "https://kms.test:4443"}, "2": {NodeID: true}}},
			"EPHEMERAL": {MaxSize: "80%", Grow: new(false), DiskSelector: `disk.transport == "nvme"`, EncryptionKeys: map[string]system.Key{
				"0": {TPM: &system.TPM{PCRs: []int{7, 11}}, LockToState: true}, "1": {Passphrase: "open sesame"}}},
			"ETCD": {MinSize: "10GiB", MaxSize: "-5GiB", EncryptionKeys: sealedKey},
			"LOG":  {Grow: new(true)},
		},
		WorkloadIsolation: new(false),
		ImageVerification: []system.ImageRule{
			{Image: "localhost:3000/*", Deny: true}, {Image: "ghcr.io/me/*", PublicKey: "-----BEGIN PUBLIC KEY-----\nx\n"},
			{Image: "registry.k8s.io/*", Issuer: "https://accounts.google.com", Subject: "krel@test", SubjectRegex: ".*"},
			{Image: "*", Skip: true},
		},
	}
)

// Settings make a configuration that Talos takes, and are read back from it.
func TestSystem_isReadBack(t *testing.T) {
	for _, contract := range contracts {
		settings := everySystem
		if contract == "v1.10" {
			settings.Volumes = map[string]system.Volume{
				"STATE":     {EncryptionKeys: map[string]system.Key{"3": {TPM: &system.TPM{CheckSecureBoot: true}}, "2": {NodeID: true}}},
				"EPHEMERAL": {MinSize: "20GiB", EncryptionKeys: secretKey}, "CRI": {MinSize: "1GiB", EncryptionKeys: secretKey},
			}
		}

		if contract != DocumentsContract {
			settings.WorkloadIsolation = new(true)
		}

		t.Run(contract, func(t *testing.T) {
			c, m := testCluster(contract), withSystem(ControlPlane, settings)
			config := generated(t, c, m)

			gotCluster, got, err := SettingsOf(config.Bytes, testBundle(t))
			if err != nil {
				t.Fatal(err)
			}

			if diff := cmp.Diff(settings, got.System, cmpopts.EquateEmpty()); diff != "" || gotCluster.Contract != contract {
				t.Errorf("contract %s (-put +read):\n%s", gotCluster.Contract, diff)
			}

			if again := generated(t, gotCluster, got); again.Digest != config.Digest {
				t.Error("what is read makes another configuration")
			}

			if inDocument := bytes.Contains(config.Bytes, []byte("systemDiskEncryption")); inDocument != (contract == "v1.10") {
				t.Errorf("keys in the main document: %t", inDocument)
			}
		})
	}
}

func TestSystem_mistakes(t *testing.T) {
	const keyKinds = "one of node_id, passphrase, kms_endpoint and tpm"

	keyed := func(keys map[string]system.Key) system.Settings {
		return ofSystem(map[string]system.Volume{"EPHEMERAL": {EncryptionKeys: keys}})
	}

	for _, test := range []struct {
		name     string
		settings system.Settings
		change   func(c *Cluster, m *Machine)
		want     []string
	}{
		{"another volume", ofSystem(map[string]system.Volume{"DATA": {MinSize: "1GiB"}}), nil, []string{
			`machine.system_volumes["DATA"]: found "DATA"; allowed: STATE, EPHEMERAL, ETCD, CRI, KUBELET, LOG; choose one of them; configure other volumes with documents in patches, such as UserVolumeConfig`}},
		{"the size of STATE", ofSystem(map[string]system.Volume{"STATE": {MinSize: "1GiB"}}), nil, []string{
			`machine.system_volumes["STATE"]: found a size or a disk for STATE; allowed: encryption_keys only; remove it; ` +
				`STATE is on the system disk, and its size is fixed`}},
		{"etcd on a worker", ofSystem(map[string]system.Volume{"ETCD": {MinSize: "1GiB"}}),
			func(_ *Cluster, m *Machine) { m.Role = Worker }, []string{
				`machine.system_volumes["ETCD"]: found an etcd volume on a worker; allowed: it on control planes; remove it here`}},
		{"a directory with keys", ofSystem(map[string]system.Volume{"ETCD": {EncryptionKeys: secretKey}}), nil, []string{
			`machine.system_volumes["ETCD"]: found neither a size nor a disk; allowed: min_size, max_size, grow or ` +
				`disk_selector; set one of them: without it the volume is a directory of EPHEMERAL, with the encryption of EPHEMERAL`}},
		{"sizes", ofSystem(map[string]system.Volume{"ETCD": {MinSize: "big"}, "LOG": {MaxSize: "200%"},
			"CRI": {MinSize: "10GiB", MaxSize: "1GiB"}, "KUBELET": {MinSize: "-1GiB"}}), nil, []string{
			`machine.system_volumes["CRI"].max_size: found 1GiB, which is less than min_size, 10GiB; allowed: as much or more; ` +
				`swap them, or remove one`,
			`machine.system_volumes["ETCD"].min_size: found "big"; allowed: a size, such as 10GiB or 500MB`,
			`machine.system_volumes["KUBELET"].min_size: found "-1GiB"; allowed: a size, such as 10GiB or 500MB`,
			`machine.system_volumes["LOG"].max_size: found "200%"; allowed: a size, such as 10GiB or 500MB, a percentage of the disk such as 80%, or the space to leave free such as -10GiB`}},
		{"no CEL", ofSystem(map[string]system.Volume{"EPHEMERAL": {DiskSelector: "disk.speed > 3"}}), nil, []string{
			`machine.system_volumes["EPHEMERAL"].disk_selector: found an invalid expression (ERROR: <input>:1:5: ` +
				`undefined field 'speed'); allowed: a boolean CEL expression about a disk, such as disk.transport == "nvme" && !system_disk; correct it`}},
		{"keys", keyed(map[string]system.Key{"01": {NodeID: true}, "0": {}, "1": {NodeID: true, Passphrase: "open sesame"},
			"2": {TPM: &system.TPM{PCRs: []int{24}}}, "3": {KMSEndpoint: "kms.test"}}), nil, []string{
			`machine.system_volumes["EPHEMERAL"].encryption_keys["01"]: found "01"; allowed: a LUKS2 slot number from 0 to 31; choose one`,
			`machine.system_volumes["EPHEMERAL"].encryption_keys["0"]: found a key without a type; allowed: ` + keyKinds + `; choose one`,
			`machine.system_volumes["EPHEMERAL"].encryption_keys["1"]: found node_id and passphrase in one key; allowed: ` +
				keyKinds + `; use a separate slot for each`,
			`machine.system_volumes["EPHEMERAL"].encryption_keys["2"].tpm.pcrs: found 24; allowed: registers from 0 to 23; ` +
				`choose one of them`,
			`machine.system_volumes["EPHEMERAL"].encryption_keys["3"].kms_endpoint: found an invalid KMS URL; allowed: such ` +
				`as https://kms.example.com:4443; write scheme and host`}},
		{"STATE locked to itself", ofSystem(map[string]system.Volume{"STATE": {EncryptionKeys: map[string]system.Key{
			"0": {NodeID: true, LockToState: true}}}}), nil, []string{
			`machine.system_volumes["STATE"].encryption_keys["0"].lock_to_state: found true; allowed: false for STATE; remove it; it applies only to other volumes`}},
		{"rules", system.Settings{ImageVerification: []system.ImageRule{{Skip: true}, {Image: "a.test/*"},
			{Image: "a.test/*", Skip: true, PublicKey: "x"}, {Image: "a.test/*", Issuer: "https://a.test"},
			{Image: "a.test/*", Issuer: "https://a.test", SubjectRegex: "("}}}, nil, []string{
			`machine.image_verification[0].image: found no pattern; allowed: such as registry.k8s.io/*; set it`,
			`machine.image_verification[1]: found no requirement for a.test/*; allowed: one of skip, deny, issuer with ` +
				`subject, and public_key; choose one of them`,
			`machine.image_verification[2]: found more than one of skip, deny, issuer with subject, and public_key; allowed: ` +
				`one of them; use separate rules for the others`,
			`machine.image_verification[3]: found an issuer without a subject, or a subject without an issuer; allowed: both; ` +
				`set issuer, and subject or subject_regex`,
			`machine.image_verification[4].subject_regex: found "(" (error parsing regexp: missing closing ): ` + "`(`" +
				`); allowed: a regular expression of Go`}},
		{"in a container", system.Settings{WorkloadIsolation: new(true), Volumes: map[string]system.Volume{
			"EPHEMERAL": {MinSize: "1GiB"}}}, func(c *Cluster, m *Machine) { c.Container, m.Install = true, Install{} }, []string{
			`machine.system_volumes: found volumes; allowed: none for a container; remove them; a container uses the volumes of its pod`,
			`machine.workload_isolation: found true; allowed: false, or none for a container; remove it; Talos isolates nothing ` +
				`there`}},
		{"too new for Talos 1.10", everySystem, func(c *Cluster, m *Machine) { c.Contract, m.TalosVersion = "v1.10", "v1.10.4" },
			[]string{
				`machine.system_volumes["EPHEMERAL"].max_size: found a percentage of the disk with talos_version v1.10; allowed: it with ` +
					`Talos v1.12 and newer; raise talos_version, or remove it`,
				`machine.system_volumes["EPHEMERAL"].encryption_keys["0"].lock_to_state: found a key locked to STATE with ` +
					`talos_version v1.10; allowed: it with Talos v1.11 and newer; raise talos_version, or remove it`,
				`machine.system_volumes["EPHEMERAL"].encryption_keys["0"].tpm.pcrs: found PCRs of a key with talos_version ` +
					`v1.10; allowed: it with Talos v1.12 and newer; raise talos_version, or remove it`,
				`machine.system_volumes["ETCD"]: found a separate volume for ETCD with talos_version v1.10; allowed: it with ` +
					`Talos v1.14 and newer; raise talos_version, or remove it`,
				`machine.system_volumes["ETCD"].max_size: found a negative size with talos_version v1.10; allowed: it with ` +
					`Talos v1.13 and newer; raise talos_version, or remove it`,
				`machine.system_volumes["LOG"]: found a separate volume for LOG with talos_version v1.10; allowed: it with Talos ` +
					`v1.14 and newer; raise talos_version, or remove it`,
				`machine.system_volumes["STATE"].encryption_keys["0"].tpm.pcrs: found PCRs of a key with talos_version v1.10; ` +
					`allowed: it with Talos v1.12 and newer; raise talos_version, or remove it`,
				`machine.image_verification: found rules for images with talos_version v1.10; allowed: it with Talos v1.13 and ` +
					`newer; raise talos_version, or remove it`,
				`machine.system_volumes["EPHEMERAL"].encryption_keys["0"]: found lock_to_state or tpm.pcrs with version_contract ` +
					`v1.10; allowed: neither: disk encryption of that contract does not support it; remove it`,
				`machine.system_volumes["STATE"].encryption_keys["0"]: found lock_to_state or tpm.pcrs with version_contract ` +
					`v1.10; allowed: neither: disk encryption of that contract does not support it; remove it`}},
		{"isolation before Talos 1.14", system.Settings{WorkloadIsolation: new(true)},
			func(_ *Cluster, m *Machine) { m.TalosVersion = "v1.13.6" }, []string{
				`machine.workload_isolation: found true with talos_version v1.13; allowed: it with Talos v1.14 and newer; raise ` +
					`talos_version, or remove it`}},
	} {
		t.Run(test.name, func(t *testing.T) {
			c, m := testCluster("v1.13"), withSystem(ControlPlane, test.settings)
			if test.change != nil {
				test.change(&c, &m)
			}

			_, err := Generate(c, m, testBundle(t))
			if diff := cmp.Diff(test.want, messages(err)); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}

			if strings.Contains(fmt.Sprint(err), "sesame") {
				t.Error("a secret is shown")
			}
		})
	}
}

// An unknown value is no error.
func TestSystem_unknownParts(t *testing.T) {
	settings := system.Settings{Volumes: map[string]system.Volume{"ETCD": {EncryptionKeys: map[string]system.Key{"0": {}}}},
		ImageVerification: []system.ImageRule{{}}}

	if err := ValidateMachine(testCluster("v1.13"), withSystem(ControlPlane, settings)); err != nil {
		t.Error(err)
	}
}

// Patches are checked before a machine sees them.
func TestSystem_volumesByPatch(t *testing.T) {
	const (
		volume   = "apiVersion: v1alpha1\nkind: %s\nname: data\nprovisioning:\n  diskSelector:\n    match: %s\n  minSize: 1GiB\n"
		user     = "UserVolumeConfig"
		notBlank = "'!system_disk'"
	)

	for _, test := range []struct{ name, talos, patch, want string }{
		{"twice at one place", "v1.13.0", fmt.Sprintf(volume, user, notBlank) +
			"---\napiVersion: v1alpha1\nkind: ExistingVolumeConfig\nname: data\ndiscovery:\n  volumeSelector:\n    match: \"true\"\n",
			`machine.patches[0]: found ExistingVolumeConfig data and a UserVolumeConfig of the same name; allowed: each volume ` +
				`once; rename one of them`},
		{"nowhere", "v1.13.0", "apiVersion: v1alpha1\nkind: UserVolumeConfig\nname: data\n",
			`machine.patches[0]: found a patch that makes the configuration invalid (UserVolumeConfig/data: disk selector is required; min size or max ` +
				`size is required); allowed: what Talos accepts for a controlplane machine; correct or remove this patch`},
		{"no CEL", "v1.13.0", fmt.Sprintf(volume, user, "disk.speed"),
			`machine.patches[0]: found a patch that makes the configuration invalid (UserVolumeConfig/data: disk selector is invalid: ERROR: ` +
				`<input>:1:5: undefined field 'speed'; | disk.speed; | ....^); allowed: what Talos accepts for a controlplane ` +
				`machine; correct or remove this patch`},
		{"not known", "v1.10.3", fmt.Sprintf(volume, "RawVolumeConfig", notBlank),
			`machine.patches[0]: found the document RawVolumeConfig for Talos v1.10.3; allowed: it with Talos v1.11 and newer; ` +
				`raise talos_version, or remove it: machines reject unknown fields`},
		{"a volume of etcd", "v1.13.6", strings.Replace(fmt.Sprintf(volume, "VolumeConfig", notBlank), "data", "ETCD", 1),
			`machine.patches[0]: found the document VolumeConfig ETCD for Talos v1.13.6; allowed: it with Talos v1.14 and newer; ` +
				`raise talos_version, or remove it: machines reject unknown fields`},
		{"right", "v1.10.0", fmt.Sprintf(volume, user, notBlank), ""},
		{"deleted and given again", "v1.14.0", "apiVersion: v1alpha1\nkind: VolumeConfig\nname: EPHEMERAL\n$patch: delete\n---\n" +
			"apiVersion: v1alpha1\nkind: VolumeConfig\nname: EPHEMERAL\nprovisioning:\n  maxSize: 9GiB\n", ""},
	} {
		t.Run(test.name, func(t *testing.T) {
			contract := test.talos[:len("v1.10")]
			m := testMachine(ControlPlane)
			m.TalosVersion, m.Patches = test.talos, []string{test.patch}

			_, err := Generate(testCluster(contract), m, testBundle(t))
			if got := strings.Join(messages(err), "\n"); got != test.want || (err != nil) != (test.want != "") {
				t.Errorf("got %s\n(%v)\nwant %s", got, err, test.want)
			}
		})
	}
}

// The library loses the expression of a document that a patch merges into.
func TestSystem_patchKeepsTheDisk(t *testing.T) {
	m := withSystem(ControlPlane, ofSystem(map[string]system.Volume{"EPHEMERAL": {DiskSelector: "disk.size > 10u * GB"}}))
	m.Patches = []string{"apiVersion: v1alpha1\nkind: VolumeConfig\nname: EPHEMERAL\nprovisioning:\n  maxSize: 9GiB\n"}

	_, got, err := SettingsOf(generated(t, testCluster(DocumentsContract), m).Bytes, testBundle(t))
	if want := (system.Volume{DiskSelector: "disk.size > 10u * GB", MaxSize: "9GiB"}); err != nil ||
		!cmp.Equal(got.System.Volumes["EPHEMERAL"], want) {
		t.Errorf("%+v, %v", got.System.Volumes, err)
	}
}

func TestVolumeChanges(t *testing.T) {
	other := map[string]system.Key{"0": {Passphrase: "open says me"}}
	one := func(name string, v system.Volume) system.Settings { return ofSystem(map[string]system.Volume{name: v}) }
	raw := func(encryption string) string {
		return "apiVersion: v1alpha1\nkind: RawVolumeConfig\nname: data\nprovisioning:\n  diskSelector:\n    match: disk.rotational\n" +
			"  minSize: 1GiB\n" + encryption
	}

	user := func(kind, rest string) string {
		return "apiVersion: v1alpha1\nkind: UserVolumeConfig\nname: data\n" + kind + "provisioning:\n  diskSelector:\n    match: " +
			"disk.rotational\n" + rest
	}

	const luks = "encryption:\n  provider: luks2\n  keys:\n    - slot: 0\n      nodeID: {}\n"

	for _, test := range []struct {
		name               string
		before, after      system.Settings
		patched, repatched string
		want               string
	}{
		{name: "a partition of what is a directory", after: one("ETCD", system.Volume{MinSize: "1GiB"}),
			want: "VolumeConfig/ETCD: a directory of EPHEMERAL would become a separate partition"},
		{name: "and back", before: one("LOG", system.Volume{Grow: new(true)}),
			want: "VolumeConfig/LOG: a separate partition would become a directory of EPHEMERAL"},
		{name: "another size", before: one("ETCD", system.Volume{MinSize: "1GiB"}),
			after: one("ETCD", system.Volume{MinSize: "2GiB"})},
		{name: "encrypted", after: one("STATE", system.Volume{EncryptionKeys: secretKey}),
			want: "VolumeConfig/STATE: a plain volume would become an encrypted one"},
		{name: "decrypted", before: one("EPHEMERAL", system.Volume{EncryptionKeys: secretKey}),
			want: "VolumeConfig/EPHEMERAL: an encrypted volume would become a plain one"},
		{name: "another passphrase", before: one("EPHEMERAL", system.Volume{EncryptionKeys: secretKey}),
			after: one("EPHEMERAL", system.Volume{EncryptionKeys: other}),
			want:  "VolumeConfig/EPHEMERAL: all of its encryption keys would change"},
		{name: "one of two keys", before: one("EPHEMERAL", system.Volume{EncryptionKeys: sealedKey}),
			after: one("EPHEMERAL", system.Volume{EncryptionKeys: map[string]system.Key{"0": {Passphrase: "x"}, "1": {NodeID: true}}})},
		{name: "the slot of the only key", before: one("EPHEMERAL", system.Volume{EncryptionKeys: secretKey}),
			after: one("EPHEMERAL", system.Volume{EncryptionKeys: map[string]system.Key{"1": secretKey["0"]}}),
			want:  "VolumeConfig/EPHEMERAL: all of its encryption keys would change"},
		{name: "a user's volume", patched: raw(""), repatched: raw(luks),
			want: "RawVolumeConfig/data: a plain volume would become an encrypted one"},
		{name: "a partition that becomes a disk", patched: user("", "  minSize: 1GiB\n"), repatched: user("volumeType: disk\n", ""),
			want: "UserVolumeConfig/data: its volumeType would change from partition to disk"},
		{name: "a partition that is called one", patched: user("", "  minSize: 1GiB\n"),
			repatched: user("volumeType: partition\n", "  minSize: 1GiB\n")},
		{name: "a directory that becomes a partition", patched: "apiVersion: v1alpha1\nkind: UserVolumeConfig\nname: data\n" +
			"volumeType: directory\n", repatched: user("", "  minSize: 1GiB\n"),
			want: "UserVolumeConfig/data: its volumeType would change from directory to partition"},
		{name: "a new volume of a user", repatched: raw(luks)},
		{name: "by patch", repatched: "apiVersion: v1alpha1\nkind: VolumeConfig\nname: CRI\nprovisioning:\n  minSize: 1GiB\n",
			want: "VolumeConfig/CRI: a directory of EPHEMERAL would become a separate partition"},
	} {
		t.Run(test.name, func(t *testing.T) {
			before, after := withSystem(ControlPlane, test.before), withSystem(ControlPlane, test.after)
			before.Patches, after.Patches = []string{test.patched}, []string{test.repatched}

			changes, err := VolumeChanges(generated(t, testCluster("v1.13"), before).Bytes,
				generated(t, testCluster("v1.13"), after).Bytes)
			if err != nil {
				t.Fatal(err)
			}

			var got []string
			for _, c := range changes {
				got = append(got, c.Document+": "+c.What)
			}

			if text := strings.Join(got, "\n"); text != test.want {
				t.Errorf("got %q, want %q", text, test.want)
			}
		})
	}
}

// A contract that has other fields for the keys changes nothing on the disk.
func TestVolumeChanges_ofAnotherContract(t *testing.T) {
	m := withSystem(Worker, ofSystem(map[string]system.Volume{"STATE": {EncryptionKeys: secretKey}, "EPHEMERAL": {EncryptionKeys: sealedKey}}))

	changes, err := VolumeChanges(generated(t, testCluster("v1.10"), m).Bytes,
		generated(t, testCluster(DocumentsContract), m).Bytes)
	if err != nil || len(changes) > 0 {
		t.Errorf("%v, %v", changes, err)
	}
}

// A passphrase is in no difference that is shown, and not in what prints a key.
func TestSystem_hidesPassphrases(t *testing.T) {
	for _, contract := range []string{"v1.10", DocumentsContract} {
		configs := map[string][]byte{}
		for _, secret := range []string{"open sesame", "close sesame"} {
			settings := ofSystem(map[string]system.Volume{"STATE": {EncryptionKeys: map[string]system.Key{"0": {Passphrase: secret}}}})
			configs[secret] = generated(t, testCluster(contract), withSystem(ControlPlane, settings)).Bytes

			if text := fmt.Sprintf("%v %+v %#v", settings, settings, settings); strings.Contains(text, "sesame") {
				t.Error(text)
			}
		}

		changes, err := Diff(configs["open sesame"], configs["close sesame"])
		if err != nil || len(changes) != 1 || changes[0].New != Sensitive || strings.Contains(fmt.Sprint(changes), "sesame") {
			t.Errorf("%s: %v, %v", contract, changes, err)
		}
	}
}
