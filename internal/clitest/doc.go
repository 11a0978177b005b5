// Package clitest runs the built provider under a real terraform or tofu process.
//
// terraform-plugin-testing serves the provider from within the test process. That is quick and shows most things,
// but not what happens on a user's machine. There, a provider process is killed, a CLI is interrupted, a log has
// everything that the process wrote, and a second process starts with only the state file. For such tests this
// package builds the provider once, puts it into a filesystem mirror for the hosts of both registries, and runs
// CLI commands in a separate folder:
//
//	clitest.Each(t, func(t *testing.T, cli clitest.CLI) {
//		w := clitest.NewWorkspace(t, cli)
//		w.Write("main.tf", config)
//		w.Init()
//		w.MustRun("apply", "-auto-approve")
//		if got := w.Run("plan", "-detailed-exitcode").Exit; got != 0 { … }
//	})
//
// A command that the test disturbs is started instead. The test kills or interrupts it at the right moment:
//
//	apply := w.Start("apply", "-auto-approve")
//	<-sim.Reached("bootstrap")
//	apply.KillProvider()
//	result := apply.Wait()
//
// The tests of this kind run when TF_ACC is set, like all acceptance tests. Programs are looked up in the folder
// that TALOSOP_TEST_ASSETS names (tools/testbed/build fills it), terraform on the PATH before. A test whose
// program is missing skips, or fails when TALOSOP_REQUIRE_ASSETS is set, so that CI cannot pass by running
// nothing.
package clitest
