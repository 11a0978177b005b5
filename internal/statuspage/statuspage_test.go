package statuspage_test

import (
	"encoding/xml"
	"errors"
	"fmt"
	"io"
	"math"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/talosop/terraform-provider-talosop/internal/kubestate"
	"github.com/talosop/terraform-provider-talosop/internal/statuspage"
)

// element is an element of a page with its text, which includes that of its children.
type element struct {
	name, class, text string
}

// elements parses a page strictly as XML, which its template is apart from the doctype and void elements. It checks
// that nothing in it runs or loads.
func elements(t *testing.T, html string) []element {
	t.Helper()

	allowed := regexp.MustCompile(`^(html|head|meta|link|title|style|body|svg|symbol|use|circle|rect|path|polygon|main|` +
		`header|section|footer|div|span|b|bdi|h1|h2|p|ul|ol|li|table|thead|tbody|tr|th|td|br|details|summary|progress)$`)
	decoder := xml.NewDecoder(strings.NewReader(html))
	decoder.Strict, decoder.AutoClose, decoder.Entity = false, xml.HTMLAutoClose, xml.HTMLEntity

	var (
		out  []element
		open []int
	)

	for {
		token, err := decoder.Token()
		if errors.Is(err, io.EOF) {
			return out
		}

		if err != nil {
			t.Fatalf("not well-formed: %s", err)
		}

		switch token := token.(type) {
		case xml.StartElement:
			if !allowed.MatchString(token.Name.Local) {
				t.Errorf("there is an element %s", token.Name.Local)
			}

			e := element{name: token.Name.Local}

			for _, a := range token.Attr {
				loads := slices.Contains([]string{"href", "src", "action"}, a.Name.Local)
				if strings.HasPrefix(a.Name.Local, "on") || loads && !strings.HasPrefix(a.Value, "#i-") && a.Value != "data:," {
					t.Errorf("there is an attribute %s=%q", a.Name.Local, a.Value)
				}

				if a.Name.Local == "class" {
					e.class = a.Value
				}
			}

			out, open = append(out, e), append(open, len(out))
		case xml.EndElement:
			open = open[:len(open)-1]
		case xml.CharData:
			for _, i := range open {
				out[i].text += " " + string(token)
			}
		}
	}
}

// ofClass are the texts of the elements with a class.
func ofClass(all []element, class string) []string {
	var out []string

	for _, e := range all {
		if slices.Contains(strings.Fields(e.class), class) {
			out = append(out, strings.Join(strings.Fields(e.text), " "))
		}
	}

	return out
}

