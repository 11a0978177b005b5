package machineconfig

import (
	"bytes"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/siderolabs/talos/pkg/machinery/config"
	"github.com/siderolabs/talos/pkg/machinery/config/configloader"
	"github.com/siderolabs/talos/pkg/machinery/config/encoder"
	"github.com/siderolabs/talos/pkg/machinery/config/generate"
	"github.com/siderolabs/talos/pkg/machinery/config/machine"
	"go.yaml.in/yaml/v4"

	"github.com/talosop/terraform-provider-talosop/internal/machineconfig/places"
	"github.com/talosop/terraform-provider-talosop/internal/pki"
)

const documentContract = "v1.14"

// A cluster made with talosctl 1.14 and described to the provider must not be changed by it.
func TestDocuments_asTheLibraryMakesThem(t *testing.T) {
	for role, kind := range map[Role]machine.Type{ControlPlane: machine.TypeControlPlane, Worker: machine.TypeWorker} {
		input, err := generate.NewInput("test-only", "https://10.0.0.10:6443", "1.33.1",
			generate.WithVersionContract(config.TalosVersion1_14), generate.WithSecretsBundle(testBundle(t).Secrets()),
			generate.WithInstallDisk("/dev/sda"), generate.WithInstallImage("i.test/installer:v1.14.1"))
		if err != nil {
			t.Fatal(err)
		}

		made, err := input.Config(kind)
		if err != nil {
			t.Fatal(err)
		}

		theirs, err := made.EncodeBytes(encoder.WithComments(encoder.CommentsDisabled))
		if err != nil {
			t.Fatal(err)
		}

		m := testMachine(role)
		m.Install.Image = "i.test/installer:v1.14.1"

		changes, err := Diff(theirs, generated(t, testCluster(documentContract), m).Bytes)
		if err != nil {
			t.Fatal(err)
		}

		for _, change := range changes {
			t.Errorf("%s: %s", role, change)
		}

		read, _, err := SettingsOf(theirs, testBundle(t))
		if err != nil || read.Contract != documentContract {
			t.Errorf("%s: it is read as one of contract %s: %v", role, read.Contract, err)
		}
	}
}

// Every part of the main document that a document has taken the place of is refused on the patch that sets it, and the
// document is named. What is deleted on purpose may be written in the old form.
func TestDocuments_refuseWhatTheyReplace(t *testing.T) {
	for _, test := range []struct{ patch, instead string }{
		{"cluster: {apiServer: {extraArgs: {a: b}}}", "KubeAPIServerConfig"},
		{"cluster: {apiServer: {admissionControl: [{name: X, configuration: {a: b}}]}}", "KubeAdmissionControlConfig"},
		{"cluster: {apiServer: {auditPolicy: {kind: Policy}}}", "KubeAuditPolicyConfig"},
		{"cluster: {apiServer: {auditPolicy: {$patch: delete}}}", "KubeAuditPolicyConfig"},
		{"cluster: {apiServer: {authorizationConfig: [{name: a, type: RBAC}]}}", "KubeAuthorizerConfig"},
		{"cluster: {apiServer: {certSANs: [a.test]}}", "cert_sans"},
		{"cluster: {controlPlane: {localAPIServerPort: 7443}}", "KubeAPIServerConfig (apiPort)"},
		{"cluster: {controlPlane: {endpoint: https://a.test}}", "KubeClusterConfig"},
		{"cluster: {clusterName: a}", "KubeClusterConfig"},
		{"cluster: {controllerManager: {extraArgs: {a: b}}}", "KubeControllerManagerConfig"},
		{"machine: {controlPlane: {controllerManager: {disabled: true}}}", "KubeControllerManagerConfig"},
		{"cluster: {scheduler: {extraArgs: {a: b}}}", "KubeSchedulerConfig"},
		{"machine: {controlPlane: {scheduler: {disabled: true}}}", "KubeSchedulerConfig"},
		{"cluster: {proxy: {disabled: true}}", "KubeProxyConfig"},
		{"cluster: {network: {cni: {name: none}}}", "attribute cni"},
		{"cluster: {network: {dnsDomain: a.test}}", "KubeNetworkConfig"},
		{"cluster: {coreDNS: {disabled: true}}", "KubeCoreDNSConfig"},
		{"cluster: {acceptedCAs: [{crt: YWE=}]}", "KubeAPIServerCAConfig"},
		{"cluster: {secretboxEncryptionSecret: a}", "KubeEtcdEncryptionConfig"},
		{"cluster: {id: a}", "DiscoveryIdentityConfig"},
		{"cluster: {discovery: {enabled: true}}", "attribute discovery"},
		{"cluster: {allowSchedulingOnControlPlanes: true}", "attribute allow_scheduling_on_control_planes"},
		{"machine: {kubelet: {nodeIP: {validSubnets: [10.0.0.0/8]}}}", "KubeNodeConfig"},
		{"machine: {kubelet: {extraConfig: {maxPods: 250}}}", "KubeletConfig (config)"},
		{"machine: {kubelet: {extraMounts: [{source: /a, destination: /a, type: bind}]}}", "user volumes"},
		{"machine: {kubelet: {extraArgs: {a: b}}}", "KubeletConfig"},
		{"machine: {nodeLabels: {a: b}}", "KubeNodeConfig (labels)"},
		{"machine: {nodeAnnotations: {a: b}}", "KubeNodeConfig (annotations)"},
		{"machine: {nodeTaints: {a: b:NoSchedule}}", "KubeNodeConfig (taints)"},
		{"machine: {features: {hostDNS: {enabled: true}}}", "ResolverConfig (hostDNS)"},
		{"machine: {network: {nameservers: [10.0.0.53]}}", "ResolverConfig"},
	} {
		_, err := with(t, documentContract, "machine: {certSANs: [a.test]}", test.patch)

		mistakes := FieldErrors(err)
		if len(mistakes) != 1 || mistakes[0].Field != "patches[1]" || !errors.Is(err, ErrInvalidConfig) ||
			!strings.Contains(mistakes[0].Fix, test.instead) {
			t.Errorf("%s: %v, want one that names %s", test.patch, err, test.instead)
		}

		if strings.Contains(test.patch, "$patch") {
			continue
		}

		// The same is taken by contracts that have the part in the main document.
		if _, err := with(t, "v1.13", test.patch); err != nil && errors.Is(err, ErrInvalidConfig) &&
			strings.Contains(err.Error(), "beside the document") {
			t.Errorf("%s with contract v1.13: %v", test.patch, err)
		}
	}

	text, err := with(t, documentContract, "apiVersion: v1alpha1\nkind: KubeProxyConfig\n$patch: delete\n",
		"cluster: {proxy: {disabled: true}}")
	if err != nil || strings.Contains(text, "KubeProxyConfig") {
		t.Errorf("the old form in place of a deleted document: %v\n%s", err, text)
	}
}

