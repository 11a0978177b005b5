package cluster_test

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/talosop/terraform-provider-talosop/internal/cluster"
	"github.com/talosop/terraform-provider-talosop/internal/cluster/step"
	"github.com/talosop/terraform-provider-talosop/internal/etcdstate"
	"github.com/talosop/terraform-provider-talosop/internal/kubenames"
	"github.com/talosop/terraform-provider-talosop/internal/kubestate"
	"github.com/talosop/terraform-provider-talosop/internal/rotation"
)

func lines(text string) [][]string {
	var out [][]string

	for line := range strings.Lines(text) {
		if fields := strings.Fields(line); len(fields) > 0 && !strings.HasPrefix(fields[0], "#") {
			out = append(out, fields)
		}
	}

	return out
}

// clock is the time in every scenario.
var clock = time.Date(2026, 1, 1, 12, 0, 0, 0, time.UTC)

func parseSpec(t *testing.T, text string, policy *cluster.Policy) cluster.Spec {
	t.Helper()

	spec := cluster.Spec{Name: "prod", Endpoint: "https://10.0.0.100:6443", NodesBecomeReady: true,
		Pools: map[string]cluster.Budget{}}
	defaults := cluster.Machine{Configured: cluster.Configured{ConfigDigest: "new"}, Installation: cluster.Installation{TalosVersion: "v1.13.0", InstallTarget: "/dev/sda"}}

	for _, f := range lines(text) {
		switch f[0] {
		case "kubernetes":
			parseKubernetes(t, &spec, f[1:])
		case "bootstrapped":
			spec.Bootstrapped = true
		case "needs-consent":
			spec.NeedsConsent = true
		case "owner":
			spec.Owner = f[1]
		case "protected":
			spec.Protected = true
		case "restore": // such as "key", or "key recorded=1h"
			spec.RestoreFrom = f[1]

			if len(f) > 2 {
				spec.RestoredAt = clock.Add(-age(t, strings.TrimPrefix(f[2], "recorded=")))
			}
		case "joins":
			spec.Joins = true
		case "shared":
			spec.Shared = true
		case "isolated":
			spec.Isolated = true
		case "single":
			spec.Single = true
		case "ending":
			spec.Ending = true
		case "rotates":
			spec.Rotates = true
		case "pods":
			defaults.Container, defaults.InstallTarget = true, ""
		case "no-cni":
			spec.NodesBecomeReady = false
		case "version":
			defaults.TalosVersion = f[1]
			parseSettings(t, &defaults, f[2:])
		case "budget":
			spec.Pools[strings.TrimPrefix(f[1], "-")] = parseBudget(t, f[2])
		case "canary": // such as "canary a 30m"
			spec.Canary = cluster.Canary{Pool: f[1], Soak: age(t, f[2])}
		case "policy":
			parsePolicy(t, policy, f[1:])
		case "beside":
			spec.OtherControlPlanes = append(spec.OtherControlPlanes,
				cluster.MachineAt(f[1], step.ControlPlane, f[2]))
		case "only": // a machine without a resource, such as "only w-9 10.0.0.9"
			m := cluster.Machine{Name: cluster.UnmanagedName(f[1]), Role: step.Worker, Pool: cluster.UnmanagedPool,
				Wanted: cluster.Wanted{Address: f[2]}, Remembered: cluster.Remembered{NodeName: f[1]},
				Configured: cluster.Configured{ConfigDigest: "new"}}
			parseSettings(t, &m, f[3:])
			spec.ChangeOnly = append(spec.ChangeOnly, m)
		case "removed":
			m := cluster.Machine{Name: f[1], Role: parseRole(t, f, 2), Wanted: cluster.Wanted{Address: f[3]},
				Remembered: cluster.Remembered{NodeName: f[1]}, Container: defaults.Container}
			parseSettings(t, &m, f[4:])
			spec.Removed = append(spec.Removed, m)
		default:
			m := defaults
			m.Name, m.Role, m.Address = f[0], parseRole(t, f, 1), f[2]
			if m.Container {
				m.NodeName = m.Name
			}

			if spec.Kubernetes.Version != "" {
				m.Images = imagesOf(m.Role, spec.Kubernetes.Version)
			}

			parseSettings(t, &m, f[3:])
			spec.Machines = append(spec.Machines, m)
		}
	}

	return spec
}

