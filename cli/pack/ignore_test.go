package pack

import "testing"

func TestRules_ExcludeAsGitDoes(t *testing.T) {
	for name, c := range map[string]struct {
		lines    []string
		excluded []string
		kept     []string
	}{
		"a name is one in each directory":      {[]string{"x"}, []string{"x", "a/x", "a/b/x"}, []string{"xx", "x1", "a/xy"}},
		"a star is no slash":                   {[]string{"*.pyc"}, []string{"a.pyc", "a/b.pyc", ".pyc"}, []string{"a.pyc/b", "a.py"}},
		"a slash at the begin is the root":     {[]string{"/x"}, []string{"x"}, []string{"a/x"}},
		"a slash within is the root too":       {[]string{"a/*.txt"}, []string{"a/b.txt"}, []string{"a/b/c.txt", "b/a/c.txt"}},
		"a slash at the end is what is below":  {[]string{"x/"}, []string{"x/a", "b/x/a/c"}, []string{"x", "a/x"}},
		"two stars are directories":            {[]string{"a/**/b"}, []string{"a/b", "a/x/b", "a/x/y/b"}, []string{"ab", "a/xb", "c/a/b"}},
		"two stars at the begin":               {[]string{"**/b/c"}, []string{"b/c", "a/b/c"}, []string{"xb/c"}},
		"two stars at the end":                 {[]string{"a/**"}, []string{"a/b", "a/b/c"}, []string{"a", "b/a"}},
		"two stars alone":                      {[]string{"**"}, []string{"a", "a/b"}, nil},
		"two stars twice":                      {[]string{"**/**/b"}, []string{"b", "a/b"}, []string{"ab"}},
		"a question mark is a character":       {[]string{"a?c"}, []string{"abc"}, []string{"ac", "a/c", "abbc"}},
		"a set":                                {[]string{"[a-c]x"}, []string{"ax", "cx"}, []string{"dx", "x"}},
		"a set that is negated":                {[]string{"[!a]x"}, []string{"bx"}, []string{"ax"}},
		"a set with a bracket":                 {[]string{"[]]x", "[!]]y"}, []string{"]x", "ay"}, []string{"ax", "]y"}},
		"a set with a backslash":               {[]string{`[\]x`}, []string{`\x`}, []string{"ax"}},
		"a bracket that opens no set":          {[]string{"a[b"}, []string{"a[b"}, []string{"ab"}},
		"what a regular expression would obey": {[]string{"a.b", "(c|d)+", "e$"}, []string{"a.b", "(c|d)+", "e$"}, []string{"axb", "c", "e"}},
		"a backslash makes it ordinary":        {[]string{`\*x`, `\#y`, `\!z`}, []string{"*x", "#y", "!z"}, []string{"ax", "z"}},
		"the last line decides":                {[]string{"*.txt", "!a.txt", "b/a.txt"}, []string{"b.txt", "b/a.txt"}, []string{"a.txt", "c/a.txt"}},
		"comments and blank lines":             {[]string{"# x", "", "  ", "/", "y  ", "z\r"}, []string{"y", "z"}, []string{"# x", "x", "a"}},
		"a blank behind a backslash":           {[]string{`x\ `}, []string{"x "}, []string{"x"}},
		"letters of other alphabets":           {[]string{"grün*"}, []string{"grün☀"}, []string{"gr"}},
	} {
		t.Run(name, func(t *testing.T) {
			found, err := parseRules(c.lines)
			if err != nil {
				t.Fatal(err)
			}
			for _, path := range c.excluded {
				if !found.excludes(path) {
					t.Errorf("%q excludes no %q", c.lines, path)
				}
			}
			for _, path := range c.kept {
				if found.excludes(path) {
					t.Errorf("%q excludes %q", c.lines, path)
				}
			}
		})
	}
}

func TestParseRules_RefusesSetsWithoutOrder(t *testing.T) {
	if found, err := parseRules([]string{"[z-a]"}); err == nil {
		t.Errorf("it became %v", found)
	}
}

// FuzzParseRules has any line and any path: nothing panics, and rules say the same twice.
func FuzzParseRules(f *testing.F) {
	f.Add("[!]a-]*?\\ ", "a/b")
	f.Add("/**/a/", "x/a/y")
	f.Fuzz(func(t *testing.T, line, path string) {
		found, err := parseRules([]string{line})
		if err == nil && len(found) > 1 {
			t.Errorf("%q became %d rules", line, len(found))
		}
		if found.excludes(path) && found[0].isKept {
			t.Errorf("%q keeps and excludes %q", line, path)
		}
	})
}
