// Package deb says which Debian packages building a root file system takes, and installs those that are missing.
//
// In goes nothing but the machine's package database; out come names. It must never install anything without being
// asked to.
package deb

import (
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
)

// Packages returns the names of what is needed beyond what every Debian has. python3-pip brings python3.
func Packages() []string { return []string{"mmdebstrap", "python3-pip"} }

// Missing returns those of the packages that are not installed.
func Missing(ctx context.Context) ([]string, error) {
	if _, err := exec.LookPath("dpkg-query"); err != nil {
		return nil, fmt.Errorf("look for Debian packages: %w: images are built on Debian; elsewhere use the Dockerfiles in images/", err)
	}
	var missing []string
	for _, name := range Packages() {
		// It fails for a package that was never seen, which is an answer too.
		status, err := exec.CommandContext(ctx, "dpkg-query", "--show", "--showformat=${db:Status-Status}", name).Output()
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		if err != nil || string(status) != "installed" {
			missing = append(missing, name)
		}
	}
	return missing, nil
}

// Require fails, with the command that helps, unless this process may build a root file system here.
func Require(ctx context.Context) error {
	if os.Geteuid() != 0 {
		return fmt.Errorf("build a root file system: it takes root: run it with sudo")
	}
	missing, err := Missing(ctx)
	if err != nil {
		return err
	}
	if len(missing) > 0 {
		return fmt.Errorf("build a root file system: packages are missing: run apt-get install %s, or images deps --install",
			strings.Join(missing, " "))
	}
	return nil
}

// Install installs packages with apt-get, whose output goes to progress.
func Install(ctx context.Context, packages []string, progress io.Writer) error {
	for _, args := range [][]string{{"update"}, append([]string{"install", "--yes", "--no-install-recommends"}, packages...)} {
		cmd := exec.CommandContext(ctx, "apt-get", args...)
		cmd.Env = append(os.Environ(), "DEBIAN_FRONTEND=noninteractive")
		cmd.Stdout, cmd.Stderr = progress, progress
		if err := cmd.Run(); err != nil {
			return fmt.Errorf("install packages %s: apt-get %s: %w", strings.Join(packages, " "), args[0], err)
		}
	}
	return nil
}
