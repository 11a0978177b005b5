package s3

import (
	"cmp"
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/aws/retry"
	awshttp "github.com/aws/aws-sdk-go-v2/aws/transport/http"
	"github.com/aws/aws-sdk-go-v2/config"
	"github.com/aws/aws-sdk-go-v2/credentials"
	"github.com/aws/aws-sdk-go-v2/credentials/stscreds"
	"github.com/aws/aws-sdk-go-v2/service/s3"
	"github.com/aws/aws-sdk-go-v2/service/sts"
	"github.com/aws/smithy-go/logging"

	"github.com/talosop/terraform-provider-talosop/internal/redirect"
)

// Config says which bucket, and how it is reached. Everything but Bucket may be empty.
type Config struct {
	Bucket string
	// Region of the bucket; without one that of the environment or the profile, and
	// us-east-1 for an Endpoint, which most other servers call themselves.
	Region string
	// Endpoint is the URL of a server that is not AWS.
	Endpoint string
	// PathStyle puts the bucket into the path instead of the host name.
	PathStyle bool
	// CA is PEM that is trusted besides the certificates of the system.
	CA string
	// InsecureSkipTLSVerify trusts any certificate.
	InsecureSkipTLSVerify bool
	// NoChecksums leaves out the headers of checksums (X-Amz-Checksum-…): what was stored is read back
	// and compared.
	NoChecksums bool
	// NoConditionalWrites leaves out If-None-Match: whether an object exists is asked before it is stored.
	NoConditionalWrites bool

	Credentials Credentials
	Encryption  Encryption
	Lock        Lock

	// Stall is how long a request or an answer may stand still before the connection is given
	// up and another one is tried; 2 min by default.
	Stall time.Duration
}

// stall is Stall or its default.
func (c Config) stall() time.Duration { return cmp.Or(c.Stall, 2*time.Minute) }

// Credentials are those of a key, of a profile or, when both are empty, what the default
// chain of the AWS SDK finds. A role is assumed with them.
type Credentials struct {
	AccessKeyID, SecretAccessKey, SessionToken string
	Profile                                    string
	Role                                       Role
}

// Role is assumed when ARN is set.
type Role struct {
	ARN, ExternalID, SessionName string
	// Endpoint of the token service where it is not that of AWS.
	Endpoint string
}

// Encryption is the server-side encryption, in addition to our own.
type Encryption struct {
	// Algorithm is AES256, aws:kms, aws:kms:dsse or empty for what the bucket does.
	Algorithm string
	// KMSKey names the key of aws:kms.
	KMSKey string
}

// Lock keeps objects from being deleted, as the bucket's object lock allows.
type Lock struct {
	Mode string // GOVERNANCE, COMPLIANCE or empty
	// Until is when it ends.
	Until time.Time
}

// attempts of one request, which the SDK spreads over some 10 seconds.
const attempts = 6

// New makes a store of a bucket. It reads configuration and credentials of the environment
// and does not ask the server.
func New(ctx context.Context, c Config) (*Store, error) {
	if c.Bucket == "" {
		return nil, errors.New("the name of the bucket is empty")
	}

	if (c.Lock.Mode == "") != c.Lock.Until.IsZero() {
		return nil, errors.New("an object lock needs both a mode and a retain-until date")
	}

	client, err := c.httpClient()
	if err != nil {
		return nil, err
	}

	loaded, err := c.load(ctx, client)
	if err != nil {
		return nil, fmt.Errorf("load the S3 configuration: %w", err)
	}

	loaded.HTTPClient = staying(loaded.HTTPClient)

	if loaded.Region == "" && c.Endpoint != "" {
		loaded.Region = "us-east-1"
	}

	if c.Credentials.Role.ARN != "" {
		loaded.Credentials = aws.NewCredentialsCache(c.Credentials.Role.provider(loaded))
	}

	return &Store{config: c, client: s3.NewFromConfig(loaded, func(o *s3.Options) {
		o.UsePathStyle = c.PathStyle
		if c.Endpoint != "" {
			o.BaseEndpoint = &c.Endpoint
		}

		if c.NoChecksums {
			o.RequestChecksumCalculation = aws.RequestChecksumCalculationWhenRequired
			o.ResponseChecksumValidation = aws.ResponseChecksumValidationWhenRequired
		}
	})}, nil
}

