package e2e

import (
	"bytes"
	"context"
	"os"
	"path/filepath"
	"strings"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"k8s.io/cli-runtime/pkg/genericiooptions"
	"k8s.io/utils/clock"

	"github.com/heliostat-dev/heliostat/cli/app"
)

// commandLine runs a command of heliostat in a namespace, by the kubeconfig of these specs. It returns its exit code and
// what it writes to standard output.
func commandLine(ctx context.Context, namespace string, args ...string) (code int, out string) {
	GinkgoHelper()
	var printed bytes.Buffer
	at := []string{args[0], "--namespace", namespace}
	code = app.Run(ctx, append(at, args[1:]...), app.Settings{
		IOStreams: genericiooptions.IOStreams{In: strings.NewReader(""), Out: &printed, ErrOut: GinkgoWriter},
		Clock:     clock.RealClock{}, Environ: os.Environ(),
	})
	return code, printed.String()
}

// filesOf makes a directory with files.
func filesOf(texts map[string]string) string {
	GinkgoHelper()
	root := GinkgoT().TempDir()
	for name, text := range texts {
		at := filepath.Join(root, name)
		Expect(os.MkdirAll(filepath.Dir(at), 0o700)).To(Succeed())
		Expect(os.WriteFile(at, []byte(text), 0o600)).To(Succeed())
	}
	return root
}

// asksVersion is a program that asks the head's job API by what heliostat session gives it.
const asksVersion = `import os, urllib.request
request = urllib.request.Request(os.environ["RAY_API_SERVER_ADDRESS"] + "/api/version", headers={"Authorization": "Bearer " + os.environ["RAY_AUTH_TOKEN"]})
print(urllib.request.urlopen(request).read().decode())`
