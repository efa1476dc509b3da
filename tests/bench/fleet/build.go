package main

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
)

// program is where a program that the bench builds is.
func (b *bench) program(name string) string { return filepath.Join(b.built, name) }

// build builds the operator, the floor and the kubelet into b.built. For profiles the
// operator gets one more file: see profile/profile.go.
func (b *bench) build(ctx context.Context, root string, profile bool) error {
	flags := []string{"-tags=grpcnotrace"} // as the Makefile does
	if profile {
		overlay := filepath.Join(b.built, "overlay.json")
		text, err := json.Marshal(map[string]map[string]string{"Replace": {
			filepath.Join(root, "ray-operator/cmd/operator/profile.go"): filepath.Join(root, "tests/bench/fleet/profile/profile.go"),
		}})
		if err == nil {
			err = os.WriteFile(overlay, text, 0o644)
		}
		if err != nil {
			return fmt.Errorf("prepare the build with profiles: %w", err)
		}
		flags = []string{"-tags=grpcnotrace,fleetprofile", "-overlay=" + overlay}
	}
	for name, from := range map[string]string{
		Operator: "ray-operator/cmd/operator", Floor: "tests/bench/fleet/floor", "kubelet": "tests/bench/fleet/kubelet",
	} {
		args := append([]string{"build", "-o", b.program(name)}, flags...)
		command := exec.CommandContext(ctx, "go", append(args, "./"+from)...)
		command.Dir = root
		if out, err := command.CombinedOutput(); err != nil {
			return fmt.Errorf("build %s: %w: %s", from, err, out)
		}
	}
	return nil
}
