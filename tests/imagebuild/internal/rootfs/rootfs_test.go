package rootfs

import (
	"os"
	"path/filepath"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

func write(t *testing.T, path, text string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
}

func setTime(t *testing.T, path string, to time.Time) {
	t.Helper()
	at := unix.NsecToTimespec(to.UnixNano())
	if err := unix.UtimesNanoAt(unix.AT_FDCWD, path, []unix.Timespec{at, at}, unix.AT_SYMLINK_NOFOLLOW); err != nil {
		t.Fatal(err)
	}
}

func TestSettleKeepsEarlierTimes(t *testing.T) {
	root := Root{Dir: t.TempDir()}
	path := func(name string) string { return filepath.Join(root.Dir, name) }
	then := time.Date(2001, 2, 3, 4, 5, 6, 0, time.UTC)
	later := epoch.AddDate(1, 0, 0)
	write(t, path("old"), "")
	write(t, path("fresh"), "")
	if err := os.Symlink("nowhere", path("link")); err != nil {
		t.Fatal(err)
	}
	setTime(t, path("old"), then)
	for _, name := range []string{"fresh", "link", ""} {
		setTime(t, path(name), later)
	}
	if err := root.Settle(); err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]time.Time{"old": then, "fresh": epoch, "link": epoch, "": epoch} {
		file, err := os.Lstat(path(name))
		if err != nil {
			t.Fatal(err)
		}
		if got := file.ModTime(); !got.Equal(want) {
			t.Errorf("time of %q = %v, want %v", name, got, want)
		}
	}
}

func TestAdoptPythonPlacesScriptsAndPackages(t *testing.T) {
	base := t.TempDir()
	root := Root{Dir: filepath.Join(base, "root"), Release: Bookworm}
	for _, dir := range []string{"usr/local/bin", Bookworm.PythonPackages()} {
		if err := os.MkdirAll(filepath.Join(root.Dir, dir), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	target := filepath.Join(base, "python")
	write(t, filepath.Join(target, "bin", "ray"), "#!/usr/bin/python3\n")
	write(t, filepath.Join(target, "ray", "__init__.py"), "")
	if err := root.AdoptPython(target); err != nil {
		t.Fatal(err)
	}
	for _, path := range []string{"usr/local/bin/ray", Bookworm.PythonPackages() + "/ray/__init__.py"} {
		if _, err := os.Stat(filepath.Join(root.Dir, path)); err != nil {
			t.Error(err)
		}
	}
	if _, err := os.Stat(filepath.Join(root.Dir, Bookworm.PythonPackages(), "bin")); !os.IsNotExist(err) {
		t.Errorf("console scripts are among the packages: %v", err)
	}
}

func TestAdoptPythonRefusesToReplacePackages(t *testing.T) {
	base := t.TempDir()
	root := Root{Dir: filepath.Join(base, "root"), Release: Bookworm}
	there := filepath.Join(root.Dir, Bookworm.PythonPackages(), "numpy", "__init__.py")
	write(t, there, "")
	target := filepath.Join(base, "python")
	write(t, filepath.Join(target, "ray", "__init__.py"), "")
	if err := root.AdoptPython(target); err == nil {
		t.Error("AdoptPython replaced packages that were there")
	}
	if _, err := os.Stat(there); err != nil {
		t.Error(err)
	}
}

func TestLastLines(t *testing.T) {
	if got, want := lastLines("a\nb\nc\n", 2), "b\nc"; got != want {
		t.Errorf("lastLines = %q, want %q", got, want)
	}
	if got := lastLines("a\n", 2); got != "a" {
		t.Errorf("lastLines = %q, want a", got)
	}
}
