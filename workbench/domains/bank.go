package domains

import (
	"maps"
	"slices"

	"envace/workbench"
)

// vault is the state of the domain bank.
type vault struct {
	Accounts map[string]*account  `json:"accounts"`
	Bills    map[string]*bill     `json:"bills"`
	Receipts workbench.FreshNames `json:"receipts"`
}

type account struct {
	Owner   string `json:"owner"`
	Kind    string `json:"kind"`
	Status  string `json:"status"`
	Balance int    `json:"balance"`
}

type bill struct {
	Payee  string `json:"payee"`
	Day    string `json:"day"`
	Status string `json:"status"`
	Amount int    `json:"amount"`
}

var (
	accountStops = []string{"frozen", "blocked", "closed"}
	billStops    = []string{"paid", "late", "wrong"}
	accountKinds = []string{"daily", "savings", "family", "travel"}
	payees       = []string{"power", "water", "phone", "rent", "school"}
)

func bank() workbench.Domain {
	name := workbench.Text("account")
	return workbench.Domain{
		Name:  "bank",
		About: "you help with accounts and bills. only open accounts can send money, pay bills or be frozen, only unpaid bills can be paid.",
		Tools: []workbench.Tool{
			{Name: "find_accounts", About: "list the accounts of an owner", Params: []workbench.Param{workbench.Text("owner")}, Do: workbench.On(findAccounts)},
			{Name: "get_account", About: "show an account", Params: []workbench.Param{name}, Do: workbench.On(getAccount)},
			{Name: "get_bill", About: "show a bill", Params: []workbench.Param{workbench.Text("bill")}, Do: workbench.On(getBill)},
			{Name: "send_money", About: "send money from an open account", Params: []workbench.Param{name, workbench.Text("to"), workbench.Number("amount")},
				Write: true, Do: workbench.On(sendMoney)},
			{Name: "pay_bill", About: "pay an unpaid bill from an open account", Params: []workbench.Param{workbench.Text("bill"), name},
				Write: true, Do: workbench.On(payBill)},
			{Name: "freeze_account", About: "freeze an open account", Params: []workbench.Param{name}, Write: true, Do: workbench.On(freezeAccount)},
		},
		New: newVault,
		Kinds: append(accountNoun().Kinds(),
			workbench.Kind{Name: "act", Weight: 6, Make: workbench.For(bankAct)},
			workbench.Kind{Name: "bill", Weight: 2, Make: workbench.For(bankBill)},
			workbench.Kind{Name: "pay", Weight: 12, Make: workbench.For(bankPay)},
			workbench.Kind{Name: "limit", Weight: 11, Make: workbench.For(bankLimit)},
			workbench.Kind{Name: "send", Weight: 12, Make: workbench.For(bankSend)},
			workbench.Kind{Name: "try", Weight: 10, Make: workbench.For(bankTry)},
			workbench.Kind{Name: "beyond", Weight: 3, Make: workbench.For(bankBeyond)}),
	}
}

func accountNoun() workbench.Noun {
	return workbench.Noun{
		One: "account", Owner: "owner", Shows: []string{"status", "balance", "kind", "owner"},
		Status: "open", Others: accountStops, Verb: "freeze", End: freezePlan,
		Number: "balance", Less: "poorer", Least: "poorest", Most: "richest",
		Add: func(r *workbench.Rand, s workbench.State, owner string, balance int, status string) string {
			return s.(*vault).add(r, owner, balance, status)
		},
	}
}

func newVault(r *workbench.Rand) workbench.State {
	s := &vault{map[string]*account{}, map[string]*bill{}, r.Fresh()}
	for range 2 {
		s.any(r)
		s.bill(r)
	}
	return s
}

// add opens an account and returns its name. A balance of 0 is drawn, and so is a
// status of "".
func (s *vault) add(r *workbench.Rand, owner string, balance int, status string) string {
	name := r.Name()
	if balance == 0 {
		balance = r.Int(5, 95)
	}
	if status == "" {
		status = usually(r, "open", accountStops)
	}
	s.Accounts[name] = &account{owner, r.One(accountKinds...), status, balance}
	return name
}

func (s *vault) any(r *workbench.Rand) string { return s.add(r, r.Person(), 0, "") }

