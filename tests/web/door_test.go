package web

import (
	"context"
	"crypto/tls"
	"encoding/json"
	"net"
	"net/http"
	"net/http/httputil"
	"net/url"
	"sync"
	"time"
)

// door is what browsers connect to. It stands for the server's sign-in, and breaks connections where a test asks it to.
type door struct {
	bed   *bed
	proxy *httputil.ReverseProxy
	mu    sync.Mutex
	open  map[net.Conn]bool
}

func openDoor(b *bed) *door {
	b.t.Helper()
	d := &door{bed: b, open: map[net.Conn]bool{}}
	to := &url.URL{Scheme: "https", Host: serverAddress}
	d.proxy = &httputil.ReverseProxy{
		Rewrite: func(r *httputil.ProxyRequest) {
			r.SetURL(to)
			if cookie, err := r.In.Cookie("__Host-bed"); err == nil {
				r.Out.Header.Set("Authorization", "Bearer "+cookie.Value)
			}
			r.Out.Header.Del("Cookie")
		},
		Transport: &http.Transport{
			DialContext:       func(_ context.Context, _, address string) (net.Conn, error) { return b.island.Dial(address) },
			TLSClientConfig:   &tls.Config{InsecureSkipVerify: true},
			ForceAttemptHTTP2: true,
		},
		FlushInterval: -1,
	}
	mux := http.NewServeMux()
	mux.HandleFunc("/session", d.session)
	mux.Handle("/", d.proxy)
	server := &http.Server{Handler: mux, ReadHeaderTimeout: time.Minute, ConnState: d.note}
	listener, err := b.island.Listen(doorAddress)
	must(b.t, err)
	go func() { _ = server.ServeTLS(listener, b.file("tls.crt"), b.file("tls.key")) }()
	b.t.Cleanup(func() { _ = server.Close() })
	return d
}

func (d *door) note(connection net.Conn, state http.ConnState) {
	d.mu.Lock()
	defer d.mu.Unlock()
	switch state {
	case http.StateNew:
		d.open[connection] = true
	case http.StateClosed, http.StateHijacked:
		delete(d.open, connection)
	}
}

// drop breaks all connections.
func (d *door) drop() {
	d.mu.Lock()
	defer d.mu.Unlock()
	for connection := range d.open {
		_ = connection.Close()
	}
}

func (d *door) session(w http.ResponseWriter, r *http.Request) {
	cookie := &http.Cookie{Name: "__Host-bed", Path: "/", Secure: true, HttpOnly: true, SameSite: http.SameSiteStrictMode}
	switch r.Method {
	case http.MethodPost:
		var given struct {
			Token string `json:"token"`
		}
		if err := json.NewDecoder(r.Body).Decode(&given); err != nil || given.Token == "bad" {
			w.Header().Set("Content-Type", "application/problem+json")
			w.WriteHeader(http.StatusUnauthorized)
			_, _ = w.Write([]byte(`{"title":"Unauthorized","status":401,"reason":"Unauthorized","detail":"the token is unknown","remedy":"give another one"}`))
			return
		}
		cookie.Value = given.Token
		http.SetCookie(w, cookie)
		w.WriteHeader(http.StatusNoContent)
	case http.MethodDelete:
		cookie.MaxAge = -1
		http.SetCookie(w, cookie)
		w.WriteHeader(http.StatusNoContent)
	default:
		_, err := r.Cookie("__Host-bed")
		to := r.URL.Query().Get("to")
		if to == "" {
			to = "/ui/"
		}
		answer := map[string]any{"signedIn": err == nil, "to": to, "ways": []map[string]string{{"kind": "OIDC", "name": "sso.example.com"}, {"kind": "Token", "name": "Kubernetes token"}},
			"dashboards": map[string]string{"url": "https://10.0.0.2:8444"},
			"links":      []map[string]any{{"name": "Grafana", "urlTemplate": "https://grafana.example.com/d/ray?var-namespace=${namespace}&var-name=${name}"}}}
		if err == nil {
			answer["user"], answer["expires"] = "system:serviceaccount:team-a:anna", time.Now().Add(8*time.Hour).UTC().Format(time.RFC3339)
		}
		w.Header().Set("Content-Type", "application/json")
		_ = json.NewEncoder(w).Encode(answer)
	}
}
