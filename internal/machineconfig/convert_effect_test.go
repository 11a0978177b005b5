package machineconfig

import (
	"fmt"
	"maps"
	"net/url"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/siderolabs/gen/optional"
	coreconfig "github.com/siderolabs/talos/pkg/machinery/config"
	"github.com/siderolabs/talos/pkg/machinery/config/config"
	"go.yaml.in/yaml/v4"
)

// effects is what Talos reads from a configuration: the results of the interfaces of the machinery library, which
// answer from the main document or from others, by the names of their methods.
type effects map[string]string

func effectsOf(p coreconfig.Provider) effects {
	found := effects{}
	found.add("", reflect.ValueOf(config.Config(p)), reflect.TypeFor[config.Config]())
	found.settle(p)

	return found
}

// add calls the methods of an interface. Those with arguments, and those without a result to compare, are no readings.
func (e effects) add(at string, value reflect.Value, of reflect.Type) {
	if (value.Kind() == reflect.Pointer || value.Kind() == reflect.Interface) && value.IsNil() {
		return
	}

	if at != "" {
		e[at] = "there"
	}

	for i := range of.NumMethod() {
		method := of.Method(i)
		if method.Type.NumIn() != 0 || method.Type.NumOut() != 1 || strings.HasSuffix(method.Name, "Signal") {
			continue
		}

		result := called(value.MethodByName(method.Name))
		if !result.IsValid() {
			continue
		}

		e.value(strings.TrimPrefix(at+"."+method.Name, "."), result, method.Type.Out(0))
	}
}

// called is not valid where the library has nothing to read: it panics at some sections that are missing.
func called(method reflect.Value) (result reflect.Value) {
	defer func() {
		if recover() != nil {
			result = reflect.Value{}
		}
	}()

	return method.Call(nil)[0]
}

func (e effects) value(at string, value reflect.Value, of reflect.Type) {
	switch {
	case of.Kind() == reflect.Interface && of.NumMethod() > 0 && strings.Contains(of.PkgPath(), "machinery/config"):
		e.add(at, value, of)
	case of.Kind() == reflect.Slice && of.Elem().Kind() == reflect.Interface && of.Elem().NumMethod() > 0:
		for i := range value.Len() {
			name := fmt.Sprintf("%s[%s]", at, elementName(value.Index(i), i))
			e.add(name, value.Index(i), of.Elem())
			e.drop(name+".Name", name+".IP")
		}
	case value.IsZero() || of.Kind() == reflect.Slice && value.Len() == 0 || of.Kind() == reflect.Map && value.Len() == 0:
	default:
		e[at] += shown(value.Interface()) // of elements with the same name
	}
}

// elementName is the name of an element of a list, because documents have another order.
func elementName(element reflect.Value, index int) string {
	for _, by := range []string{"URL", "Name", "IP"} {
		if method := element.MethodByName(by); method.IsValid() && method.Type().NumIn() == 0 {
			return called(method).String()
		}
	}

	return fmt.Sprint(index)
}

func shown(value any) string {
	switch value := value.(type) {
	case *url.URL:
		return value.String()
	case fmt.Stringer:
		return value.String()
	case optional.Optional[uint16]:
		return fmt.Sprint(value.ValueOrZero())
	}

	text, err := yaml.Marshal(value)
	if err != nil {
		return fmt.Sprintf("%v", value)
	}

	return string(text)
}

// merged are the readings of a configuration after patches, before it is checked.
func merged(t *testing.T, contract string, role Role, patches ...string) (effects, error) {
	t.Helper()

	c := testCluster(contract)
	c.Patches = patches

	generator, err := NewGenerator(c, testBundle(t))
	if err != nil {
		t.Fatal(err)
	}

	documents, err := generator.patched(testMachine(role).within(c))
	if err != nil {
		return nil, err
	}

	return effectsOf(documents.known), nil
}

// differences are the readings that patches change to other values, or do not change, in one of the two contracts.
func differences(baseOld, old, baseNew, updated effects) (found []string) {
	names := map[string]bool{}
	for _, all := range []effects{baseOld, old, baseNew, updated} {
		for name := range all {
			names[name] = true
		}
	}

	for _, name := range slices.Sorted(maps.Keys(names)) {
		changed := old[name] != baseOld[name] || updated[name] != baseNew[name]
		if changed && !sameChange(baseOld[name], old[name], baseNew[name], updated[name]) {
			found = append(found, fmt.Sprintf("%s: %q became %q in the old form, and %q became %q in the new one",
				name, baseOld[name], old[name], baseNew[name], updated[name]))
		}
	}

	return found
}