// spread makes the balances of an owner's accounts differ.
func (s *vault) spread(r *workbench.Rand, owner string) {
	taken := map[int]bool{}
	for _, name := range slices.Sorted(maps.Keys(s.Accounts)) {
		if a := s.Accounts[name]; a.Owner == owner {
			for taken[a.Balance] {
				a.Balance = r.Int(5, 95)
			}
			taken[a.Balance] = true
		}
	}
}

func (s *vault) bill(r *workbench.Rand) string {
	name := r.Name()
	s.Bills[name] = &bill{r.One(payees...), r.One(days...), usually(r, "unpaid", billStops), r.Int(5, 90)}
	return name
}

func (s *vault) account(name string) (*account, error) {
	if a, ok := s.Accounts[name]; ok {
		return a, nil
	}
	return nil, workbench.NotFound("account", name, s.Accounts, "find_accounts")
}

func findAccounts(s *vault, a workbench.Args) (any, error) {
	list := []workbench.Fields{}
	for _, name := range slices.Sorted(maps.Keys(s.Accounts)) {
		if acc := s.Accounts[name]; acc.Owner == a.Text("owner") {
			list = append(list, workbench.Fields{"account": name, "balance": acc.Balance})
		}
	}
	return workbench.Fields{"accounts": list}, nil
}

func getAccount(s *vault, a workbench.Args) (any, error) {
	acc, err := s.account(a.Text("account"))
	if err != nil {
		return nil, err
	}
	return workbench.Fields{"status": acc.Status, "balance": acc.Balance, "kind": acc.Kind, "owner": acc.Owner}, nil
}

func getBill(s *vault, a workbench.Args) (any, error) {
	b, ok := s.Bills[a.Text("bill")]
	if !ok {
		return nil, workbench.NotFound("bill", a.Text("bill"), s.Bills, "another name")
	}
	return workbench.Fields{"status": b.Status, "amount": b.Amount, "payee": b.Payee, "day": b.Day}, nil
}

// spend takes amount from an account if that is allowed.
func (s *vault) spend(name string, amount int) error {
	acc, err := s.account(name)
	switch {
	case err != nil:
		return err
	case acc.Status != "open":
		return workbench.Refuse("status", acc.Status, "account is not open")
	case acc.Balance < amount:
		return workbench.Refuse("balance", acc.Balance, "balance is too low")
	}
	acc.Balance -= amount
	return nil
}

func sendMoney(s *vault, a workbench.Args) (any, error) {
	to, err := s.account(a.Text("to"))
	if err != nil {
		return nil, err
	}
	if a.Text("to") == a.Text("account") {
		return nil, workbench.Refuse("account", a.Text("to"), "both accounts are the same")
	}
	if err := s.spend(a.Text("account"), a.Int("amount")); err != nil {
		return nil, err
	}
	to.Balance += a.Int("amount")
	return workbench.Fields{"status": "sent", "receipt": s.Receipts.Next()}, nil
}

func payBill(s *vault, a workbench.Args) (any, error) {
	b, ok := s.Bills[a.Text("bill")]
	if !ok {
		return nil, workbench.NotFound("bill", a.Text("bill"), s.Bills, "another name")
	}
	if b.Status != "unpaid" {
		return nil, workbench.Refuse("status", b.Status, "bill is not unpaid")
	}
	if err := s.spend(a.Text("account"), b.Amount); err != nil {
		return nil, err
	}
	b.Status = "paid"
	return workbench.Fields{"status": b.Status, "receipt": s.Receipts.Next()}, nil
}

func freezeAccount(s *vault, a workbench.Args) (any, error) {
	acc, err := s.account(a.Text("account"))
	if err != nil {
		return nil, err
	}
	if acc.Status != "open" {
		return nil, workbench.Refuse("status", acc.Status, "account is not open")
	}
	acc.Status = "frozen"
	return workbench.Fields{"status": acc.Status, "balance": acc.Balance}, nil
}

// Plans.

// ifEnough goes on with yes unless the account just looked at, under the id, holds
// less than amount.
func ifEnough(id string, name, amount any, yes *workbench.Plan) *workbench.Plan {
	balance := workbench.From(id + ".balance")
	return workbench.If(balance.Below(amount), workbench.Sorry("the balance of %v is %v.", name, balance), yes)
}

