package picture_test

import (
	"encoding/xml"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/talosop/terraform-provider-talosop/internal/cluster"
	"github.com/talosop/terraform-provider-talosop/internal/cluster/health"
	"github.com/talosop/terraform-provider-talosop/internal/cluster/health/picture"
	"github.com/talosop/terraform-provider-talosop/internal/cluster/step"
	"github.com/talosop/terraform-provider-talosop/internal/etcdstate"
	"github.com/talosop/terraform-provider-talosop/internal/kubestate"
	"github.com/talosop/terraform-provider-talosop/internal/testenv"
)

// update rewrites the golden files; review them, and the images in light and dark, before you keep them.
var update = testenv.UpdateGolden()

// began is the start time of the tests.
var began = time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)

// seen is a cluster of three control planes and two workers, which a test changes.
type seen struct {
	want cluster.Spec
	have cluster.Snapshot
}

func newSeen() *seen {
	s := &seen{want: cluster.Spec{Name: "prod", Endpoint: "https://10.0.0.10:6443"}, have: cluster.Snapshot{
		Time: began, Machines: map[string]step.MachineState{},
		Etcd: etcdstate.State{Known: true, Views: map[string]etcdstate.View{}},
		Kubernetes: kubestate.State{Reachable: true,
			Endpoint: kubestate.Endpoint{URL: "https://10.0.0.10:6443", Asked: true}},
	}}

	for i := 1; i <= 3; i++ {
		name, address, member := fmt.Sprintf("cp-%d", i), fmt.Sprintf("10.0.0.1%d", i), fmt.Sprintf("a%d", i)
		s.want.Machines = append(s.want.Machines,
			cluster.MachineAt(address, step.ControlPlane, address))
		s.have.Machines[address] = step.MachineState{Access: step.Member, Role: step.ControlPlane,
			Stage: step.StageRunning, Ready: true, NodeName: name, TalosVersion: "v1.13.0", MemberID: member,
			Certificate: kubestate.Certificate{NotBefore: began, NotAfter: began.AddDate(0, 0, 1)}}
		s.have.Etcd.Members = append(s.have.Etcd.Members,
			etcdstate.Member{ID: member, Name: name, PeerURLs: []string{"https://" + address + ":2380"}})
		s.have.Etcd.Views[member] = etcdstate.View{Member: member, Leader: "a2", Members: []string{"a1", "a2", "a3"}}
		s.addNode(name, address, true)
	}

	s.addNode("w-1", "10.0.0.21", false)
	s.addNode("w-2", "10.0.0.22", false)

	s.have.Kubernetes.Certificates = []kubestate.ServerCertificate{{URL: "https://10.0.0.10:6443",
		Certificate: kubestate.Certificate{NotBefore: began, NotAfter: began.AddDate(1, 0, 0)}}}

	return s
}

func (s *seen) addNode(name, address string, controlPlane bool) {
	s.have.Kubernetes.Nodes = append(s.have.Kubernetes.Nodes, kubestate.Node{Name: name, Addresses: []string{address},
		Ready: true, ReadyReason: "KubeletReady", ControlPlane: controlPlane, KubeletVersion: "v1.36.3",
		TalosVersion: "v1.13.0"})
}

// degrade removes a control plane, raises an alarm, makes one a learner, and cordons workers.
func (s *seen) degrade() {
	s.have.Machines["10.0.0.13"] = step.MachineState{Access: step.Unreachable, Cause: "i/o timeout"}
	delete(s.have.Etcd.Views, "a3")

	m := s.have.Machines["10.0.0.11"]
	m.Stage, m.Ready, m.Unmet = step.StageBooting, false, []string{"services: kubelet not healthy"}
	s.have.Machines["10.0.0.11"] = m

	view := s.have.Etcd.Views["a2"]
	view.Alarms = []string{"NOSPACE on a2"}
	s.have.Etcd.Views["a2"] = view
	s.have.Etcd.Members[0].Learner = true

	nodes := s.have.Kubernetes.Nodes
	nodes[2].Ready, nodes[2].ReadyReason = false, "NodeStatusUnknown"
	nodes[3].Unschedulable, nodes[3].Cordoned = true, true
	nodes[4].Unschedulable, nodes[4].Staged = true, true
	s.have.Kubernetes.Certificates[0].Certificate = kubestate.Certificate{NotBefore: began.AddDate(-1, 0, 3),
		NotAfter: began.AddDate(0, 0, 3)}
}

