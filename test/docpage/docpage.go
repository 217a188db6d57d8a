// Package docpage reads the code blocks of a page of the documentation, and runs
// the commands in them as a person would who follows the page.
//
// What a block is, its info string says:
//
//	sh          commands, which a test runs
//	sh example  commands that cannot be run where the tests run; the page says why
//	text, yaml, ...  output, files, anything else
package docpage

import (
	"bytes"
	"fmt"
	"os"
	"strings"

	"github.com/yuin/goldmark"
	"github.com/yuin/goldmark/ast"
	"github.com/yuin/goldmark/text"
)

// Block is a fenced code block of a page.
type Block struct {
	// Page is the path of the file.
	Page string
	// Section is the text of the heading above the block.
	Section string
	// Line of the page that Text begins with.
	Line int
	// Info is what stands behind the fence that opens the block.
	Info string
	// Text of the block, without the indentation that it has in a list.
	Text string
}

// Runs reports whether the block has commands for a test to run.
func (b Block) Runs() bool { return b.Info == "sh" }

// String returns the place of the block, as page:line.
func (b Block) String() string { return fmt.Sprintf("%s:%d", b.Page, b.Line) }

// Read returns the blocks of the page at path in their order. The error is that of
// reading the file.
func Read(path string) ([]Block, error) {
	source, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	return Parse(path, source), nil
}

// Parse returns the blocks of a page in their order. What is not closed ends with
// the page, as CommonMark says.
func Parse(page string, source []byte) []Block {
	var blocks []Block
	section := ""
	document := goldmark.DefaultParser().Parse(text.NewReader(source))
	// The only error of Walk is that of the function.
	_ = ast.Walk(document, func(n ast.Node, entering bool) (ast.WalkStatus, error) {
		switch n := n.(type) {
		case *ast.Heading:
			section = string(n.Lines().Value(source))
		case *ast.FencedCodeBlock:
			if entering && n.Lines().Len() > 0 {
				blocks = append(blocks, block(page, section, source, n))
			}
		}
		return ast.WalkContinue, nil
	})
	return blocks
}

func block(page, section string, source []byte, fenced *ast.FencedCodeBlock) Block {
	first := fenced.Lines().At(0)
	b := Block{Page: page, Section: section, Line: 1 + bytes.Count(source[:first.Start], []byte("\n")), Text: string(fenced.Lines().Value(source))}
	if fenced.Info != nil {
		b.Info = strings.TrimSpace(string(fenced.Info.Value(source)))
	}
	return b
}