// load reads environment and profile. A key of its own needs no profile, so that one of the environment
// (AWS_PROFILE) that is missing or cannot be read says nothing then.
func (c Config) load(ctx context.Context, client *awshttp.BuildableClient) (aws.Config, error) {
	loaded, err := config.LoadDefaultConfig(ctx, c.options(client)...)
	if err == nil || c.Credentials.AccessKeyID == "" || c.Credentials.Profile != "" {
		return loaded, err
	}

	env, err := config.NewEnvConfig()
	if err != nil {
		return aws.Config{}, err
	}

	if env.CustomCABundle != "" {
		bundle, err := os.ReadFile(env.CustomCABundle)
		if err != nil {
			return aws.Config{}, fmt.Errorf("read AWS_CA_BUNDLE: %w", err)
		}

		client = client.WithTransportOptions(func(t *http.Transport) { t.TLSClientConfig.RootCAs.AppendCertsFromPEM(bundle) })
	}

	return aws.Config{
		Region: cmp.Or(c.Region, env.Region), Credentials: c.Credentials.static(), HTTPClient: client,
		Logger: logging.Nop{}, Retryer: newRetryer, ConfigSources: []any{env},
	}, nil
}

func (c Config) options(client *awshttp.BuildableClient) []func(*config.LoadOptions) error {
	options := []func(*config.LoadOptions) error{
		config.WithHTTPClient(client),
		// The SDK would write to standard error, which Terraform records.
		config.WithLogger(logging.Nop{}),
		config.WithRetryer(newRetryer),
	}

	if c.Region != "" {
		options = append(options, config.WithRegion(c.Region))
	}

	if c.Credentials.Profile != "" {
		options = append(options, config.WithSharedConfigProfile(c.Credentials.Profile))
	}

	if key := c.Credentials; key.AccessKeyID != "" || key.SecretAccessKey != "" {
		options = append(options, config.WithCredentialsProvider(key.static()))
	}

	return options
}

// static are the credentials of a key.
func (c Credentials) static() aws.CredentialsProvider {
	return credentials.NewStaticCredentialsProvider(c.AccessKeyID, c.SecretAccessKey, c.SessionToken)
}

// newRetryer is the SDK's own, with a few more attempts. It has 429 beside the SDK's list, and a clock that
// is wrong where the answer has no code for it.
func newRetryer() aws.Retryer {
	return retry.NewStandard(func(o *retry.StandardOptions) {
		o.MaxAttempts = attempts
		o.MaxBackoff = 5 * time.Second
		o.Retryables = append([]retry.IsErrorRetryable{retry.IsErrorRetryableFunc(distrusted)}, o.Retryables...)
		o.Retryables = append(o.Retryables,
			retry.RetryableHTTPStatusCode{Codes: map[int]struct{}{http.StatusTooManyRequests: {}}},
			retry.IsErrorRetryableFunc(skewed))
	})
}

// mostSkew is from when on the SDK takes a clock for wrong (aws-sdk-go-v2 1.47, aws/retry, skewThreshold).
const mostSkew = 4 * time.Minute

// skewed repeats a request whose signature has another time than the answer: the SDK signs the next one with
// the time of the server. It does so by itself where the answer has a code, which that to HEAD has not.
func skewed(err error) aws.Ternary {
	answer := answerOf(err) //nolint:bodyclose // the SDK has read it
	if answer == nil || answer.StatusCode != http.StatusForbidden || answer.Request.Method != http.MethodHead {
		return aws.UnknownTernary
	}

	signed, err := time.Parse("20060102T150405Z", answer.Request.Header.Get("X-Amz-Date"))
	if err != nil {
		return aws.UnknownTernary
	}

	date, err := http.ParseTime(answer.Header.Get("Date"))
	if err != nil || date.Sub(signed).Abs() <= mostSkew {
		return aws.UnknownTernary
	}

	return aws.TrueTernary
}

