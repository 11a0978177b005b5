package clusterimport

import (
	"errors"
)

var errContainersNotImported = errors.New("machines in containers are not imported: a create with the secrets, the " +
	"name and the host of their cluster takes them over, as it does after an apply that was killed")

// ParseImport reads an import ID; errors describe its format.
func ParseImport(id string, kind Kind) (Request, error) {
	var request Request

	if err := DecodeImport(id, &request); err != nil {
		return request, err
	}

	return request, request.check(kind)
}
