package workbench

import (
	"testing"

	"envace/judge"
	"envace/rollout"
)

// TestReplies: what each shape of a reply takes for right and what for loose.
func TestReplies(t *testing.T) {
	seen := map[string]string{
		"a": `{"status":"shipped","price":30,"city":"lima"}`,
		"b": `{"status":"pending","price":50,"city":"oslo"}`,
		"r": `{"error":"order is not pending","status":"shipped"}`,
		"w": `{"status":"cancelled","refund":17,"receipt":"opal-fox"}`,
		"l": `{"orders":[{"order":"teal-owl","price":12},{"order":"jade-fox","price":40}]}`,
	}
	price, status := From("a.price"), From("a.status")
	for _, tt := range []struct {
		name  string
		plan  *Plan
		right []string
		loose []string
	}{
		{"tell", Tell("price", "plum-hill", price),
			[]string{"the price of plum-hill is 30.", "plum-hill: price 30", "30 is the price of plum-hill"},
			[]string{"30", "it is 30.", "the price is 30.", "plum-hill is 30.", "the city of plum-hill is 30.", "the price of grand-pond is 30.",
				"the price of plum-hill is 50.", "the price of plum-hill is 30, the city is lima.", "the price of plum-hill and grand-pond is 30.",
				"the price of plum-hill is 30 or 50.", "no, the price of plum-hill is 30.", "done, the price of plum-hill is 30.", "plum-hill is shipped, the price is 30.", "sorry, the price of plum-hill is 30."}},
		{"only if", OnlyIf(status.Is("pending"), Beyond(), "plum-hill", status).no,
			[]string{"sorry, plum-hill is shipped.", "i am unable to, plum-hill is shipped"},
			[]string{"sorry, i cannot do that.", "sorry, it is shipped.", "plum-hill is shipped.", "sorry, grand-pond is shipped.", "sorry, plum-hill is pending.",
				"sorry, plum-hill is shipped to lima."}},
		{"attempt", Attempt(Do("r", "cancel_order", nil, Beyond()), "plum-hill", "status").next.yes,
			[]string{"sorry, plum-hill is shipped."},
			[]string{"sorry, plum-hill.", "sorry, order is not pending.", "done, plum-hill is shipped."}},
		{"yes", YesNo(price.Below(40), "price", "plum-hill", price).yes,
			[]string{"yes, the price of plum-hill is 30.", "the price of plum-hill is 30, so yes, less than 40."},
			[]string{"yes.", "yes, 30.", "no, the price of plum-hill is 30.", "the price of plum-hill is 30.", "yes, the city of plum-hill is lima.",
				"yes, the price of plum-hill is 40.", "yes or no, the price of plum-hill is 30."}},
		{"no", YesNo(price.Below(40), "price", "plum-hill", price).no,
			[]string{"no, the price of plum-hill is 30."}, []string{"no.", "yes, the price of plum-hill is 30."}},
		{"one of", OneOf("plum-hill", "cheapest", "price", price, "grand-pond"),
			[]string{"plum-hill is the cheapest, the price is 30.", "the cheapest is plum-hill, price 30"},
			[]string{"plum-hill is the cheapest.", "plum-hill, the price is 30.", "the price of plum-hill is 30.", "the city of plum-hill is lima.",
				"grand-pond is the cheapest, the price is 30.", "plum-hill or grand-pond is the cheapest, the price is 30."}},
		{"one of a list", Say("the %v %v is %v.", "cheapest", "order", From("l.orders").Least("price").At("order")),
			[]string{"the cheapest order is teal-owl.", "teal-owl is the cheapest order"},
			[]string{"it is teal-owl.", "the cheapest order is jade-fox.", "the cheapest order is teal-owl or jade-fox.", "the dearest order is teal-owl."}},
		{"done", Say("done, %v is cancelled, the refund is %v.", "plum-hill", From("w.refund")),
			[]string{"done, plum-hill is cancelled, the refund is 17.", "the refund is 17, plum-hill is cancelled"},
			[]string{"done, the refund is 17.", "done, plum-hill is cancelled.", "done, plum-hill goes by rail, the refund is 17.", "done, plum-hill is cancelled, the fee is 17.",
				"done, plum-hill is cancelled, the refund is 17, the receipt is opal-fox.", "done, grand-pond is cancelled, the refund is 17."}},
		{"none", Sorry("%v has no %v.", "ana", "order"),
			[]string{"sorry, ana has no order."}, []string{"sorry, i cannot do that.", "sorry, ana.", "sorry, no order.", "ana has no order."}},
		{"beyond", Beyond(),
			[]string{"sorry, i cannot do that.", "i am unable to do that."}, []string{"sorry, plum-hill is shipped.", "sorry.", "done.", "sorry, i cannot do that for grand-pond."}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			turn := judge.Before{
				Asked:   "is the price of plum-hill less than 40?",
				Results: func(item string) (string, bool) { r, ok := seen[item]; return r, ok },
				Made:    func(item string) bool { return seen[item] != "" },
			}
			for _, id := range sortedKeys(seen) {
				turn.Seen = append(turn.Seen, seen[id])
			}
			for _, said := range tt.right {
				if out, why := judge.Said(said, tt.plan.check(tt.plan), turn); out != rollout.Pass {
					t.Errorf("%q: %s", said, why)
				}
			}
			for _, said := range tt.loose {
				if out, _ := judge.Said(said, tt.plan.check(tt.plan), turn); out != rollout.Fail {
					t.Errorf("%q: %s", said, out)
				}
			}
		})
	}
}
