// Package diagnose finds out why pods and their controllers are not ready. The results are typed values: the
// object, the reason, the pod that is nearest to the cause, its last event and the end of its log. The one text of
// them is made in text.go. What Secrets contain that a pod is given is taken out.
//
// Whether an object is ready by its status is kstatus's to say (github.com/fluxcd/cli-utils), but for the kinds
// that it is too content with.
//
// [Diagnosis.SupportFiles] writes down nodes and pods for people who look for the cause of a problem.
package diagnose
