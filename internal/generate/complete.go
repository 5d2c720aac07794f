package main

import (
	"fmt"
	"slices"
	"strings"

	gql "github.com/vektah/gqlparser/v2/ast"
	gqlparser "github.com/vektah/gqlparser/v2/parser"
)

// schemaFile is the schema file at the top of the repository. It begins with a comment for those who
// read the hand-written schema.
const schemaFile = "schema.graphqls"

// pagingArguments are the arguments that select a page of a list. All other arguments of the field
// filter the list.
var pagingArguments = []string{"first", "after", "last", "before"}

// pagingSDL is the schema definition of pagingArguments.
const pagingSDL = `    """
    The maximum number of records to return, from 1 to 100. The page contains the first records of
    the list. If ` + "`after`" + ` is set, it contains the first records after that cursor. If neither ` + "`first`" + `
    nor ` + "`last`" + ` is set, the page has up to 20 records.
    """
    first: Int
    """
    Returns only records after this cursor. To read the next page, pass the ` + "`endCursor`" + ` of the
    current page.
    """
    after: String
    """
    The maximum number of records to return, from 1 to 100. The page contains the last records of
    the list. If ` + "`before`" + ` is set, it contains the last records before that cursor. The arguments
    ` + "`first` and `last`" + ` cannot be combined.
    """
    last: Int
    """
    Returns only records before this cursor. To read the previous page, pass the ` + "`startCursor`" + ` of
    the current page, and omit ` + "`first` and `after`" + `.
    """
    before: String`

// expectedVersionDescription is a format string. Its argument is the noun for the record that the
// mutation changes.
const expectedVersionDescription = "The `version` that the %[1]s had when the client read it. If the version has changed since then, the mutation changes nothing, and returns the user error `VersionConflict` and the current %[1]s. If this field is omitted, the server does not check the version."

const idempotencyKeyDescription = "A key, such as a new UUID, that makes it safe to send this request again. After the mutation succeeds, the server stores the key for 24 hours. If the caller sends the same input and key again, the server changes nothing and returns the result of the first request. The key has up to 128 bytes and must not contain `#`. Different callers can use the same key. On a server without authentication, all clients count as one caller."

// inputFieldSDL returns the schema definition of an input field.
func inputFieldSDL(field, description string) string {
	const maxColumns = 100
	var b strings.Builder
	b.WriteString(`  """`)
	column := maxColumns
	for word := range strings.SplitSeq(description, " ") {
		if column+1+len(word) > maxColumns {
			b.WriteString("\n ")
			column = 1
		}
		b.WriteString(" " + word)
		column += 1 + len(word)
	}
	b.WriteString("\n  \"\"\"\n  " + field)
	return b.String()
}

// completeSchema adds the definitions that follow from the hand-written schema to the sources: the
// paging arguments of fields that return connections, and fields of inputs. addedFields maps the
// name of an input to the schema definitions of these fields.
func completeSchema(sources []*gql.Source, addedFields map[string][]string) {
	for _, source := range sources {
		if source.Name == schemaFile {
			_, text, _ := strings.Cut(source.Input, `"""`)
			source.Input = `"""` + text
		}
		lines := strings.Split(source.Input, "\n")
		schema := mustValue(gqlparser.ParseSchema(source))
		for _, t := range slices.Backward(slices.Concat(schema.Definitions, schema.Extensions)) {
			if added := addedFields[t.Name]; t.Kind == gql.InputObject && len(added) > 0 && slices.Contains(schema.Definitions, t) {
				end := t.Position.Line + slices.Index(lines[t.Position.Line:], "}")
				lines = slices.Insert(lines, end, added...)
			}
			for _, f := range slices.Backward(t.Fields) {
				if t.Kind == gql.Object && strings.HasSuffix(f.Type.Name(), "Connection") {
					lines = addPagingArguments(lines, f)
				}
			}
		}
		source.Input = strings.Join(lines, "\n")
	}
}

// addPagingArguments adds the paging arguments to a field that is defined in the given lines.
func addPagingArguments(lines []string, f *gql.FieldDefinition) []string {
	const closing = "  ): "
	i := f.Type.Position.Line - 1
	name, rest, _ := strings.Cut(lines[i], ": ")
	switch {
	case len(f.Arguments) == 0:
		return slices.Replace(lines, i, i+1, name+"(", pagingSDL, closing+rest)
	case !strings.HasPrefix(lines[i], closing):
		fail("%s: write the parenthesis after the last argument on a line of its own, with the type", f.Name)
	}
	return slices.Insert(lines, i, pagingSDL)
}

// addedInputFields returns the schema definitions of the input fields that follow from the user
// errors of a mutation. record is the noun for the record that the mutation changes.
func (m mutation) addedInputFields(record string) (added []string) {
	if m.versioned() {
		added = append(added, inputFieldSDL("expectedVersion: Int", fmt.Sprintf(expectedVersionDescription, record)))
	}
	if m.repeatable() {
		added = append(added, inputFieldSDL("idempotencyKey: String", idempotencyKeyDescription))
	}
	return added
}

// versioned reports whether the mutation's input has the field expectedVersion.
func (m mutation) versioned() bool { return slices.Contains(m.userErrors, "VersionConflict") }

// repeatable reports whether the mutation's input has the field idempotencyKey.
func (m mutation) repeatable() bool { return slices.Contains(m.userErrors, "IdempotencyKeyReused") }
