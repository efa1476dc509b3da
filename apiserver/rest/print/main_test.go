package main

import (
	"strings"
	"testing"
)

func TestWriteRoutes_HasARowForEachCall(t *testing.T) {
	protocol := "// GetMe returns a\n// caller.\nrpc GetMe(A) returns (B) {\n"
	if err := writeRoutes(&strings.Builder{}, strings.NewReader(protocol)); err == nil || !strings.Contains(err.Error(), "ListNamespaces") {
		t.Errorf("a call without a comment is %v", err)
	}
	comments, err := readComments(strings.NewReader(protocol))
	if err != nil || comments["GetMe"] != "returns a caller." {
		t.Errorf("the comments are %q (%v)", comments, err)
	}
}
