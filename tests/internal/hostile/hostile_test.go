package hostile_test

import (
	"io"
	"net"
	"strings"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"

	scalelink "github.com/heliostat-dev/heliostat/proto/gen/heliostat/scalelink/v1"
	"github.com/heliostat-dev/heliostat/tests/internal/hostile"
)

func serve(t *testing.T, manners ...hostile.Manner) *hostile.Server {
	t.Helper()
	listener, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	server := hostile.Serve(listener, manners, 0)
	t.Cleanup(func() { _ = server.Close() })
	return server
}

// ask sends a text and gives the answer as far as some bytes.
func ask(t *testing.T, server *hostile.Server, text string, most int64) string {
	t.Helper()
	connection, err := (&net.Dialer{}).DialContext(t.Context(), "tcp", server.Address())
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = connection.Close() }()
	_ = connection.SetDeadline(time.Now().Add(10 * time.Second))
	if _, err := connection.Write([]byte(text)); err != nil {
		t.Fatal(err)
	}
	answer, err := io.ReadAll(io.LimitReader(connection, most))
	if err != nil && len(answer) == 0 {
		t.Fatal(err)
	}
	return string(answer)
}

func TestServer_TakesItsMannersInTurn(t *testing.T) {
	t.Parallel()
	manners := hostile.Redis("169.254.169.254:80")
	server := serve(t, manners[0], manners[1], manners[len(manners)-1])
	for _, want := range []string{"$1073741824\r\nx", "*1000000\r\n$1", "-MOVED 1 169.254.169.254:80", "$1073741824\r\nx"} {
		if got := ask(t, server, "PING", 64); !strings.HasPrefix(got, want) {
			t.Errorf("it says %q, want %q", got, want)
		}
	}
	if server.Asked() != 4 {
		t.Errorf("asked %d times, want 4", server.Asked())
	}
}

func TestServe_BeginsWithTheMannerOfItsNumber(t *testing.T) {
	t.Parallel()
	listener, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	manners := hostile.Redis()[:2]
	server := hostile.Serve(listener, manners, 3)
	t.Cleanup(func() { _ = server.Close() })
	if got := ask(t, server, "PING", 10); got != "*1000000\r\n" {
		t.Errorf("it says %q first", got)
	}
}

func TestLeading_HasPrimariesAtItsAddresses(t *testing.T) {
	t.Parallel()
	server := serve(t, hostile.Leading("169.254.169.254:80"))
	const want = "*1\r\n*4\r\n$2\r\nip\r\n$15\r\n169.254.169.254\r\n$4\r\nport\r\n$2\r\n80\r\n"
	if got := ask(t, server, "*2\r\n$8\r\nSENTINEL\r\n$7\r\nMASTERS\r\n", int64(len(want))); got != want {
		t.Errorf("it says %q, want %q", got, want)
	}
}

func TestWeb_AnswersWithoutEnd(t *testing.T) {
	t.Parallel()
	const most = 8 << 20
	if got := len(ask(t, serve(t, hostile.Web()...), "GET / HTTP/1.1\r\n\r\n", most)); got != most {
		t.Errorf("it says %d bytes, want more than %d", got, most)
	}
}

// connect makes a client of gRPC.
func connect(t *testing.T, server *hostile.Server) *grpc.ClientConn {
	t.Helper()
	connection, err := grpc.NewClient(server.Address(), grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = connection.Close() })
	return connection
}

func TestAutoscaler_SaysWordsThatWantAllAndNothing(t *testing.T) {
	t.Parallel()
	all := hostile.Autoscaler()
	client := scalelink.NewScaleServiceClient(connect(t, serve(t, all[len(all)-5])))
	if nonce, err := client.Challenge(t.Context(), &scalelink.Hello{}); err != nil || len(nonce.GetNonce()) != 32 {
		t.Fatalf("the nonce is %v, %v", nonce, err)
	}
	words, err := client.Follow(t.Context(), &scalelink.Claim{Head: "head"})
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []int32{10_000, 0, 10_000} {
		word, err := words.Recv()
		if err != nil || word.GetHead() != "head" || word.GetTargets()[0].GetReplicas() != want {
			t.Fatalf("it says %v, %v, want %d replicas", word, err, want)
		}
	}
}

func TestGCS_AnswersLargely(t *testing.T) {
	t.Parallel()
	all := hostile.GCS()
	err := connect(t, serve(t, all[len(all)-4])).Invoke(t.Context(), "/a/b", &scalelink.Hello{}, &scalelink.Hello{})
	if err == nil || !strings.Contains(err.Error(), "larger than max") {
		t.Errorf("the answer is %v, want one that is too large", err)
	}
}
