package live

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"strings"
)

// The release that tests install, and where.
const (
	ReleaseName      = "heliostat"
	ReleaseNamespace = "heliostat-system"
)

// Helm runs the helm that HELM names, or else the one that make builds. root is the
// repository's directory. It gives what was printed to standard output.
func Helm(ctx context.Context, root string, args ...string) (string, error) {
	program := os.Getenv("HELM")
	if program == "" {
		program = root + "/bin/helm"
	}
	var stderr strings.Builder
	command := exec.CommandContext(ctx, program, args...)
	command.Stderr = &stderr
	out, err := command.Output()
	if err != nil {
		return "", fmt.Errorf("run %s %s: %w: %s: if it is not there, make bin/helm builds it", program, strings.Join(args, " "), err, stderr.String())
	}
	return string(out), nil
}

// Install installs or upgrades the operator by its chart, as users do, and waits until
// it runs.
func Install(ctx context.Context, root string, settings ...string) error {
	_, err := Helm(ctx, root, append([]string{"upgrade", "--install", ReleaseName, root + "/helm-chart/heliostat",
		"--namespace", ReleaseNamespace, "--create-namespace", "--wait", "--timeout", "2m", "--set", "replicas=1"}, settings...)...)
	return err
}
