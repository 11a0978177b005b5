package provider_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/talosop/terraform-provider-talosop/internal/clitest"
	"github.com/talosop/terraform-provider-talosop/internal/provider/sitetest"
	"github.com/talosop/terraform-provider-talosop/internal/provider/tftest"
	"github.com/talosop/terraform-provider-talosop/internal/sim"
	"github.com/talosop/terraform-provider-talosop/internal/testenv"
	"github.com/talosop/terraform-provider-talosop/internal/wait"
)

// The author of pull requests, the repository, and the password of all users.
const (
	developer     = "admin"
	infra         = developer + "/infra"
	giteaPassword = "known-to-this-test-alone"
)

// A pull request is planned by a comment, and applied by a comment from the plan that was read. When its plan wipes
// a machine, it is held until an owner of the policies approves.
func TestAccExamples_atlantis(t *testing.T) {
	testenv.BeforeRelease(t, "TestAccExamples_validate", "TestPlanPolicy_deniesWhatWipes",
		"TestAccSavedPlan_ofEveryResourceWithMachines")
	t.Parallel()

	s, on := metal(t, sim.Options{}, 1, 2)
	variables := func(workers ...*sim.Machine) string {
		return tftest.JSON(t, map[string]any{"endpoint": s.URL, "control_planes": sitetest.Addresses(s.ControlPlane),
			"workers": sitetest.Addresses(workers), "deletion_protection": false})
	}

	g := newGitServer(t)
	g.push(t, "main", nil)
	g.startAtlantis(t)

	create := g.propose(t, "create", map[string]string{"cluster/site.auto.tfvars.json": variables(s.Workers...)})
	g.says(t, create, "bootstrap etcd on cp-1", "Plan: 2 to add, 0 to change, 0 to destroy.")
	g.says(t, create, "Ran Policy Check", "0 failures")
	s.ExpectNothingSent(t)
	g.comment(t, create, "atlantis apply")
	g.says(t, create, "Apply complete! Resources: 2 added, 0 changed, 0 destroyed.")
	g.merge(t, create)

	remove := g.propose(t, "remove", map[string]string{"cluster/site.auto.tfvars.json": variables(s.Workers[0])})
	g.says(t, remove, "Plan: 0 to add, 1 to change, 0 to destroy.")
	g.says(t, remove, "general/w-2 would leave the cluster")
	s.ForgetCalls()
	g.comment(t, remove, "atlantis apply")
	g.says(t, remove, "All policies must pass for project before running apply")
	s.ExpectNothingSent(t)
	g.comment(t, remove, "atlantis approve_policies")
	g.says(t, remove, "Approved Policies for 1 projects")
	g.comment(t, remove, "atlantis apply")
	g.says(t, remove, "Apply complete! Resources: 0 added, 1 changed, 0 destroyed.")
	sitetest.ExpectWaiting(t, s.Workers[1])

	g.destroy(t, variables(s.Workers[0]))
	on.gone(t)
}

// gitServer is Gitea with a repository, and an Atlantis server for it.
type gitServer struct {
	dir, url, atlantis string
	tokens             map[string]string
	cli                *clitest.Workspace
	env                []string
}

// freePort is an unused port of this computer.
func freePort(t *testing.T) string {
	t.Helper()

	l, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp4", "127.0.0.1:0")
	tftest.Must(t, err)

	_, port, err := net.SplitHostPort(l.Addr().String())
	tftest.Must(t, errors.Join(err, l.Close()))

	return port
}

// giteaINI is the configuration of Gitea without web pages: the module has no build of its front end.
const giteaINI = `
RUN_MODE = prod
WORK_PATH = %[1]s
I_AM_BEING_UNSAFE_RUNNING_AS_ROOT = true
[server]
STATIC_ROOT_PATH = %[2]s
HTTP_ADDR = 127.0.0.1
HTTP_PORT = %[3]s
ROOT_URL = http://127.0.0.1:%[3]s/
DISABLE_SSH = true
OFFLINE_MODE = true
[database]
DB_TYPE = sqlite3
PATH = %[1]s/gitea.db
[security]
INSTALL_LOCK = true
SECRET_KEY = of-this-test
[webhook]
ALLOWED_HOST_LIST = loopback
[log]
MODE = console
LEVEL = Warn
`

