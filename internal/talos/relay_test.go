package talos

import (
	"errors"
	"strings"
	"testing"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
)

// A connection to a control plane that does not reach a machine, or waits for it silently, is not used again. The
// machine's own answer, or a call that its caller gave up, is no reason to leave it.
func TestSession_throughAControlPlane(t *testing.T) {
	t.Parallel()

	ca := newTestCA(t)
	g := serveTLS(t, ca.member(t, nil))
	options := testOptions(g.port(), ca.credentials(t)).withDefaults()

	id, err := options.Credentials.parse()
	if err != nil {
		t.Fatal(err)
	}

	for code, lasts := range map[codes.Code]bool{
		codes.Unavailable: false, codes.DeadlineExceeded: false, codes.Canceled: true, codes.PermissionDenied: true,
		codes.Unknown: true,
	} {
		for _, w := range []route{{address: "10.0.0.9", relay: "127.0.0.1"}, {address: "127.0.0.1"}} {
			s, _, err := options.connect(t.Context(), w, id, "")
			if err != nil {
				t.Fatal(err)
			}

			err = s.failed(status.Error(code, "so it is"))
			if alive := lasts || w.relay == ""; s.alive() != alive {
				t.Errorf("%s by %+v: alive %t", code, w, s.alive())
			}

			named := strings.Contains(err.Error(), "through control plane 127.0.0.1")
			if gone := !lasts && w.relay != ""; named != gone || gone && !s.ambiguous(err) ||
				gone && !errors.Is(err, ErrUnreachable) {
				t.Errorf("%s by %+v: %v", code, w, err)
			}

			s.close()
		}
	}
}