func sendPlan(name, to any, amount int) *workbench.Plan {
	return workbench.Do("send", "send_money", workbench.Values{"account": name, "to": to, "amount": amount},
		workbench.Say("done, the receipt is %v.", workbench.From("send.receipt")))
}

// carefully looks at the account, and sends if it is open and holds enough.
func carefully(name, to any, amount int) *workbench.Plan {
	return accountNoun().If(name, "open", ifEnough("seen", name, amount, sendPlan(name, to, amount)))
}

func freezePlan(name any) *workbench.Plan {
	return workbench.Do("freeze", "freeze_account", workbench.Values{"account": name},
		workbench.Say("done, %v is frozen, the balance is %v.", name, workbench.From("freeze.balance")))
}

// Kinds.

// bankAct: send or freeze, if the account allows it.
func bankAct(r *workbench.Rand, s *vault) workbench.Turn {
	n := r.Int(20, 80)
	name, to := s.add(r, r.Person(), r.Side(n, 0.5), ""), s.any(r)
	slots := workbench.Values{"account": name, "to": to, "n": n}
	if r.Chance(0.3) {
		return workbench.Turn{
			User: r.Phrase(slots, "please freeze account {account}.", "i lost my card, freeze {account}.",
				"freeze account {account} and tell me the balance."),
			Plan: accountNoun().If(name, "open", freezePlan(name)),
		}
	}
	return workbench.Turn{
		User: r.Phrase(slots, "send {n} from {account} to {to}.", "please send {n} to {to} from my account {account}.",
			"i owe {n} to {to}, send it from {account}.", "from account {account}, send {n} to {to}. what is the receipt?"),
		Plan: carefully(name, to, n),
	}
}

// bankBill: a question about a bill.
func bankBill(r *workbench.Rand, s *vault) workbench.Turn {
	name, key, n := s.bill(r), r.One("status", "amount", "payee", "day"), r.Int(15, 60)
	slots := workbench.Values{"bill": name, "key": key, "n": n}
	if r.Chance(0.3) {
		return workbench.Turn{
			User: r.Phrase(slots, "is the amount of bill {bill} less than {n}?", "do i have to pay less than {n} for bill {bill}?",
				"tell me if bill {bill} has an amount of less than {n}."),
			Plan: workbench.Do("bill", "get_bill", workbench.Values{"bill": name},
				workbench.YesNo(workbench.From("bill.amount").Below(n), "amount", name, workbench.From("bill.amount"))),
		}
	}
	return workbench.Turn{
		User: r.Phrase(slots, "what is the {key} of bill {bill}?", "i have a bill called {bill}. which {key} does it have?",
			"tell me the {key} of bill {bill}, please."),
		Plan: workbench.Do("bill", "get_bill", workbench.Values{"bill": name}, workbench.Tell(key, name, workbench.From("bill."+key))),
	}
}

// bankPay: pay a bill; the amount is on the bill.
func bankPay(r *workbench.Rand, s *vault) workbench.Turn {
	b := s.bill(r)
	name := s.add(r, r.Person(), r.Side(s.Bills[b].Amount, 0.5), "")
	pay := workbench.Do("pay", "pay_bill", workbench.Values{"bill": b, "account": name},
		workbench.Say("done, the receipt is %v.", workbench.From("pay.receipt")))
	unpaid := accountNoun().If(name, "open", ifEnough("seen", name, workbench.From("bill.amount"), pay))
	return workbench.Turn{
		User: r.Phrase(workbench.Values{"account": name, "bill": b}, "pay bill {bill} from {account}.",
			"please pay {bill}, my bill, from account {account}.", "use account {account} to pay bill {bill}. what is the receipt?",
			"i got bill {bill}, pay it from {account}."),
		Plan: workbench.Do("bill", "get_bill", workbench.Values{"bill": b},
			workbench.OnlyIf(workbench.From("bill.status").Is("unpaid"), unpaid, b, workbench.From("bill.status"))),
	}
}

