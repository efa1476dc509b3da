package reconcile

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"strings"
	"unicode/utf8"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/heliostat-dev/heliostat/ray-operator/api/v1beta1"
)

// Editor writes an object whose metadata or spec was changed; kube.Writer does.
type Editor interface {
	Edit(ctx context.Context, seen, wanted client.Object) error
}

// WriteRecord writes an object's record, with what else edit changes of its metadata, in one write, and brings the object
// to what is there then.
func WriteRecord[T client.Object](ctx context.Context, writer Editor, obj T, text string, edit func(wanted T)) error {
	wanted, _ := obj.DeepCopyObject().(T)
	annotations := maps.Clone(obj.GetAnnotations())
	if annotations == nil {
		annotations = map[string]string{}
	}
	annotations[v1beta1.AnnotationRecord] = text
	wanted.SetAnnotations(annotations)
	if edit != nil {
		edit(wanted)
	}
	if err := writer.Edit(ctx, obj, wanted); err != nil {
		return err
	}
	obj.SetResourceVersion(wanted.GetResourceVersion())
	obj.SetAnnotations(wanted.GetAnnotations())
	obj.SetFinalizers(wanted.GetFinalizers())
	return nil
}

// Fit returns a record as JSON in at most so many bytes: while it has more, shorten takes away what is needed least, and
// reports whether there was anything to take. The characters of HTML stay as they are, which takes a sixth of the room.
func Fit(record any, most int, shorten func() bool) string {
	for {
		var text strings.Builder
		encoder := json.NewEncoder(&text)
		encoder.SetEscapeHTML(false)
		_ = encoder.Encode(record) // what is written by it always marshals
		if said := strings.TrimSuffix(text.String(), "\n"); len(said) <= most || !shorten() {
			return said
		}
	}
}

// ParseRecord reads a record again from what Fit wrote of it. It fails on text that is not: longer than most bytes, not
// JSON, or with contents of which check says what is wrong.
func ParseRecord[T any](text string, most int, check func(*T) error) (T, error) {
	var record, none T
	if len(text) > most {
		return none, fmt.Errorf("parse record: %d bytes, at most %d", len(text), most)
	}
	err := json.Unmarshal([]byte(text), &record)
	if err == nil {
		err = check(&record)
	}
	if err != nil {
		return none, fmt.Errorf("parse record: %w", err)
	}
	return record, nil
}

// Shorten drops the first half of a text, as its end says most.
func Shorten(text string) string {
	text = text[(len(text)+1)/2:]
	for text != "" && !utf8.RuneStart(text[0]) {
		text = text[1:] // the rest of a character
	}
	return text
}
