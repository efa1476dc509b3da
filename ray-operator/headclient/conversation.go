package headclient

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"time"

	strict "sigs.k8s.io/json"
)

// Limits on what a dashboard may send, in bytes.
const (
	// maxAnswer is for all but logs and Serve's details. Ray's message of a job alone may
	// have 20,000 characters.
	maxAnswer = 1 << 20
	// maxLog is how much of a log is read to find its end.
	maxLog = 64 << 20
)

// conversation is one with the dashboard of one head: its HTTP, over one TCP connection.
// When that breaks every further call fails with Unavailable and the caller dials again; so
// two calls that both succeeded were answered by the same process. Nothing is ever repeated
// by itself. It may be used by many goroutines, which take turns.
type conversation struct {
	address   string
	options   Options
	transport *http.Transport
	line      *line
}

// begin prepares a conversation. It sends nothing: the first call connects.
func begin(act, address string, options Options) (conversation, error) {
	if err := checkAddress(address); err != nil {
		return conversation{}, fail(Invalid, act, err)
	}
	if options.Timeout <= 0 {
		options.Timeout = DefaultTimeout
	}
	line := &line{connect: options.Connect.orAnywhere().Over(options.Trust)}
	// Proxy stays nil: the environment has no say in where a token goes.
	return conversation{address: address, options: options, line: line, transport: &http.Transport{
		DialContext: line.dial, MaxConnsPerHost: 1, MaxIdleConnsPerHost: 1,
		DisableCompression: true, MaxResponseHeaderBytes: maxHeader,
		ReadBufferSize: buffer, WriteBufferSize: buffer,
	}}, nil
}

// Close gives the connection up; calls under way fail, and so do further ones.
func (c *conversation) Close() error {
	err := c.line.close()
	c.transport.CloseIdleConnections()
	if err != nil {
		return fmt.Errorf("close the connection to the dashboard of the head at %s: %w", c.address, err)
	}
	return nil
}

// Session asks which session of which Ray answers.
func (c *conversation) Session(ctx context.Context) (Session, error) {
	const act = "ask for the session of the head"
	answer, err := c.ask(ctx, question{act: act, method: http.MethodGet, path: "/api/version"})
	if err != nil {
		return Session{}, err
	}
	session, err := readSession(answer.body)
	if err != nil {
		return Session{}, c.fail(Protocol, act, err)
	}
	return session, nil
}

// line is the one connection of a conversation: it is dialled once.
type line struct {
	connect Connect

	mu           sync.Mutex
	used, closed bool
	connection   net.Conn
}

var errUsedUp = errors.New("the connection of this conversation is gone")

func (l *line) dial(ctx context.Context, _, address string) (net.Conn, error) {
	l.mu.Lock()
	used := l.used || l.closed
	l.used = true
	l.mu.Unlock()
	if used {
		return nil, errUsedUp
	}
	connection, err := l.connect(ctx, address)
	if err != nil {
		return nil, err
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.closed {
		_ = connection.Close() // it was not wanted any more before it came
		return nil, errUsedUp
	}
	l.connection = connection
	return connection, nil
}

func (l *line) close() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.closed = true
	if l.connection == nil {
		return nil
	}
	if err := l.connection.Close(); err != nil && !errors.Is(err, net.ErrClosed) {
		return err
	}
	return nil
}

// question is one request.
type question struct {
	act, method, path string
	query             url.Values
	body              []byte
	// media is the type of the body; "" is JSON.
	media string
	// into takes the body of an answer up to limit bytes; nil is the answer's own, and a
	// limit of 0 then the usual one.
	into  io.Writer
	limit int64
	// judge sorts an answer that is not OK; nil is what is true of all of the dashboard.
	judge func(status int, said string) (Kind, string)
	// patience is how many timeouts the answer may take; 0 is one.
	patience int
	// flows: the answer is passed on as it comes, for as long as it comes; the patience is for
	// its begin, each part of it may take one timeout, and what it is passed on to its time.
	flows bool
}

