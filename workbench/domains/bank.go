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
	accountKinds = []string{"daily", "savings", "family", "travel"}
	payees       = []string{"power", "water", "phone", "rent", "school"}
)

func bank() workbench.Domain {
	name := workbench.Text("account")
	return workbench.Domain{
		Name:  "bank",
		About: "you help with accounts and bills. frozen accounts cannot send money or pay bills, paid bills are not paid again.",
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
			workbench.Kind{Name: "act", Weight: 14, Make: workbench.For(bankAct)},
			workbench.Kind{Name: "bill", Weight: 7, Make: workbench.For(bankBill)},
			workbench.Kind{Name: "pay", Weight: 12, Make: workbench.For(bankPay)},
			workbench.Kind{Name: "limit", Weight: 8, Make: workbench.For(bankLimit)},
			workbench.Kind{Name: "send", Weight: 10, Make: workbench.For(bankSend)},
			workbench.Kind{Name: "try", Weight: 9, Make: workbench.For(bankTry)},
			workbench.Kind{Name: "beyond", Weight: 5, Make: workbench.For(bankBeyond)}),
	}
}

func accountNoun() workbench.Noun {
	return workbench.Noun{
		One: "account", Owner: "owner", Shows: []string{"status", "balance", "kind", "owner"},
		Status: "open", Verb: "freeze", End: freezePlan,
		Number: "balance", Less: "poorer", Least: "poorest", Most: "richest",
		Add: func(r *workbench.Rand, s workbench.State, owner string, balance int) string {
			return s.(*vault).add(r, owner, balance)
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

// add opens an account and returns its name. If balance is 0, it is drawn.
func (s *vault) add(r *workbench.Rand, owner string, balance int) string {
	name := r.Name()
	if balance == 0 {
		balance = r.Int(5, 95)
	}
	s.Accounts[name] = &account{owner, r.One(accountKinds...), r.One("open", "open", "open", "frozen"), balance}
	return name
}

func (s *vault) any(r *workbench.Rand) string { return s.add(r, r.Person(), 0) }

func (s *vault) bill(r *workbench.Rand) string {
	name := r.Name()
	s.Bills[name] = &bill{r.One(payees...), r.One(days...), r.One("unpaid", "unpaid", "unpaid", "paid"), r.Int(5, 70)}
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

// ifEnough continues with yes unless the account just looked at holds less than
// amount.
func ifEnough(name, amount any, yes *workbench.Plan) *workbench.Plan {
	return workbench.If(workbench.From("seen.balance").Below(amount),
		workbench.Sorry("the balance of %v is %v.", name, workbench.From("seen.balance")), yes)
}

func sendPlan(name, to any, amount int) *workbench.Plan {
	return workbench.Do("send", "send_money", workbench.Values{"account": name, "to": to, "amount": amount},
		workbench.Say("done, the receipt is %v.", workbench.From("send.receipt")))
}

// carefully looks at the account, and sends if it is open and holds enough.
func carefully(name, to any, amount int) *workbench.Plan {
	return accountNoun().If(name, "open", ifEnough(name, amount, sendPlan(name, to, amount)))
}

func freezePlan(name any) *workbench.Plan {
	return workbench.Do("freeze", "freeze_account", workbench.Values{"account": name},
		workbench.Say("done, %v is frozen, the balance is %v.", name, workbench.From("freeze.balance")))
}

// Kinds.

// bankAct: send or freeze, if the account allows it.
func bankAct(r *workbench.Rand, s *vault) workbench.Turn {
	name, to, n := s.any(r), s.any(r), r.Int(5, 70)
	slots := workbench.Values{"account": name, "to": to, "n": n}
	if r.Chance(0.3) {
		return workbench.Turn{
			User: r.Phrase(slots, "please freeze account {account}.", "i lost my card, freeze {account}.",
				"freeze {account} and tell me the balance."),
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
			User: r.Phrase(slots, "is bill {bill} less than {n}?", "bill {bill} is less than {n}, yes or no?",
				"do i have to pay less than {n} for bill {bill}?"),
			Plan: workbench.Do("bill", "get_bill", workbench.Values{"bill": name},
				workbench.YesNo(workbench.From("bill.amount").Below(n), "amount", name, workbench.From("bill.amount"))),
		}
	}
	return workbench.Turn{
		User: r.Phrase(slots, "what is the {key} of bill {bill}?", "tell me the {key} of bill {bill}, please.",
			"i have a bill called {bill}. which {key} does it have?"),
		Plan: workbench.Do("bill", "get_bill", workbench.Values{"bill": name}, workbench.Tell(key, name, workbench.From("bill."+key))),
	}
}

// bankPay: pay a bill; the amount is on the bill.
func bankPay(r *workbench.Rand, s *vault) workbench.Turn {
	name, b := s.any(r), s.bill(r)
	pay := workbench.Do("pay", "pay_bill", workbench.Values{"bill": b, "account": name},
		workbench.Say("done, the receipt is %v.", workbench.From("pay.receipt")))
	unpaid := accountNoun().If(name, "open", ifEnough(name, workbench.From("bill.amount"), pay))
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
	name, to, n := s.any(r), s.any(r), r.Int(20, 80)
	m := n - r.Int(5, 15)
	return workbench.Turn{
		User: r.Phrase(workbench.Values{"account": name, "to": to, "n": n, "m": m},
			"if the balance of {account} is less than {n}, freeze it, otherwise send {m} to {to}.",
			"freeze {account} if it has less than {n}, else send {m} from it to {to}.",
			"is the balance of {account} less than {n}? then freeze it, if not, send {m} to {to}."),
		Plan: accountNoun().If(name, "open",
			workbench.If(workbench.From("seen.balance").Below(n), freezePlan(name), sendPlan(name, to, m))),
	}
}

// bankSend: send from an account that must be found first.
func bankSend(r *workbench.Rand, s *vault) workbench.Turn {
	noun, owner, to, n := accountNoun(), r.Person(), s.any(r), r.Int(5, 70)
	slots := workbench.Values{"owner": owner, "n": n, "to": to}
	if r.Chance(0.4) {
		if r.Chance(0.8) {
			s.add(r, owner, 0)
		}
		return workbench.Turn{
			User: r.Phrase(slots, "send {n} from the account of {owner} to {to}.", "{owner} wants to send {n} to {to}.",
				"find the account of {owner} and send {n} from it to {to}."),
			Plan: noun.Find(owner, carefully(noun.First(), to, n)),
		}
	}
	for _, balance := range r.Ints(r.Int(2, 3), 5, 95) {
		s.add(r, owner, balance)
	}
	which, name := noun.Pick(r)
	slots["which"] = which
	return workbench.Turn{
		User: r.Phrase(slots, "send {n} to {to} from the {which} account of {owner}.",
			"{owner} wants to send {n} to {to} from the {which} account.",
			"find the {which} account of {owner} and send {n} from it to {to}."),
		Plan: noun.Find(owner, carefully(name, to, n)),
	}
}

// bankTry: the user says "try to", so the expert does not look first; the tool may refuse
// for two reasons.
func bankTry(r *workbench.Rand, s *vault) workbench.Turn {
	name, to, n := s.any(r), s.any(r), r.Int(30, 80)
	s.Accounts[name].Status = r.One("open", "open", "frozen")
	if r.Chance(0.4) {
		return workbench.Turn{
			User: r.Phrase(workbench.Values{"account": name}, "try to freeze {account} at once.", "try to freeze account {account}.",
				"please try to freeze my account {account}."),
			Plan: workbench.Attempt(freezePlan(name), name, "status"),
		}
	}
	refused := workbench.If(workbench.From("send.balance").Empty(), workbench.Sorry("%v is %v.", name, workbench.From("send.status")),
		workbench.Sorry("the balance of %v is %v.", name, workbench.From("send.balance")))
	return workbench.Turn{
		User: r.Phrase(workbench.Values{"account": name, "to": to, "n": n}, "try to send {n} from {account} to {to}.",
			"try to send {n} to {to} from account {account}.", "please try to send {to} the sum of {n} from {account}."),
		Plan: sendPlan(name, to, n).OnError(refused),
	}
}

// bankBeyond: no tool can do it.
func bankBeyond(r *workbench.Rand, s *vault) workbench.Turn {
	return workbench.Turn{
		User: r.Phrase(workbench.Values{"account": s.any(r), "owner": r.Person()},
			"print a card for account {account}.", "call {owner} about {account}, please.", "what is the weather at the bank?",
			"give me a loan on {account}.", "write a letter to {owner}."),
		Plan: workbench.Beyond(),
	}
}
