package record_test

import (
	"encoding/json"
	"reflect"
	"testing"

	"github.com/talosop/terraform-provider-talosop/internal/kubenames"
	"github.com/talosop/terraform-provider-talosop/internal/machineconfig/fieldpath"
	"github.com/talosop/terraform-provider-talosop/internal/metakey"
	"github.com/talosop/terraform-provider-talosop/internal/record"
)

// Sentences of a former state are read as kinds. The sentences are literals because they never change.
func TestDecodeFormer_readsEverySentence(t *testing.T) {
	t.Parallel()

	place := &fieldpath.Place{Document: "v1alpha1", Path: fieldpath.Path{"machine", "sysctls", "a.b: c"}}

	for sentence, want := range map[string]record.Difference{
		"Talos: v1.13.0 runs, not v1.13.1":                  {Kind: record.Former, Found: "Talos: v1.13.0 runs, not v1.13.1"},
		`configuration: v1alpha1 machine.sysctls["a.b: c"]`: {Kind: record.ConfigurationDiffers, Place: place},
		"configuration: of a later build ]":                 {Kind: record.ConfigurationDiffers, Found: "of a later build ]"},
		"image of kubelet: kubelet:v1.36.3, not kubelet:v1.35.4": {Kind: record.ImageDiffers, Component: kubenames.Kubelet,
			Found: "kubelet:v1.36.3", Wanted: "kubelet:v1.35.4"},
		"image of kube-proxy: that of Talos, not x:v1": {Kind: record.ImageDiffers, Component: kubenames.KubeProxy,
			Wanted: "x:v1"},
		"META: not what `clusters` of the provider has: 0x0a, 0x0d": {Kind: record.MetaDiffers,
			Keys: metakey.Keys{0x0a, 0x0d}},
		"it waits in maintenance mode, without a configuration":                               {Kind: record.Wiped},
		"it waits in maintenance mode, and nothing proves that it is the machine that joined": {Kind: record.Unproven},
		"it has no member in etcd":                                                     {Kind: record.NoMember},
		"it left etcd, and its etcd does not run":                                      {Kind: record.LeftEtcd},
		"etcd was told to take its data back to version 3.6":                           {Kind: record.EtcdGoesBack, Wanted: "3.6"},
		"it has no node in Kubernetes":                                                 {Kind: record.NoNode},
		"another resource, or another state, has marked its node as its own":           {Kind: record.OwnedByAnother},
		"control planes of other resources work":                                       {Kind: record.OthersWork},
		"the host cluster has neither a pod nor volumes of it":                         {Kind: record.NotOnHost},
		"host cluster: its volumes can never be used again, and its data is lost":      {Kind: record.HostVolumesLost},
		"host cluster, left as it is: it has 30Gi":                                     {Kind: record.HostStays, Found: "it has 30Gi"},
		"not ready: its kubelet is down":                                               {Kind: record.NotReady, Found: "its kubelet is down"},
		"etcd is not healthy: NOSPACE":                                                 {Kind: record.EtcdNotHealthy, Found: "NOSPACE"},
		`the owner mark on its node is not authentic and does not count, it names "x"`: {Kind: record.MarkUnproven, Found: "x"},
	} {
		state, err := json.Marshal(map[string]any{"cp-1": map[string]any{"drift": []string{sentence}}})
		if err != nil {
			t.Fatal(err)
		}

		got, err := record.DecodeFormer(state)
		if err != nil || !reflect.DeepEqual(got["cp-1"].Drift, record.Drift{want}) {
			t.Errorf("%q is read as %+v, %v", sentence, got, err)
		}

		if text := got["cp-1"].Drift.Lines()[0]; want.Kind == record.Former && text != sentence {
			t.Errorf("%q is shown as %q", sentence, text)
		}
	}
}

// The reason for replacing a pod was the last difference of its host cluster, and the pod had no digest then.
func TestDecodeFormer_whyAPodIsReplaced(t *testing.T) {
	t.Parallel()

	const drift = `"drift": ["host cluster: Service p/dev does not exist", "host cluster: it changed", "it has no node in Kubernetes"]`

	got, err := record.DecodeFormer([]byte(`{"cp-0": {` + drift + `}, "cp-1": {"pod_digest": "p", ` + drift + `}}`))
	if err != nil {
		t.Fatal(err)
	}

	if d := got["cp-0"].Drift; d.First(record.HostReplaces).Found != "it changed" || len(d.Of(record.HostDiffers)) != 1 {
		t.Errorf("of one without a digest: %+v", d)
	}

	if d := got["cp-1"].Drift; d.Has(record.HostReplaces) || len(d.Of(record.HostDiffers)) != 2 {
		t.Errorf("of one with a digest: %+v", d)
	}
}

// Every field of a former state is read.
func TestDecodeFormer_readsEveryField(t *testing.T) {
	t.Parallel()

	got, err := record.DecodeFormer([]byte(`{"cp-1": {"stage": "running", "ready": true, "talos_version": "v1.13.0",
		"schematic": "s", "extensions": ["e"], "installer": "i", "uuid": "u", "boot_id": "b", "kubelet_version": "v1.36.3",
		"config_digest": "d", "staged_config_digest": "e", "keys": "talos=1", "member_id": "m", "node_name": "n",
		"address": "10.0.0.1", "platform": "metal", "drift": [], "images": {"kubelet": "kubelet:v1.36.3"},
		"kubernetes": {"kubelet": "v1.36.3"}, "etcd_restored_at": "2026-11-28T01:02:03.000000004Z", "pod_digest": "p",
		"peer_address": "10.96.0.1", "hostname_unset": true}}`))

	want := everything()
	want.Drift, want.Link, want.Soaks = nil, "", false // those states had no links and no canaries

	if err != nil || !reflect.DeepEqual(got, record.Machines{"cp-1": want}) {
		t.Errorf("read is %+v, %v", got, err)
	}

	if got, err := record.DecodeFormer([]byte("null")); err != nil || len(got) > 0 {
		t.Errorf("nothing is read as %v, %v", got, err)
	}

	for _, state := range []string{"[]", `{"cp-1": {"etcd_restored_at": "once"}}`} {
		if got, err := record.DecodeFormer([]byte(state)); err == nil {
			t.Errorf("%s is read as %v", state, got)
		}
	}
}
