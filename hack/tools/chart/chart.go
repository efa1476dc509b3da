// Package chart renders the chart as Helm does and reads what comes out as Kubernetes does.
//
// In: options of helm template. Out: the objects, decoded strictly, so that a misspelt field
// is an error. It runs the real helm, whose path the variable HELM holds; it must never reach
// a Kubernetes.
package chart

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/serializer/json"
	"k8s.io/apimachinery/pkg/util/yaml"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
)

// dir of the chart, seen from this package.
const dir = "../../../helm-chart/heliostat"

// Render gives the manifests that helm would install.
func Render(options ...string) (string, error) {
	helm := os.Getenv("HELM")
	if helm == "" {
		return "", errors.New(`find helm: HELM is not set: run "make chart", or "make bin/helm" and export HELM=$PWD/bin/helm`)
	}
	var out, problems bytes.Buffer
	args := append([]string{"template", "test", dir, "--namespace", "there"}, options...)
	command := exec.Command(helm, args...)
	command.Stdout, command.Stderr = &out, &problems
	if err := command.Run(); err != nil {
		return "", fmt.Errorf("run helm %s: %w: %s", strings.Join(args, " "), err, problems.String())
	}
	return out.String(), nil
}

// Decode reads manifests strictly.
func Decode(manifests string) ([]runtime.Object, error) {
	scheme := runtime.NewScheme()
	if err := errors.Join(clientgoscheme.AddToScheme(scheme), apiextensionsv1.AddToScheme(scheme), addMonitoring(scheme), addGateway(scheme)); err != nil {
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
