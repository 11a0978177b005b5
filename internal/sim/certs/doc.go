// Package certs makes the certificate authorities and certificates of simulated clusters.
package certs
