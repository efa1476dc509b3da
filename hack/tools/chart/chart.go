// Package chart renders the chart as Helm does and reads what comes out as Kubernetes does.
//
// In: options of helm template. Out: the objects, decoded strictly, so that a misspelt field
// is an error. Helm's own engine renders in this process, which takes a fraction of a run of
// the program helm; a test compares the two. It must never reach a Kubernetes.
package chart

import (
	"bytes"
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"slices"
	"strings"
	"sync"

	"helm.sh/helm/v4/pkg/chart/common"
	commonutil "helm.sh/helm/v4/pkg/chart/common/util"
	chartv2 "helm.sh/helm/v4/pkg/chart/v2"
	"helm.sh/helm/v4/pkg/chart/v2/loader"
	chartutil "helm.sh/helm/v4/pkg/chart/v2/util"
	"helm.sh/helm/v4/pkg/engine"
	releaseutil "helm.sh/helm/v4/pkg/release/v1/util"
	"helm.sh/helm/v4/pkg/strvals"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/serializer/json"
	"k8s.io/apimachinery/pkg/util/yaml"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
)

// dir of the chart, seen from this package.
const dir = "../../../helm-chart/heliostat"

// Options of helm template that Render adds to those that it is given. The program helm takes its version of Kubernetes
// from its client-go.
const (
	releaseName      = "test"
	releaseNamespace = "there"
	kubeVersion      = "v1.37.0"
)

// readChart reads the chart once. Nothing changes it: each rendering copies its values.
var readChart = sync.OnceValues(func() (*chartv2.Chart, error) { return loader.LoadDir(dir) })

// Render returns the manifests that helm template would print.
func Render(options ...string) (string, error) {
	return renderBy(func(chart *chartv2.Chart, values common.Values) (map[string]string, error) {
		return engine.Engine{}.RenderWithContext(context.Background(), chart, values)
	}, options)
}

// RenderOver returns the manifests that helm install would apply to a Kubernetes in which templates look objects up.
func RenderOver(kubernetes engine.ClientProvider, options ...string) (string, error) {
	return renderBy(func(chart *chartv2.Chart, values common.Values) (map[string]string, error) {
		return engine.RenderWithClientProvider(chart, values, kubernetes)
	}, options)
}

// renderBy renders the chart with what options say.
func renderBy(render func(*chartv2.Chart, common.Values) (map[string]string, error), options []string) (string, error) {
	chart, err := readChart()
	if err != nil {
		return "", fmt.Errorf("read the chart: %w", err)
	}
	values, capabilities, err := parseOptions(options)
	if err != nil {
		return "", fmt.Errorf("read the options %q: %w", options, err)
	}
	if want, have := chart.Metadata.KubeVersion, capabilities.KubeVersion.String(); !chartutil.IsCompatibleRange(want, have) {
		return "", fmt.Errorf("render with %q: the chart needs Kubernetes %s, not %s", options, want, have)
	}
	release := common.ReleaseOptions{Name: releaseName, Namespace: releaseNamespace, Revision: 1, IsInstall: true}
	all, err := commonutil.ToRenderValues(chart, values, release, capabilities)
	if err != nil {
		return "", fmt.Errorf("check the values of %q: %w", options, err)
	}
	files, err := render(chart, all)
	if err != nil {
		return "", fmt.Errorf("render with %q: %w", options, err)
	}
	delete(files, chart.Name()+"/templates/NOTES.txt")
	return joinManifests(files)
}

// joinManifests returns rendered files in the order in which Helm installs what they hold.
func joinManifests(files map[string]string) (string, error) {
	hooks, manifests, err := releaseutil.SortManifests(files, nil, releaseutil.InstallOrder)
	if err != nil {
		return "", fmt.Errorf("sort the manifests: %w", err)
	}
	var out strings.Builder
	for _, one := range manifests {
		fmt.Fprintf(&out, "---\n# Source: %s\n%s\n", one.Name, one.Content)
	}
	for _, one := range hooks {
		fmt.Fprintf(&out, "---\n# Source: %s\n%s\n", one.Path, one.Manifest)
	}
	return strings.TrimSpace(out.String()) + "\n", nil
}

// parseOptions reads options of helm template: values, and the version of Kubernetes and of its APIs. As Helm does, it
// merges JSON first and text last.
func parseOptions(options []string) (map[string]any, *common.Capabilities, error) {
	flags := flag.NewFlagSet("helm template", flag.ContinueOnError)
	flags.SetOutput(io.Discard)
	version := flags.String("kube-version", kubeVersion, "")
	apis := flags.String("api-versions", "", "")
	sorts := []struct {
		flag  string
		merge func(text string, into map[string]any) error
	}{{"set-json", strvals.ParseJSON}, {"set", strvals.ParseInto}, {"set-string", strvals.ParseIntoString}}
	given := map[string][]string{}
	for _, sort := range sorts {
		flags.Func(sort.flag, "", func(text string) error {
			given[sort.flag] = append(given[sort.flag], text)
			return nil
		})
	}
	if err := flags.Parse(options); err != nil {
		return nil, nil, fmt.Errorf("read the flags: %w", err)
	}
	if flags.NArg() > 0 {
		return nil, nil, fmt.Errorf("%w: %q", errArguments, flags.Args())
	}
	values := map[string]any{}
	for _, sort := range sorts {
		for _, text := range given[sort.flag] {
			if err := sort.merge(text, values); err != nil {
				return nil, nil, fmt.Errorf("read --%s %s: %w", sort.flag, text, err)
			}
		}
	}
	parsed, err := common.ParseKubeVersion(*version)
	if err != nil {
		return nil, nil, fmt.Errorf("read --kube-version %s: %w", *version, err)
	}
	capabilities := common.DefaultCapabilities.Copy()
	capabilities.KubeVersion = *parsed
	if *apis != "" {
		capabilities.APIVersions = append(slices.Clone(capabilities.APIVersions), *apis)
	}
	return values, capabilities, nil
}

var errArguments = errors.New("there are arguments beside the flags")

// newScheme builds the scheme once, which takes longer than to read all manifests.
var newScheme = sync.OnceValues(func() (*runtime.Scheme, error) {
	scheme := runtime.NewScheme()
	return scheme, errors.Join(clientgoscheme.AddToScheme(scheme), apiextensionsv1.AddToScheme(scheme), addMonitoring(scheme), addGateway(scheme))
})

// Decode reads manifests strictly.
func Decode(manifests string) ([]runtime.Object, error) {
	scheme, err := newScheme()
	if err != nil {
		return nil, fmt.Errorf("build the scheme: %w", err)
	}
	strict := json.NewSerializerWithOptions(json.DefaultMetaFactory, scheme, scheme, json.SerializerOptions{Yaml: true, Strict: true})
	documents := yaml.NewDocumentDecoder(io.NopCloser(strings.NewReader(manifests)))
	defer func() { _ = documents.Close() }() // closes a string
	var objects []runtime.Object
	document := make([]byte, len(manifests)+1)
	for {
		n, err := documents.Read(document)
		if errors.Is(err, io.EOF) {
			return objects, nil
		}
		if err != nil {
			return nil, fmt.Errorf("read a manifest: %w", err)
		}
		if !bytes.Contains(document[:n], []byte("kind:")) {
			continue // comments alone
		}
		object, _, err := strict.Decode(document[:n], nil, nil)
		if err != nil {
			return nil, fmt.Errorf("decode a manifest: %w: %.200s", err, document[:n])
		}
		objects = append(objects, object)
	}
}