// silence makes everything silent.
func (s *seen) silence() {
	for address := range s.have.Machines {
		s.have.Machines[address] = step.MachineState{Access: step.Unreachable, Cause: "i/o timeout"}
	}

	s.have.Etcd, s.have.Kubernetes = etcdstate.State{}, kubestate.State{Cause: "connection refused"}
}

func (s *seen) observation(operations ...string) picture.Observation {
	return picture.Observation{Name: s.want.Name, Endpoint: s.want.Endpoint, Operations: operations,
		Health: health.Of(s.want, s.have, health.Expiry{Within: 30 * 24 * time.Hour})}
}

func TestPicture_asRecorded(t *testing.T) {
	t.Parallel()

	degraded, silent := newSeen(), newSeen()
	degraded.degrade()
	silent.silence()

	for name, o := range map[string]picture.Observation{
		"healthy": newSeen().observation(),
		"degraded": degraded.observation("cordon and drain w-1",
			"upgrade Talos on w-1 from v1.13.0 to v1.13.1 with factory.talos.dev/metal-installer/376567988ad370138ad8b2698212367b8edcb69b5fd68c80be1f2ec7d603b4ba:v1.13.1",
			"uncordon w-1"),
		"silent": silent.observation([]string{}...),
	} {
		recorded(t, name+".md", picture.Markdown(o))
		recorded(t, name+".svg", picture.SVG(o))
		wellFormed(t, picture.SVG(o))
	}
}

func recorded(t *testing.T, name, got string) {
	t.Helper()

	path := filepath.Join("testdata", name)

	if update {
		if err := os.WriteFile(path, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
	}

	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}

	if diff := cmp.Diff(string(want), got); diff != "" {
		t.Errorf("%s is another (UPDATE_GOLDEN=1 records it): %s", name, diff)
	}
}

// wellFormed parses an SVG as XML, checks that nothing in it runs or loads, and returns the texts.
func wellFormed(t *testing.T, svg string) (texts string) {
	t.Helper()

	allowed := regexp.MustCompile(`^(svg|title|desc|style|g|rect|circle|path|text)$`)
	decoder := xml.NewDecoder(strings.NewReader(svg))

	for {
		token, err := decoder.Token()
		if errors.Is(err, io.EOF) {
			return texts
		}

		if err != nil {
			t.Fatalf("not well-formed: %s", err)
		}

		switch token := token.(type) {
		case xml.StartElement:
			if !allowed.MatchString(token.Name.Local) {
				t.Errorf("there is an element %s", token.Name.Local)
			}

			for _, a := range token.Attr {
				if strings.HasPrefix(a.Name.Local, "on") || a.Name.Local == "href" {
					t.Errorf("there is an attribute %s", a.Name.Local)
				}
			}
		case xml.CharData:
			texts += string(token)
		}
	}
}

// Texts from machines never become markup.
func TestPicture_foreignTextIsNoMarkup(t *testing.T) {
	t.Parallel()

	for _, evil := range []string{
		"<script>alert(1)</script>", "</text><a href='https://evil.example'>x</a>", "a|b", `a\|b`, `\`, "`", "``a`b```",
		"![x](https://evil.example/x.png)", "[x](https://evil.example)", "@everyone #1 https://evil.example www.evil.example",
		"**bold** _it_ <!-- ", "&amp;lt;", "a\nb\r\n\r\n# c", "</details>", "]]>", "\x00\x1b[31m", "\xff\xfe", "\uFFFE",
		"\u202Egnp.exe", "\u2028|", strings.Repeat("很长", 500), "", " ",
	} {
		s := newSeen()
		s.want.Name = evil
		s.degrade()
		s.have.Etcd.Members[1].Name = evil
		s.have.Kubernetes.Nodes[4].Name = evil
		s.have.Kubernetes.Nodes[4].KubeletVersion = evil
		s.have.Kubernetes.Nodes[3].TalosVersion = evil
		s.have.Kubernetes.Nodes[2].ReadyReason = evil
		s.have.Kubernetes.Nodes[4].Addresses = []string{evil}

		m := s.have.Machines["10.0.0.11"]
		m.Unmet = []string{evil}
		s.have.Machines["10.0.0.11"] = m

		o := s.observation(evil, evil)
		o.Endpoint = evil

		wellFormed(t, picture.SVG(o))
		onlyCode(t, picture.Markdown(o))
	}
}

