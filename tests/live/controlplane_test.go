package live

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestControlPlaneTrouble_IsOfBothLogs(t *testing.T) {
	dir := t.TempDir()
	write := func(name, text string) {
		t.Helper()
		path := filepath.Join(dir, "log", name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	write("etcd.log", `{"level":"info","msg":"ready"}`+"\n"+`{"level":"warn","msg":"apply request took too long"}`+"\n")
	write("kube-apiserver.log", "I1126 served\nE1126 first\nW1126 second\n\nE1126 third\n")
	t.Setenv("LOCALKUBE_AUDIT_LOG", filepath.Join(dir, "audit.log"))
	const want = `etcd.log: {"level":"warn","msg":"apply request took too long"}
kube-apiserver.log: W1126 second
kube-apiserver.log: E1126 third
`
	if diff := cmp.Diff(want, ControlPlaneTrouble(2)); diff != "" {
		t.Error(diff)
	}
	t.Setenv("LOCALKUBE_AUDIT_LOG", "")
	if got := ControlPlaneTrouble(2); got != "" {
		t.Errorf("of no local Kubernetes: %q", got)
	}
}
