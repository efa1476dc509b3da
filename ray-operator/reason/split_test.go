package reason_test

import (
	"regexp"
	"strings"
	"testing"
	"unicode/utf8"

	"pgregory.net/rapid"

	"github.com/heliostat-dev/heliostat/ray-operator/reason"
)

// TestSplit: a text that the catalogue made comes apart, and any other is all message.
func TestSplit(t *testing.T) {
	const (
		conflict = "Service a exists and does not belong to this cluster"
		rename   = "Delete it if it is not needed, or create the cluster under another name"
		damaged  = "the annotation heliostat.dev/record cannot be read: b"
		remove   = "Remove the annotation; it is restored from the status. Running pods stay as they are"
		gone     = "Ray no longer knows the job a: it was deleted there. How it ended is unknown"
		again    = "Set retry to retry after such a loss, if the job may run twice"
		outdated = "-1 of 20 pods were built from an earlier spec: a"
		follow   = "Delete them at a convenient time; their replacements use the current spec"
		grows    = "Raise memory in size: /dev/shm grows with it"
	)
	for name, test := range map[string]struct{ code, message, remedy string }{
		"a remedy":                        {"NameConflict", conflict, rename},
		"what it is about in front":       {"NameConflict", "head pod b: " + conflict, rename},
		"a message of two sentences":      {"RunNotFound", gone, again},
		"a remedy of two sentences":       {"RecordDamaged", damaged, remove},
		"the remedy of a case":            {"VolumeNotReady", "a", "Create b, or correct the volume in the template"},
		"a remedy of cases alone":         {"Evicted", "was evicted from node a: b", grows},
		"no remedy beside those of cases": {"Evicted", "was evicted from node a: b", ""},
		"numbers":                         {"PodsOutdated", outdated, follow},
		"no number where one must be":     {"PodsOutdated", strings.TrimPrefix(outdated, "-1") + ". " + follow, ""},
		"several lines":                   {"NameConflict", "a\nb: " + conflict, rename},
		"what is no UTF-8":                {"NameConflict", "\xff: " + conflict, rename},
		"a reason without remedies":       {"AllReady", "head and 2 of 3 workers are ready", ""},
		"a seam and no remedy":            {"AllReady", "head and 2 of 3 workers are ready. ", ""},
		"a remedy for none":               {"AllReady", "head and 2 of 3 workers are ready. " + rename, ""},
		"a remedy that was cut":           {"NameConflict", conflict + ". " + rename[:9] + "…", ""},
		"a message that was cut":          {"RunNotFound", "…" + gone[9:] + ". " + again, ""},
		"words in front without a colon":  {"RunNotFound", "that " + gone + ". " + again, ""},
		"words behind":                    {"NameConflict", conflict + ". " + rename + ".", ""},
		"another message":                 {"NameConflict", "Service a is taken. " + rename, ""},
		"another remedy":                  {"NameConflict", conflict + ". Wait", ""},
		"another letter than a dot":       {"RecordDamaged", strings.Replace(damaged, ".", "-", 1) + ". " + remove, ""},
		"another seam":                    {"NameConflict", conflict + ", " + rename, ""},
		"the text of another code":        {"TokenMissing", conflict + ". " + rename, ""},
		"a code that is not there":        {"Unheard", conflict + ". " + rename, ""},
		"nothing":                         {"NameConflict", "", ""},
	} {
		text := test.message
		if test.remedy != "" {
			text += ". " + test.remedy
		}
		if message, remedy := reason.Split(test.code, text); message != test.message || remedy != test.remedy {
			t.Errorf("%s: %q and %q, want %q and %q", name, message, remedy, test.message, test.remedy)
		}
	}
}

// entries are the reasons of the catalogue, each as it is and with the remedy of each of its cases.
func entries() []reason.Reason {
	var all []reason.Reason
	for _, entry := range reason.Catalogue() {
		all = append(all, entry)
		for _, c := range entry.Cases {
			all = append(all, entry.In(c.Kind))
		}
	}
	return all
}

// mark begins the remedy of a twin. No value holds it, because it is not printable.
const mark = "\x01"

// comesApart fails where Split does not give the message and the remedy that the text was made of. Where they begin
// shows a twin of the reason whose remedy begins with the mark: it is as long, so its values are as short.
func comesApart(t interface{ Fatalf(string, ...any) }, entry reason.Reason, values []any) {
	finding := entry.Of(values...)
	wantMessage, wantRemedy := finding.Text, ""
	if entry.Remedy != "" {
		twin := entry
		twin.Remedy = mark + entry.Remedy[1:]
		at := strings.Index(twin.Of(values...).Text, mark)
		wantMessage, wantRemedy = finding.Text[:at-len(". ")], finding.Text[at:]
	}
	for _, subject := range []string{"", "3 of 8 workers of gpu: ", "ComputeCluster a: head pod a-head-b: "} {
		message, remedy := reason.Split(finding.Code, subject+finding.Text)
		if message != subject+wantMessage || remedy != wantRemedy {
			t.Fatalf("%s: %q comes apart to\n%q and\n%q, want %q", entry.Code, subject+finding.Text, message, remedy, wantRemedy)
		}
	}
}