// A part beside a document of another patch is refused in the same way.
func TestDocuments_refuseWhatOthersOfPatchesReplace(t *testing.T) {
	_, err := with(t, documentContract, "apiVersion: v1alpha1\nkind: KubeSpanConfig\nenabled: true\n",
		"machine: {network: {kubespan: {mtu: 1400}}}")

	mistakes := FieldErrors(err)
	if len(mistakes) != 1 {
		t.Fatal(err)
	}

	want := FieldError{Field: "patches[1]", Allowed: "either of them", Fix: "write the document KubeSpanConfig instead",
		Found: "machine.network.kubespan of the main document, beside the document KubeSpanConfig", Err: errBeside,
		Converted: "apiVersion: v1alpha1\nkind: KubeSpanConfig\nmtu: 1400\n"}
	if *mistakes[0] != want {
		t.Errorf("got %v, want %v", mistakes[0], want)
	}
}

func TestDocuments_ofControlPlanesAlone(t *testing.T) {
	c, m := testCluster(documentContract), testMachine(Worker)
	c.Patches = []string{"machine: {certSANs: [a.test]}",
		"apiVersion: v1alpha1\nkind: KubeSchedulerConfig\nextraArgs: {v: '2'}\n"}

	_, err := Generate(c, m, testBundle(t))
	if mistakes := FieldErrors(err); len(mistakes) != 1 || mistakes[0].Field != "patches[1]" ||
		!strings.Contains(mistakes[0].Fix, "control plane") {
		t.Errorf("a document of the control plane for a worker: %v", err)
	}

	m.Role = ControlPlane
	if _, err := Generate(c, m, testBundle(t)); err != nil {
		t.Error(err)
	}
}

// installation is the document of a configuration.
type installation struct {
	Reboot    *bool
	Installer struct{ Image string }
	Provision struct {
		Wipe     *bool
		Selector struct{ Match string } `yaml:"diskSelector"`
	} `yaml:"provisioning"`
}

// reboots is what Talos does at the end.
func (i installation) reboots() bool {
	if i.Reboot != nil {
		return *i.Reboot
	}

	return i.Installer.Image != ""
}

