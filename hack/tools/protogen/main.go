// Command protogen writes the Go code of protocols, as protoc does with the same plugins.
//
// In: a directory of .proto files, and plugins of protoc. Out: what the plugins answer for all of these files, in
// another directory, which must be there.
//
// It must never write outside of that directory, and never remove anything there.
package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path"
	"strings"

	"github.com/bufbuild/protocompile"
	"github.com/bufbuild/protocompile/protoutil"
	_ "google.golang.org/genproto/googleapis/api/annotations" // google/api/annotations.proto, for its importers
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/reflect/protoregistry"
	"google.golang.org/protobuf/types/descriptorpb"
	"google.golang.org/protobuf/types/pluginpb"
)

func main() {
	if len(os.Args) < 4 {
		fmt.Fprintln(os.Stderr, "usage: protogen SOURCE OUT PLUGIN[:PARAMETER]...")
		os.Exit(2)
	}
	if err := generate(context.Background(), os.Args[1], os.Args[2], os.Args[3:]); err != nil {
		fmt.Fprintln(os.Stderr, "protogen:", err)
		os.Exit(1)
	}
}

// generate runs the plugins on all protocols in source, and writes what they answer into out. A plugin without a parameter
// lays its files out as the protocols are.
func generate(ctx context.Context, source, out string, plugins []string) error {
	request, err := compile(ctx, source)
	if err != nil {
		return fmt.Errorf("compile protocols in %s: %w", source, err)
	}
	for _, plugin := range plugins {
		program, parameter, isGiven := strings.Cut(plugin, ":")
		request.Parameter = proto.String("paths=source_relative")
		if isGiven {
			request.Parameter = proto.String(parameter)
		}
		response, err := run(ctx, program, request)
		if err == nil {
			err = write(out, response)
		}
		if err != nil {
			return fmt.Errorf("generate with %s: %w", plugin, err)
		}
	}
	return nil
}

// compile returns what a plugin is asked for: code of all .proto files in a directory, laid out as they are.
//
// It names no version of a compiler, so generated code does not depend on one.
func compile(ctx context.Context, source string) (*pluginpb.CodeGeneratorRequest, error) {
	request := &pluginpb.CodeGeneratorRequest{}
	err := fs.WalkDir(os.DirFS(source), ".", func(name string, _ fs.DirEntry, err error) error {
		if path.Ext(name) == ".proto" {
			request.FileToGenerate = append(request.FileToGenerate, name)
		}
		return err
	})
	if err != nil {
		return nil, err
	}
	compiler := protocompile.Compiler{
		Resolver: protocompile.WithStandardImports(protocompile.CompositeResolver{
			&protocompile.SourceResolver{ImportPaths: []string{source}},
			protocompile.ResolverFunc(findLinked),
		}),
		SourceInfoMode: protocompile.SourceInfoStandard, // has the comments
	}
	files, err := compiler.Compile(ctx, request.FileToGenerate...)
	if err != nil {
		return nil, err
	}
	for _, file := range files {
		request.ProtoFile = appendFile(request.ProtoFile, file)
	}
	return request, nil
}

// findLinked returns a protocol that this program is linked with. So protocols of others come from Go modules, which are
// pinned.
func findLinked(name string) (protocompile.SearchResult, error) {
	file, err := protoregistry.GlobalFiles.FindFileByPath(name)
	return protocompile.SearchResult{Desc: file}, err
}

type protoFiles = []*descriptorpb.FileDescriptorProto

// appendFile returns the files with one more, which stands after all that it imports: plugins need that order.
func appendFile(files protoFiles, file protoreflect.FileDescriptor) protoFiles {
	for _, other := range files {
		if other.GetName() == file.Path() {
			return files
		}
	}
	for i := range file.Imports().Len() {
		files = appendFile(files, file.Imports().Get(i).FileDescriptor)
	}
	return append(files, protoutil.ProtoFromFileDescriptor(file))
}

// run returns what a plugin answers to a request.
func run(ctx context.Context, plugin string, request proto.Message) (*pluginpb.CodeGeneratorResponse, error) {
	in, err := proto.Marshal(request)
	if err != nil {
		return nil, err
	}
	command := exec.CommandContext(ctx, plugin)
	command.Stdin, command.Stderr = bytes.NewReader(in), os.Stderr
	out, err := command.Output()
	if err != nil {
		return nil, err
	}
	response := &pluginpb.CodeGeneratorResponse{}
	if err := proto.Unmarshal(out, response); err != nil {
		return nil, err
	}
	if response.Error != nil {
		return nil, errors.New(response.GetError())
	}
	return response, nil
}

// write makes the files of an answer in a directory, and fails where a name leads out of it.
func write(out string, response *pluginpb.CodeGeneratorResponse) error {
	root, err := os.OpenRoot(out)
	if err != nil {
		return err
	}
	defer root.Close()
	for _, file := range response.GetFile() {
		if err := root.MkdirAll(path.Dir(file.GetName()), 0o755); err != nil {
			return err
		}
		if err := root.WriteFile(file.GetName(), []byte(file.GetContent()), 0o644); err != nil {
			return err
		}
	}
	return nil
}
