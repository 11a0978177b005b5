package setting

import (
	"slices"
	"testing"
)

func TestKubeletExtraArgs_check(t *testing.T) {
	values := of(KubeletExtraArgs, texts{"feature-gates": "A=true", "--v": "2", "cert-dir": "/var", "max-pods": ""})

	var got []string
	for _, problem := range values.Check(Target{}) {
		got = append(got, problem.Field)
	}

	want := []string{`kubelet_extra_args["--v"]`, `kubelet_extra_args["cert-dir"]`, `kubelet_extra_args["max-pods"]`}
	if !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
}
