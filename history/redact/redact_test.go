package redact

import (
	"bytes"
	"encoding/json"
	"errors"
	"math/rand/v2"
	"strings"
	"testing"
)

const token = "s3cr3t-t0ken"

func redactor(t testing.TB, expressions ...string) *Redactor {
	t.Helper()
	r, err := New([]string{token}, expressions)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// whole redacts a file in one piece.
func whole(r *Redactor, text string) string {
	b := []byte(text)
	r.Redact(b, 0, 0, true)
	return string(b)
}

func TestRedact_ReplacesByAsManyAsterisks(t *testing.T) {
	stars := strings.Repeat("*", len(token))
	for name, test := range map[string]struct{ expressions, text, want string }{
		"nothing":                          {"", "hello\n", "hello\n"},
		"the token":                        {"", "a " + token + " b\n", "a " + stars + " b\n"},
		"twice, side by side":              {"", token + token, stars + stars},
		"in several lines":                 {"", token + "\n\n" + token + "\r" + token, stars + "\n\n" + stars + "\r" + stars},
		"not over the end of a line":       {"", token[:5] + "\n" + token[5:], token[:5] + "\n" + token[5:]},
		"an expression":                    {`AKIA[0-9A-Z]{4}`, "key AKIA1234 end\n", "key ******** end\n"},
		"an expression at a line's begin":  {`^pass`, "pass pass\npass\n", "**** pass\n****\n"},
		"an expression at a line's end":    {`word$`, "word word\r\nword", "word ****\r\n****"},
		"an expression that eats the line": {`(?s)pass=.*`, "x pass=1 2\ny\n", "x ********\ny\n"},
		"an expression that matches none":  {`x*`, "ayb\n", "ayb\n"},
		"an expression over what is found": {`en b`, "a " + token + " b\n", "a " + stars + "**\n"},
		"bytes that are no text":           {`b+`, "\xff\xfebb\x00\n", "\xff\xfe**\x00\n"},
	} {
		var r *Redactor
		if test.expressions == "" {
			r = redactor(t)
		} else {
			r = redactor(t, test.expressions)
		}
		if got := whole(r, test.text); got != test.want {
			t.Errorf("%s: %q, want %q", name, got, test.want)
		}
	}
}

func TestRedact_HidesSecretsThatOverlap(t *testing.T) {
	r, err := New([]string{"abababab"}, nil)
	if err != nil {
		t.Fatal(err)
	}
	if got := whole(r, "xabababababy"); got != "x**********y" {
		t.Errorf("%q", got)
	}
}

// someFile has lines of many lengths, with secrets in many places.
func someFile(random *rand.Rand, block int) []byte {
	var file []byte
	for range 1 + random.IntN(6) {
		line := make([]byte, random.IntN([]int{5, block / 4, block, 4 * block}[random.IntN(4)]+1))
		for i := range line {
			line[i] = "abpx= "[random.IntN(6)]
		}
		file = append(file, line...)
		switch random.IntN(4) {
		case 0:
			file = append(file, token...)
		case 1:
			file = append(file, "pw=abpx"...)
		default:
			file = append(file, "\n\r"[random.IntN(2)])
		}
	}
	return file
}

// inPieces redacts a file as a collector does: it grows, is read in pieces, and is read again from what is final.
func inPieces(r *Redactor, file []byte, random *rand.Rand) []byte {
	var out []byte
	for size := 0; size < len(file); {
		size = min(len(file), size+1+random.IntN(int(r.block)))
		from := int64(len(out))
		start := r.Start(from)
		if random.IntN(3) == 0 {
			start = random.Int64N(start + 1) // more than must be read
		}
		end := size
		if size < len(file) && random.IntN(3) == 0 {
			end = max(int(from), size-random.IntN(10)) // less than there is
		}
		text := bytes.Clone(file[start:end])
		final := r.Redact(text, start, from, end == len(file))
		out = append(out, text[from-start:final-start]...)
	}
	return out
}

// small returns a redactor with short blocks, so that short files have many.
func small(t testing.TB) *Redactor {
	r := redactor(t, `pw=[a-z]+`, `^x+`, `p+$`, `b[^p]*p`)
	r.block, r.context = 64, 16
	return r
}

func TestRedact_GivesOneAnswerForEachSplit(t *testing.T) {
	r := small(t)
	for seed := range uint64(20000) {
		random := rand.New(rand.NewPCG(seed, 1))
		file := someFile(random, 64)
		want := whole(r, string(file))
		if got := inPieces(r, file, random); string(got) != want {
			t.Fatalf("seed %d: in pieces\n%q\nin one\n%q\nof\n%q", seed, got, want, file)
		}
	}
}

func TestRedact_FindsSecretsInLongLines(t *testing.T) {
	for _, r := range []*Redactor{redactor(t), small(t)} {
		for _, block := range []int64{r.block, 2 * r.block} {
			for shift := -int64(len(token)) - 1; shift <= 1; shift++ {
				text := bytes.Repeat([]byte("-"), int(3*r.block))
				copy(text[block+shift:], token)
				if got := whole(r, string(text)); strings.Contains(got, token[:2]) || strings.Count(got, "*") != len(token) {
					t.Errorf("a secret at %d of a line with blocks of %d has %d asterisks", block+shift, r.block, strings.Count(got, "*"))
				}
			}
		}
	}
}

func TestRedact_ShortLinesAreSearchedAsAWhole(t *testing.T) {
	r := redactor(t, `^begin.*end$`)
	for shift := range 40 {
		text := strings.Repeat("-", Block-1-shift*Context/20) + "\nbegin" + strings.Repeat("x", Context-8) + "end\n"
		if got := whole(r, text); strings.Count(got, "*") != Context {
			t.Errorf("shift %d: a line of %d bytes has %d asterisks", shift, Context, strings.Count(got, "*"))
		}
	}
}

func TestRedact_WaitsForTheEndOfALine(t *testing.T) {
	r := redactor(t)
	for name, test := range map[string]struct {
		text  string
		isEnd bool
		want  int64
	}{
		"a line without an end":            {"one\ntwo", false, 4},
		"the end of the file":              {"one\ntwo", true, 7},
		"a line that goes beyond a block":  {strings.Repeat("x", Block+Context), false, Block},
		"and one byte less":                {strings.Repeat("x", Block+Context-1), false, 0},
		"nothing":                          {"", false, 0},
		"nothing, at the end of the file":  {"", true, 0},
		"the end of a line":                {"one\n", false, 4},
		"a line that ends in the next one": {strings.Repeat("x", Block+5) + "\n", false, Block + 6},
	} {
		if got := r.Redact([]byte(test.text), 0, 0, test.isEnd); got != test.want {
			t.Errorf("%s: final up to %d, want %d", name, got, test.want)
		}
	}
}

func TestRedact_LeavesWhatIsNotFinal(t *testing.T) {
	text := []byte("one\n" + token)
	if final := redactor(t).Redact(text, 0, 0, false); final != 4 || !bytes.HasSuffix(text, []byte(token)) {
		t.Errorf("final up to %d of %q: the rest must stay, so that it can be searched again", final, text)
	}
}

func TestStart_IsNearAndBefore(t *testing.T) {
	r := redactor(t)
	for from, want := range map[int64]int64{0: 0, 5: 0, Block: Block - Context, Block + 5: Block - Context, 3*Block - 1: 2*Block - Context} {
		if got := r.Start(from); got != want {
			t.Errorf("Start(%d) = %d, want %d", from, got, want)
		}
	}
}

func TestNew_RefusesWhatFindsTooMuch(t *testing.T) {
	for name, test := range map[string]struct{ texts, expressions []string }{
		"a short text":       {texts: []string{"short"}},
		"a long text":        {texts: []string{strings.Repeat("x", MaxText+1)}},
		"a text of lines":    {texts: []string{"some\nthing"}},
		"no RE2":             {expressions: []string{`(?=x)`}},
		"a long expression":  {expressions: []string{strings.Repeat("x", MaxText+1)}},
		"too many of either": {expressions: make([]string, MaxSearches+1)},
	} {
		if _, err := New(test.texts, test.expressions); !errors.Is(err, ErrInvalid) {
			t.Errorf("%s: %v", name, err)
		}
	}
	if r, err := New([]string{""}, nil); err != nil || whole(r, "hello") != "hello" {
		t.Errorf("no token: %v", err)
	}
}

// nested returns a runtime environment in so many strings of JSON.
func nested(t testing.TB, depth int, variables map[string]string) string {
	t.Helper()
	var value any = map[string]any{"pip": []string{"x"}, "env_vars": variables}
	for range depth {
		text, err := json.Marshal(value)
		if err != nil {
			t.Fatal(err)
		}
		value = string(text)
	}
	text, err := json.Marshal(map[string]any{"runtimeEnvJson": value, "then": "kept"})
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

func TestForExport_HidesValuesOfVariables(t *testing.T) {
	secret := map[string]string{"A": "canary", "B": `ca"nary\`, "C": "", "D": `{"canary": 1}, `}
	for depth := range 4 {
		text := nested(t, depth, secret)
		got := whole(redactor(t).ForExport(), text)
		if len(got) != len(text) || strings.Contains(got, "nary") || !json.Valid([]byte(got)) || !strings.Contains(got, `"then":"kept"`) {
			t.Errorf("depth %d: %s of %s", depth, got, text)
		}
		if whole(redactor(t), text) != text {
			t.Errorf("depth %d: a file of another kind is changed", depth)
		}
	}
}

func TestForExport_IsNotMisledByWhatIsNone(t *testing.T) {
	for text, want := range map[string]string{
		`{"env_vars": {"A": "x", "B": 12, "C": null}}`:     `{"env_vars": {"A": "*", "B": **, "C": ****}}`,
		`{"env_vars" : {"A":"xy`:                           `{"env_vars" : {"A":"**`,
		`{"env_vars": {}} "kept": "x"`:                     `{"env_vars": {}} "kept": "x"`,
		`{"env_vars": ["A"]}`:                              `{"env_vars": ["A"]}`,
		`env_vars`:                                         `env_vars`,
		`env_vars\`:                                        `env_vars\`,
		`env_vars\\": {\\"A\\": \\"x\\"`:                   `env_vars\\": {\\"A\\": \\"x\\"`, // two backslashes are no depth
		`{"env_vars": {"A": "x"}, "env_vars": {"B": "y"}}`: `{"env_vars": {"A": "*"}, "env_vars": {"B": "*"}}`,
	} {
		if got := whole(redactor(t).ForExport(), text); got != want {
			t.Errorf("%s becomes %s, want %s", text, got, want)
		}
	}
}

func FuzzRedact(f *testing.F) {
	f.Add([]byte("a "+token+"\nenv_vars\": {\"A\": \"b\"}"), uint64(1))
	f.Fuzz(func(t *testing.T, file []byte, seed uint64) {
		r := small(t).ForExport()
		want := whole(r, string(file))
		if len(want) != len(file) || strings.Contains(want, token) {
			t.Fatalf("%q becomes %q", file, want)
		}
		if got := inPieces(r, file, rand.New(rand.NewPCG(seed, 1))); string(got) != want {
			t.Fatalf("in pieces\n%q\nin one\n%q\nof\n%q", got, want, file)
		}
	})
}
