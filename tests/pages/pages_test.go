package pages

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// example is a page with each sort of block.
const example = "# Title\n" +
	"\n" +
	"```yaml run\n" +
	"kind: ConfigMap\n" +
	"```\n" +
	"```yaml\n" +
	"not: run\n" +
	"```\n" +
	"1. In a list:\n" +
	"\n" +
	"   ```sh run\n" +
	"   kubectl get cc \\\n" +
	"     -o wide\n" +
	"   ```\n" +
	"```sh yours\n" +
	"docker push\n" +
	"```\n" +
	"```console run\n" +
	"$ kubectl get cc -o jsonpath='{.x}'   # a comment\n" +
	"NAME   AGE\n" +
	"\n" +
	"demo   15s\n" +
	"$ kubectl wait\n" +
	"```\n"

func read(t *testing.T, page string) []Block {
	t.Helper()
	blocks, err := Blocks(page)
	if err != nil {
		t.Fatal(err)
	}
	return blocks
}

func TestScript_HasThePagesLines(t *testing.T) {
	want := []string{
		begin, "", "kubectl apply -f - <<'MANIFEST'", "kind: ConfigMap", "MANIFEST", "", "", "", "", "", "",
		`kubectl get cc \`, "  -o wide", "", "", "", "", "",
		`show 19 'kubectl get cc -o jsonpath='\''{.x}'\''   # a comment'`, "", "", "", "show 23 'kubectl wait'", "",
	}
	if diff := cmp.Diff(want, strings.Split(Script(read(t, example)), "\n")); diff != "" {
		t.Errorf("the script differs (- wanted, + made):\n%s", diff)
	}
}

func TestOutputs_AreBelowPrompts(t *testing.T) {
	want := []Output{{Line: 19, Lines: []string{"NAME   AGE", "demo   15s"}}}
	if diff := cmp.Diff(want, Outputs(read(t, example))); diff != "" {
		t.Errorf("the outputs differ (- wanted, + found):\n%s", diff)
	}
}

func TestBlocks_RefusesUnclearMarks(t *testing.T) {
	for page, want := range map[string]string{
		"```sh run\na\n```":          "",
		"```sh endless\na\n```":      "",
		"```yaml\na: b\n```":         "",
		"```\nNAME   AGE\n```":       "",
		"```sh\na\n```":              "line 1: its commands have no mark",
		"text\n```console\n$ a\n```": "line 2: its commands have no mark",
		"```\n$ a\n```":              "its language is console",
		"```sh rnu\na\n```":          "there is no mark rnu",
		"```json run\n{}\n```":       "a mark is for sh, console and yaml alone",
		"```sh run\na\n":             "it has no end",
	} {
		said := ""
		if _, err := Blocks(page); err != nil {
			said = err.Error()
		}
		if !strings.Contains(said, want) || want == "" && said != "" {
			t.Errorf("%q: %q, want %q", page, said, want)
		}
	}
}

func TestMissing_ToleratesAgesAndWidths(t *testing.T) {
	shown := []string{"NAME   READY   AGE", "demo   2/2     15s", `{"pid":…,"said":"a.b"}`}
	for real, want := range map[string]string{
		"NAME READY AGE\ndemo 2/2 1m20s\n{\"pid\":7,\"said\":\"a.b\"}":                          "",
		"NAME     READY   AGE\nother 1/1 3s\ndemo     2/2   3s \n\n{\"pid\":,\"said\":\"a.b\"}": "",
		"NAME READY AGE\ndemo 1/2 15s\n{\"pid\":7,\"said\":\"a.b\"}":                            shown[1],
		"demo 2/2 15s\nNAME READY AGE\n{\"pid\":7,\"said\":\"a.b\"}":                            shown[1],
		"NAME READY AGE\ndemo 2/2 soon\n":                                                       shown[1],
		"NAME READY AGE\ndemo 2/2 15s\n{\"pid\":7,\"said\":\"axb\"}":                            shown[2],
		"": shown[0],
	} {
		if missing := (Output{Lines: shown}).Missing(real); missing != want {
			t.Errorf("%q: misses %q, want %q", real, missing, want)
		}
	}
}

// TestPages_SayWhatIsRun reads every page for users: each block of commands is run or has its reason.
func TestPages_SayWhatIsRun(t *testing.T) {
	const root = "../../"
	found, err := filepath.Glob(root + "docs/*.md")
	if err != nil {
		t.Fatal(err)
	}
	var walked []string
	for _, walk := range Walks {
		walked = append(walked, walk.Pages...)
	}
	run, not := 0, 0
	for _, file := range append(found, root+"README.md") {
		page := strings.TrimPrefix(file, root)
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		blocks, err := Blocks(string(text))
		if err != nil {
			t.Errorf("%s: %v", page, err)
		}
		runs := countOf(blocks, func(mark string) bool { return mark == Run })
		run, not = run+runs, not+countOf(blocks, func(mark string) bool { return mark != Run && mark != "" })
		if isWalked := slices.Contains(walked, page); isWalked != (runs > 0) {
			t.Errorf("%s has %d blocks that are run, and is in a walk: %v", page, runs, isWalked)
		}
	}
	t.Logf("%d blocks are run, %d are not", run, not)
	if run <= not {
		t.Errorf("%d blocks are run, and %d are not: run more of them", run, not)
	}
}

// countOf returns how many blocks have such a mark.
func countOf(blocks []Block, isCounted func(mark string) bool) int {
	count := 0
	for i := range blocks {
		if isCounted(blocks[i].Mark) {
			count++
		}
	}
	return count
}

// TestDesign_HasEveryMark holds the design's table against the marks.
func TestDesign_HasEveryMark(t *testing.T) {
	text, err := os.ReadFile("../../docs/design/pages.md")
	if err != nil {
		t.Fatal(err)
	}
	for mark, why := range Reasons {
		if row := "| `" + mark + "` | " + why + " |"; !strings.Contains(string(text), row) {
			t.Errorf("the design lacks the row %s", row)
		}
	}
}
