package migrate

import (
	"bytes"
	"cmp"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"text/template"

	"github.com/siderolabs/talos/pkg/machinery/config/generate"
	"github.com/siderolabs/talos/pkg/machinery/config/types/v1alpha1"
)

// talconfig is talconfig.yaml of talhelper v3 (pkg/config/config.go).
type talconfig struct {
	ClusterName       string               `yaml:"clusterName"`
	TalosVersion      string               `yaml:"talosVersion"`
	KubernetesVersion string               `yaml:"kubernetesVersion"`
	Endpoint          string               `yaml:"endpoint"`
	Domain            string               `yaml:"domain"`
	ScheduleOnMasters bool                 `yaml:"allowSchedulingOnMasters"`
	ScheduleOnPlanes  bool                 `yaml:"allowSchedulingOnControlPlanes"`
	MachineCertSANs   []string             `yaml:"additionalMachineCertSans"`
	APIServerCertSANs []string             `yaml:"additionalApiServerCertSans"`
	InlineManifests   []talhelperManifest  `yaml:"inlineManifests"`
	PodNets           []string             `yaml:"clusterPodNets"`
	ServiceNets       []string             `yaml:"clusterSvcNets"`
	CNI               *v1alpha1.CNIConfig  `yaml:"cniConfig"`
	Patches           []string             `yaml:"patches"`
	Nodes             []talhelperNode      `yaml:"nodes"`
	ImageFactory      talhelperFactory     `yaml:"imageFactory"`
	ControlPlane      talhelperNodeConfigs `yaml:"controlPlane"`
	Worker            talhelperNodeConfigs `yaml:"worker"`
}

type talhelperFactory struct {
	Registry          string `yaml:"registryURL"`
	SchematicEndpoint string `yaml:"schematicEndpoint"`
	Protocol          string `yaml:"protocol"`
	Installer         string `yaml:"installerURLTmpl"`
	Image             string `yaml:"ISOURLTmpl"`
}

type talhelperNode struct {
	Hostname          string                        `yaml:"hostname"`
	Address           string                        `yaml:"ipAddress"`
	IsControlPlane    bool                          `yaml:"controlPlane"`
	InstallDisk       string                        `yaml:"installDisk"`
	DiskSelector      *v1alpha1.InstallDiskSelector `yaml:"installDiskSelector"`
	IgnoreHostname    bool                          `yaml:"ignoreHostname"`
	OverridePatches   bool                          `yaml:"overridePatches"`
	OverrideManifests bool                          `yaml:"overrideExtraManifests"`
	OverrideCertSANs  bool                          `yaml:"overrideMachineCertSANs"`

	talhelperNodeConfigs `yaml:",inline"`
}

type talhelperNodeConfigs struct {
	Labels              map[string]string              `yaml:"nodeLabels"`
	Annotations         map[string]string              `yaml:"nodeAnnotations"`
	Taints              map[string]string              `yaml:"nodeTaints"`
	Disks               []*v1alpha1.MachineDisk        `yaml:"machineDisks"`
	Files               []talhelperFile                `yaml:"machineFiles"`
	DisableSearchDomain bool                           `yaml:"disableSearchDomain"`
	KernelModules       []*v1alpha1.KernelModuleConfig `yaml:"kernelModules"`
	Nameservers         []string                       `yaml:"nameservers"`
	Interfaces          []*v1alpha1.Device             `yaml:"networkInterfaces"`
	ExtraManifests      []string                       `yaml:"extraManifests"`
	CertSANs            []string                       `yaml:"certSANs"`
	Patches             []string                       `yaml:"patches"`
	TalosImage          string                         `yaml:"talosImageURL"`
	NoValidation        bool                           `yaml:"noSchematicValidate"`
	Schematic           map[string]any                 `yaml:"schematic"`
	ImageSchematic      map[string]any                 `yaml:"imageSchematic"`
	Spec                talhelperSpec                  `yaml:"machineSpec"`
	Firewall            *talhelperFirewall             `yaml:"ingressFirewall"`
	ExtensionServices   []map[string]any               `yaml:"extensionServices"`
	Volumes             []map[string]any               `yaml:"volumes"`
	UserVolumes         []map[string]any               `yaml:"userVolumes"`
	Filename            string                         `yaml:"filenameTmpl"`
}

