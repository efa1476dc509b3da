package main

import (
	"strings"
	"testing"
	"time"

	"github.com/heliostat-dev/heliostat/ray-operator/internal/upgrade"
)

func TestPage(t *testing.T) {
	have := page([]story{{
		title: "One", text: "It fails.", terms: upgrade.Terms{AutoRollback: true},
		script: upgrade.Script{Pods: 3, Grow: time.Minute, Fails: 90 * time.Second, SickAt: 100},
	}, {
		title: "Two", text: "All at once.", terms: upgrade.Terms{Surge: 60},
		script: upgrade.Script{Pods: 3, Grow: time.Minute},
	}})
	const head = "| after | old capacity | new capacity | traffic | endpoints | share | |\n|---|---|---|---|---|---|---|\n"
	want := "\n## One\n\nIt fails.\n\n" + head +
		"| 0s | 100 % | 100 %, ready 0 % | 0 % | 3 + 0 | 0 % |  |\n" +
		"| 1m0s | 100 % | 100 % | 100 % | 0 + 3 | 100 % |  |\n" +
		"| 1m0s | 0 %, ready 100 % | 100 % | 100 % | 0 + 3 | 100 % | Done |\n" +
		"\n## Two\n\nAll at once.\n\n" + head +
		"| 0s | 100 % | 60 %, ready 0 % | 0 % | 3 + 0 | 0 % |  |\n" +
		"| 1m0s | 100 % | 60 % | 60 % | 1 + 2 | 67 % |  |\n" +
		"| 1m0s | 40 %, ready 100 % | 60 % | 60 % | 1 + 2 | 67 % |  |\n" +
		"| 1m0s | 40 % | 100 %, ready 60 % | 60 % | 1 + 2 | 67 % |  |\n" +
		"| 2m0s | 40 % | 100 % | 100 % | 0 + 3 | 100 % |  |\n" +
		"| 2m0s | 0 %, ready 40 % | 100 % | 100 % | 0 + 3 | 100 % | Done |\n"
	if rest, ok := strings.CutPrefix(have, opening); !ok || rest != want {
		t.Errorf("%s\nwant\n%s", rest, want)
	}
}

// TestStories: each shows what it says.
func TestStories(t *testing.T) {
	ends := map[string]string{"With the defaults": "Done", "With little room": "Done", "A new version that sickens": "Returned"}
	for _, s := range stories() {
		text := page([]story{s})
		want, ok := ends[s.title]
		if !ok || !strings.HasSuffix(text, "| "+want+" |\n") {
			t.Errorf("%s ends with %s", s.title, text[strings.LastIndex(strings.TrimSpace(text), "\n")+1:])
		}
		if sick := strings.Contains(text, "goes back: Sick"); sick != (want == "Returned") {
			t.Errorf("%s tells of a sickness: %v", s.title, sick)
		}
		delete(ends, s.title)
	}
	if len(ends) > 0 {
		t.Errorf("%v are not told", ends)
	}
}