// newGitServer starts Gitea with two people and a repository.
func newGitServer(t *testing.T) *gitServer {
	t.Helper()

	cli := clitest.CLI{Name: "terraform", Path: clitest.Asset(t, "terraform")}
	port, program := freePort(t), clitest.Asset(t, "gitea/gitea")
	g := &gitServer{
		dir: t.TempDir(), url: "http://127.0.0.1:" + port, atlantis: freePort(t), tokens: map[string]string{},
		cli: clitest.NewWorkspace(t, cli),
	}
	config := filepath.Join(g.dir, "app.ini")
	tftest.WriteFile(t, config, fmt.Sprintf(giteaINI, g.dir, filepath.Dir(program), port))

	g.env = append(g.cli.Environ(), "HOME="+g.dir, "GIT_CONFIG_NOSYSTEM=1", "GIT_AUTHOR_NAME=a", "GIT_AUTHOR_EMAIL=a@example.org",
		"GIT_COMMITTER_NAME=a", "GIT_COMMITTER_EMAIL=a@example.org")

	gitea := func(args ...string) string { return g.run(t, g.dir, program, append(args, "--config", config)...) }
	gitea("migrate")

	for _, user := range []string{developer, "atlantis"} {
		gitea("admin", "user", "create", "--admin", "--username", user, "--password", giteaPassword,
			"--email", user+"@example.org", "--must-change-password=false")

		fields := strings.Fields(gitea("admin", "user", "generate-access-token", "--username", user, "--scopes", "all", "--raw"))
		g.tokens[user] = fields[len(fields)-1] // after its warnings
	}

	g.start(t, g.url+"/api/healthz", program, "web", "--config", config)
	g.ask(t, http.MethodPost, "/user/repos", map[string]any{"name": "infra", "default_branch": "main"}, nil)
	g.ask(t, http.MethodPut, "/repos/"+infra+"/collaborators/atlantis", map[string]any{"permission": "write"}, nil)

	return g
}

// run runs a program to its end and returns its standard output.
func (g *gitServer) run(t *testing.T, dir, program string, args ...string) string {
	t.Helper()

	command := exec.CommandContext(t.Context(), program, args...) //nolint:gosec // the test gives programs and arguments
	command.Dir, command.Env = dir, g.env

	var stderr bytes.Buffer

	command.Stderr = &stderr

	out, err := command.Output()
	if err != nil {
		t.Fatalf("%s %v: %v\n%s%s", filepath.Base(program), args, err, out, stderr.String())
	}

	return string(out)
}

// start starts a server and waits until it answers. It ends with the test, which logs its output on failure.
func (g *gitServer) start(t *testing.T, health, program string, args ...string) {
	t.Helper()

	var log bytes.Buffer

	server := exec.CommandContext(t.Context(), program, args...) //nolint:gosec // the test gives programs and arguments
	server.Dir, server.Env, server.Stdout, server.Stderr = g.dir, g.env, &log, &log
	tftest.Must(t, server.Start())

	t.Cleanup(func() { // the context of the test has ended by then, and the server with it
		if err := server.Wait(); err != nil && t.Failed() {
			t.Logf("%s: %v\n%s", filepath.Base(program), err, log.String())
		}
	})

	g.until(t, program+" answers", func(ctx context.Context) error {
		return g.send(ctx, http.MethodGet, health, nil, nil)
	})
}

// until waits for a condition.
func (g *gitServer) until(t *testing.T, what string, condition func(ctx context.Context) error) {
	t.Helper()

	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()

	if err := wait.Until(ctx, 100*time.Millisecond, condition); err != nil {
		t.Fatalf("waiting until %s: %v", what, err)
	}
}

// ask calls the API of Gitea as the developer.
func (g *gitServer) ask(t *testing.T, method, path string, body, answer any) {
	t.Helper()
	tftest.Must(t, g.send(t.Context(), method, g.url+"/api/v1"+path, body, answer))
}

func (g *gitServer) send(ctx context.Context, method, url string, body, answer any) error {
	content, err := json.Marshal(body)
	if err != nil {
		return err
	}

	request, err := http.NewRequestWithContext(ctx, method, url, bytes.NewReader(content))
	if err != nil {
		return err
	}

	request.Header.Set("Content-Type", "application/json")
	request.Header.Set("Authorization", "token "+g.tokens[developer])

	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return err
	}

	output, err := io.ReadAll(response.Body)
	if err = errors.Join(err, response.Body.Close()); err != nil {
		return err
	}

	if response.StatusCode >= http.StatusBadRequest {
		return fmt.Errorf("%s %s: %s: %s", method, url, response.Status, output)
	}

	if answer == nil {
		return nil
	}

	return json.Unmarshal(output, answer)
}

// push commits files to a branch, which starts from main. The first commit is the example, including its modules.
func (g *gitServer) push(t *testing.T, branch string, files map[string]string) {
	t.Helper()

	tree := filepath.Join(g.dir, "tree")
	git := func(args ...string) { g.run(t, tree, "git", args...) }

	if _, err := os.Stat(tree); err != nil {
		tftest.Must(t, os.CopyFS(tree, os.DirFS("../../examples/atlantis")))
		tftest.Must(t, os.CopyFS(filepath.Join(tree, "modules"), os.DirFS("../../examples/modules")))

		main := filepath.Join(tree, "cluster", "main.tf")
		tftest.WriteFile(t, main, strings.ReplaceAll(tftest.ReadFile(t, main), "../../modules", "../modules"))
		git("init", "--quiet", "--initial-branch=main")
		git("remote", "add", "origin", strings.Replace(g.url, "//", "//"+developer+":"+giteaPassword+"@", 1)+"/"+infra+".git")
	} else {
		git("fetch", "--quiet", "origin")
		git("checkout", "--quiet", "-B", branch, "origin/main")
	}

	for name, content := range files {
		tftest.WriteFile(t, filepath.Join(tree, name), content)
	}

	git("add", "--all")
	git("commit", "--quiet", "--message", branch)
	git("push", "--quiet", "origin", branch)
}

