// Package healthcheck has the health checks of users, which have to pass before a machine goes out of service, and
// once it is back. They are asked by package probe.
package healthcheck

import "time"

// DefaultTimeout is how long a check is retried until it passes, by default.
const DefaultTimeout = 5 * time.Minute

// Check is one of them: of an object, a URL or a job.
type Check struct {
	Name string
	// Timeout is how long it is asked again until it passes.
	Timeout time.Duration

	Object *Object
	HTTP   *HTTP
	Job    *Job
}

// Object is about one object of the cluster or, without a name, about all of a kind that a selector of labels selects:
// none of them is no error. One of Condition, CEL and JSONPath says what has to be true of each.
type Object struct {
	APIVersion, Kind, Namespace, Name, Selector string
	// Condition of its status that has to be True.
	Condition string
	// CEL is an expression over the variable object.
	CEL string
	// JSONPath is a template as in kubectl, and Value its expected result.
	JSONPath, Value string
}

// HTTP is a check of a URL's response.
type HTTP struct {
	URL string
	// Status is the expected status, and Contains is the text that the body must contain; empty for any.
	Status   int
	Contains string
	// CA that signed the certificate of the server, in PEM; empty for those of the system.
	CA      string
	Headers map[string]string
}

// Job is a job that has to succeed. It is made for each answer, and removed after it.
type Job struct {
	// Manifest is an object of batch/v1, decoded.
	Manifest map[string]any
}
