package document

import (
	"fmt"

	"go.yaml.in/yaml/v3"
)

// checkSize returns whether a document has more bytes than it may when its anchors are written out. It writes none out.
func checkSize(text []byte, most int) error {
	var root yaml.Node
	if err := yaml.Unmarshal(text, &root); err != nil {
		return err
	}
	s := sizes{most: most, of: map[*yaml.Node]int{}}
	if s.size(&root) > most {
		return fmt.Errorf("the document has more than %d MiB when its anchors are written out; write out what it needs",
			most>>20)
	}
	return nil
}

// sizes counts the bytes of nodes, each anchor once.
type sizes struct {
	most int
	of   map[*yaml.Node]int
}

// size returns about how many bytes a node has, and more than most where that is so: an anchor within itself never ends.
func (s *sizes) size(node *yaml.Node) int {
	if node.Kind == yaml.AliasNode {
		if known, is := s.of[node.Alias]; is {
			return known
		}
		return s.most + 1 // it is within itself: its own size is not known before it ends
	}
	sum := len(node.Value) + 1
	for _, inner := range node.Content {
		if sum += s.size(inner); sum > s.most {
			sum = s.most + 1
			break
		}
	}
	if node.Anchor != "" {
		s.of[node] = sum
	}
	return sum
}