// withoutCode takes the code spans out of a line, CommonMark reads them: from a run of backticks to the next one that is as long.
func withoutCode(t *testing.T, line string) string {
	t.Helper()

	var out strings.Builder

	runs := regexp.MustCompile("`+").FindAllStringIndex(line, -1)
	for at, i := 0, 0; ; i++ {
		if i >= len(runs) {
			out.WriteString(line[at:])

			return out.String()
		}

		opening := runs[i]
		out.WriteString(line[at:opening[0]])

		for i++; ; i++ {
			if i >= len(runs) {
				t.Fatalf("a code span is not closed in %q", line)
			}

			if runs[i][1]-runs[i][0] == opening[1]-opening[0] {
				break
			}
		}

		at = runs[i][1]
	}
}

// onlyCode checks that the text outside code spans is known, in rows with one cell for each column.
func onlyCode(t *testing.T, markdown string) {
	t.Helper()

	own := regexp.MustCompile(`^(### [✅❌❔] Cluster –?: (Ready|Degraded|Unreachable)|- \*\*[A-Za-z]+\*\*: [a-z0-9,;: –]*|\*\*[A-Za-z ]+\*\*|` +
		`\|[-|]+|\|[A-Za-z0-9✅❌❔–,:() |-]*\||and \d+ more|)$`)

	columns := 0

	for line := range strings.Lines(markdown) {
		bare := withoutCode(t, strings.TrimSuffix(line, "\n"))
		if !own.MatchString(bare) {
			t.Errorf("%q is outside of code in %q", bare, line)
		}

		switch bars := strings.Count(line, "|"); {
		case bars == 0:
			columns = 0
		case columns == 0:
			columns = bars
		case bars != columns:
			t.Errorf("%q has %d bars, not %d", line, bars, columns)
		}
	}
}

// A picture of a large cluster fits into a comment, and shows what is wrong.
func TestPicture_largeClusterFits(t *testing.T) {
	t.Parallel()

	s := newSeen()
	for i := range 500 {
		s.addNode(fmt.Sprintf("worker-with-a-long-name-%03d", i), "", false)
	}

	s.have.Kubernetes.Nodes[400].Unschedulable = true

	operations := make([]string, 500)
	for i := range operations {
		operations[i] = strings.Repeat("long ", 100)
	}

	o := s.observation(operations...)

	const most = 65536 // characters of a GitHub comment
	if got := len([]rune(picture.Markdown(o))); got > most {
		t.Errorf("it has %d characters", got)
	}

	for what, got := range map[string]string{"markdown": picture.Markdown(o), "svg": wellFormed(t, picture.SVG(o))} {
		for _, want := range []string{"worker-with-a-long-name-395", "Ready, cordoned", "and 462 more", "and 460 more"} {
			if !strings.Contains(got, want) {
				t.Errorf("%q is not in the %s", want, what)
			}
		}
	}
}

// The same observation makes the same picture at another time, and with another order of unordered parts.
func TestPicture_dependsOnNoClock(t *testing.T) {
	t.Parallel()

	first, second := newSeen(), newSeen()
	second.have.Time = began.Add(time.Hour)

	slices.Reverse(second.have.Etcd.Members)

	for address, m := range second.have.Machines {
		m.Certificate.NotAfter = m.Certificate.NotAfter.Add(time.Hour)
		second.have.Machines[address] = m
	}

	if a, b := picture.Markdown(first.observation()), picture.Markdown(second.observation()); a != b {
		t.Error(cmp.Diff(a, b))
	}

	if a, b := picture.SVG(first.observation()), picture.SVG(second.observation()); a != b {
		t.Error(cmp.Diff(a, b))
	}
}
