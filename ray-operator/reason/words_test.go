package reason_test

import (
	"bytes"
	"errors"
	"strings"
	"testing"
	"unicode"

	"pgregory.net/rapid"

	"github.com/heliostat-dev/heliostat/ray-operator/reason"
)

// TestOf_TakesAnyWords: whatever others say, a status and a terminal can hold it.
func TestOf_TakesAnyWords(t *testing.T) {
	catalogue := reason.Catalogue()
	word := rapid.OneOf(rapid.String(), rapid.SampledFrom([]string{
		strings.Repeat("x", 1<<20), strings.Repeat("ä", 1<<12), "\x1b[2J\x1b[31mred", "a\nb\r\x00", "\xff\xfe", strings.Repeat("€", 171),
	}))
	rapid.Check(t, func(t *rapid.T) {
		entry := rapid.SampledFrom(catalogue).Draw(t, "reason")
		if len(entry.Cases) > 0 {
			entry = entry.In(rapid.SampledFrom(entry.Cases).Draw(t, "case").Kind)
		}
		finding := entry.Of(values(t, entry, word)...)
		if len(finding.Text) > 1<<10 {
			t.Fatalf("%s: %d bytes", entry.Code, len(finding.Text))
		}
		for _, char := range finding.Text {
			if !unicode.IsPrint(char) || char == unicode.ReplacementChar {
				t.Fatalf("%s: %q is not printable", entry.Code, char)
			}
		}
		if strings.Contains(finding.Text, "%!") && !strings.Contains(entry.Message, "%!") {
			t.Fatalf("%s: a value does not fit its verb: %s", entry.Code, finding.Text)
		}
	})
}

// values are one for each verb of the message and the remedy: numbers, words, errors and commands.
func values(t *rapid.T, entry reason.Reason, word *rapid.Generator[string]) []any {
	var all []any
	format := entry.Message + entry.Remedy
	for at := strings.Index(format, "%"); at >= 0; at = strings.Index(format, "%") {
		switch words := strings.ReplaceAll(word.Draw(t, "word"), "%!", ""); {
		case format[at+1] == 'd':
			all = append(all, rapid.Int().Draw(t, "number"))
		case rapid.Bool().Draw(t, "is an error"):
			all = append(all, errors.New(words))
		case rapid.Bool().Draw(t, "is a command"):
			all = append(all, reason.Command(words))
		default:
			all = append(all, words)
		}
		format = format[at+2:]
	}
	return all
}

// TestOf_KeepsWhatFits: words of ordinary length stay as they are, and of a cut one the beginning.
func TestOf_KeepsWhatFits(t *testing.T) {
	name := strings.Repeat("n", 500)
	if text := reason.NameConflict.Of(name).Text; !strings.HasPrefix(text, name+" exists") {
		t.Errorf("%s", text)
	}
	if text := reason.NameConflict.Of(name + name).Text; !strings.HasPrefix(text, strings.Repeat("n", 200)) || !strings.Contains(text, "… exists") {
		t.Errorf("%s", text)
	}
}

// TestOf_CutsByBytes: of what is longer than allowed the beginning is kept, with a mark that has three bytes.
func TestOf_CutsByBytes(t *testing.T) {
	of := func(n int) string { return strings.Repeat("x", n) }
	for name, test := range map[string]struct {
		message string
		values  []any
		want    string
	}{
		"keeps a value of 512":                   {"%s", []any{of(512)}, of(512)},
		"cuts a value of 513":                    {"%s", []any{of(513)}, of(509) + "…"},
		"keeps a command of 600":                 {"%s", []any{reason.Command(of(600))}, of(600)},
		"cuts a command of 601":                  {"%s", []any{reason.Command(of(601))}, of(597) + "…"},
		"keeps a text of 1024":                   {"%s%s", []any{of(512), of(512)}, of(1024)},
		"halves the values of a text of 1025":    {"%s%s.", []any{of(512), of(512)}, of(253) + "…" + of(253) + "…."},
		"keeps 64 of a value in any text":        {of(1024) + "%s", []any{of(512)}, of(1024+61) + "…"},
		"keeps 192 of a command in any text":     {of(1024) + "%s", []any{reason.Command(of(600))}, of(1024+189) + "…"},
		"keeps the last character":               {"%s", []any{of(507) + "ä" + of(9)}, of(507) + "ä…"},
		"keeps no half of a character":           {"%s", []any{of(508) + "ä" + of(9)}, of(508) + "…"},
		"cuts what can say itself":               {"%s", []any{bytes.NewBufferString(of(513))}, of(509) + "…"},
		"has a blank for each that never prints": {"%s", []any{"a\nb\xffc\ufffdd"}, "a b c d"},
	} {
		if have := (reason.Reason{Code: "A", Message: test.message}).Of(test.values...).Text; have != test.want {
			t.Errorf("%s: it has %d bytes: %s", name, len(have), have)
		}
	}
}
