package grammar

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"envace/internal/oracle"
)

// Every case of the official test suite of draft 2020-12 is enforced by the grammar, checked
// afterwards, or its schema refused by name; none is silently dropped. A grammar may allow
// less than the schema (objects are closed and ordered), never more.
func TestGoldenSchemaSuite(t *testing.T) {
	root := os.Getenv("ENVACE_JSON_SCHEMA_SUITE")
	if root == "" {
		oracle.Missing(t, "ENVACE_JSON_SCHEMA_SUITE")
	}
	files, err := filepath.Glob(filepath.Join(oracle.Need(t, filepath.Join(root, "tests", "draft2020-12")), "*.json"))
	if err != nil || len(files) < 40 {
		t.Fatalf("%d files, %v", len(files), err)
	}
	var sum tally
	table := map[string]*tally{}
	for _, file := range files {
		name := strings.TrimSuffix(filepath.Base(file), ".json")
		table[name] = &tally{}
		for _, group := range suiteGroups(t, file) {
			table[name].group(t, name, group)
		}
		sum.add(table[name])
	}
	for _, name := range slices.Sorted(maps.Keys(table)) {
		t.Logf("%-22s %s", name, table[name])
	}
	t.Logf("%-22s %s", "all", &sum)
}

type suiteGroup struct {
	Description string
	Schema      json.RawMessage
	Tests       []struct {
		Description string
		Data        json.RawMessage
		Valid       bool
	}
}

func suiteGroups(t *testing.T, file string) (groups []suiteGroup) {
	t.Helper()
	data, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(data, &groups); err != nil {
		t.Fatal(err)
	}
	return groups
}

// tally counts cases.
type tally struct{ enforced, checked, refused, valid, allowed int }

// String returns the counts.
func (n *tally) String() string {
	return fmt.Sprintf("%4d enforced %4d checked %4d refused; of %4d valid values %4d allowed", n.enforced, n.checked, n.refused, n.valid, n.allowed)
}

func (n *tally) add(m *tally) {
	n.enforced += m.enforced
	n.checked += m.checked
	n.refused += m.refused
	n.valid += m.valid
	n.allowed += m.allowed
}

func (n *tally) group(t *testing.T, file string, group suiteGroup) {
	t.Helper()
	f, err := JSONSchema(group.Schema)
	if err != nil {
		if !errors.Is(err, ErrSchema) {
			t.Errorf("%s: %s: %v", file, group.Description, err)
		}
		if os.Getenv("SUITE_REFUSED") != "" {
			t.Logf("%s: %s: %v", file, group.Description, err)
		}
		n.refused += len(group.Tests)
		return
	}
	for _, test := range group.Tests {
		text, err := plain(test.Data)
		if err != nil {
			t.Fatal(err)
		}
		matched := allows(f, text)
		checked := f.Check("", []byte(text)) != nil
		switch {
		case !test.Valid && !matched:
			n.enforced++
		case !test.Valid && checked:
			n.checked++
		case !test.Valid:
			t.Errorf("%s: %s: %s: %s allows %s", file, group.Description, test.Description, group.Schema, text)
		case checked:
			t.Errorf("%s: %s: %s: the check of %s rejects %s: %v", file, group.Description, test.Description, group.Schema, text, f.Check("", []byte(text)))
		case f.Checked():
			n.checked++
			n.valid++
		default:
			n.enforced++
			n.valid++
		}
		if test.Valid && matched {
			n.allowed++
		}
	}
}
