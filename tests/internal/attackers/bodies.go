package attackers

import (
	"bytes"
	"compress/gzip"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"strings"
	"sync"

	"google.golang.org/protobuf/encoding/protowire"
)

const (
	// whole is the largest message that the server took before it bounded them by what they become, and some is within the bound
	// since.
	whole = 4<<20 - 64
	some  = 1<<20 - 64
)

// List is the body of a create whose object has a list of as many equal values as fit.
func List(size int, unit string) []byte {
	const head, tail = `{"object":{"kind":"ComputeCluster","a":[`, `0]}}`
	return []byte(head + strings.Repeat(unit, (size-len(head)-len(tail))/len(unit)) + tail)
}

// Values is a CreateObjectRequest whose object holds as many empty values as fit, of two bytes each.
func Values(size int) []byte {
	return object(field(6, bytes.Repeat([]byte{0x0a, 0x00}, size/2)))
}

// Names is one whose object holds as many fields as fit, each with a name of its own.
func Names(size int) []byte {
	var fields []byte
	for i := 0; len(fields) < size-64; i++ {
		fields = append(fields, field(1, append(field(1, fmt.Appendf(nil, "%x", i)), field(2, nil)...))...)
	}
	return field(2, fields)
}

// Nested is one whose object has lists within lists.
func Nested(levels int) []byte {
	inner := []byte{}
	for range levels {
		inner = field(6, field(1, inner))
	}
	return object(inner)
}

// object is a CreateObjectRequest whose object has one field with a value.
func object(value []byte) []byte {
	return field(2, field(1, append(field(1, []byte("a")), field(2, value)...)))
}

func field(number protowire.Number, content []byte) []byte {
	return protowire.AppendBytes(protowire.AppendTag(nil, number, protowire.BytesType), content)
}

// Anchors is a manifest of few bytes that aliases make large: a text of 64 KiB, so many times.
func Anchors(aliases int) string {
	return "apiVersion: heliostat.dev/v1beta1\nkind: ComputeCluster\nmetadata: {name: a}\nspec:\n  a: &a " + strings.Repeat("x", 64<<10) +
		"\n  b: [" + strings.TrimSuffix(strings.Repeat("*a,", aliases), ",") + "]\n"
}

// framed is a message of gRPC.
func framed(message []byte) []byte {
	return append(binary.BigEndian.AppendUint32([]byte{0}, uint32(len(message))), message...)
}

// zipped is a message of gRPC that is said to be compressed, and becomes 16 MiB.
func zipped() []byte {
	var out bytes.Buffer
	zip := gzip.NewWriter(&out)
	_, _ = zip.Write(make([]byte, 16<<20)) // memory refuses nothing
	_ = zip.Close()
	message := framed(out.Bytes())
	message[0] = 1
	return message
}

// manifests is the body of a conversion.
func manifests(text string) []byte {
	body, _ := json.Marshal(map[string]string{"manifests": text}) // a text always marshals
	return body
}

// prepared are the bodies of all attackers, made once.
var prepared = sync.OnceValue(func() map[string][]byte {
	small := "---\napiVersion: ray.io/v1\nkind: RayCluster\nmetadata: {name: a}\n"
	return map[string][]byte{
		"empty lists": List(whole, "[],"), "zeros": List(whole, "0,"), "empty objects": List(whole, "{},"), "some zeros": List(some, "0,"), "some lists": List(some, "[],"),
		"values": framed(Values(whole)), "some values": framed(Values(some)), "names": framed(Names(whole)), "nested": framed(Nested(10_000)), "zipped": zipped(),
		"manifests": framed(field(1, []byte(strings.Repeat(small, whole/len(small))))), "anchors": manifests(Anchors(10_000)),
		"documents": manifests(strings.Repeat(small, some/len(small)/2)), "upload": make([]byte, whole), "an empty call": framed(nil), "a length": append(framed(make([]byte, whole))[:5:5], 0),
	}
})
