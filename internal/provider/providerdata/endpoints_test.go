package providerdata

import "testing"

func TestEndpoints_haveAnySpelling(t *testing.T) {
	t.Parallel()

	list := Endpoints{URLs: []string{"https://api.Example.com/", "https://[fd00::1]:6443"}}

	for endpoint, want := range map[string]bool{
		"https://api.example.com:443": true, "https://API.example.com": true, "https://[fd00::1]:6443/": true,
		"https://api.example.com:6443": false, "https://10.0.0.10:6443": false, "": false,
	} {
		if got := list.Has(endpoint); got != want {
			t.Errorf("%q is in the list: %v", endpoint, got)
		}
	}

	if !(Endpoints{Unknown: true}).Has("https://10.0.0.10:6443") {
		t.Error("an unknown list has not every endpoint")
	}

	for _, text := range []string{"", "10.0.0.10:6443", "http://10.0.0.10:6443", "https://"} {
		if CheckEndpoint(text) == nil {
			t.Errorf("%q is taken", text)
		}
	}
}
