package process

import (
	"reflect"
	"testing"
)

func TestArgv(t *testing.T) {
	p := Program{Path: "/bin/x", Args: []string{"--a"}, Netns: "/run/localkube/n", Mounts: "/d/mnt"}
	want := []string{"nsenter", "--net=/run/localkube/n", "--mount=/d/mnt", "--", "/bin/x", "--a"}
	if got := p.argv(); !reflect.DeepEqual(got, want) {
		t.Errorf("argv = %q, want %q", got, want)
	}
	p.Netns, p.Mounts = "", ""
	if got := p.argv(); !reflect.DeepEqual(got, []string{"/bin/x", "--a"}) {
		t.Errorf("argv on the host = %q", got)
	}
}

func TestMatches(t *testing.T) {
	p := Program{Path: "/usr/bin/containerd"}
	for cmdline, want := range map[string]bool{
		"/usr/bin/containerd\x00--config\x00/d/a.toml\x00":                  true,
		"nsenter\x00--net=/n\x00--\x00/usr/bin/containerd\x00--config\x00":  true,
		"/usr/bin/containerd-shim-runc-v2\x00-namespace\x00k8s.io\x00":      false,
		"sh\x00-c\x00/usr/bin/containerd\x00":                               false,
		"nsenter\x00--net=/n\x00--\x00/usr/bin/containerd-shim-runc-v2\x00": false,
		"": true,
	} {
		if got := p.matches(cmdline); got != want {
			t.Errorf("matches(%q) = %v, want %v", cmdline, got, want)
		}
	}
}

func TestLastLines(t *testing.T) {
	if got := lastLines([]byte("a\nb\nc\n"), 2); got != "  b\n  c" {
		t.Errorf("lastLines = %q", got)
	}
}
