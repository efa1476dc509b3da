// Package release tests what "make release" makes, for one platform.
//
// In: this repository. Out: whether the archive, the checksums and krew's manifest fit together, and whether anything in them
// depends on this machine. It must never publish anything.
package release

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"strings"
	"testing"

	"sigs.k8s.io/yaml"
)

const version = "v0.0.1-test"

// plugin is a manifest as krew reads it.
type plugin struct {
	APIVersion, Kind string
	Metadata         struct{ Name string }
	Spec             struct {
		Version, Homepage, ShortDescription, Description string
		Platforms                                        []platform
	}
}

type platform struct {
	Selector struct {
		MatchLabels struct{ OS, Arch string }
	}
	URI, SHA256, Bin string
}

// release makes a release for this platform, and returns its directory.
func release(t *testing.T) string {
	t.Helper()
	out := filepath.Join(t.TempDir(), "release")
	command := exec.CommandContext(t.Context(), "hack/tools/release.sh", out, runtime.GOOS+"/"+runtime.GOARCH)
	command.Dir = "../.."
	isOfBuild := func(variable string) bool {
		return strings.HasPrefix(variable, "GOFLAGS=") || strings.HasPrefix(variable, "CGO_ENABLED=")
	}
	command.Env = append(slices.DeleteFunc(os.Environ(), isOfBuild), "VERSION="+version) // as a user's shell that sets neither
	if said, err := command.CombinedOutput(); err != nil {
		t.Fatalf("make a release: %v\n%s", err, said)
	}
	return out
}

func TestRelease_FitsTogether(t *testing.T) {
	out := release(t)
	one := readPlatform(t, out)
	archive := filepath.Base(one.URI)
	if sum := sumOf(t, filepath.Join(out, archive)); sum != one.SHA256 {
		t.Errorf("the archive is %s, and the manifest says %s", sum, one.SHA256)
	}
	checkSums(t, out, archive)
	checkArchive(t, filepath.Join(out, archive), one.Bin)
}

// readPlatform returns the one platform of a manifest that krew takes.
func readPlatform(t *testing.T, out string) platform {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(out, "heliostat.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	var made plugin
	if err := yaml.UnmarshalStrict(text, &made); err != nil {
		t.Fatal(err)
	}
	if made.APIVersion != "krew.googlecontainertools.github.com/v1alpha2" || made.Kind != "Plugin" || made.Metadata.Name != "heliostat" ||
		made.Spec.Version != version || made.Spec.Homepage == "" || made.Spec.Description == "" || len(made.Spec.Platforms) != 1 {
		t.Fatalf("krew would refuse %+v", made)
	}
	if short := made.Spec.ShortDescription; short == "" || len(short) > 50 {
		t.Errorf("krew takes up to 50 characters as a short description, and this is %q", short)
	}
	one := made.Spec.Platforms[0]
	if one.Selector.MatchLabels.OS != runtime.GOOS || one.Selector.MatchLabels.Arch != runtime.GOARCH || !strings.HasPrefix(one.URI, "https://") {
		t.Errorf("the platform is %+v", one)
	}
	return one
}

// checkSums compares the list of checksums with the files.
func checkSums(t *testing.T, out, archive string) {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(out, "checksums.txt"))
	if err != nil {
		t.Fatal(err)
	}
	var want strings.Builder
	for _, name := range []string{archive, "heliostat.yaml"} {
		want.WriteString(sumOf(t, filepath.Join(out, name)) + "  " + name + "\n")
	}
	if string(text) != want.String() {
		t.Errorf("the checksums are\n%s, want\n%s", text, want.String())
	}
}

func sumOf(t *testing.T, file string) string {
	t.Helper()
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	sum := sha256.Sum256(text)
	return hex.EncodeToString(sum[:])
}

// checkArchive looks at what is in an archive, and runs its program.
func checkArchive(t *testing.T, file, program string) {
	t.Helper()
	opened, err := os.Open(file)
	if err != nil {
		t.Fatal(err)
	}
	defer opened.Close()
	packed, err := gzip.NewReader(opened)
	if err != nil {
		t.Fatal(err)
	}
	if !packed.ModTime.IsZero() {
		t.Errorf("the archive has the time %s", packed.ModTime)
	}
	var names []string
	unpacked := filepath.Join(t.TempDir(), program)
	for reader := tar.NewReader(packed); ; {
		header, err := reader.Next()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			t.Fatal(err)
		}
		names = append(names, strings.TrimPrefix(header.Name, "./"))
		if header.Uid != 0 || header.Gid != 0 || header.Uname != "" || header.ModTime.Nanosecond() != 0 {
			t.Errorf("%s says who packed it, and when: %+v", header.Name, header)
		}
		if header.Name == "./"+program {
			unpack(t, unpacked, reader)
		}
	}
	if !slices.IsSorted(names) {
		t.Errorf("the files stand in the order of a disk: %q", names)
	}
	for _, name := range []string{program, "LICENSE", "man/heliostat.1", "man/heliostat-job-submit.1"} {
		if !slices.Contains(names, name) {
			t.Errorf("the archive lacks %s: %q", name, names)
		}
	}
	checkProgram(t, unpacked)
}

func unpack(t *testing.T, file string, from io.Reader) {
	t.Helper()
	text, err := io.ReadAll(from)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(file, text, 0o700); err != nil {
		t.Fatal(err)
	}
}

// checkProgram runs a program, and looks for paths of this machine in it and in how it was built.
func checkProgram(t *testing.T, program string) {
	t.Helper()
	if said, err := exec.CommandContext(t.Context(), program, "--help").CombinedOutput(); err != nil || !strings.Contains(string(said), "job") {
		t.Errorf("the program says %s: %v", said, err)
	}
	said, err := exec.CommandContext(t.Context(), program, "version", "--client", "-o", "jsonpath={.program}").Output()
	if err != nil || strings.TrimSpace(string(said)) != version {
		t.Errorf("the program is of version %q: %v", said, err)
	}
	built, err := exec.CommandContext(t.Context(), "go", "version", "-m", program).Output()
	if err != nil {
		t.Fatal(err)
	}
	_, settings, _ := strings.Cut(string(built), "\n") // the first line is where it lies
	if !strings.Contains(settings, "-trimpath=true") || regexp.MustCompile(`[ =]/(root|home|tmp)/`).MatchString(settings) {
		t.Errorf("it was built with\n%s", settings)
	}
	text, err := os.ReadFile(program)
	if err != nil {
		t.Fatal(err)
	}
	for _, directory := range directories(t) {
		if at := bytes.Index(text, []byte(directory)); at >= 0 {
			t.Errorf("it holds a path of this machine: %q", text[at:min(at+200, len(text))])
		}
	}
}

// directories returns those of this machine that a build reads sources from: the repository, modules and Go itself.
func directories(t *testing.T) []string {
	t.Helper()
	root, err := filepath.Abs("../..")
	if err != nil {
		t.Fatal(err)
	}
	said, err := exec.CommandContext(t.Context(), "go", "env", "GOMODCACHE", "GOROOT").Output()
	if err != nil {
		t.Fatal(err)
	}
	return append(strings.Fields(string(said)), root)
}

func TestRelease_RefusesWhatIsNoVersion(t *testing.T) {
	command := exec.CommandContext(t.Context(), "../../hack/tools/release.sh", t.TempDir())
	command.Env = append(os.Environ(), "VERSION=0.1")
	if said, err := command.CombinedOutput(); err == nil || !strings.Contains(string(said), "give one such as v0.1.0") {
		t.Errorf("it says %s: %v", said, err)
	}
}
