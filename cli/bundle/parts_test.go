package bundle

import (
	"runtime"
	"slices"
	"strings"
	"testing"
)

// TestRedactor_FindsPartsOfSecrets looks in a log for values that a Secret has within a larger one.
func TestRedactor_FindsPartsOfSecrets(t *testing.T) {
	for name, c := range map[string]struct {
		secret string
		parts  []string
	}{
		"variables":             {"A=canary1\nexport B_2=canary2\r\n# C=note\n", []string{"canary1", "canary2"}},
		"variables in quotes":   {`A="canary 1\"\n" ` + "\nB='canary 2' # why\nC=\"canary3", []string{`canary 1"`, "canary 2", "canary3"}},
		"a comment":             {"A=canary1 # why", []string{"canary1"}},
		"INI":                   {"[default]\naws_access_key_id = canary1\naws_secret_access_key = canary2/+=\n", []string{"canary1", "canary2/+="}},
		"JSON":                  {`{"a": {"b": ["canary1", 123456789]}, "c": "canary2\u0021"}`, []string{"canary1", "123456789", "canary2!"}},
		"YAML":                  {"a:\n  b: canary1\n  c:\n  - 'canary2: x'\nd: >\n  canary3\n  ends\n", []string{"canary1", "canary2: x", "canary3 ends"}},
		"several documents":     {"---\na: canary1\n--- # the next\n- b: canary2\n---\r\nc: canary3\r\n--- {d: canary4}\n...\n", []string{"canary1", "canary2", "canary3", "canary4"}},
		"one is no YAML":        {"a: canary1\n---\nb: [\n---\nc: canary2\n", []string{"canary1", "canary2"}},
		"an address":            {"postgres://anna:canary1@db.example.com:5432/sales", []string{"canary1"}},
		"an escaped address":    {"redis://:canary%2F1@redis:6379", []string{"canary/1", "canary%2F1"}},
		"an address of another": {"A=1\nURL=\"https://anna:canary1@example.com/\"", []string{"canary1"}},
		"an address in JSON":    {`{"url": "amqp://anna:canary1@rabbit"}`, []string{"canary1"}},
		"JSON in a variable":    {`CONFIG='{"token": "canary1"}'`, []string{"canary1"}},
	} {
		t.Run(name, func(t *testing.T) {
			r := &redactor{}
			r.addSecret(c.secret)
			for _, part := range c.parts {
				if clean := r.clean("it says <" + part + ">"); clean != "it says <"+leftOut+">" {
					t.Errorf("of %q it leaves %q", part, clean)
				}
			}
			if clean := r.clean(c.secret); strings.Contains(clean, "canary") {
				t.Errorf("of the whole it leaves %q", clean)
			}
		})
	}
}

// TestPartsOf_FindsPartsBesideABomb: who writes anchors without end into a Secret stops no bundle, and hides nothing.
func TestPartsOf_FindsPartsBesideABomb(t *testing.T) {
	bomb := "key: canary-1\nagain: &a " + strings.Repeat("x", 64<<10) + "\nall: [" + strings.Repeat("*a,", 20_000) + "*a]\nlast: {deep: canary-2}\n"
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	parts := partsOf(bomb)
	runtime.ReadMemStats(&after)
	for _, want := range []string{"canary-1", "canary-2"} {
		if !slices.Contains(parts, want) {
			t.Errorf("%s is not found", want)
		}
	}
	if took := (after.TotalAlloc - before.TotalAlloc) >> 20; took > 128 {
		t.Errorf("%d KiB take %d MiB", len(bomb)>>10, took)
	}
}

func TestPartsOf_FindsNoneInPlainValues(t *testing.T) {
	for _, plain := range []string{"", "hunter2-and-more", "a: b: c", "-----BEGIN KEY-----\nY2FuYXJ5+aaaa/=\n-----END KEY-----\n", "Y2FuYXJ5MQ==",
		"https://example.com/path", "\x00\xff", "# only a note", "%zz://a:b@c", "A=", "12345678"} {
		for _, part := range partsOf(plain) {
			if len(part) >= shortest && part != plain {
				t.Errorf("%q has a part %q", plain, part)
			}
		}
	}
}

func FuzzPartsOf(f *testing.F) {
	for _, seed := range []string{"A=b", `{"a": "b"}`, "a: &x [1]\nb: *x", "http://a:b@c", "A='", "A=\"", "? {a: b}: c"} {
		f.Add(seed)
	}
	f.Fuzz(func(_ *testing.T, value string) {
		r := &redactor{}
		r.addSecret(value)
		r.clean(value)
	})
}
