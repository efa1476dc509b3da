package rest

import (
	"context"
	"errors"
	"fmt"
	"io"
	"mime"
	"net/http"
	"os"
	"time"

	"github.com/heliostat-dev/heliostat/apiserver/view"
	"github.com/heliostat-dev/heliostat/portal/access"
	"github.com/heliostat-dev/heliostat/portal/limits"
	"github.com/heliostat-dev/heliostat/portal/problem"
)

const (
	// MaxBody is how many bytes the body of a request may have that brings an object, a job or manifests, and smallBody those of
	// all others. No spec that the rules accept needs more.
	MaxBody   = 1 << 20
	smallBody = 64 << 10
	// MaxDepth is how deep the values of a body may lie, and MaxValues how many there may be: each becomes hundreds of bytes.
	MaxDepth  = 64
	MaxValues = 50_000
	// messageWithin is how long a body or a message of gRPC may take to be whole, and memoryWithin how long it waits for memory.
	messageWithin = 10 * time.Second
	memoryWithin  = 5 * time.Second
	// byteMemory and valueMemory are what a byte and a value of a body take, in bytes, until the call is answered.
	byteMemory  = 16
	valueMemory = 500
)

// maxBodyOf returns how many bytes the body of a call may have, or its message.
func maxBodyOf(call string) int64 {
	switch call {
	case callCreate, callConvert, "CreateSubmission":
		return MaxBody
	}
	return smallBody
}

// errLate is that a body or message is not whole in time.
var errLate = problem.Bad("body", "is not whole within 10 s", "send all of it at once")

// bodies are what callers send, and the memory that it takes.
type bodies struct {
	arrivals *limits.Arrivals
	memory   *limits.Memory
}

// receive returns what a function reads of a caller, which it stops, by its argument, where that takes too long.
func (a *API) receive(ctx context.Context, key string, read func(ctx context.Context) ([]byte, error)) ([]byte, error) {
	arriving, end, err := a.bodies.arrivals.Begin(ctx, key)
	if err != nil {
		return nil, ofPlaces(err)
	}
	defer end()
	arriving, late := context.WithCancelCause(arriving)
	defer late(nil)
	timer := a.portal.Clock.AfterFunc(messageWithin, func() { late(errLate) })
	defer timer.Stop()
	text, err := read(arriving)
	if arriving.Err() != nil {
		return nil, ofPlaces(context.Cause(arriving))
	}
	return text, err
}

// senderOf returns whose a body is: a user's, or that of all service accounts of a namespace, as who may create one may create
// many.
func senderOf(caller *access.Caller) string {
	holder := caller.Holder()
	if holder.Namespace != "" {
		return "namespace " + holder.Namespace
	}
	return "user " + holder.User
}

// takeMemory takes the memory that a body needs until its call is answered.
func (a *API) takeMemory(ctx context.Context, key string, bytes, values int) (giveBack func(), err error) {
	within, cancel := context.WithTimeout(ctx, memoryWithin)
	defer cancel()
	giveBack, err = a.bodies.memory.Take(within, key, int64(bytes)*byteMemory+int64(values)*valueMemory)
	return giveBack, ofPlaces(err)
}

// ofPlaces returns why there is no place as a problem. Other errors stay.
func ofPlaces(err error) error {
	switch {
	case errors.Is(err, limits.ErrCallerFull):
		return problem.New(http.StatusTooManyRequests, "TooManyRequests", err.Error(),
			"end something, or try again").Later(time.Second)
	case errors.Is(err, limits.ErrMemoryFull), errors.Is(err, limits.ErrTooSlow):
		return problem.New(http.StatusServiceUnavailable, "ServiceUnavailable", err.Error(),
			"try again").Later(time.Second)
	}
	return err
}

// Receive reads the body of a request that was read by Read. Its caller is known. Call it before the request takes a place
// among those that are answered, so that a body that stands still keeps nobody from being answered.
func (a *API) Receive(w http.ResponseWriter, r *http.Request, request Request, caller *access.Caller) (Request, error) {
	if request.route.Method == http.MethodGet || request.body != nil {
		return request, nil
	}
	if r.ContentLength == 0 {
		request.body = []byte{}
		return request, nil
	}
	most := maxBodyOf(request.route.Call)
	if r.ContentLength > most {
		return request, tooLong(most)
	}
	control := http.NewResponseController(w)
	var err error
	request.body, err = a.receive(r.Context(), senderOf(caller), func(ctx context.Context) ([]byte, error) {
		// A deadline that is over ends a read that is under way. Tests have connections without one. It must be set before the
		// request is answered: HTTP/2 panics when one is set later.
		set := make(chan struct{})
		stop := context.AfterFunc(ctx, func() {
			defer close(set)
			_ = control.SetReadDeadline(time.Unix(1, 0))
		})
		defer func() {
			if !stop() {
				<-set
			}
		}()
		return io.ReadAll(http.MaxBytesReader(w, r.Body, most))
	})
	var large *http.MaxBytesError
	var known *problem.Problem
	switch {
	case err == nil, errors.As(err, &known), r.Context().Err() != nil:
		return request, err
	case errors.As(err, &large):
		return request, tooLong(most)
	case errors.Is(err, os.ErrDeadlineExceeded):
		return request, errLate
	}
	return request, problem.Bad("body", "ends before its length", "send all of it")
}

// readReceived reads the body of a request into its message, and takes the memory for it until the request is answered.
func (a *API) readReceived(ctx context.Context, request Request, contentType, key string) (giveBack func(), err error) {
	if request.route.Call == callCreate {
		if err := a.portal.permitAnyKind(ctx, request.Namespace); err != nil {
			return nil, err
		}
	}
	values := 0
	if media, _, _ := mime.ParseMediaType(contentType); !isManifests(request.route, media) {
		if values, err = countJSON(request.body); err != nil {
			return nil, err
		}
	}
	if giveBack, err = a.takeMemory(ctx, key, len(request.body), values); err != nil {
		return nil, err
	}
	if err := readBody(request.route, request.message, contentType, request.body); err != nil {
		giveBack()
		return nil, err
	}
	return giveBack, nil
}

// permitAnyKind returns nil where the caller may create objects of any kind in a namespace: without that, what they want to
// create is not read.
func (v *reviewer) permitAnyKind(ctx context.Context, namespace string) error {
	if err := checkPath(map[string]string{"namespace": namespace}); err != nil {
		return err
	}
	var refused error
	for _, kind := range view.Kinds() {
		err := v.may(ctx, attributes("create", view.Resource(kind), "", namespace, ""))
		var known *problem.Problem
		if err == nil || !errors.As(err, &known) {
			return err
		}
		if refused == nil {
			refused = err
		}
	}
	return refused
}

// countJSON returns how many values a JSON text has at most, or why it is not read: it has too many, or they lie too deep. It
// recurses not at all, whatever the text.
func countJSON(text []byte) (values int, err error) {
	depth, inString, escaped := 0, false, false
	for _, b := range text {
		switch {
		case escaped:
			escaped = false
		case inString && b == '\\':
			escaped = true
		case b == '"':
			inString = !inString
		case inString:
		case b == '{' || b == '[':
			values++
			if depth++; depth > MaxDepth {
				return 0, tooDeep()
			}
		case b == ',':
			values++
		case b == '}' || b == ']':
			depth--
		}
		if values > MaxValues {
			return 0, tooMany()
		}
	}
	return values, nil
}

// tooDeep returns that what was sent is deeper than it may be.
func tooDeep() error {
	return problem.Bad("body", fmt.Sprintf("has values deeper than %d", MaxDepth), "send a flatter one")
}
