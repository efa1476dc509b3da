package live

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"slices"
	"strings"
)

// The release that tests install, and where.
const (
	ReleaseName      = "heliostat"
	ReleaseNamespace = "heliostat-system"
)

// StolenTokenAgent is the user agent of a test that uses an account's token as a thief would. The comparison of rights that
// were used with those that are granted leaves such requests out.
const StolenTokenAgent = "stolen-token"

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

// imageVariable names the operator's image, REPOSITORY:TAG, where nodes pull it from a registry. Without
// it the chart's default is installed, which a local Kubernetes holds already.
const imageVariable = "HELIOSTAT_IMAGE"

// Install installs or upgrades the operator by its chart, as users do, and waits until
// it runs.
func Install(ctx context.Context, root string, settings ...string) error {
	image, err := imageSettings(os.Getenv(imageVariable))
	if err != nil {
		return err
	}
	_, err = Helm(ctx, root, slices.Concat([]string{"upgrade", "--install", ReleaseName, root + "/helm-chart/heliostat",
		"--namespace", ReleaseNamespace, "--create-namespace", "--wait", "--timeout", "2m", "--set", "replicas=1"}, image, settings)...)
	return err
}

// imageSettings are the chart's settings for an image, none where it is empty. The registry may have a port.
func imageSettings(image string) ([]string, error) {
	if image == "" {
		return nil, nil
	}
	colon := strings.LastIndex(image, ":")
	if colon <= 0 || colon == len(image)-1 || strings.Contains(image[colon:], "/") {
		return nil, fmt.Errorf("read %s: %q is not REPOSITORY:TAG", imageVariable, image)
	}
	return []string{"--set-string", "image.repository=" + image[:colon], "--set-string", "image.tag=" + image[colon+1:]}, nil
}
