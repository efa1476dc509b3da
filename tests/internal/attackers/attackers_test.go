package attackers

import (
	"bytes"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"

	"google.golang.org/protobuf/proto"

	heliostatv1 "github.com/heliostat-dev/heliostat/proto/gen/heliostat/v1"
)

func TestBodies_AreWhatTheServerReads(t *testing.T) {
	for _, unit := range []string{"[],", "0,", "{},"} {
		var body struct {
			Object struct{ A []any }
		}
		text := List(10_000, unit)
		if err := json.Unmarshal(text, &body); err != nil || len(text) > 10_000 || len(body.Object.A) < 10_000/len(unit)-100 {
			t.Errorf("%s: %d bytes with %d values, %v", unit, len(text), len(body.Object.A), err)
		}
	}
	for name, message := range map[string][]byte{"values": Values(10_000), "names": Names(10_000), "nested": Nested(60)} {
		var create heliostatv1.CreateObjectRequest
		if err := proto.Unmarshal(message, &create); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		values, fields := create.GetObject().GetFields()["a"].GetListValue().GetValues(), len(create.GetObject().GetFields())
		if name == "values" && len(values) != 5_000 || name == "names" && fields < 500 || name == "nested" && len(values) != 1 {
			t.Errorf("%s: %d values, %d fields", name, len(values), fields)
		}
	}
	if text := Anchors(1_000); strings.Count(text, "*a") != 1_000 || len(text) > 72<<10 {
		t.Errorf("1,000 aliases take %d bytes", len(text))
	}
}

// requireRefusals fails where a request was answered otherwise than by the lack of a token.
func requireRefusals(t *testing.T, report Report) {
	t.Helper()
	for name, answers := range report.Answers {
		for answer := range answers {
			if answer != "401" && answer != "gRPC 16" {
				t.Errorf("a calm %s is answered %s", name, answer)
			}
		}
	}
}

// TestRun_SendsEachSortOnce to a server that refuses all, and as many requests where they are calm.
func TestRun_SendsEachSortOnce(t *testing.T) {
	var calls atomic.Int64
	server := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		calls.Add(1)
		if strings.HasPrefix(r.Header.Get("Content-Type"), "application/grpc") {
			w.Header().Set("Grpc-Status", "16")
			return
		}
		w.WriteHeader(http.StatusUnauthorized)
	}))
	server.EnableHTTP2 = true
	server.StartTLS()
	t.Cleanup(server.Close)
	address := server.Listener.Addr().String()
	orders := Orders{
		Addresses: map[string]string{REST: address, GRPC: address, Dashboards: address}, Anonymous: 16, Accounts: strings.Fields(strings.Repeat("token ", 12)),
		Tenant: "token", Namespace: "n", Clusters: []string{"c"}, Rounds: 1, Streams: 2,
	}
	for _, isCalm := range []bool{false, true} {
		orders.IsCalm = isCalm
		text, err := json.Marshal(orders)
		if err != nil {
			t.Fatal(err)
		}
		var out bytes.Buffer
		if err := Obey(bytes.NewReader(text), &out); err != nil {
			t.Fatal(err)
		}
		var report Report
		if err := json.Unmarshal(out.Bytes(), &report); err != nil {
			t.Fatal(err)
		}
		if isCalm {
			requireRefusals(t, report)
		}
		if report.Requests < 3*16+2*12 || report.PerSecond() <= 0 {
			t.Errorf("calm %t: %+v", isCalm, report)
		}
		for _, name := range Sorts() {
			if !isCalm && len(report.Answers[name]) == 0 {
				t.Errorf("nobody has sent %s", name)
			}
		}
	}
	if err := Obey(strings.NewReader(`{"Addresses": {}}`), &bytes.Buffer{}); err == nil {
		t.Error("orders without an end are obeyed")
	}
}