func installationIn(t *testing.T, cfg []byte) (found installation) {
	t.Helper()

	chunks, err := split(string(cfg))
	if err != nil {
		t.Fatal(err)
	}

	for _, c := range chunks {
		if identify(c.node).kind == "UnattendedInstallConfig" {
			if err := yaml.Unmarshal([]byte(c.text), &found); err != nil {
				t.Fatal(err)
			}
		}
	}

	return found
}

// A machine is wiped when that was asked for, and reboots whichever image it has, unless a patch says otherwise: Talos
// itself wipes by default, and reboots only with an image.
func TestDocuments_installation(t *testing.T) {
	for _, test := range []struct {
		install Install
		patch   string
		match   string
		wipe    bool
		stays   bool
	}{
		{install: Install{Disk: "/dev/sda"}, match: `disk.dev_path == "/dev/sda"`},
		{install: Install{Disk: "/dev/sda", Wipe: true}, match: `disk.dev_path == "/dev/sda"`, wipe: true},
		{install: Install{Disk: "/dev/disk/by-id/wwn-0x5"}, match: `"/dev/disk/by-id/wwn-0x5" in disk.symlinks`},
		{install: Install{DiskSelector: &DiskSelector{Size: ">= 1TB", Type: "sd", Model: `a"*`}},
			match: `disk.size >= 1000000000000u && glob("a\"*", disk.model) && disk.transport != "" && ` +
				`disk.transport == "mmc" && !disk.readonly && !disk.cdrom`},
		{install: Install{Disk: "/dev/sda"}, patch: "provisioning: {wipe: true}", match: `disk.dev_path == "/dev/sda"`,
			wipe: true},
		{install: Install{Disk: "/dev/sda"}, patch: "provisioning: {diskSelector: {match: disk.rotational}}",
			match: "disk.rotational"},
		{install: Install{Disk: "/dev/sda", Image: "a.test/a:v1"}, match: `disk.dev_path == "/dev/sda"`},
		{install: Install{Disk: "/dev/sda"}, patch: "installer: {image: a.test/a:v1}", match: `disk.dev_path == "/dev/sda"`},
		{install: Install{Disk: "/dev/sda"}, patch: "reboot: false", match: `disk.dev_path == "/dev/sda"`, stays: true},
		{patch: "provisioning: {wipe: false, diskSelector: {match: disk.rotational}}\nreboot: true", match: "disk.rotational"},
	} {
		m := testMachine(Worker)
		m.Install = test.install

		if test.patch != "" {
			m.Patches = []string{"apiVersion: v1alpha1\nkind: UnattendedInstallConfig\n" + test.patch}
		}

		cfg := generated(t, testCluster(documentContract), m).Bytes

		got := installationIn(t, cfg)
		if match := strings.Join(strings.Fields(got.Provision.Selector.Match), " "); match != test.match || got.reboots() == test.stays ||
			got.Provision.Wipe == nil || *got.Provision.Wipe != test.wipe {
			t.Errorf("%+v %s: %+v", test.install, test.patch, got)
		}

		_, read, err := SettingsOf(cfg, testBundle(t))
		if err != nil {
			t.Fatal(err)
		}

		if test.patch == "" && !cmp.Equal(read.Install.DiskSelector, test.install.DiskSelector,
			cmp.Comparer(func(a, b DiskSelector) bool { return a == b })) || test.patch == "" && read.Install.Disk != test.install.Disk {
			t.Errorf("%+v is read as %+v", test.install, read.Install)
		}
	}

	m := testMachine(Worker)
	m.Install = Install{}

	if _, err := Generate(testCluster(documentContract), m, testBundle(t)); err == nil ||
		!strings.Contains(err.Error(), "machine.install.disk") {
		t.Errorf("without a disk: %v", err)
	}

	m.Install = Install{Disk: "/dev/sda", ExtraKernelArgs: []string{"console=ttyS0"}}

	for _, err := range []error{ValidateMachine(testCluster(documentContract), m),
		errOf(Generate(testCluster(documentContract), m, testBundle(t)))} {
		if err == nil || !strings.Contains(err.Error(), "machine.install.extra_kernel_args") {
			t.Errorf("kernel arguments, which have no place: %v", err)
		}
	}
}

func errOf(_ Config, err error) error { return err }

// The configuration of a control plane has all secrets of its cluster.
func TestDocuments_haveTheWholeBundle(t *testing.T) {
	imported, err := pki.FromMachineConfig(generated(t, everything(documentContract),
		everyMachine(ControlPlane, documentContract)).Bytes)
	if err != nil {
		t.Fatal(err)
	}

	want, errA := testBundle(t).YAML()
	got, errB := imported.YAML()

	if errA != nil || errB != nil || !bytes.Equal(got, want) {
		t.Errorf("another bundle than it was generated from (%v, %v)", errA, errB)
	}

	worker := generated(t, testCluster(documentContract), testMachine(Worker))
	if _, err := pki.FromMachineConfig(worker.Bytes); !errors.Is(err, pki.ErrNotControlPlane) {
		t.Errorf("a worker gives %v", err)
	}
}

