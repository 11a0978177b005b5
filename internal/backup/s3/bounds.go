package s3

import (
	"fmt"
	"io"
	"net/http"

	"github.com/aws/aws-sdk-go-v2/service/s3"

	"github.com/talosop/terraform-provider-talosop/internal/backup/store"
)

const (
	// mostPages are ten times as many as store.MostObjects take: servers may answer with less than the 1,000 keys of a
	// page, and one that always has a further page would be asked for ever.
	mostPages = store.MostObjects / 100
	// mostOfPage in bytes is twice what 1,000 of the longest keys take (1,024 bytes each, six times that in XML).
	mostOfPage = 16 << 20
)

// endless is the error of a listing that has had so many pages, or nil.
func endless(pages int) error {
	if pages < mostPages {
		return nil
	}

	return fmt.Errorf("%w: the listing has more than %d pages", store.ErrTooLarge, mostPages)
}

// boundedAnswers is for requests whose answer the SDK reads into memory.
func boundedAnswers(o *s3.Options) { o.HTTPClient = boundedClient{o.HTTPClient} }

type boundedClient struct{ s3.HTTPClient }

// Do sends a request.
func (c boundedClient) Do(r *http.Request) (*http.Response, error) {
	response, err := c.HTTPClient.Do(r)
	if err != nil {
		return response, err
	}

	response.Body = struct {
		io.Reader
		io.Closer
	}{store.AtMost(response.Body, mostOfPage,
		fmt.Errorf("%w: the response is larger than %d bytes", store.ErrTooLarge, mostOfPage)), response.Body}

	return response, nil
}