// parseRole reads the role in a line about a machine. A line with a misspelled word is an error.
func parseRole(t *testing.T, fields []string, at int) step.Role {
	t.Helper()

	if len(fields) < at+2 || fields[at] != string(step.ControlPlane) && fields[at] != string(step.Worker) {
		t.Fatalf("%q is neither a known word nor a machine with its role and address", strings.Join(fields, " "))
	}

	return step.Role(fields[at])
}

func parsePolicy(t *testing.T, policy *cluster.Policy, words []string) {
	t.Helper()

	for _, word := range words {
		switch word {
		case "try":
			policy.TryConfig = true
		case "no-drain":
			policy.Drain.Skip = true
		case "ignore-volumes":
			policy.Drain.IgnoreVolumes = true
		case "drain-for-kubelet":
			policy.DrainForKubelet = true
		case "stage-reboots":
			policy.StageReboots = true
		case "keep-manifests":
			policy.KeepManifests = true
		default:
			t.Fatalf("unknown policy %q", word)
		}
	}
}

func parseSettings(t *testing.T, m *cluster.Machine, settings []string) {
	t.Helper()

	for _, setting := range settings {
		switch key, value, _ := strings.Cut(setting, "="); key {
		case "uuid":
			m.UUID = value
		case "ca":
			m.Keys = keysOf(value)
		case "meta":
			m.Meta = parseMeta(t, value)
		case "pool":
			m.Pool = value
		case "version":
			m.TalosVersion = value
		case "schematic":
			m.Schematic = value
		case "member":
			m.MemberID = value
		case "node":
			m.NodeName = value
		case "was": // its former address
			m.PreviousAddress = value
		case "wanted-node":
			m.WantedNode = value
		case "reinstall":
			m.Reinstall = true
		case "joined":
			m.Joined = true
		case "in-service":
			m.InService = true
		case "pinned":
			m.Fingerprint = "known"
		case "shuts-down":
			m.Reset.ShutDown = true
		case "locked":
			m.Locked = true
		case "rejoin":
			m.Rejoin = true
		case "others":
			m.OwnedByOther = true
		case "ephemeral":
			m.Ephemeral = true
		case "replace":
			m.Replace = strings.ReplaceAll(value, "_", " ")
		case "downgrade":
			m.AllowDowngrade = true
		case "via":
			for version := range strings.SplitSeq(value, ",") {
				m.Via = append(m.Via, cluster.Release{Version: version})
			}
		case "least":
			m.LeastTalos = value
		case "images": // from another registry
			for c, image := range m.Images {
				m.Images[c] = strings.Replace(image, "registry.k8s.io", value, 1)
			}
		case "kube-apiserver", "kube-controller-manager", "kube-scheduler", "kube-proxy", "kubelet":
			m.Images = withImage(m.Images, kubenames.Component(key), value)
		case "no-proxy":
			delete(m.Images, kubenames.KubeProxy)
		default:
			t.Fatalf("unknown setting %q", setting)
		}
	}
}

// keysOf reads an authority, and what is also accepted, such as "new+old": the same for Talos and Kubernetes, and
// tokens of the same name.
func keysOf(text string) rotation.Keys {
	return rotation.ParseKeys(fmt.Sprintf("talos=%s kubernetes=%[1]s cluster-token=%s", text,
		strings.SplitN(text, "+", 2)[0]))
}

func parseBudget(t *testing.T, text string) cluster.Budget {
	t.Helper()

	number, percent := strings.CutSuffix(text, "%")

	n, err := strconv.Atoi(number)
	if err != nil {
		t.Fatal(err)
	}

	if percent {
		return cluster.Budget{Percent: n}
	}

	return cluster.Budget{Count: n}
}

