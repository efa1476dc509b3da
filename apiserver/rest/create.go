package rest

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strings"
	"unicode/utf8"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	kjson "sigs.k8s.io/json"

	"github.com/heliostat-dev/heliostat/apiserver/spelling"
	"github.com/heliostat-dev/heliostat/apiserver/verbs"
	"github.com/heliostat-dev/heliostat/apiserver/view"
	"github.com/heliostat-dev/heliostat/portal/access"
	"github.com/heliostat-dev/heliostat/portal/problem"
	heliostatv1 "github.com/heliostat-dev/heliostat/proto/gen/heliostat/v1"
	"github.com/heliostat-dev/heliostat/ray-operator/api/v1beta1"
	"github.com/heliostat-dev/heliostat/ray-operator/crdcheck"
	"github.com/heliostat-dev/heliostat/ray-operator/naming"
	"github.com/heliostat-dev/heliostat/ray-operator/validate"
	"github.com/heliostat-dev/heliostat/ray-operator/yaml"
)

// kubernetesKinds are the kinds as manifests name them.
var kubernetesKinds = []string{"ClusterJob", "ClusterJobSchedule", "ClusterService", "ComputeCluster"}

// maxKey is how many characters an idempotency key may have.
const maxKey = 128

type idempotencyKey struct{}

// withKey puts the header Idempotency-Key of a request into its context.
func withKey(ctx context.Context, header http.Header) (context.Context, error) {
	given := header.Values("Idempotency-Key")
	switch {
	case len(given) == 0:
		return ctx, nil
	case len(given) > 1:
		return ctx, problem.Bad("header Idempotency-Key", "is given more than once", "give it once")
	}
	return context.WithValue(ctx, idempotencyKey{}, given[0]), nil
}

// keyOf returns the idempotency key of a call.
func keyOf(ctx context.Context, r *heliostatv1.CreateObjectRequest) (string, error) {
	key := r.GetIdempotencyKey()
	if header, is := ctx.Value(idempotencyKey{}).(string); is {
		if key != "" && key != header {
			return "", problem.Bad("idempotencyKey", "differs from the header Idempotency-Key", "give one of them")
		}
		key = header
	}
	if utf8.RuneCountInString(key) > maxKey {
		return "", problem.Bad("idempotencyKey", fmt.Sprintf("has more than %d characters", maxKey), "shorten it")
	}
	return key, nil
}

// CreateObject implements the protocol.
func (p *portal) CreateObject(
	ctx context.Context, r *heliostatv1.CreateObjectRequest,
) (*heliostatv1.CreateObjectResponse, error) {
	if err := checkPath(map[string]string{"namespace": r.GetNamespace()}); err != nil {
		return nil, err
	}
	made, err := p.findManifest(ctx, r)
	if err != nil {
		return nil, err
	}
	object, err := made.object()
	if err != nil {
		return nil, err
	}
	resource := resourceOf(object)
	if err := p.may(ctx, attributes("create", resource, "", r.GetNamespace(), "")); err != nil {
		return nil, err
	}
	key, err := keyOf(ctx, r)
	if err != nil {
		return nil, err
	}
	fields, err := made.fields()
	if err != nil {
		return nil, err
	}
	text, err := writeManifest(made.above, fields, r.GetNamespace())
	if err != nil {
		return nil, err
	}
	err = p.inTurn(ctx, len(text), func() error {
		if err := readManifest(object, made.above, fields, text); err != nil {
			return err
		}
		if err := nameObject(ctx, object, fields, key, r); err != nil {
			return err
		}
		findings, err := findingsOf(made.kind, fields)
		if err == nil && len(findings) > 0 {
			return problem.OfFindings(made.above, findings)
		}
		return err
	})
	if err != nil {
		return nil, err
	}
	return p.create(ctx, access.ObjectName{Resource: resource, Namespace: r.GetNamespace(), Name: object.GetName()},
		fields, key, r.GetDryRun())
}

// inTurn judges a manifest of so many bytes. A large one waits until nothing else large is judged or converted: it takes a
// second of a CPU and several times the memory that is counted for its body. Manifests that people write are small, and wait for none.
func (p *portal) inTurn(ctx context.Context, bytes int, judge func() error) error {
	if bytes <= smallBody {
		return judge()
	}
	over, err := p.takeTurn(ctx, "wait for the answers of other large objects")
	if err != nil {
		return err
	}
	defer over()
	return judge()
}

