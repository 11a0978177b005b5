package statuspage_test

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"image"
	"image/color"
	"image/png"
	"io/fs"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/talosop/terraform-provider-talosop/internal/testenv"
)

// update rewrites the recorded screenshots; look at each of them before you keep them.
var update = testenv.UpdateGolden()

const (
	// browserSetting is the variable with the path of Chromium or Chrome; without it, the test looks in PATH.
	browserSetting = "TALOSOP_TEST_CHROMIUM"
	// screen is the height of a screen for each width.
	screen = 900
	// fontName is the font of the recorded screenshots: its letters are as wide on every computer.
	fontName = "Liberation Sans"
)

// heights are the heights of the windows by their widths: no page is longer.
var heights = map[int]int{400: 2400, 1000: 1600, 1600: 1300}

// themes are values of the Blink setting preferredColorScheme.
var themes = map[string]int{"dark": 0, "light": 1}

// The pages look as recorded in Chromium, in each theme and width, and a healthy cluster fits on one screen.
func TestPage_looksAsRecorded(t *testing.T) {
	t.Parallel()
	testenv.BeforeRelease(t, "TestPage_ofAHealthyCluster", "TestPage_ofADegradedCluster", "TestPage_ofAnApply",
		"TestPage_contrast")

	chromium := newBrowser(t)

	for state, page := range states() {
		html := filepath.Join(t.TempDir(), state+".html")
		if err := os.WriteFile(html, []byte(rendered(t, page)), 0o600); err != nil {
			t.Fatal(err)
		}

		for width := range heights {
			for theme := range themes {
				got := content(chromium.shot(t, html, width, theme))
				if height := got.Bounds().Dy(); state == "healthy" && height > screen {
					t.Errorf("a healthy cluster needs %d pixels at a width of %d", height, width)
				}

				compare(t, fmt.Sprintf("%s-%d-%s.png", state, width, theme), got)
			}
		}
	}
}

// browser is Chromium with one font.
type browser struct{ program, fonts, profile string }

func newBrowser(t *testing.T) browser {
	t.Helper()

	missing := t.Skipf
	if testenv.AssetsRequired() {
		missing = t.Fatalf
	}

	program := os.Getenv(browserSetting)
	for _, name := range []string{"chromium", "chromium-browser", "google-chrome"} {
		if found, err := exec.LookPath(name); err == nil {
			program = cmp.Or(program, found)
		}
	}

	if program == "" {
		missing("Chromium is missing: install it (Debian: apt-get install chromium fonts-liberation), or set %s",
			browserSetting)
	}

	if !hasFont(t) {
		missing("the font %s is missing: install it (Debian: apt-get install fonts-liberation)", fontName)
	}

	folder := t.TempDir()
	b := browser{program, filepath.Join(folder, "fonts.conf"), filepath.Join(folder, "profile")}

	config := fmt.Sprintf(`<?xml version="1.0"?>
<!DOCTYPE fontconfig SYSTEM "fonts.dtd">
<fontconfig>
<dir>/usr/share/fonts</dir>
<cachedir>%s</cachedir>
<match target="pattern"><edit name="family" mode="assign" binding="strong"><string>%s</string></edit></match>
</fontconfig>
`, filepath.Join(folder, "cache"), fontName)
	if err := os.WriteFile(b.fonts, []byte(config), 0o600); err != nil {
		t.Fatal(err)
	}

	return b
}

// hasFont looks for the file of the font.
func hasFont(t *testing.T) bool {
	t.Helper()

	found := false

	err := filepath.WalkDir("/usr/share/fonts", func(path string, _ fs.DirEntry, err error) error {
		found = found || strings.HasPrefix(filepath.Base(path), strings.ReplaceAll(fontName, " ", "")+"-Regular.")

		return err
	})
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		t.Fatal(err)
	}

	return found
}

// shot is a window with a page.
func (b browser) shot(t *testing.T, html string, width int, theme string) image.Image {
	t.Helper()

	file := filepath.Join(t.TempDir(), "shot.png")
	run := exec.CommandContext(t.Context(), b.program, "--headless=new", "--no-sandbox", "--disable-gpu",
		"--hide-scrollbars", "--force-device-scale-factor=1", "--user-data-dir="+b.profile, "--screenshot="+file,
		fmt.Sprintf("--blink-settings=preferredColorScheme=%d", themes[theme]),
		fmt.Sprintf("--window-size=%d,%d", width, heights[width]), "file://"+html)
	run.Env = append(os.Environ(), "FONTCONFIG_FILE="+b.fonts)

	out, err := run.CombinedOutput()

	written, missing := os.ReadFile(file)
	if err = errors.Join(err, missing); err != nil {
		t.Fatalf("%s: %v\n%s", b.program, err, out)
	}

	shot, err := png.Decode(bytes.NewReader(written))
	if err != nil {
		t.Fatal(err)
	}

	return shot
}

