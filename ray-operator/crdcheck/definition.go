package crdcheck

import (
	"embed"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"sync"

	"k8s.io/apiextensions-apiserver/pkg/apis/apiextensions"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	structuralschema "k8s.io/apiextensions-apiserver/pkg/apiserver/schema"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/cel"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/validation"
	celconfig "k8s.io/apiserver/pkg/apis/cel"
	"k8s.io/kube-openapi/pkg/validation/spec"

	"github.com/heliostat-dev/heliostat/ray-operator/validate"
)

// The schemas of the CRDs, without descriptions and status, as "make generate" writes them.
//
//go:embed schemas/*.json
var schemas embed.FS

// definition is a CRD that can be asked about objects, with the rules of its kind.
type definition struct {
	structural *structuralschema.Structural
	openAPI    *spec.Schema
	rules      *cel.Validator
	// contained is the spec of another kind in its objects, nil where there is none.
	contained *contained
	catalogue
	// askPolicies returns what the admission policy refuses. Without a former object it is created.
	askPolicies func(former, object map[string]any) (validate.Findings, error)
}

// kinds are the definitions by kind, each compiled when it is first asked for.
var kinds = map[string]func() (*definition, error){
	"ComputeCluster": cluster, "ClusterJob": job, "ClusterService": service, "ClusterJobSchedule": schedule,
}

var (
	cluster = sync.OnceValues(func() (*definition, error) {
		return compile("computeclusters", validate.Rules(), policies(validate.Cluster, validate.Update), nil)
	})
	job = sync.OnceValues(func() (*definition, error) {
		of, err := cluster()
		if err != nil {
			return nil, err
		}
		return compile("clusterjobs", slices.Concat(validate.Rules(), validate.JobRules()), policies(validate.Job, validate.JobUpdate),
			&contained{path: []string{specField, "clusterTemplate", specField}, of: of})
	})
	service = sync.OnceValues(func() (*definition, error) {
		of, err := cluster()
		if err != nil {
			return nil, err
		}
		return compile("clusterservices", slices.Concat(validate.Rules(), validate.ServiceRules()), policies(validate.Service, nil),
			&contained{path: []string{specField, "clusterTemplate", specField}, of: of, isChangeable: true})
	})
	schedule = sync.OnceValues(func() (*definition, error) {
		of, err := job()
		if err != nil {
			return nil, err
		}
		rules := slices.Concat(validate.Rules(), validate.JobTemplateRules(), validate.ScheduleRules())
		return compile("clusterjobschedules", rules, policies(validate.Schedule, nil),
			&contained{path: []string{specField, "jobTemplate", specField}, of: of, isChangeable: true})
	})
)

// Kinds returns the kinds that can be checked, in alphabetical order.
func Kinds() []string { return slices.Sorted(maps.Keys(kinds)) }

// compile makes a definition of the schema of a kind, which the API server calls by this name, and of its rules.
func compile(
	name string, rules []validate.Rule, ask func(former, object map[string]any) (validate.Findings, error), within *contained,
) (*definition, error) {
	props, err := readSchema(name)
	if err != nil {
		return nil, err
	}
	d := &definition{catalogue: newCatalogue(rules), contained: within}
	if d.structural, err = structuralschema.NewStructural(props); err != nil {
		return nil, fmt.Errorf("read the structure of the schema: %w", err)
	}
	if _, d.openAPI, err = validation.NewSchemaValidator(props); err != nil {
		return nil, fmt.Errorf("compile the schema: %w", err)
	}
	var path []string
	if within != nil {
		path = within.path
	}
	asked := forRules(*d.structural, path, false)
	d.rules = cel.NewValidator(&asked, true, celconfig.PerCallLimit)
	if within != nil {
		within.share(d)
	}
	d.askPolicies = func(former, object map[string]any) (validate.Findings, error) {
		all, err := ask(former, object)
		return slices.DeleteFunc(all, func(f validate.Finding) bool { return !d.isPolicy[f.Rule] }), err
	}
	return d, nil
}

func readSchema(name string) (*apiextensions.JSONSchemaProps, error) {
	text, err := schemas.ReadFile("schemas/" + name + ".json")
	if err != nil {
		return nil, fmt.Errorf("read the schema: %w", err)
	}
	var written apiextensionsv1.JSONSchemaProps
	if err := json.Unmarshal(text, &written); err != nil {
		return nil, fmt.Errorf("parse the schema: %w", err)
	}
	props := &apiextensions.JSONSchemaProps{}
	if err := apiextensionsv1.Convert_v1_JSONSchemaProps_To_apiextensions_JSONSchemaProps(&written, props, nil); err != nil {
		return nil, fmt.Errorf("convert the schema: %w", err)
	}
	return props, nil
}

// policies returns what asks the rules that stand in Go of the objects of a kind, which are as the API server holds them. Where
// no rule is about changes, there is no function for them.
func policies[T any](
	created func(object *T) validate.Findings, changed func(before, after *T) validate.Findings,
) func(former, object map[string]any) (validate.Findings, error) {
	return func(former, object map[string]any) (validate.Findings, error) {
		after, err := typed[T](object)
		if err != nil {
			return nil, err
		}
		if former == nil || changed == nil {
			return created(after), nil
		}
		before, err := typed[T](former)
		if err != nil {
			return nil, err
		}
		return changed(before, after), nil
	}
}

// typed returns the fields of an object as its Go type has them.
func typed[T any](fields map[string]any) (*T, error) {
	text, err := marshal(fields)
	if err != nil {
		return nil, err
	}
	object := new(T)
	if err := json.Unmarshal(text, object); err != nil {
		return nil, fmt.Errorf("parse: %w", err)
	}
	return object, nil
}

func marshal(object any) ([]byte, error) {
	text, err := json.Marshal(object)
	if err != nil {
		return nil, fmt.Errorf("write: %w", err)
	}
	return text, nil
}
