package headclient

import (
	"strings"
	"testing"
)

// TestCloseKept_IsOneShellWord: the job's shell would read on after a quote.
func TestCloseKept_IsOneShellWord(t *testing.T) {
	if strings.Contains(closeKept, "'") || !strings.Contains(closeKept, "import ray") {
		t.Errorf("the program does not fit between single quotes:\n%s", closeKept)
	}
}
