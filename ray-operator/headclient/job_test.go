package headclient

import "testing"

// TestException_IsTheLastOne: what a traceback comes to, and what is said of it afterwards.
func TestException_IsTheLastOne(t *testing.T) {
	const frames = "Traceback (most recent call last):\n  File \"a.py\", line 1, in <module>\n    f()\n    ^^^\n"
	for name, c := range map[string]struct{ message, want string }{
		"one":                       {frames + "ValueError: column price missing\n", "ValueError: column price missing"},
		"of a package":              {frames + "requests.exceptions.ConnectionError: no route", "requests.exceptions.ConnectionError: no route"},
		"without a text":            {frames + "KeyboardInterrupt\n", "KeyboardInterrupt"},
		"the last of a chain":       {frames + "OSError: a\n\nDuring handling of the above exception, another exception occurred:\n\n" + frames + "TypeError: b", "TypeError: b"},
		"with more lines":           {frames + "RuntimeError: Run cmd[3] failed:\nERROR: no such package\n\n", "RuntimeError: Run cmd[3] failed:\nERROR: no such package"},
		"none":                      {"Job finished successfully.", ""},
		"a word that only looks so": {"Errors: 3\n an Error: inside\nno Exception: here", ""},
	} {
		if have := (Job{Message: c.message}).Exception(); have != c.want {
			t.Errorf("%s: %q, want %q", name, have, c.want)
		}
	}
}
