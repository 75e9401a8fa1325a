package task

import (
	"encoding/json"
	"testing"
)

func TestRefLookup(t *testing.T) {
	const list = `{"flights":[{"id":"a","price":30,"day":"monday"},{"id":"b","price":20,"day":"monday"},{"id":"c","price":10,"day":"friday"}]}`
	for _, tt := range []struct {
		name string
		ref  Ref
		want string
		ok   bool
	}{
		{"key", Ref{Path: "flights.1.id"}, `"b"`, true},
		{"no such key", Ref{Path: "trains"}, "", false},
		{"index out of range", Ref{Path: "flights.3"}, "", false},
		{"negative index", Ref{Path: "flights.-1"}, "", false},
		{"least", Ref{Pick: &Pick{In: "flights", Min: "price"}, Path: "id"}, `"c"`, true},
		{"greatest", Ref{Pick: &Pick{In: "flights", Max: "price"}, Path: "id"}, `"a"`, true},
		{"least of some", Ref{Pick: &Pick{In: "flights", Min: "price", Where: map[string]json.RawMessage{"day": json.RawMessage(`"monday"`)}}, Path: "id"}, `"b"`, true},
		{"none", Ref{Pick: &Pick{In: "flights", Where: map[string]json.RawMessage{"day": json.RawMessage(`"sunday"`)}}, Path: "id"}, "", false},
	} {
		t.Run(tt.name, func(t *testing.T) {
			got, ok := tt.ref.Lookup(list)
			if ok != tt.ok || string(got) != tt.want {
				t.Errorf("got %s, %v", got, ok)
			}
		})
	}
	if _, ok := (Ref{Path: "a"}).Lookup("not JSON"); ok {
		t.Error("broken JSON has values")
	}
}

func TestCondHolds(t *testing.T) {
	results := func(item string) (string, bool) {
		switch item {
		case "C0":
			return `{"status":"open","total":12,"items":[],"spaced":[ ]}`, true
		case "C1":
			return `{"error":"not found"}`, true
		}
		return "", false
	}
	for _, tt := range []struct {
		item, path, op, value string
		holds, known          bool
	}{
		{"C0", "status", OpEqual, `"open"`, true, true},
		{"C0", "status", OpUnequal, `"open"`, false, true},
		{"C0", "missing", OpUnequal, `"open"`, true, true},
		{"C0", "missing", OpEqual, `"open"`, false, true},
		{"C0", "total", OpLess, `13`, true, true},
		{"C0", "total", OpAtLeast, `13`, false, true},
		{"C0", "total", OpAtLeast, `{"$ref":{"item":"C0","path":"total"}}`, true, true},
		{"C0", "total", OpAtLeast, `{"$ref":{"item":"C9","path":"total"}}`, false, false},
		{"C0", "missing", OpLess, `13`, false, false},
		{"C0", "missing", OpAtLeast, `13`, false, false},
		{"C0", "status", OpLess, `13`, false, false},
		{"C0", "total", OpAtLeast, `"many"`, false, false},
		{"C0", "total", "gt", `1`, false, false},
		{"C0", "items", OpEmpty, ``, true, true},
		{"C0", "spaced", OpEmpty, ``, true, true},
		{"C0", "spaced", OpFilled, ``, false, true},
		{"C0", "status", OpFilled, ``, true, true},
		{"C1", "", OpError, ``, true, true},
		{"C0", "", OpError, ``, false, true},
		{"C0", "", OpOK, ``, true, true},
		{"C9", "", OpOK, ``, false, false},
	} {
		c := Cond{Ref: Ref{Item: tt.item, Path: tt.path}, Op: tt.op, Value: json.RawMessage(tt.value)}
		if holds, known := c.Holds(results); holds != tt.holds || known != tt.known {
			t.Errorf("%s.%s %s %s: %v, %v", tt.item, tt.path, tt.op, tt.value, holds, known)
		}
	}
}

func TestIsError(t *testing.T) {
	for text, want := range map[string]bool{
		`{"error":"x"}`: true, `{"error":null,"output":1}`: false, `{"exception":"bad"}`: true, `{"output":"error"}`: false,
		`{"error": { }}`: false, `{"error": " "}`: true,
		`{"error":{"code":"X"}}`: true, `[]`: false, `Error: no such file`: true, `all errors fixed`: false,
	} {
		if IsError(text) != want {
			t.Errorf("%s: %v", text, !want)
		}
	}
}
