// Package demo tests how "make demo" uses a Kubernetes that is there already.
//
// In: the script, with stand-ins for kubectl, helm, Docker and what loads images. Out: what it calls of them. It must never
// reach a real Kubernetes.
package demo

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// standIn notes how it was called, and answers what the script asks kubectl.
const standIn = `#!/bin/sh
echo "$(basename "$0") $*" >>"$CALLS"
case "$*" in
  "config current-context") echo "$CONTEXT" ;;
  *"jsonpath={.status.phase}"*) echo Succeeded ;;
esac
`

// run runs the script of a copy of this directory with a kubeconfig, and returns what it called and said.
func run(t *testing.T, context, image, what, kubeconfig string) (calls, said string, err error) {
	t.Helper()
	root, programs := t.TempDir(), t.TempDir()
	if err := os.CopyFS(filepath.Join(root, "hack", "demo"), os.DirFS(".")); err != nil {
		t.Fatal(err)
	}
	if err := os.Mkdir(filepath.Join(root, "bin"), 0o755); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"kubectl", "helm", "docker", "kind", "minikube", "make"} {
		if err := os.WriteFile(filepath.Join(programs, name), []byte(standIn), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.WriteFile(filepath.Join(root, "bin", "heliostat"), []byte(standIn), 0o755); err != nil {
		t.Fatal(err)
	}
	log := filepath.Join(root, "calls")
	if kubeconfig == "" {
		kubeconfig = filepath.Join(root, "hack", "demo", "cluster.yaml") // the stand-ins read none
	}
	command := exec.CommandContext(t.Context(), filepath.Join(root, "hack", "demo", "demo.sh"), what, kubeconfig)
	command.Env = []string{"PATH=" + programs + ":/usr/bin:/bin", "CALLS=" + log, "CONTEXT=" + context, "IMAGE=" + image, "HOME=" + root}
	out, err := command.CombinedOutput()
	called, _ := os.ReadFile(log) // none where nothing was called
	return string(called), string(out), err
}

func TestDemo_UsesTheKubernetesThatIsGiven(t *testing.T) {
	for name, c := range map[string]struct {
		context, image, what string
		calls                []string
		never                []string
	}{
		"kind": {"kind-mine", "", "up", []string{"docker build", "kind load docker-image heliostat/operator:dev --name mine",
			"image.repository=heliostat/operator", "kubectl apply -k examples/serve/echo", "heliostat service call echo"}, []string{"localkube", "minikube"}},
		"minikube":       {"minikube", "", "up", []string{"docker build", "minikube image load heliostat/operator:dev"}, []string{"kind load"}},
		"Docker Desktop": {"docker-desktop", "", "up", []string{"docker build"}, []string{"load"}},
		"an image in a registry": {"far", "registry.example.com:5000/heliostat/operator:v1", "up",
			[]string{"image.repository=registry.example.com:5000/heliostat/operator", "image.tag=v1", "kubectl apply -f hack/demo/cluster.yaml"}, []string{"docker"}},
		"taking it away": {"far", "", "down", []string{"kubectl delete -k examples/serve/echo", "kubectl delete computecluster demo", "helm uninstall heliostat"},
			[]string{"localkube", "docker"}},
	} {
		t.Run(name, func(t *testing.T) {
			calls, said, err := run(t, c.context, c.image, c.what, "")
			if err != nil {
				t.Fatalf("%v\n%s", err, said)
			}
			for _, want := range c.calls {
				if !strings.Contains(calls, want) {
					t.Errorf("it does not call %s:\n%s", want, calls)
				}
			}
			for _, never := range c.never {
				if strings.Contains(calls, never) {
					t.Errorf("it calls %s:\n%s", never, calls)
				}
			}
		})
	}
}

func TestDemo_RefusesWhatItCannotUse(t *testing.T) {
	for name, c := range map[string]struct{ kubeconfig, says string }{
		"nodes that no image reaches":       {"", "IMAGE=REGISTRY/heliostat/operator:TAG"},
		"a kubeconfig that cannot be found": {"/nowhere", "cannot be read"},
	} {
		t.Run(name, func(t *testing.T) {
			calls, said, err := run(t, "far", "", "up", c.kubeconfig)
			if err == nil || !strings.Contains(said, c.says) || strings.Contains(calls, "helm") {
				t.Errorf("it ends with %v, and says %q; it called %q", err, said, calls)
			}
		})
	}
}
