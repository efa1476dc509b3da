package main

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/heliostat-dev/heliostat/apiserver/rest"
)

func TestRoutesPage_HasARowForEachCall(t *testing.T) {
	const said = "// GetMe returns a\n// caller.\nrpc GetMe(A) returns (B) {\n"
	protocol := filepath.Join(t.TempDir(), "a.proto")
	if err := os.WriteFile(protocol, []byte(said), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := routesPage(protocol, rest.Routes()); err == nil || !strings.Contains(err.Error(), "ListNamespaces") {
		t.Errorf("a call without a comment is %v", err)
	}
	if got := commentsOf(said)["GetMe"]; got != "returns a caller." {
		t.Errorf("the comment is %q", got)
	}
}

func TestOpenAPI_TellsKindsApart(t *testing.T) {
	text, err := openAPI("../../proto/gen/heliostat/v1/portal.openapi.json", "../../ray-operator/config/crd")
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
	if err := json.Unmarshal([]byte(text), &document); err != nil {
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