// content is a screenshot without the empty rows below the page, except a margin.
func content(shot image.Image) image.Image {
	const margin = 12

	bounds := shot.Bounds()
	background := color.RGBAModel.Convert(shot.At(0, 0))
	last := bounds.Max.Y - margin // the last rows of a window may lack the background

	for ; last > 0; last-- {
		if slices.ContainsFunc(row(shot, last), func(c color.Color) bool { return c != background }) {
			break
		}
	}

	cropped := image.NewRGBA(image.Rect(0, 0, bounds.Dx(), last+margin))
	for y := range last + margin {
		for x, c := range row(shot, y) {
			cropped.Set(x, y, c)
		}
	}

	return cropped
}

func row(shot image.Image, y int) []color.Color {
	out := make([]color.Color, shot.Bounds().Dx())
	for x := range out {
		out[x] = color.RGBAModel.Convert(shot.At(x, y))
	}

	return out
}

// compare compares a screenshot with the recorded one, or records it.
func compare(t *testing.T, name string, got image.Image) {
	t.Helper()

	// Other versions of the browser draw edges a little differently.
	const mostOther, mostHeight = 0.01, 8

	path := filepath.Join("testdata", name)
	if update {
		record(t, path, got)
	}

	file, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()

	want, err := png.Decode(file)
	if err != nil {
		t.Fatal(err)
	}

	height := got.Bounds().Dy() - want.Bounds().Dy()
	if other := otherBlocks(want, got); max(height, -height) > mostHeight || other > mostOther {
		record(t, filepath.Join(os.TempDir(), "talosop-"+name), got)
		t.Errorf("%s: %.1f %% of the picture is another, and it is %d pixels higher; %s in %s has it, and UPDATE_GOLDEN=1 "+
			"records it", name, other*100, height, "talosop-"+name, os.TempDir())
	}
}

// otherBlocks is the part of two pictures that differs, by the average colors of blocks.
func otherBlocks(a, b image.Image) float64 {
	const size, most = 8, 20

	bounds := a.Bounds().Intersect(b.Bounds())
	all, other := 0, 0

	for y := 0; y+size <= bounds.Dy(); y += size {
		for x := 0; x+size <= bounds.Dx(); x += size {
			p, q := average(a, x, y, size), average(b, x, y, size)
			all++

			for i := range p {
				if d := p[i] - q[i]; max(d, -d) > most {
					other++

					break
				}
			}
		}
	}

	return float64(other) / float64(max(all, 1))
}

func average(shot image.Image, x, y, size int) [3]int {
	var sum [3]int

	for dy := range size {
		for dx := range size {
			c, _ := color.RGBAModel.Convert(shot.At(x+dx, y+dy)).(color.RGBA)
			sum[0], sum[1], sum[2] = sum[0]+int(c.R), sum[1]+int(c.G), sum[2]+int(c.B)
		}
	}

	for i := range sum {
		sum[i] /= size * size
	}

	return sum
}

// record writes a screenshot with its most frequent colors.
func record(t *testing.T, path string, shot image.Image) {
	t.Helper()

	const colors = 80

	counts := map[color.Color]int{}

	bounds := shot.Bounds()
	for y := range bounds.Dy() {
		for _, c := range row(shot, y) {
			counts[c]++
		}
	}

	frequent := slices.SortedFunc(maps.Keys(counts), func(a, b color.Color) int {
		return cmp.Or(cmp.Compare(counts[b], counts[a]), strings.Compare(fmt.Sprint(a), fmt.Sprint(b)))
	})

	out := image.NewPaletted(bounds, frequent[:min(colors, len(frequent))])
	for y := range bounds.Dy() {
		for x, c := range row(shot, y) {
			out.Set(x, y, c)
		}
	}

	var encoded bytes.Buffer

	encoder := png.Encoder{CompressionLevel: png.BestCompression}
	if err := encoder.Encode(&encoded, out); err != nil {
		t.Fatal(err)
	}

	if err := os.WriteFile(path, encoded.Bytes(), 0o644); err != nil {
		t.Fatal(err)
	}
}