// create creates an object as the caller. With a key it finds the object that a former call with that key created.
func (p *portal) create(
	ctx context.Context, of access.ObjectName, fields map[string]any, key string, isDry bool,
) (*heliostatv1.CreateObjectResponse, error) {
	caller, err := callerOf(ctx)
	if err != nil {
		return nil, err
	}
	created, warnings, err := p.Access.CreateObject(ctx, caller, of, fields, isDry)
	isCreated := err == nil && !isDry
	if apierrors.IsAlreadyExists(err) && key != "" {
		var former error
		if created, former = p.Access.FindObject(ctx, caller, of); former != nil {
			return nil, fmt.Errorf("find what exists: %w", former)
		}
		if annotation(created, v1beta1.AnnotationRequest) != annotation(fields, v1beta1.AnnotationRequest) {
			return nil, problem.New(http.StatusConflict, "AlreadyExists",
				fmt.Sprintf("%s %s exists, and is not of this request", of.Resource, of.Name),
				"use another key or another name")
		}
		err = nil
	}
	if err != nil {
		return nil, fmt.Errorf("create a %s: %w", of.Resource, err)
	}
	answer, err := toStruct(created)
	return &heliostatv1.CreateObjectResponse{Object: answer, IsCreated: isCreated, Warnings: warnings}, err
}

// annotation returns an annotation of an object, or "".
func annotation(fields map[string]any, name string) string {
	metadata, _ := fields["metadata"].(map[string]any)
	annotations, _ := metadata["annotations"].(map[string]any)
	value, _ := annotations[name].(string)
	return value
}

// manifest is what an object is made of.
type manifest struct {
	// above is what paths in it begin with.
	above string
	// kind is known before anything else of it is judged: the right to create depends on it.
	kind string
	// fields returns it, or why a preset does not make one of the options.
	fields func() (map[string]any, error)
}

// object returns an empty object of the manifest's kind.
func (m manifest) object() (verbs.Object, error) {
	object := newObject(m.kind)
	if object == nil {
		return nil, problem.Bad(m.above+".kind", fmt.Sprintf("%.80q is not served", m.kind),
			spelling.Remedy(m.kind, kubernetesKinds))
	}
	return object, nil
}

// findManifest returns the manifest of a request: the one that was given, or that of a preset.
func (p *portal) findManifest(ctx context.Context, r *heliostatv1.CreateObjectRequest) (manifest, error) {
	switch {
	case r.GetObject() == nil && r.GetPreset() == "":
		return manifest{}, problem.Bad("object", "is missing", "give an object, or a preset with its options")
	case r.GetObject() != nil && r.GetPreset() != "":
		return manifest{}, problem.Bad("preset", "cannot be given beside an object", "give one of them")
	case r.GetObject() != nil && r.GetOptions() != nil:
		return manifest{}, problem.Bad("options", "belong to a preset", "give a preset, or leave the options out")
	case r.GetPreset() != "":
		preset, err := p.findPreset(ctx, r)
		if err != nil {
			return manifest{}, err
		}
		return manifest{"manifest", preset.Kind(), func() (map[string]any, error) {
			return applyPreset(preset, r.GetOptions().AsMap())
		}}, nil
	}
	fields := r.GetObject().AsMap()
	kind, _ := fields["kind"].(string)
	return manifest{"object", kind, func() (map[string]any, error) { return fields, nil }}, nil
}

// writeManifest returns the fields of a manifest as JSON. It puts the namespace into them, and takes the status out.
func writeManifest(above string, fields map[string]any, namespace string) ([]byte, error) {
	if version := fields["apiVersion"]; version != v1beta1.GroupVersion.String() {
		return nil, problem.Bad(above+".apiVersion", fmt.Sprintf("%.80v is not served", version),
			"give "+v1beta1.GroupVersion.String())
	}
	metadata, is := fields["metadata"].(map[string]any)
	if !is && fields["metadata"] != nil {
		return nil, problem.Bad(above+".metadata", "must be an object", "send a JSON object")
	}
	if metadata == nil {
		metadata = map[string]any{}
		fields["metadata"] = metadata
	}
	if given, is := metadata["namespace"]; is && given != namespace {
		return nil, problem.Bad(above+".metadata.namespace", fmt.Sprintf("%.80v is not that of the path", given),
			"leave it out, or use the other path")
	}
	metadata["namespace"] = namespace
	delete(fields, "status")
	text, err := json.Marshal(fields)
	if err != nil {
		return nil, problem.Bad(above, "cannot be written as JSON", "correct it")
	}
	return text, nil
}

