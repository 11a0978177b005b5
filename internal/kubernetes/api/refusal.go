package api

import (
	"bytes"
	"encoding/base64"
	"io"
	"net/http"
	"strings"
)

// refusalRedactor takes the credentials of a request out of an answer that refuses it: its text is shown to people and
// logged, and servers and proxies are known to repeat what they received. It is below what adds the credentials.
type refusalRedactor struct{ http.RoundTripper }

// refusalLimit is how much of a refusal is read; what a server says to people is shorter.
const refusalLimit = 1 << 20

// RoundTrip implements http.RoundTripper.
func (u refusalRedactor) RoundTrip(r *http.Request) (*http.Response, error) {
	response, err := u.RoundTripper.RoundTrip(r)
	if err != nil || response.StatusCode < http.StatusBadRequest {
		return response, err
	}

	sent := sentWith(r.Header.Get("Authorization"))
	if len(sent) == 0 {
		return response, nil
	}

	text, err := io.ReadAll(io.LimitReader(response.Body, refusalLimit))
	_ = response.Body.Close()

	if err != nil {
		return nil, err
	}

	for _, secret := range sent {
		text = bytes.ReplaceAll(text, []byte(secret), []byte("(sensitive)"))
	}

	response.Body, response.ContentLength = io.NopCloser(bytes.NewReader(text)), int64(len(text))
	response.Header.Del("Content-Length")

	return response, nil
}

// sentWith are the secrets of an Authorization header: a token, or a user's name and password, encoded and
// decoded.
func sentWith(header string) []string {
	kind, given, _ := strings.Cut(header, " ")
	if given == "" {
		return nil
	}

	secrets := []string{given}

	if strings.EqualFold(kind, "Basic") {
		plain, err := base64.StdEncoding.DecodeString(given)
		if _, password, ok := strings.Cut(string(plain), ":"); err == nil && ok && password != "" {
			secrets = append(secrets, password)
		}
	}

	return secrets
}
