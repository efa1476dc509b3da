package access

import (
	"net/http"
	"time"

	"k8s.io/utils/clock"
)

// How many tokens are known to be accepted, and for how long after their last answer.
const (
	keepAccepted = 10 * time.Minute
	maxAccepted  = 10_000
)

// lanes carries requests of tokens that the API server has accepted apart from all others. The API server ends a
// connection on which it refuses a token, and all who share it have to connect again: garbage would hold up every caller.
type lanes struct {
	accepted, others http.RoundTripper
	tokens           *recent[struct{}]
}

func newLanes(caFile string, now clock.PassiveClock) *lanes {
	return &lanes{accepted: newTransport(caFile), others: newTransport(caFile), tokens: newRecent[struct{}](now, maxAccepted)}
}

// RoundTrip implements http.RoundTripper.
func (l *lanes) RoundTrip(request *http.Request) (*http.Response, error) {
	token, err := ParseToken(request.Header)
	if err != nil {
		return nil, err // every request of the server has one
	}
	lane := l.others
	if _, is := l.tokens.find(token.Key()); is {
		lane = l.accepted
	}
	answer, err := lane.RoundTrip(request)
	switch {
	case err != nil:
		return nil, err
	case answer.StatusCode == http.StatusUnauthorized:
		l.tokens.forget(token.Key())
	default:
		l.tokens.put(token.Key(), struct{}{}, keepAccepted)
	}
	return answer, nil
}
