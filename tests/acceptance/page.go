package main

import (
	"context"
	"regexp"
)

// pageLoad measures the page in a browser while much happens.
var pageLoad = scenario{
	name: "page-load",
	promise: "with 2,000 objects and 200 changes a second for 10 min: first row within 1 s, change to paint p95 " +
		"within 200 ms and 1.2 times the delay of the bare stream, heap flat; 100,000 lines fill in 200 ms, and a new line " +
		"costs one frame",
	play: func(ctx context.Context, _ string) (Outcome, error) {
		output, failed := onAPIServer(ctx, []string{
			"-v", "-count=1", "-timeout", "60m", "-run", "^TestPage$", "./tests/web", "-files", "load.mjs", "-judge",
		})
		return saidBy(output, figuresOfPage, pageFigures, failed)
	},
}

// What the tests say of each figure, after the reporter's mark, and how many there are.
var figuresOfPage = regexp.MustCompile(`\w[^\n]*, promised [^\n]*`)

const pageFigures = 7
