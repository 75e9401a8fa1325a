package task

import (
	"encoding/json"
	"testing"
)

func TestRefLookup(t *testing.T) {
	const list = `{"flights":[{"id":"a","price":30,"day":"monday"},{"id":"b","price":20,"day":"monday"},{"id":"c","price":10,"day":"friday"}],
		"ids":[{"id":"x","n":9007199254740992},{"id":"y","n":9007199254740993}],
		"some":[{"id":"one","price":5},{"id":"two"}], "debts":[{"id":"two"},{"id":"one","price":-5}], "void":[{"id":"one","price":null}],
		"words":[{"id":"one","price":"cheap"},{"id":"two","price":"7"}], "same":[{"id":"one","price":1},{"id":"two","price":1.0}]}`
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
		{"of huge numbers", Ref{Pick: &Pick{In: "ids", Max: "n"}, Path: "id"}, `"y"`, true},
		{"a missing number is none", Ref{Pick: &Pick{In: "some", Min: "price"}, Path: "id"}, `"one"`, true},
		{"nor is it the greatest", Ref{Pick: &Pick{In: "debts", Max: "price"}, Path: "id"}, `"one"`, true},
		{"null is no number", Ref{Pick: &Pick{In: "void", Min: "price"}, Path: "id"}, "", false},
		{"a text is no number", Ref{Pick: &Pick{In: "words", Min: "price"}, Path: "id"}, `"two"`, true},
		{"the first of equals", Ref{Pick: &Pick{In: "same", Min: "price"}, Path: "id"}, `"one"`, true},
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
			return `{"status":"open","total":12,"items":[],"spaced":[ ],"void":null}`, true
		case "C1":
			return `{"error":"not found"}`, true
		case "C2":
			return `{"id":9007199254740992,"tenth":0.30,"text":"9007199254740992","huge":1e999999999}`, true
		}
		return "", false
	}
	for _, tt := range []struct {
		item, path, op, value string
		holds, known          bool
	}{
		{"C0", "status", OpEqual, `"open"`, true, true},
		{"C0", "status", OpUnequal, `"open"`, false, true},
		{"C0", "missing", OpUnequal, `"open"`, false, false},
		{"C0", "missing", OpEqual, `"open"`, false, false},
		{"C0", "missing", OpEmpty, ``, false, false},
		{"C0", "missing", OpFilled, ``, false, false},
		{"C0", "void", OpEmpty, ``, false, false},
		{"C0", "void", OpEqual, `"open"`, false, false},
		{"C0", "void", OpUnequal, `"open"`, false, false},
		{"C0", "status", OpEqual, `null`, false, false},
		{"C1", "status", OpEmpty, ``, true, true},
		{"C1", "status", OpFilled, ``, false, true},
		{"C1", "status", OpEqual, `"open"`, false, false},
		{"C2", "id", OpLess, `9007199254740993`, true, true},
		{"C2", "id", OpAtLeast, `9007199254740993`, false, true},
		{"C2", "id", OpEqual, `9007199254740993`, false, true},
		{"C2", "tenth", OpLess, `0.3`, false, true},
		{"C2", "text", OpLess, `9007199254740993`, true, true},
		{"C2", "huge", OpLess, `1`, false, false},
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
