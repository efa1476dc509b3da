package pack

import (
	"archive/zip"
	"bytes"
	"errors"
	"io"
	"maps"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// tree makes a directory of files; a text that begins with -> is a link, and nil is an empty directory.
func tree(t *testing.T, files map[string][]byte) string {
	t.Helper()
	root := t.TempDir()
	for name, content := range files {
		at := filepath.Join(root, name)
		if content == nil {
			must(t, os.MkdirAll(at, 0o755))
			continue
		}
		must(t, os.MkdirAll(filepath.Dir(at), 0o755))
		if target, isLink := bytes.CutPrefix(content, []byte("->")); isLink {
			must(t, os.Symlink(string(target), at))
			continue
		}
		must(t, os.WriteFile(at, content, 0o644))
	}
	return root
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func texts(files map[string]string) map[string][]byte {
	all := map[string][]byte{}
	for name, text := range files {
		all[name] = []byte(text)
	}
	return all
}

// unpack returns what an archive holds.
func unpack(t *testing.T, archive []byte) map[string]string {
	t.Helper()
	reader, err := zip.NewReader(bytes.NewReader(archive), int64(len(archive)))
	must(t, err)
	all := map[string]string{}
	for _, file := range reader.File {
		from, err := file.Open()
		must(t, err)
		text, err := io.ReadAll(from)
		must(t, err)
		all[file.Name] = string(text)
	}
	return all
}

const plenty = 1 << 20

func TestPack_LeavesOutWhatIsExcluded(t *testing.T) {
	root := tree(t, texts(map[string]string{
		"train.py": "1", "lib/a.py": "2", "lib/__pycache__/a.pyc": "x", ".git/HEAD": "x", ".venv/bin": "x", "data.csv": "x",
		".gitignore": "*.log\n/data.csv\n", ".rayignore": "secret\n", "run.log": "x", "lib/run.log": "x", "lib/secret/key": "x",
		"lib/.gitignore": "b.py\n.*\n!.gitignore\n", "lib/b.py": "x", "b.py": "3", "lib/.cache": "x", "notes.md": "x",
		"link.py": "->lib/a.py", "lock": "->nothing",
	}))
	must(t, os.MkdirAll(filepath.Join(root, "out", "empty"), 0o755))
	packed, err := Pack(root, Options{Limit: plenty, Excludes: []string{"*.md"}})
	must(t, err)
	want := map[string]string{"train.py": "1", "lib/a.py": "2", "b.py": "3", "link.py": "2", "out/empty/": "", ".gitignore": "*.log\n/data.csv\n",
		".rayignore": "secret\n", "lib/.gitignore": "b.py\n.*\n!.gitignore\n"}
	if have := unpack(t, packed.Archive); !maps.Equal(have, want) {
		t.Errorf("it holds %v, want %v", have, want)
	}
	if packed.Files != 7 {
		t.Errorf("it has %d files, want 7", packed.Files)
	}
	packed, err = Pack(root, Options{Limit: plenty, Prefix: "code"})
	must(t, err)
	for name := range unpack(t, packed.Archive) {
		if !strings.HasPrefix(name, "code/") {
			t.Errorf("%s is not in the one directory", name)
		}
	}
}

// TestPack_NamesAsRayDoes has names that Ray 2.60 gave to the same directories.
func TestPack_NamesAsRayDoes(t *testing.T) {
	for name, files := range map[string]map[string][]byte{
		"3922764096301487": {"train.py": []byte("print(1)\n")},
		"f0f94a1c3ce9e1e0": {"train.py": []byte("print(1)\n"), "lib/a.py": []byte("a = 1\n"), "lib/b.log": []byte("x"), "empty": nil,
			".gitignore": []byte("*.log\nbuild/\n"), "build/x": []byte("x"), ".git/HEAD": []byte("x"), "grün.txt": []byte("ü")},
	} {
		packed, err := Pack(tree(t, files), Options{Limit: plenty})
		must(t, err)
		if packed.Name != "_ray_pkg_"+name+".zip" {
			t.Errorf("it is %s, want %s", packed.Name, name)
		}
	}
}

func TestPack_KeepsTheRightToExecute(t *testing.T) {
	root := tree(t, texts(map[string]string{"run.sh": "#!/bin/sh\n"}))
	must(t, os.Chmod(filepath.Join(root, "run.sh"), 0o755))
	packed, err := Pack(root, Options{Limit: plenty})
	must(t, err)
	reader, err := zip.NewReader(bytes.NewReader(packed.Archive), int64(len(packed.Archive)))
	must(t, err)
	if mode := reader.File[0].Mode(); mode.Perm() != 0o755 {
		t.Errorf("it has %v", mode)
	}
}

func TestPack_RefusesWhatCannotGo(t *testing.T) {
	outside := tree(t, texts(map[string]string{"secret": "x"}))
	for name, c := range map[string]struct {
		files map[string]string
		says  string
	}{
		"a link that leaves":             {map[string]string{"a": "1", "out": "->" + outside + "/secret"}, "out is a link that leaves the directory"},
		"a link to a directory outside":  {map[string]string{"a": "1", "b/out": "->" + outside}, "b/out is a link that leaves"},
		"a link upwards":                 {map[string]string{"a": "1", "b/out": "->../../x"}, "b/out is a link that leaves"},
		"a link in a circle":             {map[string]string{"a/b": "1", "a/c": "->../a"}, "a/c is a link to a directory that holds it"},
		"a link to the directory itself": {map[string]string{"a": "->."}, "a is a link to a directory that holds it"},
		"no file":                        {nil, "no file"},
		"no file that is not excluded":   {map[string]string{".git/HEAD": "x"}, "no file"},
		"a pattern that cannot be read":  {map[string]string{"a": "1", ".gitignore": "[z-a]\n"}, `.gitignore: read the pattern "[z-a]"`},
	} {
		t.Run(name, func(t *testing.T) {
			packed, err := Pack(tree(t, texts(c.files)), Options{Limit: plenty})
			if err == nil || !strings.Contains(err.Error(), c.says) {
				t.Errorf("%v, %v; want %q", packed, err, c.says)
			}
		})
	}
	if _, err := Pack(filepath.Join(outside, "nowhere"), Options{Limit: plenty}); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("a directory that is not there: %v", err)
	}
}

// TestPack_StopsAtTheLimit has archives of the limit and of one byte more.
func TestPack_StopsAtTheLimit(t *testing.T) {
	noise := make([]byte, 4000)
	for i := range noise {
		noise[i] = byte(rand.Uint32())
	}
	root := tree(t, map[string][]byte{"a": noise[:1000], "b": noise[:3000], "c": noise, "d": noise[:1], "e": noise[:2], "f": noise[:3]})
	packed, err := Pack(root, Options{Limit: plenty})
	must(t, err)
	size := len(packed.Archive)
	if _, err := Pack(root, Options{Limit: size}); err != nil {
		t.Errorf("an archive of the limit: %v", err)
	}
	_, err = Pack(root, Options{Limit: size - 1})
	var too *TooLarge
	if !errors.As(err, &too) {
		t.Fatalf("one byte more: %v", err)
	}
	want := []File{{"c", 4000}, {"b", 3000}, {"a", 1000}, {"f", 3}, {"e", 2}}
	if !slices.Equal(too.Largest, want) || too.Size != 8006 {
		t.Errorf("it is %d of %v", too.Size, too.Largest)
	}
	if !strings.HasPrefix(err.Error(), "it has 7.8 KiB") || !strings.Contains(err.Error(), "are c 3.9 KiB, b 2.9 KiB, a 1000 bytes") {
		t.Errorf("it says %q", err)
	}
}
