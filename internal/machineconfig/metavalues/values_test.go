package metavalues

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/talosop/terraform-provider-talosop/internal/machineconfig"
)

func TestParse_keysAndValues(t *testing.T) {
	const network = "addresses: [{address: 10.0.0.5/24, linkName: eth0}]\n"

	got, err := Parse(map[string]string{"network": network, "0xb": "code", "13": "mine", "user_3": ""})
	if err != nil {
		t.Fatal(err)
	}

	if diff := cmp.Diff(map[uint8]string{0x0a: network, 0x0b: "code", 0x0d: "mine", 0x0e: ""}, got); diff != "" {
		t.Error(diff)
	}

	const keys = "network (0x0a), download_url (0x0b), user_1 (0x0c), user_2 (0x0d), user_3 (0x0e), uuid_override " +
		"(0x0f), machine_token (0x10)"

	_, err = Parse(map[string]string{"0x06": "A", "hostname": "x", "10": "not YAML: [", "user_1": "a", "0x0c": "b"})

	var messages []string
	for _, mistake := range machineconfig.FieldErrors(err) {
		messages = append(messages, mistake.Error())
	}

	if diff := cmp.Diff([]string{
		`machine.meta["0x06"]: found "0x06"; allowed: one of ` + keys + `; the other keys belong to Talos`,
		`machine.meta["10"]: found a value that is not a network configuration; allowed: YAML with addresses, links, routes and so on; see the META network configuration of Talos for metal`,
		`machine.meta["hostname"]: found "hostname"; allowed: one of ` + keys + `; the other keys belong to Talos`,
		`machine.meta["user_1"]: found key 0x0c again; allowed: each key once; remove one of the two names`,
	}, messages); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}
