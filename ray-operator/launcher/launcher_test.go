package launcher_test

import (
	"archive/zip"
	"bytes"
	"encoding/json"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/heliostat-dev/heliostat/ray-operator/launcher"
)

// example is the description of the design page.
func example() launcher.Description {
	return launcher.Description{
		Job: "train", UID: "6f0c…", Attempt: 2, Submission: "train-…",
		Framework: "PyTorch", Placement: "Pack", Output: "First",
		GraceSeconds: 30, GatherSeconds: 600, MinReplicasAfterSeconds: 300, MaxRestarts: 10, LossesLeft: 20,
		RetryOnExitCodes: launcher.ExitCodes{In: []int32{1, 2}},
		Env:              []launcher.EnvVar{{Name: "A", Value: "$(worker.addresses)"}},
		Roles: []launcher.Role{{
			Name: "worker", Replicas: 4, MinReplicas: 2, Processes: 1, Start: "PerProcess",
			Resources:     map[string]float64{"CPU": 4, "GPU": 1, "memory": 1 << 30},
			LabelSelector: map[string]string{"ray.io/node-group": "gpu"},
			Command:       []string{"python", "train.py"}, Success: "All",
		}},
	}
}

// onPage returns a block of JSON of the design page, the one that has a text.
func onPage(t *testing.T, text string) []byte {
	t.Helper()
	page, err := os.ReadFile("../../docs/design/gangs.md")
	if err != nil {
		t.Fatal(err)
	}
	for _, block := range strings.Split(string(page), "```json\n")[1:] {
		if block, _, _ = strings.Cut(block, "```"); strings.Contains(block, text) {
			return []byte(block)
		}
	}
	t.Fatalf("docs/design/gangs.md has no JSON with %s", text)
	return nil
}

// unpacked returns the files of an archive, and asserts that each is in the module.
func unpacked(t *testing.T, archive []byte) map[string]string {
	t.Helper()
	reader, err := zip.NewReader(bytes.NewReader(archive), int64(len(archive)))
	if err != nil {
		t.Fatal(err)
	}
	files := map[string]string{}
	for _, file := range reader.File {
		name, is := strings.CutPrefix(file.Name, launcher.Module+"/")
		if !is || strings.Contains(name, "/") {
			t.Errorf("it has %s", file.Name)
		}
		content, err := file.Open()
		if err != nil {
			t.Fatal(err)
		}
		text, err := io.ReadAll(content)
		if err != nil {
			t.Fatal(err)
		}
		files[name] = string(text)
	}
	return files
}

func packed(t *testing.T, d launcher.Description) (name string, archive []byte) {
	t.Helper()
	name, archive, err := launcher.Package(d)
	if err != nil {
		t.Fatal(err)
	}
	return name, archive
}

func TestPackage_HasTheDescriptionOfTheDesign(t *testing.T) {
	_, archive := packed(t, example())
	var got, want any
	if err := json.Unmarshal([]byte(unpacked(t, archive)["description.json"]), &got); err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(onPage(t, `"framework"`), &want); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("the description differs from that of docs/design/gangs.md: %s", diff)
	}
}

// TestPackage_WritesEmptyListsOut: the launcher has no default of its own.
func TestPackage_WritesEmptyListsOut(t *testing.T) {
	for name, d := range map[string]launcher.Description{"without roles": {}, "with an empty role": {Roles: []launcher.Role{{}}}} {
		_, archive := packed(t, d)
		if text := unpacked(t, archive)["description.json"]; strings.Contains(text, "null") {
			t.Errorf("%s: %s", name, text)
		}
	}
}

func TestPackage_HasEachFileOfTheModule(t *testing.T) {
	_, archive := packed(t, example())
	files := unpacked(t, archive)
	code, err := filepath.Glob(launcher.Module + "/*.py")
	if err != nil || len(code) == 0 {
		t.Fatalf("the module has %v, %v", code, err)
	}
	for _, path := range code {
		want, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		if got, is := files[filepath.Base(path)]; !is || got != string(want) {
			t.Errorf("%s is not as it was written", path)
		}
	}
	if len(files) != len(code)+1 {
		t.Errorf("it has %d files beside %d of code", len(files)-len(code), len(code))
	}
	if len(archive) > 256<<10 {
		t.Errorf("it has %d bytes", len(archive))
	}
}

func TestPackage_IsNamedByItsContent(t *testing.T) {
	name, archive := packed(t, example())
	if again, same := packed(t, example()); again != name || !bytes.Equal(same, archive) {
		t.Errorf("the same description is packed as %s and %s", name, again)
	}
	if !strings.HasPrefix(name, "heliostat-gang-") || !strings.HasSuffix(name, ".zip") || len(name) != 51 {
		t.Errorf("its name is %s", name)
	}
	other := example()
	other.Attempt++
	if again, _ := packed(t, other); again == name {
		t.Errorf("two attempts have one name: %s", name)
	}
}

func TestPackage_IsBounded(t *testing.T) {
	d := example()
	d.Roles[0].Entrypoint = strings.Repeat("x", launcher.MaxDescription)
	if _, _, err := launcher.Package(d); err == nil || !strings.Contains(err.Error(), "train-") {
		t.Errorf("%v", err)
	}
}

// TestPackage_TakesAllThatTheRulesAccept: no attempt is bound for which there is no package.
func TestPackage_TakesAllThatTheRulesAccept(t *testing.T) {
	d := example()
	d.Env[0].Value = strings.Repeat("<", 64<<10)
	d.Roles[0].Command, d.Roles[0].Entrypoint = nil, strings.Repeat("<", 256<<10)
	if _, _, err := launcher.Package(d); err != nil {
		t.Error(err)
	}
}

// TestPackage_ChangesNoDescription, whose roles are the caller's.
func TestPackage_ChangesNoDescription(t *testing.T) {
	d := launcher.Description{Roles: []launcher.Role{{Name: "a"}}}
	roles := slices.Clone(d.Roles)
	packed(t, d)
	if diff := cmp.Diff(roles, d.Roles); diff != "" {
		t.Error(diff)
	}
}
