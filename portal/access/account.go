package access

import (
	"errors"
	"fmt"
	"net/http"
	"os"
	"strings"

	"k8s.io/client-go/transport"
)

// ErrAccount is that the API server does not accept the server's own token: no caller is to blame.
var ErrAccount = errors.New("the API server does not accept the server's own account")

// account sends requests as the server itself. Kubernetes replaces its token, so the file is read again each minute.
type account struct {
	file string
	to   http.RoundTripper
}

func newAccount(file, caFile string) (*account, error) {
	to, err := transport.NewBearerAuthWithRefreshRoundTripper("", file, newTransport(caFile))
	if err != nil {
		return nil, fmt.Errorf("read the token of the server's account: %w", err)
	}
	return &account{file: file, to: to}, nil
}

// RoundTrip implements http.RoundTripper. A token that is refused is the server's fault, and must not look like a caller's.
func (a *account) RoundTrip(request *http.Request) (*http.Response, error) {
	answer, err := a.to.RoundTrip(request)
	if err != nil {
		return nil, err
	}
	if answer.StatusCode == http.StatusUnauthorized {
		_ = answer.Body.Close() // it says nothing more
		return nil, ErrAccount
	}
	return answer, nil
}

// claims returns what the server's own token says: who issues tokens for the API server, and for which audience.
func (a *account) claims() claims {
	text, err := os.ReadFile(a.file)
	if err != nil {
		return claims{} // it only helps to explain refusals
	}
	said, _ := readClaims(Token{text: strings.TrimSpace(string(text))})
	return said
}