// startAtlantis starts Atlantis with the configuration of the example, and has Gitea notify it of pull requests.
func (g *gitServer) startAtlantis(t *testing.T) {
	t.Helper()

	bin, policies := filepath.Join(g.dir, "bin"), filepath.Join(g.dir, "policies")
	tftest.Must(t, errors.Join(os.Mkdir(bin, 0o700), os.Mkdir(policies, 0o700)))

	for _, program := range []string{"terraform", "conftest"} {
		tftest.Must(t, os.Symlink(clitest.Asset(t, program), filepath.Join(bin, program)))
	}

	policy := "talosop.rego"
	tftest.WriteFile(t, filepath.Join(policies, policy), tftest.ReadFile(t, "../../examples/guides/plan-policy/"+policy))

	config := filepath.Join(g.dir, "repos.yaml")
	tftest.WriteFile(t, config, strings.NewReplacer("/etc/atlantis/policies", policies, "/var/lib/atlantis", g.dir).
		Replace(tftest.ReadFile(t, "../../examples/atlantis/server/repos.yaml")))

	g.env = append(g.env, "PATH="+bin+":"+os.Getenv("PATH"))
	url := "http://127.0.0.1:" + g.atlantis

	g.start(t, url+"/healthz", clitest.Asset(t, "atlantis"), "server", "--repo-config", config, "--enable-policy-checks",
		"--gitea-base-url", g.url, "--gitea-user", "atlantis", "--gitea-token", g.tokens["atlantis"],
		"--gitea-webhook-secret", "shared", "--repo-allowlist", "*", "--atlantis-url", url, "--port", g.atlantis,
		"--data-dir", filepath.Join(g.dir, "atlantis"), "--tf-download=false", "--log-level", "debug")

	g.ask(t, http.MethodPost, "/repos/"+infra+"/hooks", map[string]any{
		"type": "gitea", "active": true, "events": []string{"pull_request", "pull_request_sync", "issue_comment", "pull_request_comment"},
		"config": map[string]string{"url": url + "/events", "content_type": "json", "secret": "shared"},
	}, nil)
}

// propose opens a pull request that changes files, and returns its number.
func (g *gitServer) propose(t *testing.T, branch string, files map[string]string) int {
	t.Helper()
	g.push(t, branch, files)

	var made struct{ Number int }
	g.ask(t, http.MethodPost, "/repos/"+infra+"/pulls", map[string]any{"title": branch, "head": branch, "base": "main"},
		&made)

	return made.Number
}

func (g *gitServer) comment(t *testing.T, pull int, text string) {
	t.Helper()
	g.ask(t, http.MethodPost, fmt.Sprintf("/repos/%s/issues/%d/comments", infra, pull), map[string]any{"body": text}, nil)
}

// merge merges a pull request and deletes its branch.
func (g *gitServer) merge(t *testing.T, pull int) {
	t.Helper()
	g.ask(t, http.MethodPost, fmt.Sprintf("/repos/%s/pulls/%d/merge", infra, pull), map[string]any{"Do": "merge"}, nil)
}

// says waits for a comment of Atlantis that contains texts.
func (g *gitServer) says(t *testing.T, pull int, texts ...string) {
	t.Helper()
	g.until(t, fmt.Sprintf("Atlantis says %q", texts), func(ctx context.Context) error {
		var (
			comments []struct{ Body string }
			all      strings.Builder
		)

		if err := g.send(ctx, http.MethodGet, fmt.Sprintf("%s/api/v1/repos/%s/issues/%d/comments", g.url, infra, pull),
			nil, &comments); err != nil {
			return err
		}

		for _, comment := range comments {
			found := true
			for _, text := range texts {
				found = found && strings.Contains(comment.Body, text)
			}

			if found {
				return nil
			}

			all.WriteString(comment.Body + "\n")
		}

		return fmt.Errorf("it says:\n%s", all.String())
	})
}

// destroy destroys what is in the state of Atlantis, which no pull request does.
func (g *gitServer) destroy(t *testing.T, variables string) {
	t.Helper()

	w := g.cli.Example("../../examples", "atlantis/cluster")
	w.Write("site.auto.tfvars.json", variables)
	w.MustRun("init", "-backend-config=path="+filepath.Join(g.dir, "state", infra, "cluster", "terraform.tfstate"))
	w.MustRun("destroy", "-auto-approve")
}
