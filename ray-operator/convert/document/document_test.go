package document

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/heliostat-dev/heliostat/ray-operator/convert"
)

const job = "apiVersion: ray.io/v1\nkind: RayJob\nmetadata: {name: a, namespace: ns}\n"

// largest is how many bytes documents of these tests may have.
const largest = 1 << 20

func TestRead_DividesAndCountsLines(t *testing.T) {
	for name, c := range map[string]struct {
		text string
		want []string
	}{
		"nothing":           {"# only this\n---\n\n", nil},
		"one":               {job, []string{"1 1 RayJob/a in ns"}},
		"JSON":              {`{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"c"}}`, []string{"1 1 ConfigMap/c"}},
		"a comment between": {"---\n" + job + "--- # the next\n# words\n" + job, []string{"2 2 RayJob/a in ns", "3 6 RayJob/a in ns"}},
		"no divider":        {"apiVersion: v1\nkind: X\ntext: |\n  ---\n----: a\n", []string{"1 1 X/"}},
		"a list":            {"apiVersion: v1\nkind: List\nitems: [{apiVersion: v1, kind: X}, 3]\n", []string{"1 1 X/", "1 1 items[1] is no object of Kubernetes; give apiVersion and kind"}},
		"broken":            {job + "---\na: [\n", []string{"1 1 RayJob/a in ns", "2 5 line 5: did not find expected node content"}},
		"a key twice":       {"---\na: 1\na: 2\n", []string{`2 2 line 3: key "a" already set in map`}},
		"no object":         {"[a]\n", []string{"1 1 the document is no object; write the fields of one"}},
		"no kind":           {"a: 1\n", []string{"1 1 the document is no object of Kubernetes; give apiVersion and kind"}},
		"an unknown anchor": {job + "spec: *a\n", []string{"1 1 unknown anchor 'a' referenced"}},
		"a listing": {"1 apiVersion: v1\n2 kind: X\n3 a:\n4   b: c\n", []string{
			"1 1 each line begins with a number; take the numbers out, so that it reads\napiVersion: v1\nkind: X\na:\n  b: c"}},
		"a listing in columns": {" 9  apiVersion: v1\n10  kind: X\n11  a:\n12    b: c\n", []string{
			"1 1 each line begins with a number; take the numbers out, so that it reads\napiVersion: v1\nkind: X\na:\n  b: c"}},
		"a listing of no object":        {"1 a: [\n2 b\n3 c\n", []string{"1 1 each line begins with a number; take the numbers out"}},
		"numbers that are not of lines": {"1: a\n3: b\n7: c\n", []string{"1 1 the document is no object of Kubernetes; give apiVersion and kind"}},
		"anchors that repeat":           {job + "x: &a {b: 1}\ny: *a\nz: {<<: *a}\n", []string{"1 1 RayJob/a in ns"}},
	} {
		t.Run(name, func(t *testing.T) {
			var got []string
			for _, one := range Read([]byte(c.text), largest) {
				said := fmt.Sprint(one.Problem)
				if one.Problem == nil {
					said = one.Name()
				}
				got = append(got, fmt.Sprintf("%d %d %s", one.Number, one.Line, said))
			}
			if diff := cmp.Diff(c.want, got); diff != "" {
				t.Errorf("it is read otherwise (- wanted):\n%s", diff)
			}
		})
	}
}

func TestRead_ExpandsNoBomb(t *testing.T) {
	nested := "a0: &a0 [x, x, x, x, x, x, x, x, x]\n"
	for i := 1; i < 30; i++ {
		nested += fmt.Sprintf("a%d: &a%d [%s]\n", i, i, strings.TrimSuffix(strings.Repeat(fmt.Sprintf("*a%d, ", i-1), 9), ", "))
	}
	for name, bomb := range map[string]string{
		"of lists":       nested,
		"of a long text": "a: &a " + strings.Repeat("x", 1<<15) + "\nb: [" + strings.Repeat("*a,", 90) + "*a]\n",
		"within itself":  "a: &a [*a]\n",
		"merged":         "a: &a {x: " + strings.Repeat("x", 1<<18) + "}\nb: [{<<: *a},{<<: *a},{<<: *a},{<<: *a}]\n",
	} {
		t.Run(name, func(t *testing.T) {
			got := Read([]byte(job+bomb+"---\n"+job), largest)
			if len(got) != 2 || got[0].Problem == nil || got[1].Problem != nil {
				t.Fatalf("it is %+v", got)
			}
			if want := "more than 1 MiB when its anchors are written out"; !strings.Contains(got[0].Problem.Error(), want) {
				t.Errorf("it says %q, not %q", got[0].Problem, want)
			}
		})
	}
}

func TestRead_RefusesWhatIsTooLarge(t *testing.T) {
	got := Read([]byte(job+"# "+strings.Repeat("x", largest)+"\n---\n"+job), largest)
	if len(got) != 2 || got[1].Problem != nil || fmt.Sprint(got[0].Problem) != "the document has more than 1 MiB; divide it" {
		t.Errorf("it is %+v", got)
	}
}

func TestDocument_PlacesRowsByLine(t *testing.T) {
	text := "---\n" + job + "spec:\n  x: &x\n    deep: 1\n  list:\n  - a\n  - b: *x\n  keys: {a.b/c: 1}\n"
	one := Read([]byte(text), largest)[0]
	var rows []convert.Row
	for _, path := range []string{"spec.keys[a.b/c]", "spec.list[1].b.deep", "spec.list[0]", "spec.none.deeper", "metadata.name"} {
		rows = append(rows, convert.Row{Path: path})
	}
	var got []string
	for _, placed := range one.Place(rows) {
		got = append(got, fmt.Sprintf("%d %s", placed.Line, placed.Row.Path))
	}
	want := []string{"4 metadata.name", "5 spec.none.deeper", "7 spec.list[1].b.deep", "9 spec.list[0]", "11 spec.keys[a.b/c]"}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("rows have other places (- wanted):\n%s", diff)
	}
}
