//go:build !race

package steer_test

// most is how many bytes a calm cluster may need.
const most = 50 << 10