// secretTexts are texts that no difference may show.
func secretTexts(t *testing.T, bundles ...*pki.Bundle) []string {
	t.Helper()

	var texts []string

	for _, b := range bundles {
		s := b.Secrets()
		texts = append(texts, s.Cluster.Secret, s.Secrets.BootstrapToken, s.TrustdInfo.Token,
			s.Secrets.SecretboxEncryptionSecret)

		for _, key := range [][]byte{s.Certs.OS.Key, s.Certs.K8s.Key, s.Certs.Etcd.Key, s.Certs.K8sAggregator.Key,
			s.Certs.K8sServiceAccount.Key} {
			texts = append(texts, strings.Split(string(key), "\n")[1])
		}
	}

	return texts
}

// Every document that a contract generates is compared by path, has a separate digest, and shows no secret.
func TestDocuments_areComparedWithoutSecrets(t *testing.T) {
	other, err := throwawayBundle()
	if err != nil {
		t.Fatal(err)
	}

	const secret = "hunter2hunter2"

	before := generated(t, testCluster(documentContract), testMachine(ControlPlane)).Bytes

	after, err := Generate(everything(documentContract), everyMachine(ControlPlane, documentContract), other)
	if err != nil {
		t.Fatal(err)
	}

	more := string(after.Bytes)
	for _, document := range []string{
		"kind: KubeExternalManifestConfig\nname: a\nurl: https://a.test/a.yaml\nheaders: {Authorization: " + secret + "}",
		"kind: KubeInlineManifestConfig\nname: a\nmanifest: " + secret,
		"kind: KubeCredentialProviderConfig\nconfiguration: {providers: [{env: [{name: A, value: " + secret + "}]}]}",
		"kind: KubeStaticPodConfig\nname: a\npod: {spec: {containers: [{args: [" + secret + "]}]}}",
		"kind: EtcFileConfig\nname: a\nmode: 0o600\ncontents: " + secret,
		"kind: CRICustomizationConfig\nname: a\ncontent: " + secret,
		"kind: ContainerConfig\nname: a\nimage: a.test/a:v1\nenvironment: [A=" + secret + "]",
		"kind: KubeAPIServerConfig\nimage: a.test/a:v1.33.1\nenv: {A: " + secret + "}\nextraArgs: {x-token: [" + secret + "]}",
	} {
		more += "---\napiVersion: v1alpha1\n" + document + "\n"
	}

	hidden := append(secretTexts(t, testBundle(t), other), secret)

	for _, pair := range [][2][]byte{{before, after.Bytes}, {after.Bytes, before}, {before, []byte(more)}, {[]byte(more), before}} {
		changes, err := Diff(pair[0], pair[1])
		if err != nil {
			t.Fatal(err)
		}

		var brief []string
		for _, change := range changes {
			brief = append(brief, change.Brief())
		}

		text := fmt.Sprintf("%v %+v %v", strings.Join(lines(changes), "\n"), changes, brief)
		for _, word := range hidden {
			if strings.Contains(text, word) {
				t.Errorf("%s is shown:\n%s", word, text)
			}
		}
	}
}

