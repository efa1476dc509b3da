package session

import (
	"bytes"
	"errors"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	testingclock "k8s.io/utils/clock/testing"
)

// Keys of tests.
var (
	oldKey   = strings.Repeat("o", minKey)
	newKey   = strings.Repeat("n", minKey)
	otherKey = strings.Repeat("x", minKey)
)

// writeKeys writes a file as it is since some time.
func writeKeys(t testing.TB, file, text string, since time.Time) {
	t.Helper()
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Chtimes(file, since, since); err != nil {
		t.Fatal(err)
	}
}

// readKeys returns the keys of a file that is an hour old at noon.
func readKeys(t testing.TB, text string) (*Keys, *testingclock.FakePassiveClock, string) {
	t.Helper()
	file, now := filepath.Join(t.TempDir(), "keys"), testingclock.NewFakePassiveClock(noon)
	writeKeys(t, file, text, noon.Add(-time.Hour))
	keys, err := ReadKeys(file, now, slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	return keys, now, file
}

func TestKeys_OpenWhatTheySealed(t *testing.T) {
	keys, _, _ := readKeys(t, newKey+"\n\n"+oldKey+"\n")
	former, _, _ := readKeys(t, oldKey)
	stranger, _, _ := readKeys(t, otherKey)
	text := keys.Seal("a purpose", []byte("text"))
	of := func(change func(letters []byte)) string {
		letters := []byte(text)
		change(letters)
		return string(letters)
	}
	for name, row := range map[string]struct {
		keys          *Keys
		purpose, text string
		want          string
	}{
		"the same":                             {keys, "a purpose", text, "text"},
		"one that was sealed by the former":    {keys, "p", former.Seal("p", []byte("f")), "f"},
		"none by the new key for a former one": {former, "a purpose", text, ""},
		"none of a stranger":                   {keys, "p", stranger.Seal("p", []byte("s")), ""},
		"none for another purpose":             {keys, "a purposf", text, ""},
		"none of a version to come":            {keys, "a purpose", of(func(l []byte) { l[1]++ }), ""},
		"none with another nonce":              {keys, "a purpose", of(func(l []byte) { l[5] ^= 1 }), ""},
		"none with other bytes":                {keys, "a purpose", of(func(l []byte) { l[len(l)-8] ^= 1 }), ""},
		"none that is cut":                     {keys, "a purpose", text[:len(text)-4], ""},
		"none that is empty":                   {keys, "a purpose", "", ""},
		"none that is no base64":               {keys, "a purpose", text + "=", ""},
	} {
		got, err := row.keys.Open(row.purpose, row.text)
		if string(got) != row.want || (err == nil) != (row.want != "") || err != nil && !errors.Is(err, ErrBroken) {
			t.Errorf("%s: %q, %v", name, got, err)
		}
	}
	if keys.Seal("p", nil) == keys.Seal("p", nil) {
		t.Error("the same is sealed the same way twice")
	}
}

// TestKeys_AreReadAgain: a new key opens at once, and seals when each replica had time to read it.
func TestKeys_AreReadAgain(t *testing.T) {
	keys, now, file := readKeys(t, oldKey)
	former, _, _ := readKeys(t, oldKey)
	next, _, _ := readKeys(t, newKey)
	isSealedFor := func(other *Keys) bool {
		_, err := other.Open("p", keys.Seal("p", []byte("x")))
		return err == nil
	}
	now.SetTime(noon.Add(time.Minute))
	writeKeys(t, file, newKey+"\n"+oldKey, noon.Add(time.Minute))
	if _, err := keys.Open("p", next.Seal("p", []byte("x"))); err != nil {
		t.Errorf("a new key does not open at once: %v", err)
	}
	if !isSealedFor(former) {
		t.Error("a new key seals before each replica has it")
	}
	now.SetTime(noon.Add(time.Minute + settle))
	if isSealedFor(former) || !isSealedFor(next) {
		t.Error("the new key does not seal")
	}
	if _, err := keys.Open("p", former.Seal("p", []byte("x"))); err != nil {
		t.Errorf("the previous key does not open: %v", err)
	}
	now.SetTime(noon.Add(time.Hour))
	writeKeys(t, file, newKey, noon.Add(time.Hour))
	if _, err := keys.Open("p", former.Seal("p", []byte("x"))); err == nil {
		t.Error("a key that is gone opens")
	}
}

func TestKeys_HoldWhereTheFileTurnsBad(t *testing.T) {
	keys, now, file := readKeys(t, oldKey)
	log := &bytes.Buffer{}
	keys.log = slog.New(slog.NewTextHandler(log, nil))
	text := keys.Seal("p", []byte("x"))
	now.SetTime(noon.Add(time.Minute))
	writeKeys(t, file, "short", noon.Add(time.Minute))
	if _, err := keys.Open("p", text); err != nil || !strings.Contains(log.String(), "fewer than 32 bytes") {
		t.Errorf("with a bad file: %v, %s", err, log)
	}
	if strings.Contains(log.String(), "short\n") {
		t.Errorf("the log shows a key: %s", log)
	}
}

func TestReadKeys_RefusesWhatIsBad(t *testing.T) {
	for name, row := range map[string]struct{ text, want string }{
		"nothing":       {"\n\n", "no key"},
		"a short key":   {newKey + "\n" + newKey[1:], "key 2 has fewer than 32 bytes"},
		"too many":      {strings.Repeat(newKey+"\n", maxKeys+1), "more than 4"},
		"another file":  {strings.Repeat(newKey+"\n", 1000), "more than 16384 bytes"},
		"no file there": {"", "no such file"},
	} {
		file := filepath.Join(t.TempDir(), "keys")
		if row.text != "" {
			writeKeys(t, file, row.text, noon)
		}
		_, err := ReadKeys(file, testingclock.NewFakePassiveClock(noon), slog.New(slog.DiscardHandler))
		if err == nil || !strings.Contains(err.Error(), row.want) {
			t.Errorf("%s: %v, want %q", name, err, row.want)
		}
	}
}