// distrusted prevents retries with an untrusted certificate; to the SDK it is a broken connection.
func distrusted(err error) aws.Ternary {
	var certificate *tls.CertificateVerificationError
	if errors.As(err, &certificate) {
		return aws.FalseTernary
	}

	return aws.UnknownTernary
}

func (c Config) httpClient() (*awshttp.BuildableClient, error) {
	roots, err := x509.SystemCertPool()
	if err != nil {
		return nil, fmt.Errorf("load the system certificates: %w", err)
	}

	if c.CA != "" && !roots.AppendCertsFromPEM([]byte(c.CA)) {
		return nil, errors.New("the CA of the S3 server contains no PEM certificate")
	}

	return awshttp.NewBuildableClient().WithTransportOptions(func(t *http.Transport) {
		// A server that accepts a request and never answers would hold an apply until its deadline.
		t.ResponseHeaderTimeout = c.stall()
		t.DialContext = moving(t.DialContext, c.stall())
		t.TLSClientConfig = &tls.Config{MinVersion: tls.VersionTLS12, RootCAs: roots,
			InsecureSkipVerify: c.InsecureSkipTLSVerify}
	}), nil
}

// staying is a client that follows no redirect to another origin. The SDK's own follows those of status 307 and
// 308. Its second redirect to a foreign server gets the token of a session again (aws-sdk-go-v2 1.47,
// aws/transport/http, limitedRedirect). A signature is for the requested host, so no other server accepts it.
//
// It wraps the client of a loaded configuration: AWS_CA_BUNDLE needs the SDK's own.
func staying(client aws.HTTPClient) aws.HTTPClient {
	built, ok := client.(*awshttp.BuildableClient)
	if !ok {
		return client
	}

	return &http.Client{Transport: built.GetTransport(), Timeout: built.GetTimeout(), CheckRedirect: sameMethodAndOrigin}
}

func sameMethodAndOrigin(next *http.Request, via []*http.Request) error {
	same := next.Response.StatusCode == http.StatusTemporaryRedirect ||
		next.Response.StatusCode == http.StatusPermanentRedirect
	if !same || redirect.Left(next, via) || len(via) >= attempts {
		return http.ErrUseLastResponse
	}

	return nil
}

type dial = func(ctx context.Context, network, address string) (net.Conn, error)

// moving makes connections whose other side must continue to take what is sent: the time for an
// answer begins when the request is out.
func moving(dial dial, limit time.Duration) dial {
	return func(ctx context.Context, network, address string) (net.Conn, error) {
		conn, err := dial(ctx, network, address)
		if err != nil {
			return nil, err
		}

		return &movingConn{conn, limit}, nil
	}
}

type movingConn struct {
	net.Conn

	limit time.Duration
}

func (c *movingConn) Write(data []byte) (int, error) {
	if err := c.SetWriteDeadline(time.Now().Add(c.limit)); err != nil {
		return 0, err
	}

	return c.Conn.Write(data)
}

func (r Role) provider(loaded aws.Config) aws.CredentialsProvider {
	client := sts.NewFromConfig(loaded, func(o *sts.Options) {
		if r.Endpoint != "" {
			o.BaseEndpoint = &r.Endpoint
		}
	})

	return stscreds.NewAssumeRoleProvider(client, r.ARN, func(o *stscreds.AssumeRoleOptions) {
		if r.SessionName != "" {
			o.RoleSessionName = r.SessionName
		}

		if r.ExternalID != "" {
			o.ExternalID = &r.ExternalID
		}
	})
}