// sameChange reports whether two readings became the same, or lists got the same elements after those generated.
func sameChange(baseOld, old, baseNew, updated string) bool {
	addedOld, ofOld := strings.CutPrefix(old, baseOld)
	addedNew, ofNew := strings.CutPrefix(updated, baseNew)

	return old == updated || ofOld && ofNew && addedOld == addedNew && strings.HasPrefix(addedOld, "- ")
}

// joinedByTalos are readings of the main document alone, which Talos joins with those of documents.
var joinedByTalos = []string{"Machine.Sysctls", "Machine.Sysfs", "Machine.Udev", "Machine.Install", "UnattendedInstallConfig"}

// ofControlPlanes are readings that Talos has no use for on workers (Talos 1.14, controllers/k8s/control_plane.go).
var ofControlPlanes = []string{"K8sAPIServerConfig", "K8sControllerManagerConfig", "K8sSchedulerConfig", "K8sProxyConfig",
	"K8sCoreDNSConfig", "K8sFlannelCNIConfig", "K8sAdmissionControlPluginConfigs", "K8sAuditPolicyConfig",
	"K8sAuthorizerConfigs", "K8sTalosAPIAccessConfig", "K8sAggregatorCAConfig", "K8sServiceAccountConfig",
	"Cluster.AESCBCEncryptionSecret", "Cluster.SecretboxEncryptionSecret", "K8sExternalManifestConfigs", "K8sInlineManifestConfigs", "K8sEtcdEncryptionConfig", "K8sAuthenticationConfig"}

// settle writes in one way what Talos reads in two, and leaves out what it does not act on.
func (e effects) settle(p coreconfig.Provider) {
	if !p.Machine().Type().IsControlPlane() {
		e.drop(ofControlPlanes...)
	}

	if env := e["Machine.Env"]; env != "" {
		e["Environment.Variables"] = env
	}

	e.drop(append(slices.Clone(joinedByTalos), "Machine.Env")...)
	e.install(p)

	// A static name goes before all others.
	if e["NetworkHostnameConfig.Hostname"] != "" {
		delete(e, "NetworkHostnameConfig.AutoHostname")
	}

	// Without filters, all is taken.
	if e["NetworkKubeSpanConfig.Filters"] != "" {
		delete(e, "NetworkKubeSpanConfig.Filters")
	}

	// A host DNS that is off has no settings (Talos 1.14, network/hostdns_config.go).
	if e["NetworkHostDNSConfig.HostDNSEnabled"] == "" && e["NetworkHostDNSConfig.ForwardKubeDNSToHost"] == "" {
		e.drop("NetworkHostDNSConfig")
	}

	// The library names the only service of the main document itself.
	if endpoint := e["DiscoveryServiceConfigs[legacy].Endpoint"]; endpoint != "" {
		e.drop("DiscoveryServiceConfigs")
		e["DiscoveryServiceConfigs[default]"], e["DiscoveryServiceConfigs[default].Endpoint"] = "there", endpoint
	}
}

func (e effects) drop(prefixes ...string) {
	maps.DeleteFunc(e, func(name, _ string) bool {
		return slices.ContainsFunc(prefixes, func(prefix string) bool {
			rest, found := strings.CutPrefix(name, prefix)

			return found && (rest == "" || strings.ContainsAny(rest[:1], ".["))
		})
	})
}

// install reads an installation, whose two forms have no interface in common.
func (e effects) install(p coreconfig.Provider) {
	if own := p.UnattendedInstallConfig(); own != nil {
		e["Install.Image"], e["Install.Wipe"] = own.InstallerImage(), fmt.Sprint(own.VolumeWipe())

		selector := own.VolumeSelector()
		e["Install.Disk"] = selector.String()
	}

	if own := p.RawV1Alpha1().MachineConfig.MachineInstall; own != nil {
		disk, err := diskExpressionOf(own)
		e["Install.Image"], e["Install.Wipe"] = own.InstallImage, fmt.Sprint(own.InstallWipe != nil && *own.InstallWipe)
		e["Install.Disk"], e["Install.Rest"] = disk, fmt.Sprint(err, own.InstallExtraKernelArgs, own.InstallExtensions)
	}

	if e["Install.Rest"] == fmt.Sprint(nil, []string(nil), []string(nil)) {
		delete(e, "Install.Rest")
	}
}
