// Package pages holds the command lines of kubectl on our pages against kubectl itself.
//
// In: README, the pages in docs and those of the examples. Out: what kubectl does not know of a line, and files that a
// line names and the repository does not have. It runs no line.
package pages

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/spf13/cobra"
	"k8s.io/cli-runtime/pkg/genericiooptions"
	kubectl "k8s.io/kubectl/pkg/cmd"
)

const root = "../../../../"

var (
	// block matches a block of a page with its language, prompted a line behind a prompt, and span code within a text.
	block    = regexp.MustCompile("(?ms)^ *```(\\w*)(?: \\w+)?\n(.*?)^ *```$")
	prompted = regexp.MustCompile(`(?m)^ *\$ (.*)$`)
	span     = regexp.MustCompile("`(kubectl [^`\n]+)`")
	// call matches the beginning of a command line of kubectl.
	call = regexp.MustCompile(`(?m)(^ *|[(|;&=] *|: +)kubectl `)
	// token matches a word of shell with its quotes, what ends a command, or a comment.
	token = regexp.MustCompile(`(?:'[^']*'|"[^"]*"|\\.|[^\s'"|;&>)(\\])+|[|;&>)(\n]`)
	// quoted matches what is between quotes.
	quoted = regexp.MustCompile(`'([^']*)'|"([^"]*)"`)
	// inner matches a command line within another one that has none in it.
	inner = regexp.MustCompile(`\$\([^()]*\)`)
	// ours matches a file of the repository.
	ours = regexp.MustCompile(`^(examples|ray-operator|hack|helm-chart)/`)

	plugins = []string{"heliostat", "krew", "ray"}
)

// shellOf returns the shell on a page: its blocks, what follows a prompt, and command lines within the text.
func shellOf(page string) []string {
	var all []string
	for _, found := range block.FindAllStringSubmatch(page, -1) {
		if found[1] == "sh" {
			all = append(all, strings.ReplaceAll(found[2], "\\\n", " "))
		} else if found[1] == "console" {
			for _, line := range prompted.FindAllStringSubmatch(found[2], -1) {
				all = append(all, line[1])
			}
		}
	}
	for _, code := range span.FindAllStringSubmatch(block.ReplaceAllString(page, ""), -1) {
		all = append(all, strings.ReplaceAll(code[1], `\|`, "|"))
	}
	return all
}

// callsOf returns the arguments of each call of kubectl in shell, of one within another one first.
func callsOf(shell string) [][]string {
	var all [][]string
	for {
		at := inner.FindStringIndex(shell)
		if at == nil {
			break
		}
		all = append(all, callsOf(shell[at[0]+2:at[1]-1])...)
		shell = shell[:at[0]] + "PRINTED" + shell[at[1]:]
	}
	for _, at := range call.FindAllStringIndex(shell, -1) {
		all = append(all, wordsOf(shell[at[1]:]))
	}
	return all
}

// wordsOf returns the words of a command, up to what ends it.
func wordsOf(shell string) []string {
	var words []string
	for _, word := range token.FindAllString(shell, -1) {
		if strings.Contains("|;&>)(\n#", word) {
			break
		}
		if word != "…" { // and more
			words = append(words, quoted.ReplaceAllString(word, "$1$2"))
		}
	}
	return words
}

// problemOf returns what kubectl does not know of a call, empty if it knows it all.
func problemOf(words []string) string {
	if len(words) == 0 || slices.Contains(plugins, words[0]) {
		return ""
	}
	all := kubectl.NewKubectlCommand(kubectl.KubectlOptions{IOStreams: genericiooptions.NewTestIOStreamsDiscard()})
	command, rest, err := all.Find(words)
	if err != nil {
		return err.Error()
	}
	if err := command.ParseFlags(rest); err != nil {
		return err.Error()
	}
	if below := command.Flags().Args(); command.HasSubCommands() && len(below) > 0 {
		return "no such command below " + command.CommandPath() + ": " + below[0]
	}
	return missingFile(command)
}

// missingFile returns a file of the repository that a call names and that is not there.
func missingFile(command *cobra.Command) string {
	for _, name := range []string{"filename", "kustomize"} {
		flag := command.Flags().Lookup(name)
		if flag == nil {
			continue
		}
		for file := range strings.SplitSeq(strings.Trim(flag.Value.String(), "[]"), ",") {
			if _, err := os.Stat(root + file); ours.MatchString(file) && err != nil {
				return "no such file: " + file
			}
		}
	}
	return ""
}

func TestPages_CallKubectlAsItIs(t *testing.T) {
	count := 0
	for _, pattern := range []string{"*.md", "docs/*.md", "examples/*.md", "examples/*/*.md", "images/*.md", "tests/localkube/*.md"} {
		pages, err := filepath.Glob(root + pattern)
		if err != nil || len(pages) == 0 {
			t.Fatalf("find %s: %v, %v", pattern, pages, err)
		}
		for _, page := range pages {
			text, err := os.ReadFile(page)
			if err != nil {
				t.Fatal(err)
			}
			for _, shell := range shellOf(string(text)) {
				for _, words := range callsOf(shell) {
					count++
					if problem := problemOf(words); problem != "" {
						t.Errorf("%s: kubectl %s: %s", strings.TrimPrefix(page, root), strings.Join(words, " "), problem)
					}
				}
			}
		}
	}
	if count < 100 {
		t.Errorf("only %d calls of kubectl were found", count)
	}
}

func TestProblemOf_NamesWhatIsUnknown(t *testing.T) {
	for shell, want := range map[string]string{
		"kubectl get cc,csvc -n team-a -o wide":                                            "",
		"kubectl -n team-a wait --for condition=Ready cc/demo --timeout=5m   # a comment":  "",
		"export A=b C=$(kubectl get secret x -o jsonpath='{.data.a}' | base64 -d)":         "",
		"kubectl exec $(kubectl get cc x -o name) -c ray -- ray job logs -f $(cat --what)": "",
		`kubectl create configmap a --from-file="$board" -o jsonpath='{@["a"]}'`:           "",
		"kubectl apply -k examples/batch && kubectl delete -k examples/batch":              "",
		"kubectl heliostat top --nothing":                                                  "",
		"kubectl gte cc":                                                                   "unknown command",
		"x && kubectl get cc --colour":                                                     "unknown flag",
		"kubectl rollout sttaus deployment a":                                              "no such command",
		"kubectl wait cc/demo --timeout soon":                                              "invalid argument",
		"kubectl exec $(kubectl get cc x --colour) -- ray":                                 "unknown flag",
		"kubectl apply -f ray-operator/config/samples/nothing.yaml":                        "no such file",
	} {
		var problems []string
		for _, words := range callsOf(shell) {
			if problem := problemOf(words); problem != "" {
				problems = append(problems, problem)
			}
		}
		if said := strings.Join(problems, "; "); !strings.Contains(said, want) || want == "" && said != "" {
			t.Errorf("%s: %q, want %q", shell, said, want)
		}
	}
}