type talhelperSpec struct {
	Mode        string `yaml:"mode"`
	Arch        string `yaml:"arch"`
	SecureBoot  bool   `yaml:"secureboot"`
	UKI         bool   `yaml:"useUKI"`
	BootMethod  string `yaml:"bootMethod"`
	ImageSuffix string `yaml:"imageSuffix"`
}

type talhelperFirewall struct {
	DefaultAction string           `yaml:"defaultAction"`
	Rules         []map[string]any `yaml:"rules"`
}

type talhelperFile struct {
	v1alpha1.MachineFile `yaml:",inline"`

	SkipSubstitution bool `yaml:"skipEnvsubst"`
}

type talhelperManifest struct {
	v1alpha1.ClusterInlineManifest `yaml:",inline"`

	SkipSubstitution bool `yaml:"skipEnvsubst"`
}

// talhelperReader makes the configurations of one talconfig.yaml.
type talhelperReader struct {
	Options

	config  talconfig
	cluster *Cluster
	version string
}

// Talhelper reads talconfig.yaml with the files that it names.
func Talhelper(o Options) (Cluster, error) {
	o, err := o.environment("talenv.yaml", "talenv.sops.yaml", "talenv.yml", "talenv.sops.yml")
	if err != nil {
		return Cluster{}, err
	}

	r := talhelperReader{Options: o, cluster: &Cluster{}}
	if err := r.read(); err != nil {
		return Cluster{}, fmt.Errorf("talconfig.yaml: %w", err)
	}

	r.cluster.Bundle, err = o.secrets("talsecret.yaml", "talsecret.sops.yaml", "talsecret.yml", "talsecret.sops.yml")
	if err != nil {
		return Cluster{}, err
	}

	if o.Configurations != "" {
		return *r.cluster, o.generated(r.cluster, r.filename)
	}

	input, err := r.input()
	if err != nil {
		return Cluster{}, err
	}

	for i := range r.cluster.Machines {
		m := &r.cluster.Machines[i]
		if m.Config, err = r.machine(input, r.config.Nodes[i]); err != nil {
			return Cluster{}, fmt.Errorf("node %s: %w", m.Name, err)
		}
	}

	return *r.cluster, nil
}

// read reads the file, and what each of its nodes inherits.
func (r *talhelperReader) read() error {
	content, err := r.Options.read("talconfig.yaml")
	if err != nil {
		return err
	}

	if content, err = r.substituted(content); err != nil {
		return err
	}

	unknown, err := decoded(content, &r.config)
	if err != nil {
		return err
	}

	for _, field := range unknown {
		r.cluster.omit(field, "talhelper does not know this field, so it had no effect")
	}

	if r.version, err = r.Options.version("talosVersion", r.config.TalosVersion); err != nil {
		return err
	}

	r.cluster.Name = r.config.ClusterName

	for i := range r.config.Nodes {
		node := &r.config.Nodes[i]
		node.inherit(r.config)
		r.omissions(*node)

		addresses := strings.Split(node.Address, ",")
		r.cluster.Machines = append(r.cluster.Machines, Machine{Name: node.Hostname, ControlPlane: node.IsControlPlane,
			Address: strings.TrimSpace(addresses[0]), TalosVersion: r.version})

		if len(addresses) > 1 {
			r.cluster.omit(node.Hostname+": ipAddress", "talosop connects to one address of a machine, the first one")
		}
	}

	for field, written := range map[string]string{"ISOURLTmpl": r.config.ImageFactory.Image,
		"schematicEndpoint": r.config.ImageFactory.SchematicEndpoint, "protocol": r.config.ImageFactory.Protocol} {
		if written != "" {
			r.cluster.omit("imageFactory."+field, bootMedia)
		}
	}

	return r.cluster.check()
}

