package convert

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"unicode"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// Kubeflow is what the user chose for jobs of Kubeflow.
type Kubeflow struct {
	// Onto is the cluster that jobs run on, empty for a cluster of each job's own.
	Onto string
	// Command is the program of containers that name none.
	Command []string
	// Images replace others. What is under "" is for containers that name none.
	Images map[string]string
	// Selectors are labels of the Ray nodes for a role, for jobs on a cluster that is there.
	Selectors map[string]map[string]string
	// Runtimes are what TrainJobs may refer to, beside those that Kubeflow installs.
	Runtimes []*unstructured.Unstructured
}

// Choices are what the user chose for jobs of Kubeflow, as texts.
type Choices struct {
	Onto, Command string
	// Images are FROM=TO, or TO alone for containers that name none.
	Images []string
	// Selectors are ROLE=KEY=VALUE.
	Selectors []string
}

// Choices that may fit no object.
const (
	choiceOnto     = "onto"
	choiceCommand  = "command"
	choiceImage    = "image"
	choiceSelector = "label-selector"
)

// Used is a choice that made a difference to an object, with the image or the role that it is about.
type Used struct{ Choice, About string }

// Unused returns the choices that made no difference to any object. It returns none unless all objects came out (isWhole), as those that
// did not may need them.
func (k *Kubeflow) Unused(used []Used, isWhole bool) []ChoiceError {
	if !isWhole {
		return nil
	}
	var found []ChoiceError
	if k.Onto != "" && !slices.Contains(used, Used{choiceOnto, ""}) {
		found = append(found, ChoiceError{choiceOnto, "is for jobs of Kubeflow, and the input has no such job", "leave it out"})
	}
	if len(k.Command) > 0 && !slices.Contains(used, Used{choiceCommand, ""}) {
		found = append(found, ChoiceError{choiceCommand, "is for containers without a command, and the input has no such container", "leave it out"})
	}
	for _, from := range slices.Sorted(maps.Keys(k.Images)) {
		switch {
		case slices.Contains(used, Used{choiceImage, from}):
		case from == "":
			found = append(found, ChoiceError{choiceImage, "without FROM= is for containers without an image, and the input has no such container", "write FROM=TO, or leave it out"})
		default:
			found = append(found, ChoiceError{choiceImage, fmt.Sprintf("%.100q is of no container of Kubeflow's jobs", from), "correct it, or leave it out"})
		}
	}
	for _, role := range slices.Sorted(maps.Keys(k.Selectors)) {
		if !slices.Contains(used, Used{choiceSelector, role}) {
			found = append(found, ChoiceError{choiceSelector, fmt.Sprintf("is for the role %.40q, which no job has", role), "correct it, or leave it out"})
		}
	}
	return found
}

// ChoiceError says what is wrong with a choice, and which one it is: onto, command, image or label-selector.
type ChoiceError struct{ Choice, Text, Remedy string }

func (e *ChoiceError) Error() string { return fmt.Sprintf("%s %s; %s", e.Choice, e.Text, e.Remedy) }

// Read reads the choices. An error is a *ChoiceError.
func (c *Choices) Read() (Kubeflow, error) {
	made := Kubeflow{Onto: c.Onto, Images: map[string]string{}, Selectors: map[string]map[string]string{}}
	var isWhole bool
	if made.Command, isWhole = splitWords(c.Command); !isWhole || c.Command != "" && len(made.Command) == 0 {
		return made, &ChoiceError{choiceCommand, fmt.Sprintf("%.60q is no program with arguments", c.Command), "close each quote, and name " +
			"the program first"}
	}
	for _, text := range c.Images {
		from, to, isMap := strings.Cut(text, "=")
		if !isMap {
			from, to = "", text
		}
		if to == "" {
			return made, &ChoiceError{choiceImage, fmt.Sprintf("%.60q names no image", text), "give FROM=TO, or IMAGE"}
		}
		made.Images[from] = to
	}
	for _, text := range c.Selectors {
		parts := strings.SplitN(text, "=", 3)
		if len(parts) < 3 || slices.Contains(parts, "") {
			return made, &ChoiceError{choiceSelector, fmt.Sprintf("%.60q picks no nodes", text), "give ROLE=KEY=VALUE, such as worker=pool=gpu"}
		}
		if made.Selectors[parts[0]] == nil {
			made.Selectors[parts[0]] = map[string]string{}
		}
		made.Selectors[parts[0]][parts[1]] = parts[2]
	}
	if len(made.Selectors) > 0 && c.Onto == "" {
		return made, &ChoiceError{choiceSelector, "is for jobs on a cluster that is there", "give onto too, or leave it out"}
	}
	return made, nil
}

// AddRuntime adds an object to what TrainJobs may refer to, if it is such a one.
func (k *Kubeflow) AddRuntime(object *unstructured.Unstructured) {
	if object == nil || !isOf(object.GetAPIVersion(), trainerGroup) {
		return
	}
	if kind := object.GetKind(); kind == kindRuntime || kind == kindClusterRuntime {
		k.Runtimes = append(k.Runtimes, object)
	}
}

// splitWords divides a line at spaces. Quotes hold words together, and a backslash takes the next letter as it is, but between
// single quotes. It reports whether each quote is closed.
func splitWords(line string) (words []string, isWhole bool) {
	var word strings.Builder
	var quote rune
	isWord, isTaken := false, false
	for _, letter := range line {
		switch {
		case isTaken:
			word.WriteRune(letter)
			isTaken = false
		case letter == '\\' && quote != '\'':
			isTaken, isWord = true, true
		case letter == quote:
			quote = 0
		case quote != 0:
			word.WriteRune(letter)
		case letter == '"' || letter == '\'':
			quote, isWord = letter, true
		case unicode.IsSpace(letter):
			if isWord {
				words = append(words, word.String())
				word.Reset()
			}
			isWord = false
		default:
			word.WriteRune(letter)
			isWord = true
		}
	}
	if isWord {
		words = append(words, word.String())
	}
	return words, quote == 0 && !isTaken
}
