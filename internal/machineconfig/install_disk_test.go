package machineconfig

import (
	"slices"
	"strings"
	"testing"

	"github.com/siderolabs/talos/pkg/machinery/resources/block"
)

const gib = 1 << 30

func newDisk(path string, size uint64, about func(*block.DiskSpec)) *block.Disk {
	disk := block.NewDisk(block.NamespaceName, strings.TrimPrefix(path, "/dev/"))
	disk.TypedSpec().DevPath, disk.TypedSpec().Size = path, size

	if about != nil {
		about(disk.TypedSpec())
	}

	return disk
}

// The disk of a configuration is looked for as Talos does, in either form, and compared with what Talos needs.
func TestInstallDisk_problem(t *testing.T) {
	const link = "/dev/disk/by-id/nvme-FAST"

	disks := []*block.Disk{
		newDisk("/dev/sda", 20*gib, func(s *block.DiskSpec) { s.Model, s.Transport = "SLOW", "sata" }),
		newDisk("/dev/nvme0n1", 100*gib, func(s *block.DiskSpec) {
			s.Model, s.Transport, s.Symlinks = "FAST", "nvme", []string{link}
		}),
		newDisk("/dev/sdb", 4*gib, nil),
		newDisk("/dev/sr0", gib, func(s *block.DiskSpec) { s.CDROM = true }),
	}

	const (
		has       = "the machine has /dev/sda (21 GB, sata, SLOW), /dev/nvme0n1 (107 GB, nvme, FAST), /dev/sdb (4.3 GB)"
		small     = "/dev/sdb is too small: it has 4.0 GiB, and Talos needs "
		elsewhere = "apiVersion: v1alpha1\nkind: VolumeConfig\nname: EPHEMERAL\n" +
			"provisioning: {diskSelector: {match: disk.transport == 'nvme'}}\n"
		large = "apiVersion: v1alpha1\nkind: VolumeConfig\nname: EPHEMERAL\nprovisioning: {minSize: 30GiB}\n"
	)

	fields := []string{"v1.11", "v1.12", "v1.13"}

	for name, test := range map[string]struct {
		install   Install
		patch     string
		talos     string
		problem   string
		ofFields  string // up to contract v1.13, where it differs
		contracts []string
	}{
		"a path":             {install: Install{Disk: "/dev/sda"}},
		"a link":             {install: Install{Disk: link}},
		"a model":            {install: Install{DiskSelector: &DiskSelector{Model: "FAST"}}},
		"by a patch":         {patch: "machine: {install: {disk: /dev/nvme0n1}}", contracts: fields, install: Install{Disk: "/dev/vda"}},
		"no such path":       {install: Install{Disk: "/dev/vda"}, problem: `no disk matches disk.dev_path == "/dev/vda"; ` + has, ofFields: "no disk matches /dev/vda; " + has},
		"no such link":       {install: Install{Disk: link + "2"}, problem: `no disk matches "` + link + `2" in disk.symlinks; ` + has, ofFields: "no disk matches " + link + "2; " + has},
		"no such model":      {install: Install{DiskSelector: &DiskSelector{Model: "NONE"}}, problem: `no disk matches glob("NONE", disk.model) && disk.transport != "" && !disk.readonly && !disk.cdrom; ` + has},
		"no such patch":      {patch: "machine: {install: {disk: /dev/vda}}", contracts: fields, install: Install{Disk: "/dev/sda"}, problem: `no disk matches /dev/vda; ` + has},
		"a mapped path":      {install: Install{Disk: "/dev/mapper/mpatha"}, contracts: fields},
		"too small":          {install: Install{Disk: "/dev/sdb"}, problem: small + "4.2 GiB"},
		"enough for 1.10":    {install: Install{Disk: "/dev/sdb"}, talos: "v1.10.5"},
		"data elsewhere":     {install: Install{Disk: "/dev/sdb"}, patch: elsewhere},
		"too small for data": {install: Install{Disk: "/dev/sda"}, patch: large, problem: "/dev/sda is too small: it has 20 GiB, and Talos needs 32 GiB"},
	} {
		contracts := test.contracts
		if contracts == nil {
			contracts = append(slices.Clone(fields), documentContract)
		}

		for _, contract := range contracts {
			c, m := testCluster(contract), testMachine(ControlPlane)
			m.Install = test.install

			if test.patch != "" {
				m.Patches = []string{test.patch}
			}

			want := test.problem
			if test.ofFields != "" && contract != documentContract {
				want = test.ofFields
			}

			got, err := generated(t, c, m).Facts.Disk.ForTalos(test.talos).Problem(disks)
			if err != nil || got != want {
				t.Errorf("%s, %s: %q, %v, want %q", name, contract, got, err, want)
			}
		}
	}
}

// A container lists no devices, and has nothing to install.
func TestInstallDisk_ofAContainer(t *testing.T) {
	if problem, err := (InstallDisk{path: "/dev/sda"}).Problem(nil); problem != "" || err != nil {
		t.Errorf("%q, %v", problem, err)
	}
}