// imitations are values that look like the seam, the remedies or whole texts of a reason, or like parts of them.
func imitations(entry reason.Reason) []string {
	fill := strings.NewReplacer("%s", "a", "%d", "1").Replace
	all := []string{"", "a", ".", ". ", " ", ". a", "a.", "a. "}
	message := fill(entry.Message)
	for _, c := range append([]reason.Case{{Remedy: entry.Remedy}}, entry.Cases...) {
		text := ". " + fill(c.Remedy)
		half := len(text) / 2
		all = append(all, text, text[2:], text[:half], text[half:], text+text, text+".", "a"+text)
		all = append(all, message+text, message+text+". a")
	}
	return all
}

// TestSplit_UndoesOf: for every reason and case, whatever its values imitate.
func TestSplit_UndoesOf(t *testing.T) {
	for _, entry := range entries() {
		for _, word := range imitations(entry) {
			comesApart(t, entry, valuesOf(entry, func() (string, int) { return word, -1 }))
		}
	}
}

// TestSplit_UndoesOfAnyWords: the same for values that differ, are long, or do not print.
func TestSplit_UndoesOfAnyWords(t *testing.T) {
	all := entries()
	rapid.Check(t, func(t *rapid.T) {
		entry := rapid.SampledFrom(all).Draw(t, "reason")
		imitation := rapid.SampledFrom(imitations(entry))
		several := rapid.Map(rapid.SliceOfN(imitation, 1, 40), func(all []string) string { return strings.Join(all, "") })
		odd := rapid.SampledFrom([]string{strings.Repeat("a. ", 1<<10), "\xff. \x1b"})
		comesApart(t, entry, values(t, entry, rapid.OneOf(imitation, several, odd, rapid.String())))
	})
}

// valuesOf are one for each verb of the message and the remedy.
func valuesOf(entry reason.Reason, next func() (word string, number int)) []any {
	var all []any
	for _, verb := range regexp.MustCompile("%[sd]").FindAllString(entry.Message+entry.Remedy, -1) {
		if word, number := next(); verb == "%d" {
			all = append(all, number)
		} else {
			all = append(all, word)
		}
	}
	return all
}

// TestOf_KeepsSentences: only where a sentence begins like a remedy of the reason do values lose the ends of theirs.
func TestOf_KeepsSentences(t *testing.T) {
	const rest, other = ", or correct the volume in the template", "Check the events of the pod and its claims"
	for want, values := range map[string][]any{
		"a. Creates b. c.. Create d. e.":         {"a. Creates b. c.", "d. e."},
		"a. Delete or rename it, or. Create b. ": {"a. Delete or rename it, or", "b. "},
		"Create a. b. Create c":                  {"Create a. b", "c"},
		"a.b, c, . Create d, Create e,":          {"a.b. c. ", "d. Create e."},
		"a, " + other + ", b. Create c":          {"a. " + other + ". b", "c"},
	} {
		if have := reason.VolumeNotReady.In("missing").Of(values...).Text; have != want+rest {
			t.Errorf("%s, want %s", have, want+rest)
		}
	}
}

// FuzzSplit: no text stops it, its parts are the text, and a remedy is one of the code's. A text that was made of
// any words comes apart.
func FuzzSplit(f *testing.F) {
	all := entries()
	for i, entry := range all {
		f.Add(uint(i), entry.Of(valuesOf(entry, func() (string, int) { return "a", 1 })...).Text, ". "+entry.Remedy)
	}
	f.Fuzz(func(t *testing.T, at uint, one, other string) {
		entry := all[at%uint(len(all))]
		message, remedy := reason.Split(entry.Code, one)
		if remedy == "" && message != one || remedy != "" && message+". "+remedy != one {
			t.Fatalf("%q comes apart to %q and %q", one, message, remedy)
		}
		begins := func(format string) bool {
			opening, _, _ := strings.Cut(format, "%")
			return opening != "" && strings.HasPrefix(remedy, opening)
		}
		whole, _ := reason.Lookup(entry.Code)
		known := remedy == "" || begins(whole.Remedy)
		for _, c := range whole.Cases {
			known = known || begins(c.Remedy)
		}
		if !known {
			t.Fatalf("%s has no remedy %q", entry.Code, remedy)
		}
		words := []string{one, other}
		comesApart(t, entry, valuesOf(entry, func() (string, int) {
			words[0], words[1] = words[1], words[0]
			return words[0], utf8.RuneCountInString(words[0]) - 1
		}))
	})
}
