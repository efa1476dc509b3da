package app

import (
	"errors"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/heliostat-dev/heliostat/apiserver/passthrough"
	"github.com/heliostat-dev/heliostat/portal/access"
)

func TestFront_AnswersARequestThatPanics(t *testing.T) {
	log := &lines{}
	f := &front{log: slog.New(slog.NewJSONHandler(log, nil))}
	serve := func(panics func(w http.ResponseWriter)) *httptest.ResponseRecorder {
		w := httptest.NewRecorder()
		asked := request{route: passthrough.RouteNone, serve: func(w http.ResponseWriter, _ *http.Request, _ *access.Caller) { panics(w) }}
		f.serve(objects{}, asked, &answer{ResponseWriter: w, id: "the-id"}, httptest.NewRequest(http.MethodGet, "/", nil), nil)
		return w
	}
	w := serve(func(http.ResponseWriter) { panic("secret") })
	if w.Code != http.StatusInternalServerError || strings.Contains(w.Body.String(), "secret") {
		t.Errorf("it is answered with %d, %s", w.Code, w.Body)
	}
	if text := log.String(); !strings.Contains(text, "the-id") || !strings.Contains(text, "panic_test.go") {
		t.Errorf("the log has no ID or no stack: %s", text)
	}
	defer func() {
		if cause, _ := recover().(error); !errors.Is(cause, http.ErrAbortHandler) {
			t.Errorf("an answer that was begun ends by %v", cause)
		}
	}()
	serve(func(w http.ResponseWriter) {
		_, _ = w.Write([]byte("half"))
		panic("secret")
	})
}
