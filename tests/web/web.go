// Package web tests the page in a browser: Debian's chromium, on the real server, on a real API server.
//
// In: the environment variables KUBECONFIG and HELM, as tests/integration has them; node, chromium, and the packages of
// web/package-lock.json. Out: verdicts of tests/web/*.test.mjs, or of the files that -files names.
//
// Server and browser run in a network namespace of their own, where pods' addresses lead to a fake head, and the only
// way out leads to the API server. It must never judge a duration without the flag -judge.
package web