// readManifest reads a manifest, of which there are the fields and the text, into an object of its kind. It refuses fields that
// the kind does not have.
func readManifest(object verbs.Object, above string, fields map[string]any, text []byte) error {
	if err := yaml.CheckQuantities(text); err != nil {
		fact, remedy, _ := strings.Cut(err.Error(), "; ")
		return problem.Bad(above, "has a quantity that takes too long to read: "+fact, remedy)
	}
	strict, err := kjson.UnmarshalStrict(text, object)
	if err != nil {
		if found := spelling.FindMisfit(object, fields, err); found != nil {
			return problem.Bad(above+"."+found.Path, found.Fact, found.Remedy)
		}
		return problem.Bad(above, "has a wrong type: "+err.Error(), "correct it")
	}
	return unknownFields(above, object, strict)
}

// nameObject gives an object without a name one that is derived from caller and key, and notes what was asked for.
func nameObject(
	ctx context.Context, object verbs.Object, fields map[string]any, key string, r *heliostatv1.CreateObjectRequest,
) error {
	metadata, _ := fields["metadata"].(map[string]any) // writeManifest puts it there
	caller, err := callerOf(ctx)
	if err != nil {
		return err
	}
	annotations, _ := metadata["annotations"].(map[string]any)
	if annotations = maps.Clone(annotations); annotations == nil {
		annotations = map[string]any{}
	}
	metadata["annotations"] = annotations
	if _, is := annotations[v1beta1.AnnotationOwner]; !is {
		annotations[v1beta1.AnnotationOwner] = caller.User().Username
	}
	if key == "" {
		if object.GetName() == "" && object.GetGenerateName() == "" {
			return problem.Bad("object.metadata.name", "is missing",
				"give one, or a header Idempotency-Key by which one is made")
		}
		return nil
	}
	asked, err := naming.ObjectHash([]any{r.GetObject().AsMap(), r.GetPreset(), r.GetOptions().AsMap()})
	if err != nil {
		return fmt.Errorf("name a request: %w", err)
	}
	if object.GetName() == "" {
		// Nothing else of the body is in the name, so that another body with the same key meets the first one.
		object.SetName(naming.Request(view.KindOf(object), caller.User().Username, r.GetNamespace(), key))
		metadata["name"] = object.GetName()
		delete(metadata, "generateName")
		object.SetGenerateName("")
	}
	annotations[v1beta1.AnnotationRequest] = asked
	return nil
}

// How Kubernetes makes a name out of generateName: it cuts that off, and appends random letters.
const (
	maxGenerateName = 58
	anyLetters      = "xxxxx"
)

// findingsOf returns all that rules refuse of a new object, whose name Kubernetes may have to make yet.
func findingsOf(kind string, fields map[string]any) (validate.Findings, error) {
	metadata, _ := fields["metadata"].(map[string]any) // writeManifest puts it there
	name, _ := metadata["name"].(string)
	if prefix, is := metadata["generateName"].(string); is && name == "" && prefix != "" {
		metadata = maps.Clone(metadata)
		metadata["name"] = prefix[:min(len(prefix), maxGenerateName)] + anyLetters
		fields = maps.Clone(fields)
		fields["metadata"] = metadata
	}
	answer, err := crdcheck.Create(kind, fields)
	if err != nil {
		return nil, fmt.Errorf("ask the rules: %w", err)
	}
	return answer.Findings, nil
}

// unknownFields returns the fields of a manifest that its kind does not have, each with the known name that is nearest.
func unknownFields(above string, object verbs.Object, strict []error) error {
	var found *problem.Problem
	for _, one := range strict {
		path, is := spelling.UnknownField(one)
		if !is {
			return problem.Bad(above, one.Error(), "correct it")
		}
		bad := problem.Bad(above+"."+path, "is no field", spelling.FieldRemedy(object, path))
		if found == nil {
			found = bad
			continue
		}
		found.Errors = append(found.Errors, bad.Errors...)
	}
	if found == nil {
		return nil
	}
	slices.SortFunc(found.Errors, func(a, b problem.FieldError) int {
		return strings.Compare(a.Field, b.Field)
	})
	return found
}
