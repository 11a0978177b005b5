package clusterimport

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// Machines in identities are texts, and read like those in IDs.
func TestIdentity_machines(t *testing.T) {
	t.Parallel()

	named, err := addressesIn("machines", []string{"cp-1=10.0.0.11", "cp-2=fd00::12"}, true)
	if diff := cmp.Diff(map[string]string{"cp-1": "10.0.0.11", "cp-2": "fd00::12"}, named); diff != "" || err != nil {
		t.Errorf("%v\n%s", err, diff)
	}

	bare, err := addressesIn("control_plane", []string{"10.0.0.11", "cp-2=10.0.0.12"}, false)
	if diff := cmp.Diff(map[string]string{"10.0.0.11": "10.0.0.11", "cp-2": "10.0.0.12"}, bare); diff != "" || err != nil {
		t.Errorf("%v\n%s", err, diff)
	}

	pools, err := poolsIn([]string{"batch/w-1=10.0.0.21", "gpu/w-1=10.0.0.22", "batch/w-2=10.0.0.23"})
	if diff := cmp.Diff(map[string]map[string]string{"batch": {"w-1": "10.0.0.21", "w-2": "10.0.0.23"},
		"gpu": {"w-1": "10.0.0.22"}}, pools); diff != "" || err != nil {
		t.Errorf("%v\n%s", err, diff)
	}
}

func TestIdentity_refusesWhatIsNoMachine(t *testing.T) {
	t.Parallel()

	for text, says := range map[string]string{
		"10.0.0.11": "a machine is written as name=address", "=10.0.0.11": "a machine is written as name=address",
		"cp-1=": "a machine is written as name=address",
	} {
		if _, err := addressesIn("machines", []string{text}, true); err == nil || !strings.Contains(err.Error(), says) {
			t.Errorf("%q: %v", text, err)
		}
	}

	if _, err := addressesIn("machines", []string{"a=1", "a=2"}, true); err == nil {
		t.Error("a name is taken twice")
	}

	for _, workers := range [][]string{{"w-1=10.0.0.21"}, {"/w-1=10.0.0.21"}, {"batch/10.0.0.21"},
		{"batch/w-1=10.0.0.21", "batch/w-1=10.0.0.22"}} {
		if _, err := poolsIn(workers); err == nil {
			t.Errorf("%v are taken", workers)
		}
	}
}
