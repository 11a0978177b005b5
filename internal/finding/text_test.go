package finding

import "testing"

func TestSentences_keepNamesOfTheConfiguration(t *testing.T) {
	t.Parallel()

	const want = `talosop_cluster "prod" stays. Nothing was sent.`
	if got := Sentences(`talosop_cluster "prod" stays`, "", "nothing was sent."); got != want {
		t.Errorf("it reads %q", got)
	}
}
