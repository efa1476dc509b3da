package wire

import (
	"bytes"
	"context"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"

	pb "github.com/heliostat-dev/heliostat/proto/gen/heliostat/scalelink/v1"
)

func TestProve_IsOfTokenNonceAndHead(t *testing.T) {
	nonce, other := bytes.Repeat([]byte{1}, NonceSize), bytes.Repeat([]byte{2}, NonceSize)
	proof := Prove("secret", nonce, "head")
	if !bytes.Equal(proof, Prove("secret", nonce, "head")) {
		t.Error("the same is proved otherwise")
	}
	for name, another := range map[string][]byte{
		"token": Prove("Secret", nonce, "head"), "nonce": Prove("secret", other, "head"), "head": Prove("secret", nonce, "head2"),
	} {
		if bytes.Equal(proof, another) {
			t.Errorf("another %s has the same proof", name)
		}
	}
}

// recorder is an autoscaler that keeps what it is sent, and answers with a message each time.
type recorder struct {
	answer []byte

	mu   sync.Mutex
	sent strings.Builder
}

func (r *recorder) ServeHTTP(w http.ResponseWriter, request *http.Request) {
	body, _ := io.ReadAll(request.Body) // what did not come is not kept
	r.mu.Lock()
	defer r.mu.Unlock()
	r.sent.WriteString(request.URL.Path)
	_ = request.Header.Write(&r.sent) // a Builder takes everything
	r.sent.Write(body)
	w.Header().Set("Content-Type", contentType)
	w.Header().Set("Trailer", statusName)
	_, _ = w.Write(append([]byte{0, 0, 0, 0, byte(len(r.answer))}, r.answer...)) // who hung up does not hear it
	w.Header().Set(statusName, "0")
}

// follow follows the recorder with a token, and returns what it was sent.
func (r *recorder) follow(t *testing.T, token string) (string, error) {
	t.Helper()
	server := httptest.NewUnstartedServer(r)
	server.Config.Protocols = new(http.Protocols)
	server.Config.Protocols.SetUnencryptedHTTP2(true)
	server.Start()
	defer server.Close()
	dial := func(ctx context.Context, address string) (net.Conn, error) {
		return (&net.Dialer{}).DialContext(ctx, "tcp", address)
	}
	stream, err := NewCaller(dial).Follow(t.Context(), server.Listener.Addr().String(), "head", token)
	if err == nil {
		stream.Close()
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.sent.String(), err
}

func TestFollow_SendsAProofAndNoToken(t *testing.T) {
	nonce := bytes.Repeat([]byte{7}, NonceSize)
	answer, err := proto.Marshal(&pb.Nonce{Nonce: nonce})
	if err != nil {
		t.Fatal(err)
	}
	sent, err := (&recorder{answer: answer}).follow(t, "secret-token")
	if err != nil {
		t.Fatal(err)
	}
	if strings.Contains(sent, "secret-token") || strings.Contains(sent, "Authorization") {
		t.Errorf("the token was sent: %q", sent)
	}
	if !strings.Contains(sent, string(Prove("secret-token", nonce, "head"))) {
		t.Errorf("the proof was not sent: %q", sent)
	}
	if sent, err = (&recorder{}).follow(t, ""); err != nil || strings.Contains(sent, "Challenge") {
		t.Errorf("without a token: %v, sent %q", err, sent)
	}
}

func TestFollow_RefusesWhatIsNoNonce(t *testing.T) {
	for name, answer := range map[string][]byte{"nothing": nil, "another message": {0xff}, "few bytes": {0x0a, 1, 7}} {
		if sent, err := (&recorder{answer: answer}).follow(t, "secret"); status.Code(err) != codes.Internal || strings.Contains(sent, "Follow") {
			t.Errorf("%s: %v, sent %q", name, err, sent)
		}
	}
}
