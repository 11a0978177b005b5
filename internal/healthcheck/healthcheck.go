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

// HTTP is a request to a URL, and the response that it must get.
type HTTP struct {
	URL string
	// Method and Body are those of the request: GET without a body by default.
	Method, Body string
	// Status is the expected status; by default 200 for GET, and any 2xx for other methods. Contains is the text that
	// the response must contain; empty for any.
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