// answer is what came back, and the token that was sent, which is in nothing that we show.
type answer struct {
	body  []byte
	token string
	// cut tells that there was more than the limit.
	cut bool
}

// ask sends one request, once, within the timeout, and sorts what can go wrong.
func (c *conversation) ask(ctx context.Context, q question) (answer, error) {
	limited, part, stop := q.within(ctx, c.options.Timeout)
	defer stop()
	token, err := c.options.token(limited)
	if err != nil {
		return answer{}, c.fail(Unauthenticated, q.act, err)
	}
	if err := c.options.permits(q.method != http.MethodGet); err != nil {
		return answer{}, c.fail(Unavailable, q.act, err)
	}
	response, err := c.transport.RoundTrip(c.request(limited, q, token)) // which follows no redirect
	if err != nil {
		return answer{}, c.sort(ctx, q.act, err)
	}
	defer func() { _ = response.Body.Close() }()
	if coding := response.Header.Get("Content-Encoding"); coding != "" && coding != "identity" {
		return answer{}, c.fail(Protocol, q.act, errors.New("the response is compressed, which was not requested"))
	}
	if q.flows && response.StatusCode == http.StatusOK {
		if response.ContentLength < 0 && len(response.TransferEncoding) == 0 {
			return answer{}, c.fail(Protocol, q.act, errors.New("the answer does not say where it ends"))
		}
		response.Body = flow{response.Body, part, c.options.Timeout}
	}
	reply, err := q.read(response)
	if err != nil {
		return answer{}, c.sort(ctx, q.act, err)
	}
	reply.token = token
	switch {
	case reply.cut && q.into == nil:
		return answer{}, c.fail(Protocol, q.act, fmt.Errorf("the answer has more than %d bytes", cmp.Or(q.limit, maxAnswer)))
	case response.StatusCode != http.StatusOK:
		if q.judge == nil {
			q.judge = judge
		}
		kind, words := q.judge(response.StatusCode, hide(string(reply.body), token))
		return answer{}, c.fail(kind, q.act, fmt.Errorf("status %d: %s", response.StatusCode, words))
	}
	return reply, nil
}

// within bounds how long an answer may take: the whole of it, or its begin and each part where
// it flows.
func (q question) within(ctx context.Context, timeout time.Duration) (limited context.Context, part *time.Timer, stop func()) {
	whole := time.Duration(max(1, q.patience)) * timeout
	if !q.flows {
		limited, stop = context.WithTimeout(ctx, whole)
		return limited, nil, stop
	}
	limited, cancel := context.WithCancelCause(ctx)
	part = time.AfterFunc(whole, func() { cancel(context.DeadlineExceeded) })
	return limited, part, func() { part.Stop(); cancel(nil) }
}

// flow is the body of an answer that flows. Its timer runs while a part is waited for.
type flow struct {
	io.ReadCloser
	part    *time.Timer
	timeout time.Duration
}

func (f flow) Read(part []byte) (int, error) {
	f.part.Reset(f.timeout)
	defer f.part.Stop()
	return f.ReadCloser.Read(part)
}

// read reads the body of an answer up to the limit, and looks whether that was all.
func (q question) read(response *http.Response) (answer, error) {
	own := &bytes.Buffer{}
	if response.StatusCode != http.StatusOK {
		q.into, q.limit = nil, 0
	}
	if q.into == nil {
		q.into = own
	}
	if q.limit == 0 {
		q.limit = maxAnswer
	}
	n, err := io.Copy(q.into, io.LimitReader(response.Body, q.limit))
	if err != nil || n < q.limit {
		return answer{body: own.Bytes()}, err
	}
	more, err := io.ReadFull(response.Body, make([]byte, 1))
	if errors.Is(err, io.EOF) {
		err = nil
	}
	return answer{body: own.Bytes(), cut: more > 0}, err
}

