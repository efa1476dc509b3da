package e2e

import (
	"context"
	"net"
	"net/http"
	osexec "os/exec"
	"regexp"
	"strings"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/heliostat-dev/heliostat/tests/live"
)

// The examples, as a user applies them.
var _ = Describe("an example of a service", Label(serviceLabel, localkubeLabel, live.ServeExamplesLabel, live.AcceptLabel), func() {
	for _, name := range []string{"echo", "text", "streaming", "composed"} {
		It("runs and answers: "+name, func(ctx SpecContext) {
			t := &team{namespace: fresh(ctx)}
			t.example(ctx, name)
			s := t.service(ctx, name)
			s.serves(ctx)
			for path, words := range answersOf[name] {
				said, err := s.read(ctx, path)
				Expect(err).NotTo(HaveOccurred())
				Expect(strings.TrimSpace(said)).To(ContainSubstring(words))
			}
		}, SpecTimeout(servingTime))
	}
})

// answersOf is what the examples answer, by what they are asked.
var answersOf = map[string]map[string]string{
	"echo":      {"/?said=hello": `"said":"hello"`, "/stream?n=2&pace=0.1": `"chunk": 1, "of": 2`},
	"text":      {"/?text=guten+Morgen,+wie+geht+es+dir": `"language":"de"`, "/?text=where+is+the+nearest+railway+station": `"language":"en"`},
	"streaming": {"/?words=3": "A\nmirror\nkeeps"},
	"composed":  {"/?text=a+great+screen,+but+it+came+late": `{"mood":1.0,"topic":"delivery"}`, "/?text=a+broken+battery": `{"mood":-1.5,"topic":"product"}`},
}

// example applies one as kubectl apply -k does. What it installs by pip comes from a directory
// of this machine, as nodes have no way out of it.
func (t *team) example(ctx context.Context, name string) {
	GinkgoHelper()
	out, err := kubectl(ctx, "kustomize", root+"/examples/serve/"+name).Output()
	Expect(err).NotTo(HaveOccurred())
	objects, err := live.Decode(out)
	Expect(err).NotTo(HaveOccurred())
	for _, object := range objects {
		object.SetNamespace(t.namespace)
		if name := pinned.FindString(string(out)); name != "" && object.GetKind() == "ClusterService" {
			links := packages(ctx, name)
			host, _, err := net.SplitHostPort(links)
			Expect(err).NotTo(HaveOccurred())
			Expect(unstructured.SetNestedSlice(object.Object, []any{
				map[string]any{"name": "PIP_NO_INDEX", "value": "1"},
				map[string]any{"name": "PIP_FIND_LINKS", "value": "http://" + links + "/"},
				map[string]any{"name": "PIP_TRUSTED_HOST", "value": host},
			}, "spec", "clusterTemplate", "spec", "podDefaults", "env")).To(Succeed())
		}
		if object.GetKind() == "ClusterService" {
			peer := map[string]any{"ipBlock": map[string]any{"cidr": outside(ctx)}}
			Expect(unstructured.SetNestedSlice(object.Object, []any{peer}, "spec", "service", "allowFrom")).To(Succeed())
		}
		Expect(kubernetes.ApplyObject(ctx, object)).To(Succeed())
	}
}

// pinned is a package with its version, as pip takes it.
var pinned = regexp.MustCompile(`[a-z0-9]+==[0-9.]+`)

// packages downloads a package with this machine's pip, and serves it to pip at the address of
// this machine that the nodes know. What it depends on, Ray's image has.
func packages(ctx context.Context, name string) string {
	GinkgoHelper()
	directory := GinkgoT().TempDir()
	// By its path, as the builder of images does: a Python earlier in PATH may be without pip.
	download := osexec.CommandContext(ctx, "/usr/bin/python3", "-m", "pip", "download", "--no-input", "--disable-pip-version-check",
		"--no-deps", "--only-binary=:all:", "--dest", directory, name)
	out, err := download.CombinedOutput()
	Expect(err).NotTo(HaveOccurred(), string(out))
	listener, err := net.Listen("tcp", net.JoinHostPort(here(ctx).String(), "0"))
	Expect(err).NotTo(HaveOccurred())
	server := &http.Server{Handler: http.FileServer(http.Dir(directory)), ReadHeaderTimeout: limit}
	go func() { _ = server.Serve(listener) }() // ends when it is closed
	DeferCleanup(server.Close)
	return listener.Addr().String()
}
