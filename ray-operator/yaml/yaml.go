// Package yaml reads texts of YAML that others wrote.
//
// In: a text, and how many bytes it may have with its anchors written out. Out: JSON, an object, the tree of the text or
// its scalars; or an error that says which bound the text exceeds.
//
// It must never write out an anchor before it knows how large the text becomes. The product reads YAML by this package
// alone, and tests/archtest refuses other calls of the libraries.
package yaml

import (
	"bytes"
	"encoding/base64"
	"fmt"
	"regexp"

	tree "go.yaml.in/yaml/v3"
	"sigs.k8s.io/yaml"
)

// Settings is how many bytes a file of an administrator's settings may have.
const Settings = 1 << 20

// MaxDepth is how deep values may lie. An object of Kubernetes needs a third of it.
const MaxDepth = 100

// perValue is what a value counts beside its bytes: lists of nothing take memory too.
const perValue = 8

// BoundError is that a text exceeds a bound. Its words say which one, and what helps.
type BoundError struct{ words string }

func (b *BoundError) Error() string { return b.words }

// ToJSON returns a text as JSON. It refuses keys that are there twice, and a text that exceeds a bound.
func ToJSON(text []byte, most int) ([]byte, error) {
	if err := check(text, most); err != nil {
		return nil, err
	}
	written, err := yaml.YAMLToJSONStrict(text)
	if err != nil {
		return nil, err
	}
	if depthOf(written) > MaxDepth {
		return nil, tooDeep()
	}
	return written, CheckQuantities(written)
}

// longExponent is a text that Kubernetes reads as a quantity at length: 1e-100000000 is rounded by a number of a hundred million
// digits, and so is 0e2000000000 multiplied. No quantity needs either, and a text of another meaning hardly looks so.
var longExponent = regexp.MustCompile(`"\s*[+-]?[0-9]*\.?[0-9]*[eE](?:-[0-9]{3}|\+?[0-9]{8})[0-9]*\s*"`)

// maxDigits is how many digits a quantity may have: a million of them take seconds to read, and 2 GiB.
const maxDigits = 1000

// digits is a text that begins as a quantity does.
var digits = regexp.MustCompile(`"\s*[+-]?([0-9.]+)`)

// CheckQuantities returns a BoundError where a text of JSON, as Go writes it, has a quantity that takes long to read. Call it
// before a text that others wrote is read into an object with quantities.
func CheckQuantities(text []byte) error {
	if found := longExponent.Find(text); found != nil {
		return &BoundError{fmt.Sprintf("the exponent of %.40s is too long; write the number out", found)}
	}
	for at := digits.FindSubmatchIndex(text); at != nil; at = digits.FindSubmatchIndex(text) {
		if number := text[at[2]:at[3]]; len(number) > maxDigits {
			return &BoundError{fmt.Sprintf("the number %.40s… has more than %d digits; write a shorter one", number, maxDigits)}
		}
		text = text[at[1]:]
	}
	return nil
}

// Unmarshal reads a text into an object. It refuses what ToJSON refuses, and fields that the object does not have.
func Unmarshal(text []byte, most int, into any) error {
	if _, err := ToJSON(text, most); err != nil {
		return err
	}
	return yaml.UnmarshalStrict(text, into)
}

// Tree returns a text as a tree, in which anchors are not written out. It is nil for a text without values.
func Tree(text []byte, most int) (*tree.Node, error) {
	if len(text) > most {
		return nil, tooLong(most)
	}
	var root tree.Node
	if err := tree.Unmarshal(text, &root); err != nil {
		return nil, err
	}
	if len(root.Content) == 0 {
		return nil, nil
	}
	return root.Content[0], nil
}

// Scalars returns the texts and numbers of a text as they are written, but for keys. What an anchor names is returned
// once, however often it is used. A text that is one scalar has none.
func Scalars(text []byte, most int) ([]string, error) {
	root, err := Tree(text, most)
	if err != nil || root == nil || root.Kind == tree.ScalarNode {
		return nil, err
	}
	return scalarsOf(root, nil), nil
}

func scalarsOf(node *tree.Node, all []string) []string {
	switch node.Kind {
	case tree.MappingNode:
		for i := 1; i < len(node.Content); i += 2 {
			all = scalarsOf(node.Content[i], all)
		}
	case tree.SequenceNode:
		for _, inner := range node.Content {
			all = scalarsOf(inner, all)
		}
	case tree.ScalarNode:
		switch node.ShortTag() {
		case "!!null", "!!bool":
		case "!!binary":
			all = append(all, node.Value)
			if plain, err := base64.StdEncoding.DecodeString(node.Value); err == nil {
				all = append(all, string(plain))
			}
		default:
			all = append(all, node.Value)
		}
	}
	return all
}

// check returns which bound a text exceeds, or why it cannot be read. Only a text with an asterisk can use an anchor.
func check(text []byte, most int) error {
	if len(text) > most {
		return tooLong(most)
	}
	if !bytes.ContainsRune(text, '*') {
		return nil
	}
	root, err := Tree(text, most)
	if err != nil || root == nil {
		return err
	}
	m := measure{most: most, known: map[*tree.Node]extent{}}
	switch whole := m.extentOf(root); {
	case whole.size > most:
		return &BoundError{fmt.Sprintf("the text has more than %s when its anchors are written out; write out what it needs",
			amount(most))}
	case whole.depth > MaxDepth:
		return tooDeep()
	}
	return nil
}

func tooLong(most int) error {
	return &BoundError{fmt.Sprintf("the text has more than %s; divide it", amount(most))}
}

func tooDeep() error {
	return &BoundError{fmt.Sprintf("the values of the text lie more than %d deep; simplify it", MaxDepth)}
}

// amount returns a number of bytes for people.
func amount(bytes int) string {
	if bytes < 1<<20 {
		return fmt.Sprintf("%d KiB", bytes>>10)
	}
	return fmt.Sprintf("%d MiB", bytes>>20)
}

// extent is how large a value is with its anchors written out, and how deep.
type extent struct{ size, depth int }

// measure finds the extents of nodes, of each anchor once.
type measure struct {
	most  int
	known map[*tree.Node]extent
}

// extentOf returns the extent of a node. Its size is more than most where it would exceed that, however large it is: an
// anchor within itself never ends.
func (m *measure) extentOf(node *tree.Node) extent {
	if node.Kind == tree.AliasNode {
		if known, is := m.known[node.Alias]; is {
			return known
		}
		return extent{size: m.most + 1} // it is within itself: its own extent is not known before it ends
	}
	sum := extent{size: len(node.Value) + perValue}
	for _, inner := range node.Content {
		one := m.extentOf(inner)
		sum.depth = max(sum.depth, one.depth+1)
		if sum.size += one.size; sum.size > m.most {
			sum.size = m.most + 1
			break
		}
	}
	if node.Anchor != "" {
		m.known[node] = sum
	}
	return sum
}

// depthOf returns how deep the lists and objects of a text of JSON lie in each other.
func depthOf(text []byte) int {
	depth, deepest, isInText := 0, 0, false
	for i := 0; i < len(text); i++ {
		switch {
		case isInText && text[i] == '\\':
			i++
		case text[i] == '"':
			isInText = !isInText
		case isInText:
		case text[i] == '[', text[i] == '{':
			depth++
			deepest = max(deepest, depth)
		case text[i] == ']', text[i] == '}':
			depth--
		}
	}
	return deepest
}