func parseSnapshot(t *testing.T, want cluster.Spec, text string) cluster.Snapshot {
	t.Helper()

	now := clock
	have := cluster.Snapshot{
		Time: now, Machines: map[string]step.MachineState{}, Peers: map[string]step.MachineState{},
		Kubernetes: kubestate.State{Reachable: true, Owners: map[string]string{}},
	}

	var defaults step.MachineState

	for _, f := range lines(text) {
		switch f[0] {
		case "etcd":
			parseEtcd(want, &have, f[1:])
		case "view":
			parseView(t, &have, f[1:])
		case "runs":
			parseRuns(t, want, &have, f[1:])
		case "window": // closed, possibly in a run that does not wait for it
			have.Window = cluster.Window{Closed: true, Opens: clock.Add(2 * time.Hour), Refuses: f[1] == "refuses"}
		case "elsewhere":
			have.Elsewhere = parseElsewhere(t, f[1:])
		case "founder":
			have.Founder = f[1]
		case "manifests":
			have.Kubernetes.Manifests = f[1]
		case "views":
			for _, member := range have.Etcd.Members {
				parseView(t, &have, []string{member.ID, "leader=" + f[1]})
			}
		case "nodes":
			parseNodes(t, want, &have, f[1:])
		case "kubernetes-down":
			have.Kubernetes = kubestate.State{Cause: "connection refused", Owners: have.Kubernetes.Owners}

			if len(f) > 1 {
				have.Kubernetes.Since = now.Add(-age(t, f[1]))
			}
		case "owners": // such as w-1=a, and none before the nodes were listed
			have.Kubernetes.Owners = nil

			for _, mark := range f[1:] {
				if have.Kubernetes.Owners == nil {
					have.Kubernetes.Owners = map[string]string{}
				}

				node, owner, _ := strings.Cut(mark, "=")
				have.Kubernetes.Owners[node] = owner
			}
		case "unproven": // nodes with a mark that no key authenticates, such as w-1=a
			have.Kubernetes.Unproven = map[string]string{}

			for _, mark := range f[1:] {
				node, owner, _ := strings.Cut(mark, "=")
				have.Kubernetes.Unproven[node] = owner
			}
		case "talos":
			defaults.TalosVersion, defaults.Schematic = f[1], strings.Join(f[2:], "")
		case "peer":
			have.Peers[f[1]] = parseState(t, now, f[2:], defaults)
		default:
			if f[0] == "only" {
				f = append([]string{cluster.UnmanagedName(f[1])}, f[2:]...)
			}

			m := machineIn(want, f[0])
			if m.Name == "" || len(f) < 2 {
				t.Fatalf("%q is neither a known word nor a machine of the spec", strings.Join(f, " "))
			}

			s := parseState(t, now, f[1:], defaults)
			if m.Container && s.Access == step.Member && s.Addresses == nil {
				s.Addresses = []string{m.Address}
			}

			have.Machines[f[0]] = s
		}
	}

	return have
}

func parseEtcd(want cluster.Spec, have *cluster.Snapshot, names []string) {
	have.Etcd.Known = true

	for _, name := range names {
		name, learner := strings.CutSuffix(name, "(learner)")
		name, address, _ := strings.Cut(name, "@")
		have.Etcd.Members = append(have.Etcd.Members, etcdstate.Member{
			ID: name, Name: name, Learner: learner,
			PeerURLs: []string{"https://" + cmp.Or(address, machineIn(want, name).Address) + ":2380"},
		})
	}
}

// parseView reads the report of one member, such as "cp-1 leader=cp-2 alarm=NOSPACE".
func parseView(t *testing.T, have *cluster.Snapshot, f []string) {
	t.Helper()

	view := etcdstate.View{Member: f[0]}
	for _, member := range have.Etcd.Members {
		view.Members = append(view.Members, member.ID)
	}

	for _, field := range f[1:] {
		switch key, value, _ := strings.Cut(field, "="); key {
		case "leader":
			view.Leader = value
		case "members":
			view.Members = strings.Split(value, ",")
		case "alarm":
			view.Alarms = []string{value}
		case "error":
			view.Errors = []string{strings.ReplaceAll(value, "_", " ")}
		default:
			t.Fatalf("unknown field %q", field)
		}
	}

	if have.Etcd.Views == nil {
		have.Etcd.Views = map[string]etcdstate.View{}
	}

	have.Etcd.Views[view.Member] = view
}

