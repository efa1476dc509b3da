package shape

import (
	"go/ast"
	"regexp"
	"slices"
	"strings"
)

// ban forbids calls by their qualified names.
type ban struct {
	name  string
	calls []string
	where func(f *File) bool
	// instead is what to do.
	instead string
}

func bans() []ban {
	return []ban{
		{
			name: "settings-enter-in-cmd", calls: []string{"os.Getenv", "os.LookupEnv", "os.Environ"},
			where:   func(f *File) bool { return f.Product() && !f.Command() },
			instead: "pass the setting on from cmd as a value",
		},
		{
			name: "now-is-an-argument", calls: []string{"time.Now", "time.Since", "time.Until"},
			where:   func(f *File) bool { return f.Product() && !f.Command() },
			instead: "take the time as an argument or from a clock that the caller gave",
		},
		{
			name: "no-sleep", calls: []string{"time.Sleep"},
			where: func(f *File) bool {
				return f.Test() || f.Product() || within(f.Path, internal+"testkit") || within(f.Path, "tests/live")
			},
			instead: "wait for what must happen, with a deadline",
		},
		{
			name: "no-skipped-test", where: func(f *File) bool { return f.Test() || within(f.Path, "tests/e2e") },
			calls: []string{
				"t.Skip", "t.Skipf", "t.SkipNow", "b.Skip", "Skip", "PIt", "XIt", "PDescribe", "XDescribe", "PContext", "XContext",
				"FIt", "FDescribe", "FContext", "FWhen", "FEntry", "PEntry", "XEntry", "PWhen", "XWhen",
			},
			instead: "a test runs, or fails and says what is missing",
		},
	}
}

func habits() []Rule {
	rules := []Rule{each("no-leftover", leftovers)}
	for _, b := range bans() {
		rules = append(rules, each(b.name, b.check))
	}
	return rules
}

func (b ban) check(f *File) []Violation {
	if !b.where(f) {
		return nil
	}
	var all []Violation
	ast.Inspect(f.AST, func(node ast.Node) bool {
		switch node := node.(type) {
		case *ast.SelectorExpr: // named without a call, a function may be called later
			if name := qualified(node); slices.Contains(b.calls, name) {
				all = append(all, f.found(node, "%s: %s", name, b.instead))
			}
		case *ast.CallExpr:
			if name, ok := node.Fun.(*ast.Ident); ok && slices.Contains(b.calls, name.Name) {
				all = append(all, f.found(node, "%s: %s", name.Name, b.instead))
			}
		}
		return true
	})
	return all
}

func qualified(selector *ast.SelectorExpr) string {
	if x, ok := selector.X.(*ast.Ident); ok {
		return x.Name + "." + selector.Sel.Name
	}
	return ""
}

// leftover words are put together so that this file does not hold them.
var leftover = regexp.MustCompile(`\b(` + strings.Join([]string{"TO" + "DO", "FIX" + "ME", "X" + "XX", "HA" + "CK"}, "|") + `)\b`)

func leftovers(f *File) []Violation {
	var all []Violation
	for _, group := range f.AST.Comments {
		if word := leftover.FindString(group.Text()); word != "" {
			all = append(all, f.found(group, "%s in a comment: do it, or write an issue", word))
		}
	}
	return all
}

// homes are directories of people; user "ray" is that of Ray's images.
var homes = regexp.MustCompile(`/(home|Users)/([A-Za-z0-9._-]+)`)

// LocalPaths finds, in the text of any file, paths that exist on one machine only: those
// below somebody's home, and those below root, the checkout's own directory.
func LocalPaths(root, text string) []string {
	var found []string
	for _, match := range homes.FindAllStringSubmatch(text, -1) {
		if match[2] != "ray" {
			found = append(found, match[0])
		}
	}
	// A checkout that lies directly below / has too common a name to search for.
	if strings.Count(root, "/") > 1 && strings.Contains(text, root+"/") {
		found = append(found, root)
	}
	return found
}
