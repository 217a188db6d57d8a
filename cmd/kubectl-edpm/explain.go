package main

import (
	"fmt"
	"io"
	"regexp"
	"strings"

	"github.com/spf13/cobra"

	"github.com/edpm-operators/edpm-operators/internal/conditions"
)

func newExplain() *cobra.Command {
	var output string
	cmd := &cobra.Command{
		Use: "explain [condition|reason]", Short: "Explain what a condition or a reason means, and what to do about it", Args: cobra.MaximumNArgs(1),
		Long:              "Explain what a condition or a reason means, and what to do about it. Without a name,\nlist all of them. No cluster is contacted.",
		Example:           "  kubectl edpm explain CellMismatch\n  kubectl edpm explain ProvisionReady",
		ValidArgsFunction: cobra.FixedCompletions(conditions.Names(), cobra.ShellCompDirectiveNoFileComp),
		RunE: func(cmd *cobra.Command, args []string) error {
			if len(args) == 0 {
				return printAs(cmd.OutOrStdout(), output, conditions.Names(), func(out io.Writer) error {
					_, err := io.WriteString(out, strings.Join(conditions.Names(), "\n")+"\n")
					return err
				})
			}
			found := conditions.Find(args[0])
			if len(found) == 0 {
				return unexplained(args[0])
			}
			return printAs(cmd.OutOrStdout(), output, found, func(out io.Writer) error { return explain(out, found) })
		},
	}
	addOutput(cmd, &output)
	return cmd
}

// unexplained names what is called alike.
func unexplained(name string) error {
	var alike []string
	for _, known := range conditions.Names() {
		if strings.Contains(strings.ToLower(known), strings.ToLower(name)) {
			alike = append(alike, known)
		}
	}
	if len(alike) == 0 {
		return fmt.Errorf("%q is neither a condition nor a reason of edpm-operators: kubectl edpm explain lists all of them", name)
	}
	return fmt.Errorf("%q is neither a condition nor a reason of edpm-operators; similar ones: %s", name, strings.Join(alike, ", "))
}

// link of Markdown.
var link = regexp.MustCompile(`\[([^\]]+)\]\(([^)]+)\)`)

// plain is text of the documentation without its marks.
func plain(text string) string {
	return strings.ReplaceAll(link.ReplaceAllString(text, "$1 (docs/$2)"), "`", "")
}

func explain(out io.Writer, found []conditions.Match) error {
	b := &strings.Builder{}
	for i, m := range found {
		if i > 0 {
			b.WriteString("\n")
		}
		fmt.Fprintf(b, "%s of %s\n  True when %s\n", m.Condition.Type, strings.Join(m.Kinds, ", "), plain(m.Condition.Means))
		for _, r := range m.Condition.Reasons {
			fmt.Fprintf(b, "  %s\n    means %s\n    do    %s\n", r.Name, plain(r.Means), plain(r.Remedy))
		}
		fmt.Fprintf(b, "  see docs/%s\n", m.Page)
	}
	_, err := io.WriteString(out, b.String())
	return err
}