// bankLimit: what to do depends on the balance.
func bankLimit(r *workbench.Rand, s *vault) workbench.Turn {
	n := r.Int(20, 80)
	name, to, m := s.add(r, r.Person(), r.Side(n, 0.5), ""), s.any(r), n-r.Int(5, 15)
	return workbench.Turn{
		User: r.Phrase(workbench.Values{"account": name, "to": to, "n": n, "m": m},
			"if the balance of {account} is less than {n}, freeze it, otherwise send {m} to {to}.",
			"freeze {account} if it has less than {n}, else send {m} from it to {to}.",
			"is the balance of {account} less than {n}? then freeze it, otherwise send {m} to {to}."),
		Plan: accountNoun().If(name, "open",
			workbench.If(workbench.From("seen.balance").Below(n), freezePlan(name), sendPlan(name, to, m))),
	}
}

// bankSend: send from an account that must be found first.
func bankSend(r *workbench.Rand, s *vault) workbench.Turn {
	noun, owner, other, to, n := accountNoun(), r.Person(), r.Person(), s.any(r), r.Int(20, 80)
	slots := workbench.Values{"owner": owner, "n": n, "to": to, "other": other}
	if r.Chance(0.6) {
		for _, who := range []string{owner, other}[r.Int(0, 1):] {
			s.add(r, who, r.Side(n, 0.4), "")
		}
		return workbench.Turn{
			User: r.Phrase(slots, "send {n} to {to} from the account of {owner}, or if there is none, that of {other}.",
				"find the account of {owner}, or of {other} if there is none, and send {n} from it to {to}.",
				"look at the account of {owner}, or if there is none, of {other}, and send {n} to {to} from it."),
			Plan: noun.FindOr(owner, other, func(name workbench.Ref, id string) *workbench.Plan {
				return noun.OnlyIf(id, name, "open", ifEnough(id, name, n, sendPlan(name, to, n)))
			}),
		}
	}
	which, name := noun.Pick(r)
	for range r.Int(2, 3) {
		s.add(r, owner, r.Side(n, 0.5), "")
	}
	s.spread(r, owner)
	slots["which"] = which
	return workbench.Turn{
		User: r.Phrase(slots, "send {n} to {to} from the {which} account of {owner}.",
			"{owner} wants to send {n} to {to} from the {which} account.",
			"find the {which} account of {owner} and send {n} from it to {to}."),
		Plan: noun.Find(owner, carefully(name, to, n)),
	}
}

// bankTry: the user says "try to", so there is no look first; the tool may refuse
// for two reasons, and sometimes a second account is tried.
func bankTry(r *workbench.Rand, s *vault) workbench.Turn {
	n := r.Int(20, 80)
	a, to := s.add(r, r.Person(), r.Side(n, 0.5), ""), s.any(r)
	if r.Chance(0.4) {
		b := s.add(r, r.Person(), 0, r.One("open", r.One(accountStops...)))
		return workbench.Turn{
			User: r.Phrase(workbench.Values{"a": a, "b": b}, "try to freeze {a} at once, or if that fails, {b}.",
				"try to freeze account {a}, else account {b}.", "please try to freeze account {a}, or if that fails, account {b}."),
			Plan: freezePlan(a).OnError(workbench.Attempt(freezePlan(b).As("other"), b, "status")),
		}
	}
	refused := workbench.If(workbench.From("send.balance").Empty(), workbench.Sorry("%v is %v.", a, workbench.From("send.status")),
		workbench.Sorry("the balance of %v is %v.", a, workbench.From("send.balance")))
	return workbench.Turn{
		User: r.Phrase(workbench.Values{"account": a, "to": to, "n": n}, "try to send {n} from {account} to {to}.",
			"try to send {n} to {to} from account {account}.", "please try to send {n} from account {account} to {to}."),
		Plan: sendPlan(a, to, n).OnError(refused),
	}
}

// bankBeyond: no tool can do it.
func bankBeyond(r *workbench.Rand, s *vault) workbench.Turn {
	return workbench.Turn{
		User: r.Phrase(workbench.Values{"account": s.any(r), "owner": r.Person()},
			"print a card for account {account}.", "call {owner} about {account}, please.", "what is the weather at the bank?",
			"give me a loan on {account}.", "please write a letter to {owner}."),
		Plan: workbench.Beyond(),
	}
}
