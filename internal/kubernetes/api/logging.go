package api

import (
	"github.com/go-logr/logr"
	"k8s.io/klog/v2"
	"sigs.k8s.io/controller-runtime/pkg/log"
)

// The libraries below this package log to loggers of the process: client-go logs problems of an aggregated API
// when it lists kinds, controller-runtime logs that it has no logger. The errors they return say the same, and a
// provider must not write to standard error. klog must be configured while no goroutine logs.
func init() {
	klog.SetLogger(logr.Discard())
	log.SetLogger(logr.New(log.NullLogSink{}))
}
