package live

import (
	"os"
	"path/filepath"
	"testing"
)

func TestAMarkInALineThatIsBeingWritten(t *testing.T) {
	log := AuditLog(filepath.Join(t.TempDir(), "audit.log"))
	put := func(text string) {
		file, err := os.OpenFile(string(log), os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
		if err == nil {
			_, err = file.WriteString(text)
		}
		if err == nil {
			err = file.Close()
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	var marks []Mark
	for _, text := range []string{"", "a\n", "b", "b\nc\nd"} {
		put(text)
		mark, err := log.Now()
		if err != nil {
			t.Fatal(err)
		}
		marks = append(marks, mark)
	}
	for i, want := range []string{"a\nbb\nc\n", "bb\nc\n", "c\n", ""} {
		got := ""
		if err := log.Since(marks[i], func(line []byte) error { got += string(line); return nil }); err != nil {
			t.Fatal(err)
		}
		if got != want {
			t.Errorf("after mark %d: %q, want %q", i, got, want)
		}
	}
}
