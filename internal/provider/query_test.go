package provider

import (
	"bytes"
	"fmt"
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/hashicorp/terraform-plugin-go/tfprotov6"
	"github.com/hashicorp/terraform-plugin-go/tftypes"

	"github.com/talosop/terraform-provider-talosop/internal/backup/file"
)

// queried is what a list resource found.
type queried struct {
	display            string
	identity, resource map[string]tftypes.Value
	said               string
}

// query asks a list resource as `terraform query` does: the results, and what it says beside them.
func query(t *testing.T, provider configuration, name string, config configuration, include bool, limit int64) (
	[]queried, string,
) {
	t.Helper()

	server, ok := serving(t, provider).(walked).ProviderServer.(tfprotov6.ListResourceServer)
	if !ok {
		t.Fatal("the provider serves no lists")
	}

	typ := schemas(t).ListResourceSchemas[name].ValueType()
	asked := dynamic(t, valueOf(t, typ, config))

	valid, err := server.ValidateListResourceConfig(t.Context(),
		&tfprotov6.ValidateListResourceConfigRequest{TypeName: name, Config: asked})
	must(t, err)

	if len(valid.Diagnostics) > 0 {
		return nil, show(valid.Diagnostics)
	}

	stream, err := server.ListResource(t.Context(),
		&tfprotov6.ListResourceRequest{TypeName: name, Config: asked, IncludeResource: include, Limit: limit})
	must(t, err)

	var (
		results []queried
		said    strings.Builder
	)

	for result := range stream.Results {
		if result.Identity == nil {
			said.WriteString(show(result.Diagnostics))

			continue
		}

		one := queried{display: result.DisplayName, said: show(result.Diagnostics),
			identity: fieldsOf(t, decoded(t, identityTypeOf(t, name), result.Identity.IdentityData))}
		if include {
			one.resource = fieldsOf(t, decoded(t, typeOf(t, name), result.Resource))
		}

		results = append(results, one)
	}

	return results, said.String()
}

// identityTypeOf is the type of the identity of a resource.
func identityTypeOf(t *testing.T, name string) tftypes.Type {
	t.Helper()

	told, err := serving(t, nil).GetResourceIdentitySchemas(t.Context(), &tfprotov6.GetResourceIdentitySchemasRequest{})
	must(t, err)

	return told.IdentitySchemas[name].ValueType()
}

// displays are the names of what was found.
func displays(found []queried) string {
	var names []string

	for _, q := range found {
		names = append(names, q.display+" "+q.said)
	}

	return strings.Join(names, "\n")
}

// rack is a network of which machines of a site have the first addresses.
func (s *site) rack() string { return netip.PrefixFrom(s.Network().Addr(), 28).String() }

// listedMachines is a member of a cluster, one of another cluster and a machine in maintenance mode, and the provider that
// knows the secrets of the first cluster.
func listedMachines(t *testing.T) (s *site, provider configuration) {
	t.Helper()

	s = newSite(t, 1, 2)
	_, provided := s.made(t, "machine: {sysctls: {net.core.somaxconn: \"1024\"}}")

	endpoint, err := s.Endpoint()
	must(t, err)

	drive(t, "talosop_control_plane", nil).apply(t, configuration{
		"mode": "metal", "name": "other", "endpoint": endpoint, "secrets": otherBundle(t), "talos_version": "v1.13.0",
		"kubernetes_version": "v1.36.2", "install": configuration{"disk": "/dev/sda"}, "allow_bootstrap": true,
		"machines": configuration{"stranger": configuration{"address": s.workers[0].Address().String()}},
	}).must(t)

	return s, provided()
}

