// Command schema prints the provider's schema as `terraform providers schema -json` does, from the provider in
// this module and with no CLI. The documentation is generated from it. A CLI leaves out what it does not know
// (Terraform before 1.14 and OpenTofu know no actions or list resources), so the pages would depend on the CLI
// that generated them.
package main

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"log"
	"os"

	"github.com/hashicorp/terraform-plugin-framework/providerserver"
	"github.com/hashicorp/terraform-plugin-go/tfprotov6"

	"github.com/talosop/terraform-provider-talosop/internal/provider"
)

// address is the key under which tfplugindocs looks for the provider: its short name.
const address = "talosop"

func main() {
	log.SetFlags(0)

	bare := flag.Bool("bare", false, "leave out descriptions, for a schema that is kept")
	flag.Parse()

	if err := write(context.Background(), os.Stdout, *bare); err != nil {
		log.Fatal(err)
	}
}

// write prints the schema of the provider to w; bare is without what is for people.
func write(ctx context.Context, w io.Writer, bare bool) error {
	server, err := providerserver.NewProtocol6WithError(provider.New("dev")())()
	if err != nil {
		return fmt.Errorf("start provider: %w", err)
	}

	schemas, err := server.GetProviderSchema(ctx, &tfprotov6.GetProviderSchemaRequest{})
	if err := errors.Join(err, diagnosticsError(schemas.Diagnostics)); err != nil {
		return fmt.Errorf("read provider schema: %w", err)
	}

	identities, err := server.GetResourceIdentitySchemas(ctx, &tfprotov6.GetResourceIdentitySchemasRequest{})
	if err := errors.Join(err, diagnosticsError(identities.Diagnostics)); err != nil {
		return fmt.Errorf("read identity schemas: %w", err)
	}

	converted, err := (&converter{bare: bare}).convert(schemas, identities)
	if err != nil {
		return err
	}

	encoder := json.NewEncoder(w)
	if !bare {
		encoder.SetIndent("", "  ")
	}

	return encoder.Encode(converted)
}

// diagnosticsError returns the errors among diagnostics as one, or nil.
func diagnosticsError(diagnostics []*tfprotov6.Diagnostic) error {
	var errs []error

	for _, d := range diagnostics {
		if d.Severity == tfprotov6.DiagnosticSeverityError {
			errs = append(errs, fmt.Errorf("%s: %s", d.Summary, d.Detail))
		}
	}

	return errors.Join(errs...)
}
