package main

import (
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"strconv"
	"time"
)

// Paths of the head.
const (
	smallPath    = "/api/version"
	downloadPath = "/download"
	uploadPath   = "/api/packages/gcs/_ray_pkg_x.zip"
	socketPath   = "/api/jobs/x/logs/tail"
)

// downloadSize is of one download: 1 GB.
const downloadSize = 1 << 30

// head answers as a head would whose answers cost nothing.
type head struct{ part []byte }

// serveHead serves a head until the context ends.
func serveHead(ctx context.Context, address string) error {
	listener, err := (&net.ListenConfig{}).Listen(ctx, "tcp", address)
	if err != nil {
		return fmt.Errorf("serve the head: %w", err)
	}
	h := &head{part: make([]byte, 256<<10)}
	mux := http.NewServeMux()
	mux.HandleFunc(smallPath, func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		_, _ = io.WriteString(w, `{"version": "4", "ray_version": "2.60.0", "session_name": "session_2026"}`)
	})
	mux.HandleFunc(downloadPath, h.download)
	mux.HandleFunc(uploadPath, func(_ http.ResponseWriter, r *http.Request) { _, _ = io.Copy(io.Discard, r.Body) })
	mux.HandleFunc(socketPath, h.socket)
	server := &http.Server{Handler: mux, ReadHeaderTimeout: time.Minute}
	context.AfterFunc(ctx, func() { _ = server.Close() })
	_ = server.Serve(listener) // it ends with the context
	return nil
}

func (h *head) download(w http.ResponseWriter, _ *http.Request) {
	w.Header().Set("Content-Length", strconv.Itoa(downloadSize))
	for sent := 0; sent < downloadSize; sent += len(h.part) {
		if _, err := w.Write(h.part); err != nil {
			return
		}
	}
}

// accepted is the answer to the one key that is sent.
const accepted = "HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n" +
	"Sec-WebSocket-Accept: s3pPLMBiTxaQ9kYGzzhZRbK+xOo=\r\n\r\n"

// socket opens a WebSocket, says nothing, and reads until it ends.
func (h *head) socket(w http.ResponseWriter, _ *http.Request) {
	connection, _, err := http.NewResponseController(w).Hijack()
	if err != nil {
		return
	}
	defer func() { _ = connection.Close() }()
	if _, err := io.WriteString(connection, accepted); err != nil {
		return
	}
	_, _ = io.Copy(io.Discard, connection)
}