// A value that changes in any document of a contract changes the digest and is one difference, at its path.
func TestDocuments_differByPath(t *testing.T) {
	for _, test := range []struct{ patch, want string }{
		{"kind: KubeletConfig\nextraArgs: {v: '4'}", `+ KubeletConfig: extraArgs.v = "4"`},
		{"kind: KubeNodeConfig\nlabels: {a: b}", `+ KubeNodeConfig: labels.a = "b"`},
		{"kind: KubeAPIServerConfig\nextraArgs: {v: '4'}", `+ KubeAPIServerConfig: extraArgs.v = "4"`},
		{"kind: KubeNetworkConfig\ndnsDomain: a.test", `~ KubeNetworkConfig: dnsDomain: "cluster.local" -> "a.test"`},
		{"kind: KubePrismConfig\nport: 7446", "~ KubePrismConfig: port: 7445 -> 7446"},
		{"kind: KubeFlannelCNIConfig\nbackendMTU: 1400", "+ KubeFlannelCNIConfig: backendMTU = 1400"},
		{"kind: KubeCoreDNSConfig\nenabled: false", "~ KubeCoreDNSConfig: enabled: true -> false"},
		{"kind: SecurityProfileConfig\nworkloadIsolation: false", "~ SecurityProfileConfig: workloadIsolation: true -> false"},
		{"kind: FilesystemTrimConfig\ninterval: 24h", `~ FilesystemTrimConfig: interval: "168h0m0s" -> "24h0m0s"`},
		{"kind: VolumeConfig\nname: EPHEMERAL\nmount: {secure: false}", "~ VolumeConfig/EPHEMERAL: mount.secure: true -> false"},
		{"kind: ResolverConfig\nhostDNS: {resolveMemberNames: true}", "+ ResolverConfig: hostDNS.resolveMemberNames = true"},
		{"kind: DiscoveryServiceConfig\nname: own\nendpoint: https://d.test/", `+ DiscoveryServiceConfig/own: endpoint = "https://d.test/"`},
		{"kind: UnattendedInstallConfig\ninstaller: {image: a.test/a:v1}", `- UnattendedInstallConfig: installer = {} + UnattendedInstallConfig: installer.image = "a.test/a:v1" ` +
			"- UnattendedInstallConfig: reboot = true"},
		{"kind: SysctlConfig\nparams: {a: b}", `+ SysctlConfig: params.a = "b"`},
		{"kind: KubeAuthorizerConfig\nname: extra\ntype: Webhook\nwebhook: {timeout: 3s}",
			`+ KubeAuthorizerConfig/extra: type = "Webhook" + KubeAuthorizerConfig/extra: webhook.timeout = "3s"`},
	} {
		plain, err := with(t, documentContract)
		if err != nil {
			t.Fatal(err)
		}

		text, err := with(t, documentContract, "apiVersion: v1alpha1\n"+test.patch)
		if err != nil {
			t.Error(err)

			continue
		}

		changes, err := Diff([]byte(plain), []byte(text))
		if err != nil {
			t.Fatal(err)
		}

		if got := strings.Join(lines(changes), " "); got != test.want {
			t.Errorf("%s: %s, want %s", test.patch, got, test.want)
		}

		was, errA := Digest([]byte(plain))
		now, errB := Digest([]byte(text))

		if errA != nil || errB != nil || was == now {
			t.Errorf("%s: digest %s as before (%v, %v)", test.patch, now, errA, errB)
		}
	}
}

// Patches cannot make a machine a member of another cluster in the documents, either.
func TestDocuments_keepSecretsOfTheBundle(t *testing.T) {
	other, err := throwawayBundle()
	if err != nil {
		t.Fatal(err)
	}

	indent := func(pem []byte) string { return strings.ReplaceAll(strings.TrimSpace(string(pem)), "\n", "\n    ") }
	ca, account := other.Secrets().Certs.K8sAggregator, other.Secrets().Certs.K8sServiceAccount

	for _, patch := range []string{
		"kind: DiscoveryIdentityConfig\nclusterSecret: " + other.Secrets().Cluster.Secret,
		"kind: KubeAPIServerCAConfig\nissuingCA:\n  cert: |\n    " + indent(ca.Crt) + "\n  key: |\n    " + indent(ca.Key),
		"kind: KubeAggregatorCAConfig\nissuingCA:\n  cert: |\n    " + indent(ca.Crt) + "\n  key: |\n    " + indent(ca.Key),
		"kind: KubeServiceAccountConfig\nissuer:\n  privateKey: |\n    " + indent(account.Key),
		"kind: KubeAPIServerCAConfig\n$patch: delete",
	} {
		_, err := with(t, documentContract, "apiVersion: v1alpha1\n"+patch)
		if mistakes := FieldErrors(err); len(mistakes) != 1 || mistakes[0].Field != "patches[0]" {
			t.Errorf("%.60s: %v", patch, err)
		}

		for _, word := range secretTexts(t, other) {
			if err != nil && strings.Contains(err.Error(), word) {
				t.Errorf("%.60s: the error shows a secret", patch)
			}
		}
	}
}

// Nothing of what has a document is in the main one.
func TestDocuments_leaveTheMainOneAlone(t *testing.T) {
	for _, role := range []Role{ControlPlane, Worker} {
		provider, err := configloader.NewFromBytes(generated(t, testCluster(documentContract), testMachine(role)).Bytes)
		if err != nil {
			t.Fatal(err)
		}

		main, err := mainContent(provider)
		if err != nil {
			t.Fatal(err)
		}

		for _, f := range places.All() {
			if f.Beside != "" && valueIn(main, f.Main.Path) != nil {
				t.Errorf("%s: the main document has %s", role, f.Main)
			}
		}
	}
}
