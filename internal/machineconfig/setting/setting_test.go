package setting

import (
	"encoding/json"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/siderolabs/talos/pkg/machinery/config"
)

func of(s *Setting, value any, more ...any) Values {
	var v Values
	v.Set(s, value)

	for i := 0; i+1 < len(more); i += 2 {
		if next, ok := more[i].(*Setting); ok {
			v.Set(next, more[i+1])
		}
	}

	return v
}

type texts = map[string]string

// The common values of machines and the additional ones of each are all of its values.
func TestValues_divided(t *testing.T) {
	one := of(Labels, texts{"site": "a", "rack": "1"}, Annotations, texts{"x": "y"})
	two := of(Labels, texts{"site": "a", "rack": "2"}, Annotations, texts{"x": "y"}, Taints, texts{"gpu": "NoSchedule"})

	common := Common(one, two)
	if diff := cmp.Diff(of(Labels, texts{"site": "a"}, Annotations, texts{"x": "y"}), common); diff != "" {
		t.Errorf("common (-want +got):\n%s", diff)
	}

	for _, values := range []Values{one, two} {
		if diff := cmp.Diff(values, Merge(common, values.Own(common))); diff != "" {
			t.Errorf("both together (-want +got):\n%s", diff)
		}
	}

	if diff := cmp.Diff(of(Labels, texts{"rack": "1"}), one.Own(common)); diff != "" {
		t.Errorf("the rest (-want +got):\n%s", diff)
	}

	if got := Common(one, nil); len(got) > 0 {
		t.Errorf("a machine has %v alike with one that has nothing", got)
	}
}

func TestValues_asJSON(t *testing.T) {
	got, err := json.Marshal(of(Labels, texts{"b": "2", "a": "1"}))
	if want := `{"labels":{"a":"1","b":"2"}}`; err != nil || string(got) != want {
		t.Errorf("got %s, %v; want %s", got, err, want)
	}
}

// Each error, at its field.
func TestValues_check(t *testing.T) {
	for name, test := range map[string]struct {
		values Values
		target Target
		want   []string
	}{
		"valid": {values: of(Labels, texts{"example.com/a": "b", "c": ""},
			Taints, texts{"gpu": "x:NoExecute", "y": "NoSchedule"})},
		"label": {values: of(Labels, texts{"a b": "c", "d": "e f"}), want: []string{`labels["a b"]`, `labels["d"]`}},
		"annotation": {values: of(Annotations, texts{"a/b/c": "d", "talos.dev/owned-labels": "e", "talos.dev/f": "any text"}),
			want: []string{`annotations["a/b/c"]`, `annotations["talos.dev/owned-labels"]`}},
		"taint": {values: of(Taints, texts{"gpu": "Never", "x": "a b:NoSchedule", "y": ""}),
			want: []string{`taints["gpu"]`, `taints["x"]`, `taints["y"]`}},
		"sysctl": {values: of(Sysctls, texts{"vm.max_map_count": "1", "net/ipv4/conf/eth0.1/forwarding": "1", "vm": "1",
			"vm max": "2"}), want: []string{`sysctls["vm"]`, `sysctls["vm max"]`}},
		"sysctl in a container": {values: of(Sysctls, texts{"vm.swappiness": "1"}), target: Target{Container: true},
			want: []string{"sysctls"}},
		"oidc": {values: of(OIDC, &OIDCConfig{IssuerURL: "http://id.test", GroupsPrefix: "x"}),
			want: []string{"oidc.issuer_url", "oidc.client_id", "oidc.groups_prefix"}},
		"oidc that is not known yet": {values: of(OIDC, &OIDCConfig{}), target: Target{Partial: true}},
		"oidc of fields": {values: of(OIDC, &OIDCConfig{IssuerURL: "https://id.test", ClientID: "kube", CA: "PEM",
			RequiredClaims: texts{"a": "b", "c": "d"}}), target: Target{Contract: config.TalosVersion1_13},
			want: []string{"oidc.ca", "oidc.required_claims"}},
		"oidc of documents": {values: of(OIDC, &OIDCConfig{IssuerURL: "https://id.test", ClientID: "kube", CA: "PEM",
			RequiredClaims: texts{"a": "b", "c": "d"}}), target: Target{Contract: config.TalosVersion1_14}},
		"oidc of a worker": {values: of(OIDC, &OIDCConfig{IssuerURL: "https://id.test", ClientID: "kube"}),
			target: Target{Worker: true}, want: []string{"oidc"}},
		"vip": {values: of(VIP, &VIPConfig{Address: "10.0.0.1/24"}),
			want: []string{"vip.address", "vip.link"}},
		"vip of a machine that is asked": {values: of(VIP, &VIPConfig{Address: "10.0.0.1"}), target: Target{FindsLinks: true}},
		"vip of a container": {values: of(VIP, &VIPConfig{}), target: Target{Container: true},
			want: []string{"vip"}},
		"taint that is not known yet": {values: of(Taints, texts{"y": ""}), target: Target{Partial: true}},
	} {
		var got []string
		for _, problem := range test.values.Check(test.target) {
			got = append(got, problem.Field)
		}

		if diff := cmp.Diff(test.want, got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
}
