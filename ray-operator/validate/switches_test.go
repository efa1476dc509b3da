package validate_test

import (
	"reflect"
	"strings"
	"testing"

	"github.com/heliostat-dev/heliostat/ray-operator/api/v1beta1"
	"github.com/heliostat-dev/heliostat/ray-operator/validate"
)

// TestOmitFalse_KnowsEverySwitch: no switch of a cluster that is false is left.
func TestOmitFalse_KnowsEverySwitch(t *testing.T) {
	var spec v1beta1.ComputeClusterSpec
	if set := eachSwitch(reflect.ValueOf(&spec).Elem(), "spec", true); len(set) < 5 {
		t.Fatalf("the switches are %v, want 5 at least", set)
	}
	validate.OmitFalse(&spec)
	if left := eachSwitch(reflect.ValueOf(&spec).Elem(), "spec", false); len(left) > 0 {
		t.Errorf("%v are still there", left)
	}
	spec.WorkerGroups[0].Suspend = new(true)
	if validate.OmitFalse(&spec); spec.WorkerGroups[0].Suspend == nil {
		t.Error("a switch that is true was left out")
	}
}

// eachSwitch returns the pointers to a bool in types of ours that are there, and makes them with all on their way where
// it is to.
func eachSwitch(value reflect.Value, path string, makes bool) []string {
	switch {
	case value.Type() == reflect.TypeFor[*bool]():
		if makes {
			value.Set(reflect.ValueOf(new(bool)))
		}
		if !value.IsNil() {
			return []string{path}
		}
	case value.Kind() == reflect.Pointer && isOurs(value.Type().Elem()):
		if makes {
			value.Set(reflect.New(value.Type().Elem()))
		}
		if !value.IsNil() {
			return eachSwitch(value.Elem(), path, makes)
		}
	case value.Kind() == reflect.Slice && isOurs(value.Type().Elem()):
		if makes {
			value.Set(reflect.MakeSlice(value.Type(), 1, 1))
		}
		var all []string
		for i := range value.Len() {
			all = append(all, eachSwitch(value.Index(i), path+"[]", makes)...)
		}
		return all
	case value.Kind() == reflect.Struct && isOurs(value.Type()):
		var all []string
		for i := range value.NumField() {
			all = append(all, eachSwitch(value.Field(i), path+"."+value.Type().Field(i).Name, makes)...)
		}
		return all
	}
	return nil
}

func isOurs(of reflect.Type) bool { return strings.HasSuffix(of.PkgPath(), "/api/v1beta1") }