// parseNodes reads nodes such as "w-1(NotReady,cordoned)" and "w-2(cordoned=2h)".
func parseNodes(t *testing.T, want cluster.Spec, have *cluster.Snapshot, texts []string) {
	t.Helper()

	for _, text := range texts {
		name, marks, _ := strings.Cut(strings.TrimSuffix(text, ")"), "(")
		m := machineIn(want, name)
		node := kubestate.Node{Name: name, Addresses: []string{m.Address}, Ready: true,
			ControlPlane: m.Role == step.ControlPlane}

		for mark := range strings.SplitSeq(marks, ",") {
			mark, since, _ := strings.Cut(mark, "=")

			switch mark {
			case "":
			case "NotReady":
				node.Ready = false
			case "cordoned": // by talosop; without a time as in old marks
				node.Unschedulable, node.Cordoned = true, true
				if since != "" {
					node.CordonedAt, node.CordonedBy = have.Time.Add(-age(t, since)), `workers "b"`
				}
			case "marked": // uncordoned by another client since
				node.Cordoned = true
			case "foreign":
				node.Unschedulable = true
			case "controlplane":
				node.ControlPlane = true
			case "elsewhere": // of another machine with the name
				node.Addresses = []string{"192.0.2.1"}
			case "staged":
				node.Staged = true
			case "soaks": // since a time, once it began
				node.Soak.Due = true
				if since != "" {
					node.Soak.Since = have.Time.Add(-age(t, since))
				}
			case "ca":
				node.Keys = keysOf(since)
			default:
				t.Fatalf("unknown mark %q", mark)
			}
		}

		have.Kubernetes.Nodes = append(have.Kubernetes.Nodes, node)
	}
}

// machineIn finds the machine of a node or member by its name; an unknown one is elsewhere.
func machineIn(want cluster.Spec, name string) cluster.Machine {
	for _, m := range want.Known() {
		if m.Name == name {
			return m
		}
	}

	return cluster.Machine{Wanted: cluster.Wanted{Address: "192.0.2.1"}}
}

func parseState(t *testing.T, now time.Time, fields []string, defaults step.MachineState) step.MachineState {
	t.Helper()

	s := step.MachineState{Access: step.Access(fields[0]), Run: step.Run{Since: now}}

	switch s.Access {
	case step.Member, step.Maintenance, step.Unreachable, step.Foreign, step.Gone:
	default:
		t.Fatalf("unknown access %q", s.Access)
	}

	if s.Access == step.Member {
		s.ConfigDigest, s.TalosVersion, s.Schematic = "new", defaults.TalosVersion, defaults.Schematic
	}

	for _, f := range fields[1:] {
		key, value, _ := strings.Cut(f, "=")

		if !parseFlag(&s, key) && !parseVersions(&s, key, value) {
			parseField(t, now, &s, key, value)
		}
	}

	return s
}

func parseFlag(s *step.MachineState, key string) bool {
	switch key {
	case "ready":
		s.Ready = true
	case "requested":
		s.BootstrapRequested = true
	case "fresh":
		s.Fresh = true
	case "uninstalled":
		s.Uninstalled = true
	case "refuses":
		s.Refuses = true
	case "was-member":
		s.WasMember, s.Started = true, true
	case "sent":
		s.BootstrapSent = true
	case "busy":
		s.Busy = "in progress"
	case "beginning":
		s.Busy, s.BeginsEtcd = "in progress", true
	case "in-upgrade":
		s.Busy, s.InUpgrade = "in progress", true
	case "kubelet-restarted":
		s.KubeletRestarted = true
	case "resetting":
		s.Resetting = true
	case "stopped":
		s.Stopped = true
	case "volumes-lost":
		s.Stopped, s.VolumesLost = true, true
	case "current":
		s.Current = true
	case "claimed":
		s.Claimed = true
	case "restarts-pods": // for the keys that this run gave it
		s.StampsBefore = map[string]string{"kube-apiserver": "before"}
	case "booted":
		s.Upgraded.Booted = true
	default:
		return false
	}

	return true
}

