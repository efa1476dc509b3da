package main

import (
	"fmt"
	"slices"
	"strings"
	"testing"
)

func TestShare_ReplacesWhatStandsTwice(t *testing.T) {
	long := func(text string) string { return fmt.Sprintf(`{"text":%q}`, strings.Repeat(text, shareAtLeast)) }
	inner, other := long("a"), long("b")
	outer := `{"inner":` + inner + `,"more":"<&"}`
	for name, test := range map[string]struct{ texts, short, shared []string }{
		"what stands once stays": {[]string{inner, other}, []string{inner, other}, nil},
		"what is short stays":    {[]string{`[{"a":1},{"a":1}]`}, []string{`[{"a":1},{"a":1}]`}, nil},
		"in one text":            {[]string{`[` + inner + `,` + inner + `]`}, []string{`[{"$shared":0},{"$shared":0}]`}, []string{inner}},
		"in several texts":       {[]string{`[` + inner + `]`, `{"x":` + inner + `}`}, []string{`[{"$shared":0}]`, `{"x":{"$shared":0}}`}, []string{inner}},
		"inside of what is shared itself": {
			[]string{`[` + outer + `,` + inner + `]`, `[` + outer + `]`}, []string{`[{"$shared":0},{"$shared":1}]`, `[{"$shared":0}]`},
			[]string{`{"inner":{"$shared":1},"more":"<&"}`, inner},
		},
	} {
		t.Run(name, func(t *testing.T) {
			before := slices.Clone(test.texts)
			short, shared, err := Share(test.texts)
			if err != nil || !slices.Equal(short, test.short) || !slices.Equal(shared, test.shared) {
				t.Errorf("%v\n%v\n%v", short, shared, err)
			}
			if !slices.Equal(before, test.texts) {
				t.Error("what was given was changed")
			}
		})
	}
}
