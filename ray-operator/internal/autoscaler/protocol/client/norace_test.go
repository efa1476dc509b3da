//go:build !race

package client_test

// most is how many bytes a calm cluster may need.
const most = 50 << 10