func parseVersions(s *step.MachineState, key, value string) bool {
	switch key {
	case "ca":
		s.Keys = keysOf(value)
	case "kubernetes-ca":
		s.Keys.Kubernetes = keysOf(value).Kubernetes
	case "version":
		s.TalosVersion = value
	case "schematic":
		s.Schematic = value
	case "boot":
		s.BootID = value
	case "rebooted-from":
		s.RebootedFrom = value
	case "upgraded": // such as v1.13.0@boot-1
		s.Upgraded.Version, s.Upgraded.BootID, _ = strings.Cut(value, "@")
	case "platform":
		s.Platform = value
	case "found-at":
		s.FoundAt = value
	case "pulled":
		s.Pulled = value
	case "address":
		s.Addresses = strings.Fields(value) // none means unknown
	default:
		return false
	}

	return true
}

func parseField(t *testing.T, now time.Time, s *step.MachineState, key, value string) {
	t.Helper()

	switch key {
	case "stage":
		s.Stage = parseStage(t, value)
	case "unmet":
		s.Unmet = strings.Split(value, ",")
	case "etcd":
		s.EtcdService = step.ServiceState(value)
	case "digest":
		s.ConfigDigest = value
	case "staged":
		s.StagedDigest = value
	case "reboot-for":
		s.RebootFor = strings.Split(value, ",")
	case "uuid":
		s.UUID = value
	case "node":
		s.NodeName = value
	case "meta":
		s.Meta = parseMeta(t, value)
	case "role":
		s.Role = step.Role(value)
	case "cause":
		s.Cause = strings.ReplaceAll(value, "_", " ")
	case "disk":
		s.DiskProblem = strings.ReplaceAll(value, "_", " ")
	case "since":
		s.Since = now.Add(-age(t, value))
	case "restored":
		s.RestoredAt = now.Add(-age(t, value))
	default:
		t.Fatalf("unknown field %q", key)
	}
}

func parseStage(t *testing.T, value string) step.Stage {
	t.Helper()

	known := []step.Stage{
		step.StageUnknown, step.StageMaintenance, step.StageBooting, step.StageRunning, step.StageInstalling,
		step.StageRebooting, step.StageShuttingDown, step.StageResetting, step.StageUpgrading,
	}
	if !slices.Contains(known, step.Stage(value)) {
		t.Fatalf("unknown stage %q", value)
	}

	return step.Stage(value)
}

func age(t *testing.T, text string) time.Duration {
	t.Helper()

	d, err := time.ParseDuration(text)
	if err != nil {
		t.Fatal(err)
	}

	return d
}

// parseMeta reads values such as 0x0c:rack-1,0x0d:row-2.
func parseMeta(t *testing.T, text string) map[uint8]string {
	values := map[uint8]string{}

	for entry := range strings.SplitSeq(text, ",") {
		name, value, _ := strings.Cut(entry, ":")

		key, err := strconv.ParseUint(name, 0, 8)
		if err != nil {
			t.Fatal(err)
		}

		values[uint8(key)] = value
	}

	return values
}

// parseElsewhere reads what other runs do, such as "moves", "undecided", "oldest=v1.35.4" or "quiet=1m".
func parseElsewhere(t *testing.T, words []string) (e cluster.Elsewhere) {
	t.Helper()

	for _, word := range words {
		switch key, value, _ := strings.Cut(word, "="); key {
		case "moves":
			e.Moves = true
		case "undecided":
			e.Undecided = true
		case "oldest":
			e.Oldest = value
		case "quiet":
			e.QuietSince = clock.Add(-age(t, value))
		default:
			t.Fatalf("unknown word %q about other runs", word)
		}
	}

	return e
}
