package app

import (
	"bufio"
	"bytes"
	"crypto/tls"
	"encoding/binary"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"runtime"
	"strings"
	"testing"

	"golang.org/x/net/http2"
	"google.golang.org/protobuf/encoding/protowire"

	"github.com/heliostat-dev/heliostat/apiserver/rest"
	heliostatv1 "github.com/heliostat-dev/heliostat/proto/gen/heliostat/v1"
)

const (
	// sentWithout is how many bytes each caller without a token sends, and takenWithout the most that may be allocated for one,
	// on either side of its connection.
	sentWithout, takenWithout = 4 << 20, 1 << 20
)

// knocking is a request without a token to a listener, and the code by which it is answered.
type knocking struct {
	listener, method, path string
	want                   string
}

// TestListeners_TakeNothingWithoutAToken sends 4 MiB to each listener by each of its routes, which it answers before it has
// taken them.
func TestListeners_TakeNothingWithoutAToken(t *testing.T) {
	clusters := freeAddress(t)
	s := runWith(t, fine, func(cfg *Config) {
		cfg.GRPCAddress = freeAddress(t)
		cfg.Dashboards = Dashboards{Address: clusters, URL: &url.URL{Scheme: "https", Host: clusters}, PageURL: &url.URL{Scheme: "https", Host: cfg.Address}, MaxUpload: 1 << 30}
	})
	addresses := map[string]string{"REST": s.Address, "gRPC": s.GRPCAddress, "dashboards": clusters, "metrics": s.MetricsAddress, "health": s.HealthAddress}
	values := valuesOf(sentWithout)
	for _, one := range knockings() {
		body := values
		if one.listener != "gRPC" {
			body = bytes.Repeat([]byte("[],"), sentWithout/3)
		}
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		got, err := one.send(t, addresses[one.listener], body)
		runtime.ReadMemStats(&after)
		if err != nil || got != one.want {
			t.Errorf("%s: %s %s is answered %s, %v, want %s", one.listener, one.method, one.path, got, err, one.want)
		}
		if taken := after.TotalAlloc - before.TotalAlloc; taken > takenWithout {
			t.Errorf("%s: %s %s allocates %d KiB", one.listener, one.method, one.path, taken>>10)
		}
	}
	s.end()
	if err := <-s.ended; err != nil {
		t.Error(err)
	}
}

// knockings are requests by all routes of all listeners.
func knockings() []knocking {
	all := []knocking{
		{"REST", "POST", "/none", "401"}, {"REST", "POST", "/v1/none", "401"},
		{"dashboards", "POST", "/n/c/api/packages/gcs/a.zip", "401"}, {"dashboards", "POST", "/services/n/s/", "401"}, {"dashboards", "PUT", "/n/c/", "401"},
		{"dashboards", "POST", "/", "200"},
		{"metrics", "POST", "/metrics", "405"}, {"metrics", "POST", "/none", "404"},
		{"health", "POST", "/readyz", "405"}, {"health", "POST", "/none", "404"},
		{"gRPC", "POST", "/heliostat.v1.Portal/None", "gRPC 16"},
	}
	for _, route := range rest.Routes() {
		path := strings.NewReplacer("{namespace}", "n", "{kind}", "clusters", "{name}", "c", "{id}", "i").Replace(route.Path)
		all = append(all, knocking{"REST", route.Method, path, "401"})
	}
	for path, methods := range routes {
		all = append(all, knocking{"REST", methods[0], path, "401"})
	}
	calls := heliostatv1.File_heliostat_v1_portal_proto.Services().ByName("Portal").Methods()
	for i := range calls.Len() {
		all = append(all, knocking{"gRPC", "POST", "/heliostat.v1.Portal/" + string(calls.Get(i).Name()), "gRPC 16"})
	}
	return all
}

// send sends a body on a connection of its own until there is an answer, and returns its code.
func (k knocking) send(t *testing.T, address string, body []byte) (string, error) {
	t.Helper()
	protocol := "http/1.1"
	if k.listener == "gRPC" {
		protocol = "h2"
	}
	connection, err := net.Dial("tcp", address)
	if err != nil {
		return "", err
	}
	defer func() { _ = connection.Close() }()
	if k.listener != "metrics" && k.listener != "health" {
		connection = tls.Client(connection, &tls.Config{InsecureSkipVerify: true, NextProtos: []string{protocol}})
	}
	if k.listener == "gRPC" {
		return k.call(t, connection, address, body)
	}
	go func() {
		_, err := fmt.Fprintf(connection, "%s %s HTTP/1.1\r\nHost: %s\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n", k.method, k.path, address, len(body))
		if err == nil {
			_, _ = connection.Write(body) // the server closes before it has all
		}
	}()
	answer, err := http.ReadResponse(bufio.NewReader(connection), nil)
	if err != nil {
		return "", err
	}
	return fmt.Sprint(answer.StatusCode), answer.Body.Close()
}

// call sends a message as a call of gRPC.
func (k knocking) call(t *testing.T, connection net.Conn, address string, body []byte) (string, error) {
	t.Helper()
	client, err := (&http2.Transport{}).NewClientConn(connection) //nolint:staticcheck // the successor dials by itself
	if err != nil {
		return "", err
	}
	request, err := http.NewRequestWithContext(t.Context(), http.MethodPost, "https://"+address+k.path, bytes.NewReader(body))
	if err != nil {
		return "", err
	}
	request.Header.Set("Content-Type", "application/grpc")
	request.Header.Set("Te", "trailers")
	answer, err := client.RoundTrip(request)
	if err != nil {
		return "", err
	}
	_, _ = bufio.NewReader(answer.Body).ReadByte() // none comes, and then the trailers
	status := answer.Header.Get("Grpc-Status") + answer.Trailer.Get("Grpc-Status")
	return "gRPC " + status, answer.Body.Close()
}

// valuesOf is a message of gRPC: an object of as many empty values as fit.
func valuesOf(size int) []byte {
	field := func(number protowire.Number, content []byte) []byte {
		return protowire.AppendBytes(protowire.AppendTag(nil, number, protowire.BytesType), content)
	}
	list := field(6, bytes.Repeat([]byte{0x0a, 0x00}, size/2-32))
	message := field(2, field(1, append(field(1, []byte("a")), field(2, list)...)))
	return append(binary.BigEndian.AppendUint32([]byte{0}, uint32(len(message))), message...)
}
