package main

import (
	"bytes"
	"encoding/json"
	"strings"
	"testing"
)

func TestWriteRoutes_HasARowForEachCall(t *testing.T) {
	protocol := "// GetMe returns a\n// caller.\nrpc GetMe(A) returns (B) {\n"
	if err := writeRoutes(&strings.Builder{}, strings.NewReader(protocol)); err == nil || !strings.Contains(err.Error(), "ListNamespaces") {
		t.Errorf("a call without a comment is %v", err)
	}
	comments, err := readComments(strings.NewReader(protocol))
	if err != nil || comments["GetMe"] != "returns a caller." {
		t.Errorf("the comments are %q (%v)", comments, err)
	}
}

func TestPrintOpenAPI_TellsKindsApart(t *testing.T) {
	var out bytes.Buffer
	err := printOpenAPI(&out, "../../../proto/gen/heliostat/v1/portal.openapi.json", "../../../ray-operator/config/crd")
	if err != nil {
		t.Fatal(err)
	}
	var document struct {
		Components struct {
			Schemas map[string]struct {
				AnyOf []struct {
					Ref string `json:"$ref"`
				}
				Properties struct{ APIVersion, Kind struct{ Const string } }
			}
		}
	}
	if err := json.Unmarshal(out.Bytes(), &document); err != nil {
		t.Fatal(err)
	}
	all := document.Components.Schemas
	kinds := all[objectName].AnyOf
	if len(kinds) != 4 {
		t.Fatalf("an object is one of %d kinds", len(kinds))
	}
	for _, one := range kinds {
		name := strings.TrimPrefix(one.Ref, schemas)
		is := all[name].Properties
		if is.APIVersion.Const != "heliostat.dev/v1beta1" || name != "dev.heliostat.v1beta1."+is.Kind.Const {
			t.Errorf("%s matches objects of apiVersion %q and kind %q", name, is.APIVersion.Const, is.Kind.Const)
		}
	}
}
