package timetable_test

import (
	"testing"

	"github.com/talosop/terraform-provider-talosop/internal/timetable"
)

func TestReadCron_asTheAPIServerDoes(t *testing.T) {
	t.Parallel()

	for expression, good := range map[string]bool{
		"0 3 * * *": true, "*/5 * * * 1-5": true, "@daily": true, "@every 6h": true,
		"": false, "0 3 * *": false, "0 0 3 * * *": false, "61 * * * *": false, "TZ=UTC 0 3 * * *": false,
		"CRON_TZ=UTC 0 3 * * *": false,
	} {
		if _, err := timetable.ReadCron(expression); (err == nil) != good {
			t.Errorf("%q gives %v", expression, err)
		}
	}

	for zone, good := range map[string]bool{"Europe/Berlin": true, "Etc/UTC": true, "Local": false, "": false,
		"Europe/Nowhere": false} {
		if err := timetable.CheckTimeZone(zone); (err == nil) != good {
			t.Errorf("%q gives %v", zone, err)
		}
	}
}
