//go:build race

package client_test

// most is how many bytes a calm cluster may need: the race detector takes some of its own.
const most = 96 << 10