// Whoever answers in a network is listed as what it is, with the identity that an import takes, and nothing is changed.
func TestQuery_machinesOfANetwork(t *testing.T) {
	t.Parallel()

	s, provider := listedMachines(t)
	member, stranger, waiting := s.controlPlane[0], s.workers[0], s.workers[1]

	s.ForgetCalls()

	found, said := query(t, provider, "talosop_machine",
		configuration{"networks": []any{s.rack()}, "connect_timeout": "10s"}, true, 100)
	if said != "" || len(found) != 3 {
		t.Fatalf("it found %s, and says %s", displays(found), said)
	}

	s.nothingWasSent(t)

	for i, want := range []struct{ display, identity string }{
		{
			fmt.Sprintf("%s: control plane of test, running, Talos v1.13.0, cp-1, UUID %s", member.Address(), member.UUID()),
			fmt.Sprintf("test [%s] [cp-1=%[1]s]", member.Address()),
		},
		{
			fmt.Sprintf("%s: member of another cluster, not asked, stranger", stranger.Address()),
			fmt.Sprintf(" [] [stranger=%s]", stranger.Address()),
		},
		{
			fmt.Sprintf("%s: maintenance, Talos v1.13.0, UUID %s", waiting.Address(), waiting.UUID()),
			fmt.Sprintf(" [] [%s=%[1]s]", waiting.Address()),
		},
	} {
		if found[i].display != want.display || found[i].said != "" {
			t.Errorf("%d is %q, and says %q, want %q", i, found[i].display, found[i].said, want.display)
		}

		if got := identityText(t, found[i]); got != want.identity {
			t.Errorf("the identity of %s is %s, want %s", want.display, got, want.identity)
		}

		if got := text(t, tftypes.NewValue(typeOf(t, "talosop_machine"), found[i].resource), "address"); !strings.HasPrefix(
			want.display, got+":") {
			t.Errorf("the resource of %s has the address %s", want.display, got)
		}
	}

	// Of a member it is all that an import writes down.
	imported := drive(t, "talosop_machine", provider)
	imported.imports(t, encoded(t, map[string]any{"cluster": "test", "control_plane": addresses(s.controlPlane),
		"machines": addresses(s.controlPlane)})).must(t)

	if got := tftypes.NewValue(typeOf(t, "talosop_machine"), found[0].resource); !strings.Contains(got.String(),
		"net.core.somaxconn") || text(t, got, "name") != text(t, imported.state, "name") ||
		!fieldsOf(t, got)["config_patches"].Equal(fieldsOf(t, imported.state)["config_patches"]) {
		t.Errorf("the resource is %s, and an import has %s", got, imported.state)
	}
}

func identityText(t *testing.T, q queried) string {
	t.Helper()

	list := func(name string) []string {
		var (
			values []tftypes.Value
			texts  []string
		)

		must(t, q.identity[name].As(&values))

		for _, v := range values {
			var one string
			must(t, v.As(&one))

			texts = append(texts, one)
		}

		return texts
	}

	var cluster *string

	must(t, q.identity["cluster"].As(&cluster))

	if cluster == nil {
		cluster = new(string)
	}

	return fmt.Sprint(*cluster, " ", list("control_plane"), " ", list("machines"))
}

// What is asked for bounds what is listed and asked; who was named and does not answer is told.
func TestQuery_machinesAsAsked(t *testing.T) {
	t.Parallel()

	s := newSite(t, 0, 2)
	first, second := s.workers[0].Address().String(), s.workers[1].Address().String()

	nobody, err := s.Reserve()
	must(t, err)

	for name, test := range map[string]struct {
		config configuration
		limit  int64
		found  []string
		said   string
	}{
		"in the order that is given": {config: configuration{"addresses": []any{second, first}}, found: []string{second, first}},
		"one of them":                {config: configuration{"addresses": []any{second, first}}, limit: 1, found: []string{second}},
		"without maintenance":        {config: configuration{"addresses": []any{first}, "maintenance": false}},
		"maintenance alone": {config: configuration{"addresses": []any{first}, "maintenance": true,
			"connections": 1}, found: []string{first}},
		"nobody is there": {config: configuration{"addresses": []any{nobody.String(), first}}, found: []string{first},
			said: nobody.String() + ": unreachable"},
		"nobody in a network": {config: configuration{"networks": []any{nobody.String() + "/32"}}},
		"nowhere":             {config: configuration{}, said: "Found neither addresses nor networks"},
		"too many": {config: configuration{"networks": []any{s.Network().String()}, "max_addresses": 1000},
			said: "Found 2046 addresses in them. Allowed are 1000"},
		"no such cluster": {config: configuration{"addresses": []any{first}, "cluster": "prod"},
			said: "the provider has no `clusters`"},
		"no such file": {config: configuration{"addresses": []any{first}, "secrets_file": "nowhere.yaml"},
			said: "no such file"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()

			found, said := query(t, nil, "talosop_machine", test.config, false, test.limit)

			var at []string

			for _, q := range found {
				address, _, _ := strings.Cut(q.display, ": ")
				at = append(at, address)
			}

			if !slices.Equal(at, test.found) || !strings.Contains(said, test.said) || test.said == "" && said != "" {
				t.Errorf("it found %v, want %v, and says %q, want %q", at, test.found, said, test.said)
			}
		})
	}
}

