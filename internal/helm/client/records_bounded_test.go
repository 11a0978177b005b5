package client

import (
	"bytes"
	"compress/gzip"
	"encoding/base64"
	"errors"
	"runtime"
	"strings"
	"testing"

	helmrelease "helm.sh/helm/v3/pkg/release"
	"helm.sh/helm/v3/pkg/storage/driver"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes/fake"
)

// A record that becomes large once it is decompressed is not decompressed, and hides no other.
func TestRecords_decompressedSize(t *testing.T) {
	var zipped bytes.Buffer

	w := gzip.NewWriter(&zipped)
	for range 5 {
		_, err := w.Write(make([]byte, LargestRecord/4))
		must(t, err)
	}

	must(t, w.Close())

	labels := map[string]string{"owner": "helm", "name": "web"}
	bomb := &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "sh.helm.release.v1.web.v1", Labels: labels},
		Type:       "helm.sh/release.v1",
		Data:       map[string][]byte{"release": []byte(base64.StdEncoding.EncodeToString(zipped.Bytes()))},
	}

	secrets := driver.NewSecrets(boundedRecords{fake.NewClientset(bomb).CoreV1().Secrets("default")})
	r := &records{Secrets: secrets, s: &Session{o: Options{}.withDefaults(), unrecorded: map[string]error{}}}
	must(t, r.Create("sh.helm.release.v1.web.v2", &helmrelease.Release{Name: "web", Version: 2, Info: &helmrelease.Info{}}))

	var before, after runtime.MemStats

	runtime.ReadMemStats(&before)

	_, err := r.Get("sh.helm.release.v1.web.v1")
	found, listed := r.Query(map[string]string{"owner": "helm", "name": "web"})

	runtime.ReadMemStats(&after)

	if err == nil || !strings.Contains(err.Error(), "no release record that Helm can read") {
		t.Errorf("the bomb: %v", err)
	}

	if len(found) != 1 || found[0].Version != 2 || errors.Is(listed, driver.ErrReleaseNotFound) {
		t.Errorf("listed %v, %v", found, listed)
	}

	if taken := after.TotalAlloc - before.TotalAlloc; taken > LargestRecord/2 {
		t.Errorf("%d MiB of heap", taken>>20)
	}
}