func expect(t *testing.T, what string, got []string, want ...string) {
	t.Helper()

	if !slices.Equal(got, want) {
		t.Errorf("%s are\n%s\nwant\n%s", what, strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
}

func TestPage_ofAHealthyCluster(t *testing.T) {
	t.Parallel()

	html := rendered(t, newSite(5).observed())
	all := elements(t, html)

	expect(t, "machines", ofClass(all, "machine"),
		"Ready cp-1 10.0.0.11 etcd member", "Ready cp-2 10.0.0.12 etcd leader", "Ready cp-3 10.0.0.13 etcd member",
		"Ready general-1 10.0.1.1", "Ready general-2 10.0.1.2", "Ready general-3 10.0.1.3", "Ready storage-4 10.0.1.4",
		"Ready storage-5 10.0.1.5")
	expect(t, "cards", ofClass(all, "card"),
		"Versions Talos v1.14.1 on 8 machines Kubernetes v1.37.0 on 8 machines",
		"Drift Good All machines are as last applied",
		"Pending operations Good None",
		"Backups Good The newest one was taken today 2 backups Taken (UTC) Snapshot 2026-11-29 02:00 "+
			"prod/2026-11-29T02-00-00Z.snapshot.zst 2026-11-28 02:00 prod/2026-11-28T02-00-00Z.snapshot.zst",
		ofClass(all, "card")[4], ofClass(all, "card")[5])

	for _, want := range []string{"Talos CA 3,592", "Talos API cp-1 (10.0.0.11) renewed daily",
		"Kubernetes API https://10.0.0.10:6443 304", "Next expiry in 304 days"} {
		if !strings.Contains(ofClass(all, "card")[4], want) {
			t.Errorf("%q is not in %s", want, ofClass(all, "card")[4])
		}
	}

	if len(ofClass(all, "alerts")) > 0 || len(ofClass(all, "legend")) > 0 || strings.Contains(html, "refresh") {
		t.Error("the page has alerts or a legend, or loads itself again")
	}
}

// Each kind of problem has a name and a symbol, and the legend explains those on the page. Each section names a
// machine once.
func TestPage_ofADegradedCluster(t *testing.T) {
	t.Parallel()

	all := elements(t, rendered(t, newSite(5).degrade().observed()))

	expect(t, "machines", ofClass(all, "machine"),
		"Differs from the last apply cp-1 10.0.0.11 etcd member differs from the last apply", "Ready cp-2 10.0.0.12 etcd leader",
		"Does not respond cp-3 10.0.0.13 etcd member does not respond node is not Ready (NodeStatusUnknown)",
		"Cordoned general-1 10.0.1.1 cordoned", "Not healthy general-2 10.0.1.2 node is not Ready (KubeletNotReady)",
		"Ready general-3 10.0.1.3", "Another version than the cluster storage-4 10.0.1.4 Talos v1.13.2",
		"Ready storage-5 10.0.1.5")
	expect(t, "legend", ofClass(all, "legend"),
		"Does not respond Does not respond Not healthy Not healthy Cordoned Cordoned Differs from the last apply Differs "+
			"from the last apply Another version than the cluster Another version than the cluster Ready Ready")

	cards := ofClass(all, "card")
	for i, want := range []string{"on 7 of 8 machines; v1.13.2 on 1", "cp-1 machine.sysctls: vm.max_map_count",
		"2 operations in the plan", "The newest one cannot be restored; the last good one was taken 9 days ago", "1 certificate expired or due", "5 of 11 are True"} {
		if !strings.Contains(cards[i], want) {
			t.Errorf("%q is not in %q", want, cards[i])
		}
	}

	if alerts := ofClass(all, "alerts"); len(alerts) != 1 ||
		!strings.Contains(alerts[0], "NodesSchedulable is False: general-1") {
		t.Errorf("alerts are %s", alerts)
	}
}

// A page shows nothing that is not known.
func TestPage_leavesOutWhatIsUnknown(t *testing.T) {
	t.Parallel()

	s := newSite(2)
	s.page.Drift, s.page.Backups, s.page.Operations, s.page.Pools = nil, nil, nil, nil
	s.have.Machines = nil
	s.have.Kubernetes = kubestate.State{Cause: "connection refused"}

	page := s.observed()
	page.Clusters[0].Certificates = nil

	html := rendered(t, page)
	for _, absent := range []string{">Drift<", ">Backups<", ">Pending operations<", ">Certificates<", "Pool "} {
		if strings.Contains(html, absent) {
			t.Errorf("%s is in the page", absent)
		}
	}

	s.page.Backups = []statuspage.Backup{}
	if html := rendered(t, s.observed()); !strings.Contains(html, "No backup can be restored") {
		t.Error("an empty store is not shown")
	}
}

func TestPage_ofAnApply(t *testing.T) {
	t.Parallel()

	all := elements(t, rendered(t, applying()))

	cards := ofClass(all, "card")
	for i, want := range []string{
		"Running now Running upgrade Talos on cp-3: v1.13.2 -> v1.14.1 (drain, reboot) for 41s, usually 1m30s draining node cp-3",
		"Waiting Waiting upgrade Talos on general-3: v1.13.2 -> v1.14.1 (drain, reboot) the control plane is upgraded first " +
			"Waiting upgrade Talos on storage-4",
		"Finished Finished upgrade Talos on general-2: v1.13.2 -> v1.14.1 (drain, reboot) 1m10s",
	} {
		if !strings.HasPrefix(cards[i], want) {
			t.Errorf("card %d is %q, want %q", i, cards[i], want)
		}
	}
}

// Texts from machines never become markup, and none changes the display of others.
func TestPage_foreignTextIsNoMarkup(t *testing.T) {
	t.Parallel()

	for _, evil := range []string{"<script>alert(1)</script>", `"><img src=x onerror=alert(1)>`, "</style><a href='https://evil.example'>",
		"{{ .Title }}", "javascript:alert(1)", "<!--", "]]>", "\x00\x1b[31m", "\xff\xfe", "\u202Egnp.exe", "&amp;lt;",
		strings.Repeat("很长", 500)} {
		s := newSite(5).degrade()
		s.page.Name, s.page.Endpoint, s.page.Talos = evil, evil, evil
		s.page.Pools = map[string][]string{evil: {"general-1"}}
		s.page.Drift = map[string][]string{evil: {evil}, "cp-1": {evil}}
		s.page.Operations = slices.Repeat([]string{evil}, 20)
		s.page.Backups = []statuspage.Backup{{Key: evil, Problem: evil}}
		s.have.Etcd.Members[1].Name = evil
		s.node(4).Name, s.node(4).KubeletVersion, s.node(3).TalosVersion, s.node(2).ReadyReason = evil, evil, evil, evil

		page := s.observed()
		page.Clusters[0].Run = &statuspage.Run{Resources: []statuspage.Resource{{Name: evil, Failure: evil}},
			Steps: []statuspage.Step{{Machine: evil, Text: evil, Reason: evil}},
			Next:  []statuspage.Step{{Machine: evil, Text: evil}, {Machine: evil, Text: evil}},
			Waits: []statuspage.Wait{{Machine: evil, Reason: evil}, {Reason: evil}}}

		html := rendered(t, page)
		elements(t, html)

		if strings.ContainsAny(html, "\x00\x1b\u202E") {
			t.Errorf("control characters of %q are in the page", evil)
		}
	}
}

// A page of a large cluster shows machines with problems first, and is small.
func TestPage_ofALargeCluster(t *testing.T) {
	t.Parallel()

	const most = 256 << 10 // bytes

	s := newSite(1000)
	s.node(500).Unschedulable = true

	html := rendered(t, s.observed())
	all := elements(t, html)

	if machines := ofClass(all, "machine"); len(machines) != 1003 || machines[3] != "Cordoned general-498 cordoned" ||
		machines[4] != "Ready general-1" || machines[13] != "Ready general-10" {
		t.Errorf("the first of %d machines are %q", len(machines), machines[:14])
	}

	if len(html) > most {
		t.Errorf("it has %d bytes", len(html))
	}
}

// The page of an unchanged cluster changes with the date, and not within a day.
func TestPage_staysTheSameWithinADay(t *testing.T) {
	t.Parallel()

	page := newSite(5).degrade().observed()
	first := rendered(t, page)

	page.Time = page.Time.Add(3 * time.Hour)
	if rendered(t, page) != first {
		t.Error("it changes within a day")
	}

	page.Time = page.Time.Add(24 * time.Hour)
	if rendered(t, page) == first {
		t.Error("it stays the same on another day")
	}
}

// Texts have a contrast of at least 4.5 to 1 on their backgrounds, symbols of 3 to 1, in both themes.
func TestPage_contrast(t *testing.T) {
	t.Parallel()

	html := rendered(t, newSite(1).observed())
	themes := regexp.MustCompile(`--page: [^}]*}`).FindAllString(html, 2)

	for _, theme := range themes {
		colors := map[string]float64{}
		for _, c := range regexp.MustCompile(`--([a-z]+): #([0-9a-f]{3,6});`).FindAllStringSubmatch(strings.ReplaceAll(theme, " }", ";"), -1) {
			colors[c[1]] = luminance(t, c[2])
		}

		if len(colors) < 16 {
			t.Errorf("colors are %v", colors)
		}

		for name, color := range colors {
			least := map[string]float64{"text": 4.5, "muted": 4.5, "blue": 4.5, "page": 0, "card": 0, "line": 0, "soft": 0, "on": 0}
			want, named := least[name]

			for _, background := range []string{"page", "card"} {
				if got := contrast(color, colors[background]); !named && got < 3 || got < want {
					t.Errorf("%s on %s has a contrast of %.1f", name, background, got)
				}
			}
		}
	}
}

// luminance is the relative luminance of WCAG 2.2.
func luminance(t *testing.T, hex string) float64 {
	t.Helper()

	if len(hex) == 3 {
		hex = string([]byte{hex[0], hex[0], hex[1], hex[1], hex[2], hex[2]})
	}

	var r, g, b int
	if _, err := fmt.Sscanf(hex, "%02x%02x%02x", &r, &g, &b); err != nil {
		t.Fatal(err)
	}

	linear := func(c int) float64 {
		v := float64(c) / 255
		if v <= 0.04045 {
			return v / 12.92
		}

		return math.Pow((v+0.055)/1.055, 2.4)
	}

	return 0.2126*linear(r) + 0.7152*linear(g) + 0.0722*linear(b)
}

func contrast(a, b float64) float64 { return (max(a, b) + 0.05) / (min(a, b) + 0.05) }
