package kept

import "testing"

func TestMatches_IsAnyTextWithoutASlash(t *testing.T) {
	for _, c := range []struct {
		pattern, path string
		want          bool
	}{
		{"a.out", "a.out", true}, {"a.out", "a.outer", false}, {"worker-*.err", "worker-1-2.err", true}, {"worker-*.err", "worker-1.out", false},
		{"*", "a", true}, {"*", "dir/a", false}, {"*/*", "dir/a", true}, {"*.err", "dir/a.err", false}, {"a*a", "a", false}, {"a*b*c", "abxbc", true},
		{"", "", true}, {"*a/*c", "a/xa/yc", false}, {"a*", "a", true}, {"ä*", "äx", true},
	} {
		if got := Matches(c.pattern, c.path); got != c.want {
			t.Errorf("%q matches %q is %t", c.pattern, c.path, got)
		}
	}
}

func FuzzEscape(f *testing.F) {
	f.Add("dir/odd name\n\x1b[31m%.err")
	f.Fuzz(func(t *testing.T, path string) {
		text := Escape(path)
		for _, b := range []byte(text) {
			if b <= ' ' || b >= 0x7f {
				t.Fatalf("%q has the byte %x", text, b)
			}
		}
		again, is := Unescape(text)
		if want := path != "" && len(path) <= maxPath; is != want || is && again != path {
			t.Errorf("%q becomes %q, and that %q", path, text, again)
		}
	})
}
