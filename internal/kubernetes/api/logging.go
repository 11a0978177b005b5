package api

import (
	"github.com/go-logr/logr"
	"k8s.io/klog/v2"
	"sigs.k8s.io/controller-runtime/pkg/log"
)

// The libraries below this package log to loggers of the process: client-go what is wrong
// with an aggregated API when it lists kinds, controller-runtime that nobody gave it a
// logger. What they have to say is in the errors they return; the standard error of a
// provider is no place for it. klog wants this done while nobody logs.
func init() {
	klog.SetLogger(logr.Discard())
	log.SetLogger(logr.New(log.NullLogSink{}))
}
