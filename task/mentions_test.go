package task

import (
	"slices"
	"testing"
)

func TestNumbers(t *testing.T) {
	for said, want := range map[string][]string{
		"":                               nil,
		"the price is 30.":               {"30"},
		"30, 4.5 and -7 (or 12)!":        {"30", "4.5", "-7", "12"},
		"c-4, 4-b, a7, 9:30, no. inf":    nil,
		"$45 or 45% of 9007199254740993": {"45", "45", "9007199254740993"},
	} {
		if got := Numbers(said); !slices.Equal(got, want) {
			t.Errorf("%q: got %q, want %q", said, got, want)
		}
	}
}

func TestMentions(t *testing.T) {
	for _, tt := range []struct {
		text      string
		yes, nope []string
	}{
		{"4", []string{"4", "4.", "(4)", "4, please", "room 4: free", "4 and 14", "14 and 4", "it costs $4", "4%", "4-", "4\n"}, []string{"14", "44", "4.5", "3.4", "4-b", "b-4", "4:30", "-4", "x4", "4th", "four", ""}},
		{"4.5", []string{"4.5.", "is 4.5"}, []string{"14.5", "4.55", "4,5", "45"}},
		{"-4", []string{"at -4 degrees", "-4"}, []string{"4", "x-4", "-40"}},
		{"blue-jay", []string{"Blue-Jay!", "the blue-jay's"}, []string{"blue jay", "blue-jays", "big-blue-jay", "blue-jay-2", "blue", "jay"}},
		{"blue", []string{"blue", "blue, jay", "BLUE"}, []string{"blue-jay", "deep_blue", "bluest"}},
		{"monday 17:30", []string{"on Monday 17:30."}, []string{"monday 17:305", "monday, 17:30"}},
		{"über", []string{"Über uns", "ganz über"}, []string{"übers", "darüber"}},
		{"日本", []string{"日本", "(日本)"}, []string{"日本語"}},
		{" padded ", []string{"is padded"}, []string{"unpadded"}},
		{"a+b", []string{"a+b", "is a+b."}, []string{"aa+b"}},
		{"", nil, []string{"", "anything"}},
	} {
		for _, said := range tt.yes {
			if !Mentions(said, tt.text) {
				t.Errorf("%q does not say %q", said, tt.text)
			}
		}
		for _, said := range tt.nope {
			if Mentions(said, tt.text) {
				t.Errorf("%q says %q", said, tt.text)
			}
		}
	}
}