const bootMedia = "it is for boot media, not for running machines: use the data sources talosop_image and " +
	"talosop_boot_assets"

// omissions lists the fields of a node that do not affect its configuration.
func (r *talhelperReader) omissions(node talhelperNode) {
	for field, set := range map[string]bool{
		"imageSchematic": node.ImageSchematic != nil, "machineSpec.arch": node.Spec.Arch != "",
		"machineSpec.bootMethod": node.Spec.BootMethod != "", "machineSpec.imageSuffix": node.Spec.ImageSuffix != "",
	} {
		if set {
			r.cluster.omit(node.Hostname+": "+field, bootMedia)
		}
	}

	if node.NoValidation {
		r.cluster.omit(node.Hostname+": noSchematicValidate", "it is about checks of talhelper")
	}
}

// inherit adds the settings of the node's role (talhelper v3, pkg/config/nodeconfigs.go): lists of patches and
// manifests are appended, and any other setting that a node has replaces the one of the role.
func (n *talhelperNode) inherit(c talconfig) {
	role := c.Worker
	if n.IsControlPlane {
		role = c.ControlPlane
	}

	own := n.talhelperNodeConfigs

	if !n.OverridePatches {
		own.Patches = slices.Concat(role.Patches, own.Patches)
	}

	if !n.OverrideManifests {
		own.ExtraManifests = slices.Concat(own.ExtraManifests, role.ExtraManifests)
	}

	if !n.OverrideCertSANs {
		own.CertSANs = slices.Concat(own.CertSANs, role.CertSANs)
	}

	into, from := reflect.ValueOf(&own).Elem(), reflect.ValueOf(role)
	for i := range into.NumField() {
		if into.Field(i).IsZero() {
			into.Field(i).Set(from.Field(i))
		}
	}

	n.talhelperNodeConfigs = own
}

func (r *talhelperReader) input() (*generate.Input, error) {
	c := r.config
	options := []generate.Option{generate.WithInstallImage("ghcr.io/siderolabs/installer:" + r.version)}

	if c.ScheduleOnMasters || c.ScheduleOnPlanes {
		options = append(options, generate.WithAllowSchedulingOnControlPlanes(true))
	}

	if c.Domain != "" {
		options = append(options, generate.WithDNSDomain(c.Domain))
	}

	input, err := r.cluster.input(c.Endpoint, c.KubernetesVersion, r.version, options...)
	if err != nil {
		return nil, err
	}

	if len(c.PodNets) > 0 {
		input.PodNet = c.PodNets
	}

	if len(c.ServiceNets) > 0 {
		input.ServiceNet = c.ServiceNets
	}

	input.AdditionalMachineCertSANs, input.AdditionalSubjectAltNames = c.MachineCertSANs, c.APIServerCertSANs

	return input, nil
}

// filename is the name of the file that talhelper writes for a machine.
func (r *talhelperReader) filename(m Machine) string {
	node := r.config.Nodes[slices.IndexFunc(r.config.Nodes, func(n talhelperNode) bool { return n.Hostname == m.Name })]
	role := "worker"

	if m.ControlPlane {
		role = "controlplane"
	}

	parsed, err := template.New("filename").Parse(cmp.Or(node.Filename, "{{ .ClusterName }}-{{ .Hostname }}.yaml"))
	if err != nil {
		return node.Filename
	}

	var name bytes.Buffer
	if parsed.Execute(&name, map[string]string{"ClusterName": r.config.ClusterName, "Hostname": node.Hostname,
		"IPAddress": node.Address, "Role": role}) != nil {
		return node.Filename
	}

	return name.String()
}