// request is a question on the wire. Ray takes what looks like a browser's for an attack.
func (c *conversation) request(ctx context.Context, q question, token string) *http.Request {
	request := (&http.Request{
		Method: q.method,
		URL:    &url.URL{Scheme: "http", Host: c.address, Path: q.path, RawQuery: q.query.Encode()},
		Header: http.Header{"User-Agent": {"heliostat"}, "Accept-Encoding": {"identity"}},
	}).WithContext(ctx)
	if token != "" {
		request.Header.Set("Authorization", "Bearer "+token)
	}
	if q.body != nil {
		request.Header.Set("Content-Type", cmp.Or(q.media, "application/json"))
		request.Body, request.ContentLength = io.NopCloser(bytes.NewReader(q.body)), int64(len(q.body))
	}
	return request
}

// sort tells the failures of a connection from those of who is at its other end.
func (c *conversation) sort(ctx context.Context, act string, err error) error {
	kind, why := broken(ctx, err)
	return c.fail(kind, act, why)
}

// broken tells what sort of failure kept an answer from coming. The words of who is at the
// other end are not repeated: it was told the token.
func broken(ctx context.Context, err error) (Kind, error) {
	var timed net.Error
	var network *net.OpError
	switch {
	case ctx.Err() != nil: // the caller's own end
		kind := Unavailable
		if errors.Is(ctx.Err(), context.DeadlineExceeded) {
			kind = Timeout
		}
		return kind, context.Cause(ctx)
	case errors.As(err, &timed) && timed.Timeout():
		return Timeout, errors.New("no whole answer came in time")
	case errors.As(err, &network), errors.Is(err, errUsedUp):
		return Unavailable, err
	case errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF), errors.Is(err, net.ErrClosed):
		return Unavailable, errors.New("the connection broke")
	default:
		return Protocol, errors.New("what came is not HTTP, or has headers without end")
	}
}

func (c *conversation) fail(kind Kind, act string, err error) *Error {
	return fail(kind, act+" at "+c.address, err)
}

// judge sorts an answer that is not OK, as Ray 2.52 to 2.60 were seen to give them. The
// dashboard passes most on to an agent, and what that says comes as a traceback within a 500.
func judge(status int, said string) (Kind, string) {
	words := lastWords(said)
	switch status {
	case http.StatusUnauthorized, http.StatusForbidden:
		return Unauthenticated, words
	case http.StatusBadRequest, http.StatusRequestEntityTooLarge:
		return Refused, words
	case http.StatusTooManyRequests, http.StatusBadGateway, http.StatusServiceUnavailable, http.StatusGatewayTimeout:
		return Unavailable, words
	case http.StatusNotFound:
		if strings.HasPrefix(said, "Job ") && strings.HasSuffix(said, " does not exist") {
			return NotFound, words
		}
		return Protocol, words // by someone who has never heard of jobs
	case http.StatusInternalServerError:
		for _, known := range []struct {
			words string
			kind  Kind
		}{
			{"Please use a different submission_id", Exists},
			{"No available agent to submit job", Unavailable},
			{"Failed to get head node agent within", Unavailable},
			{"Cannot connect to host", Unavailable}, // the agent's, which may be gone with its node
			{"Request failed with status code 404: Job ", NotFound},
			{"Request failed with status code 400", Refused},
			{"non-terminal state", Refused},
		} {
			if strings.Contains(said, known.words) {
				return known.kind, words
			}
		}
	}
	return Protocol, words
}

// lastWords is the last line of a text with words in it: where a traceback says why.
func lastWords(said string) string {
	said = strings.TrimRight(said, ". \r\n")
	return text([]byte(said[strings.LastIndexByte(said, '\n')+1:]))
}

// decode reads an object of JSON: unknown fields pass, those that come twice do not.
func decode(body []byte, into any) error {
	twice, err := strict.UnmarshalStrict(body, into, strict.DisallowDuplicateFields)
	if err != nil || len(twice) > 0 {
		return errors.New("the answer is not the JSON that Ray gives") // what it is might hold the token
	}
	return nil
}
