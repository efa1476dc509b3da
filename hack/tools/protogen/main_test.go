package main

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"google.golang.org/protobuf/compiler/protogen"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/pluginpb"
)

// protocols are files of which the first imports the last, and both a part of protobuf itself.
var protocols = map[string]string{
	"early.proto": `syntax = "proto3";
		package early;
		import "later/later.proto";
		import "google/protobuf/duration.proto";
		option go_package = "example.org/early";
		// Early is first by name.
		message Early { later.Later later = 1; google.protobuf.Duration pause = 2; }`,
	"later/later.proto": `syntax = "proto3";
		package later;
		import "google/protobuf/duration.proto";
		option go_package = "example.org/later";
		message Later { google.protobuf.Duration pause = 1; }`,
}

// source makes a directory that holds files with these texts, by name.
func source(t *testing.T, files map[string]string) string {
	t.Helper()
	dir := t.TempDir()
	for name, text := range files {
		file := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

// plugin makes a program that keeps its request beside itself, in the file request, and gives this answer.
func plugin(t *testing.T, answer *pluginpb.CodeGeneratorResponse) string {
	t.Helper()
	bytes, err := proto.Marshal(answer)
	if err != nil {
		t.Fatal(err)
	}
	dir := source(t, map[string]string{"answer": string(bytes)})
	file := filepath.Join(dir, "plugin")
	script := fmt.Sprintf("#!/bin/sh\ncat >%[1]s/request && cat %[1]s/answer\n", dir)
	if err := os.WriteFile(file, []byte(script), 0o755); err != nil {
		t.Fatal(err)
	}
	return file
}

func answer(name, content string) *pluginpb.CodeGeneratorResponse {
	return &pluginpb.CodeGeneratorResponse{File: []*pluginpb.CodeGeneratorResponse_File{
		{Name: &name, Content: &content},
	}}
}

func TestGenerate_AsksEachPluginForAllFiles(t *testing.T) {
	out := t.TempDir()
	plugins := []string{plugin(t, answer("early.go", "one")), plugin(t, answer("later/later.go", "two"))}
	if err := generate(t.Context(), source(t, protocols), out, plugins); err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]string{"early.go": "one", "later/later.go": "two"} {
		if got, err := os.ReadFile(filepath.Join(out, name)); err != nil || string(got) != want {
			t.Errorf("%s holds %q, not %q: %v", name, got, want, err)
		}
	}
	for _, plugin := range plugins {
		bytes, err := os.ReadFile(filepath.Join(filepath.Dir(plugin), "request"))
		if err != nil {
			t.Fatal(err)
		}
		request := &pluginpb.CodeGeneratorRequest{}
		if err := proto.Unmarshal(bytes, request); err != nil {
			t.Fatal(err)
		}
		checkRequest(t, request)
	}
}

// checkRequest looks at a request as plugins do, which fail where an import does not stand first.
func checkRequest(t *testing.T, request *pluginpb.CodeGeneratorRequest) {
	t.Helper()
	if request.CompilerVersion != nil || request.GetParameter() != "paths=source_relative" {
		t.Errorf("the request has a compiler %v and the parameter %q", request.CompilerVersion, request.GetParameter())
	}
	seen, err := protogen.Options{}.New(request)
	if err != nil {
		t.Fatal(err)
	}
	var generated []string
	for _, file := range seen.Files {
		if file.Generate {
			generated = append(generated, file.Desc.Path())
		}
	}
	slices.Sort(generated)
	if want := []string{"early.proto", "later/later.proto"}; !slices.Equal(generated, want) {
		t.Errorf("code is asked for of %v, not of %v", generated, want)
	}
	comments := seen.FilesByPath["early.proto"].Messages[0].Comments.Leading
	if want := " Early is first by name.\n"; string(comments) != want {
		t.Errorf("the comment of a message is %q, not %q", comments, want)
	}
}

func TestGenerate_Fails(t *testing.T) {
	unknown := map[string]string{"a.proto": `syntax = "proto3"; message A { B b = 1; }`}
	refusal := &pluginpb.CodeGeneratorResponse{Error: proto.String("no go_package")}
	for name, c := range map[string]struct {
		files  map[string]string
		plugin string
		want   string
	}{
		"a type is unknown":           {unknown, plugin(t, answer("a.go", "")), "a.proto:1:32"},
		"the plugin is missing":       {protocols, filepath.Join(t.TempDir(), "none"), "no such file"},
		"the plugin fails":            {protocols, "false", "exit status 1"},
		"the plugin answers nonsense": {protocols, "pwd", "proto:"},
		"the plugin refuses":          {protocols, plugin(t, refusal), "no go_package"},
		"a name leads out":            {protocols, plugin(t, answer("../a.go", "")), "path escapes"},
	} {
		t.Run(name, func(t *testing.T) {
			err := generate(t.Context(), source(t, c.files), t.TempDir(), []string{c.plugin})
			if err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("the error is %v, not one with %q", err, c.want)
			}
		})
	}
}