// The secrets of a cluster may be in a file alone, which is what the identity names.
func TestQuery_machinesOfAFile(t *testing.T) {
	t.Parallel()

	s := newSite(t, 1, 0)
	s.made(t, "machine: {sysctls: {net.core.somaxconn: \"1024\"}}")

	secrets := filepath.Join(t.TempDir(), "secrets.yaml")

	must(t, os.WriteFile(secrets, []byte(bundleOnce()), 0o600))

	found, said := query(t, nil, "talosop_machine",
		configuration{"addresses": []any{s.controlPlane[0].Address().String()}, "secrets_file": secrets}, true, 0)
	if len(found) != 1 || found[0].said != "" || said != "" || !strings.Contains(found[0].display, "control plane of "+secrets) {
		t.Fatalf("it found %s, and says %s", displays(found), said)
	}

	identity := tftypes.NewValue(identityTypeOf(t, "talosop_machine"), found[0].identity)
	if text(t, identity, "secrets") != secrets || text(t, identity, "cluster") != "" {
		t.Errorf("the identity is %s", identity)
	}
}

// The snapshots of a store are listed newest first, with why they cannot be restored, and the store alone is asked.
func TestQuery_backupsOfAFolder(t *testing.T) {
	t.Parallel()

	folder, mark := t.TempDir(), markOf(t, bundleOnce())
	keys := []string{
		"prod/etcd-snapshot-2026-01-03T03-00-00Z-" + mark + "-abcdef.db.zst.age",
		"prod/etcd-snapshot-2026-01-02T03-00-00Z-" + mark + "-abcdef.db",
	}

	for _, key := range append(keys, "other/"+filepath.Base(keys[0])) {
		_, err := file.Store{Path: folder}.Put(t.Context(), key, bytes.NewReader([]byte("what is stored")))
		must(t, err)
	}

	provider := configuration{"clusters": configuration{"prod": configuration{"secrets": bundleOnce()}}}
	config := configuration{"cluster": "prod", "file": configuration{"path": folder}, "recipients": []any{testRecipient}}

	found, said := query(t, provider, "talosop_etcd_backup", config, true, 100)
	if len(found) != 2 || said != "" {
		t.Fatalf("it found %s, and says %s", displays(found), said)
	}

	for i, want := range []string{
		"2026-01-03T03:00:00Z, 14 bytes, encrypted, not restorable: it has no record that a key of this cluster wrote",
		"2026-01-02T03:00:00Z, 14 bytes, not restorable: it has no record that a key of this cluster wrote",
	} {
		resource := tftypes.NewValue(typeOf(t, "talosop_etcd_backup"), found[i].resource)
		identity := tftypes.NewValue(identityTypeOf(t, "talosop_etcd_backup"), found[i].identity)

		if !strings.HasPrefix(found[i].display, want) || text(t, resource, "key") != keys[i] ||
			text(t, identity, "key") != keys[i] || text(t, identity, "path") != folder ||
			text(t, identity, "cluster") != "prod" || found[i].identity["recipients"].IsNull() != (i == 1) {
			t.Errorf("%s: %s with %s", found[i].display, resource, identity)
		}
	}

	for name, wrong := range map[string]configuration{
		"Found neither s3 nor file": {"cluster": "prod"},
		"read the secrets":          {"cluster": "unheard", "file": configuration{"path": folder}},
		"there is no such folder":   {"cluster": "prod", "file": configuration{"path": filepath.Join(folder, "nowhere")}},
	} {
		if found, said := query(t, provider, "talosop_etcd_backup", wrong, false, 100); len(found) > 0 ||
			!strings.Contains(said, name) {
			t.Errorf("%s: it found %v, and says %s", name, found, said)
		}
	}
}

// All snapshots are of one cluster, whose control planes are asked once for all of them.
func TestQuery_backupsAskTheClusterOnce(t *testing.T) {
	t.Parallel()

	s := newSite(t, 1, 0)
	s.made(t, "")

	folder, mark := t.TempDir(), markOf(t, bundleOnce())
	for _, day := range []string{"02", "03"} {
		key := "test/etcd-snapshot-2026-01-" + day + "T03-00-00Z-" + mark + "-abcdef.db"
		_, err := file.Store{Path: folder}.Put(t.Context(), key, bytes.NewReader([]byte("what is stored")))
		must(t, err)
	}

	provider := configuration{"clusters": configuration{"test": configuration{"secrets": bundleOnce()}}}
	config := configuration{"cluster": "test", "file": configuration{"path": folder},
		"control_plane": []any{s.controlPlane[0].Address().String()}}
	reads := func(most int64) int {
		s.ForgetCalls()

		if found, said := query(t, provider, "talosop_etcd_backup", config, true, most); len(found) != int(most) {
			t.Errorf("it found %s, and says %s", displays(found), said)
		}

		return len(s.CallsTo("Version"))
	}

	if one, both := reads(1), reads(2); one == 0 || both != one {
		t.Errorf("the control plane is asked for its version %d times for one snapshot, and %d times for two", one, both)
	}
}
