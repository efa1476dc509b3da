// Package anything makes specs that no CRD accepts, for tests of what reads them all the same.
//
// In: a seed and a spec. Out: the spec with values that its Go type can hold. The same seed gives the same values. Nothing
// that users run imports it.
package anything

import (
	"encoding/json"
	"math"
	"math/rand/v2"
	"reflect"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/intstr"
	"sigs.k8s.io/randfill"

	"github.com/heliostat-dev/heliostat/ray-operator/api/v1beta1"
)

// Values that specs have where no schema bounds them, among good ones.
var (
	anyNumbers = []int64{math.MinInt32, -1, 0, 1, 2, 3, 60, 10000, math.MaxInt32}
	anyTexts   = []string{
		"", "a", "cpu", "ray", "heliostat.dev/operator", "UPPER case", "-", "Enabled", "Disabled", "Token", "RollingWorkers", "Recreate", "Surge",
		"InPlace", "NodePort", "LoadBalancer", "Suspend", "Volcano", "2.60.0", "1.0", "redis://redis:6379", "10%", "/", "*/5 * * * *", "a.b/c",
	}
	anyAmounts = []string{"0", "-1", "1", "1n", "100Mi", "1Gi", "100T", "9223372036854775807"}
	anyJSON    = []string{"", "null", `"text"`, "[]", "{}", `{"applications":[{"name":"a","import_path":"a:b"}]}`, `{"applications":1}`, `{"env_vars":{"A":1}}`}
)

// fill fills an object with what its Go type can hold.
func fill(seed int64, object any) {
	filler := randfill.NewWithSeed(seed).NilChance(0.4).NumElements(0, 3).MaxDepth(30).Funcs(
		func(text *string, c randfill.Continue) { *text = anyTexts[c.Intn(len(anyTexts))] },
		func(number *int32, c randfill.Continue) { *number = int32(anyNumbers[c.Intn(len(anyNumbers))]) },
		func(number *int64, c randfill.Continue) { *number = anyNumbers[c.Intn(len(anyNumbers))] },
		func(amount *resource.Quantity, c randfill.Continue) {
			*amount = resource.MustParse(anyAmounts[c.Intn(len(anyAmounts))])
		},
		func(raw *runtime.RawExtension, c randfill.Continue) { raw.Raw = []byte(anyJSON[c.Intn(len(anyJSON))]) },
		func(either *intstr.IntOrString, c randfill.Continue) {
			*either = intstr.FromString(anyTexts[c.Intn(len(anyTexts))])
			if c.Bool() {
				*either = intstr.FromInt32(int32(anyNumbers[c.Intn(len(anyNumbers))]))
			}
		},
		func(meta *metav1.ObjectMeta, c randfill.Continue) {
			c.Fill(&meta.Name)
			c.Fill(&meta.Labels)
			c.Fill(&meta.Annotations)
		},
		func(fields *metav1.FieldsV1, _ randfill.Continue) { *fields = metav1.FieldsV1{} },
		func(status *corev1.PersistentVolumeClaimStatus, _ randfill.Continue) {},
		func(text *json.RawMessage, _ randfill.Continue) { *text = nil },
	)
	filler.Fill(object)
}

// Field fills one field of a spec of ours, however deep, and makes what lies above it. The same seed picks the same field.
func Field(seed int64, spec any) {
	chance := rand.New(rand.NewPCG(uint64(seed), 0))
	value := reflect.ValueOf(spec).Elem()
	for {
		switch {
		case value.Kind() == reflect.Pointer && isOurs(value.Type().Elem()):
			if value.IsNil() {
				value.Set(reflect.New(value.Type().Elem()))
			}
			value = value.Elem()
		case value.Kind() == reflect.Slice && isOurs(value.Type().Elem()):
			if value.Len() == 0 {
				value.Set(reflect.MakeSlice(value.Type(), 1, 1))
			}
			value = value.Index(chance.IntN(value.Len()))
		case value.Kind() == reflect.Struct && isOurs(value.Type()) && value.NumField() > 0:
			value = value.Field(chance.IntN(value.NumField()))
		default:
			fill(seed, value.Addr().Interface())
			return
		}
	}
}

func isOurs(of reflect.Type) bool {
	return of.Kind() == reflect.Struct && of.PkgPath() == reflect.TypeFor[v1beta1.ComputeClusterSpec]().PkgPath()
}
