package backup_test

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/talosop/terraform-provider-talosop/internal/backup/s3"
)

// A redirect of an S3 server to another one is not followed: the request, with its signature and the token of a
// session, stays with the server that was asked.
func TestS3_redirectToAnotherServerIsNotFollowed(t *testing.T) {
	t.Parallel()

	var reached atomic.Int32

	other := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		reached.Add(1)

		if r.URL.Path == "/first" {
			http.Redirect(w, r, "/second", http.StatusTemporaryRedirect)
		}
	}))
	t.Cleanup(other.Close)

	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		http.Redirect(w, r, other.URL+"/first", http.StatusTemporaryRedirect)
	}))
	t.Cleanup(server.Close)

	store := opened(t, s3.Config{Bucket: "backups", Endpoint: server.URL, Region: "us-east-1", PathStyle: true,
		Credentials: s3.Credentials{AccessKeyID: accessKey, SecretAccessKey: secretKey, SessionToken: "token"}})

	if _, err := store.Put(t.Context(), "prod/it", strings.NewReader("content")); err == nil {
		t.Error("the upload succeeded")
	}

	if _, err := store.Head(t.Context(), "prod/it"); err == nil {
		t.Error("the object was found")
	}

	if n := reached.Load(); n > 0 {
		t.Errorf("the other server got %d requests", n)
	}
}
