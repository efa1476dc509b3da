package rest

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"iter"
	"maps"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/heliostat-dev/heliostat/portal/limits"
	"github.com/heliostat-dev/heliostat/portal/problem"
	heliostatv1 "github.com/heliostat-dev/heliostat/proto/gen/heliostat/v1"
	"github.com/heliostat-dev/heliostat/ray-operator/convert"
	"github.com/heliostat-dev/heliostat/ray-operator/convert/document"
)

const (
	// maxDocument is how many bytes a document may have with its anchors written out: as YAML it takes a hundred times as much
	// memory. Kubernetes keeps no larger object.
	maxDocument = 1 << 20
	// maxRows is how many rows one conversion may answer with, and maxValues how many values its objects may have. No
	// migration that a person reads has more.
	maxRows, maxValues = 20_000, 500_000
	// unread is the verdict on a document that is no object.
	unread = "unread"
	// exactly is up to where the protocol has each whole number: it has numbers as doubles.
	exactly = 1 << 53
)

// ConvertManifests implements the protocol. It asks for no right: it reads and creates nothing.
func (p *portal) ConvertManifests(
	ctx context.Context, r *heliostatv1.ConvertManifestsRequest,
) (*heliostatv1.ConvertManifestsResponse, error) {
	if strings.TrimSpace(r.GetManifests()) == "" {
		return nil, problem.Bad("manifests", "is empty", "send objects of ray.io/v1 or jobs of Kubeflow as YAML or JSON")
	}
	options, err := optionsOf(r)
	if err != nil {
		return nil, err
	}
	over, err := p.takeTurn(ctx, "wait for the answers of other conversions")
	if err != nil {
		return nil, err
	}
	defer over()
	documents := document.Read([]byte(r.GetManifests()), maxDocument)
	for i := range documents {
		options.Kubeflow.AddRuntime(documents[i].Object)
	}
	made := conversion{options: options}
	for i := range documents {
		if err := made.add(&documents[i]); err != nil {
			return nil, err
		}
		if ctx.Err() != nil {
			return nil, ctx.Err()
		}
	}
	for _, unused := range options.Kubeflow.Unused(made.used, made.answer.GetRefused()+made.answer.GetUnread() == 0) {
		made.answer.Unused = append(made.answer.Unused, &heliostatv1.FieldError{Field: fieldOf(unused.Choice), Message: unused.Text, Remedy: unused.Remedy})
	}
	return &made.answer, nil
}

// fieldOf is the field of a request that has a choice.
func fieldOf(choice string) string {
	return cmp.Or(map[string]string{"image": "images", "label-selector": "labelSelectors"}[choice], choice)
}

// optionsOf reads what the caller chose.
func optionsOf(r *heliostatv1.ConvertManifestsRequest) (convert.Options, error) {
	choices := convert.Choices{Onto: r.GetOnto(), Command: r.GetCommand(), Images: r.GetImages(), Selectors: r.GetLabelSelectors()}
	made, err := choices.Read()
	if wrong := (*convert.ChoiceError)(nil); errors.As(err, &wrong) {
		return convert.Options{}, problem.Bad(fieldOf(wrong.Choice), wrong.Text, wrong.Remedy)
	}
	return convert.Options{Aliases: r.GetAliases(), KeepOpen: r.GetKeepOpen(), Kubeflow: made}, err
}

// takeTurn waits until nothing else large is judged or converted.
func (p *portal) takeTurn(ctx context.Context, remedy string) (over func(), err error) {
	caller, err := callerOf(ctx)
	if err != nil {
		return nil, err
	}
	over, err = p.turns.Take(ctx, caller.Holder())
	if errors.Is(err, limits.ErrCallerFull) {
		return nil, problem.New(http.StatusTooManyRequests, "TooManyRequests", err.Error(), remedy).Later(time.Second)
	}
	return over, err
}

// conversion is an answer that is being made.
type conversion struct {
	options convert.Options
	answer  heliostatv1.ConvertManifestsResponse
	// used are choices that made a difference.
	used []convert.Used
	// values counts those of the objects that were read.
	values int
}

// add converts a document, and adds what comes out and each row.
func (c *conversion) add(one *document.Document) error {
	why := one.Problem
	if why == nil {
		why = c.check(one.Object.Object, MaxDepth)
	}
	if c.values > maxValues {
		return tooMuch(fmt.Sprintf("the documents have more than %d values", maxValues))
	}
	if why != nil {
		c.answer.Unread++
		return c.addRow(one, one.Line, convert.Row{Verdict: unread, Text: why.Error()})
	}
	result := convert.Object(one.Object, c.options)
	c.used = append(c.used, result.Used...)
	if result.Refused() {
		c.answer.Refused++
	}
	if result.Differs() {
		c.answer.Differing++
	}
	for _, placed := range one.Place(result.Rows) {
		if err := c.addRow(one, placed.Line, placed.Row); err != nil {
			return err
		}
	}
	for _, object := range result.Objects {
		fields, err := toStruct(object.Object)
		if err != nil {
			return err
		}
		c.answer.Objects = append(c.answer.Objects, fields)
	}
	return nil
}

func (c *conversion) addRow(of *document.Document, line int, row convert.Row) error {
	if len(c.answer.GetFields()) == maxRows {
		return tooMuch(fmt.Sprintf("more than %d fields would be reported", maxRows))
	}
	field := &heliostatv1.ConvertedField{
		Document: int32(of.Number), Line: int32(line), Field: row.Path,
		Verdict: string(row.Verdict), To: row.To, Differs: row.Differs, Text: row.Text,
	}
	if row.Verdict != unread {
		field.Kind, field.Namespace, field.Name = of.Object.GetKind(), of.Object.GetNamespace(), of.Object.GetName()
	}
	c.answer.Fields = append(c.answer.Fields, field)
	return nil
}

func tooMuch(detail string) error {
	return problem.New(http.StatusRequestEntityTooLarge, "RequestEntityTooLarge", detail, "send fewer documents at once")
}

// check counts the values of an object, and returns why the protocol cannot have one: it lies too deep, or would be rounded.
func (c *conversion) check(value any, levels int) error {
	c.values++
	var inner iter.Seq[any]
	switch value := value.(type) {
	case int64:
		if value > exactly || value < -exactly {
			return fmt.Errorf("the number %d cannot be kept exactly here; use the command heliostat convert", value)
		}
		return nil
	case map[string]any:
		inner = maps.Values(value)
	case []any:
		inner = slices.Values(value)
	default:
		return nil
	}
	if levels == 0 {
		return fmt.Errorf("the document has values deeper than %d; send a flatter one", MaxDepth)
	}
	for one := range inner {
		if err := c.check(one, levels-1); err != nil {
			return err
		}
	}
	return nil
}
