package workbench

// vault is the state of the domain bank.
type vault struct {
	Accounts map[string]*account `json:"accounts"`
	Bills    map[string]*bill    `json:"bills"`
	Receipts FreshNames          `json:"receipts"`
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

func bank() Domain {
	name := Text("account")
	return Domain{
		Name:  "bank",
		About: "you help with accounts and bills. frozen accounts cannot send money or pay bills, paid bills are not paid again.",
		Tools: []Tool{
			{Name: "find_accounts", About: "list the accounts of an owner", Params: []Param{Text("owner")}, Do: On(findAccounts)},
			{Name: "get_account", About: "show an account", Params: []Param{name}, Do: On(getAccount)},
			{Name: "get_bill", About: "show a bill", Params: []Param{Text("bill")}, Do: On(getBill)},
			{Name: "send_money", About: "send money from an open account", Params: []Param{name, Text("to"), Number("amount")}, Write: true, Do: On(sendMoney)},
			{Name: "pay_bill", About: "pay an unpaid bill from an open account", Params: []Param{Text("bill"), name}, Write: true, Do: On(payBill)},
			{Name: "freeze_account", About: "freeze an open account", Params: []Param{name}, Write: true, Do: On(freezeAccount)},
		},
		New: newVault,
		Kinds: append(accountNoun().Kinds(),
			Kind{"act", 14, For(bankAct)},
			Kind{"bill", 7, For(bankBill)},
			Kind{"pay", 12, For(bankPay)},
			Kind{"limit", 8, For(bankLimit)},
			Kind{"send", 10, For(bankSend)},
			Kind{"try", 9, For(bankTry)},
			Kind{"beyond", 5, For(bankBeyond)}),
	}
}

func accountNoun() Noun {
	return Noun{
		One: "account", Owner: "owner", Shows: []string{"status", "balance", "kind", "owner"},
		Status: "open", Verb: "freeze", End: freezePlan,
		Number: "balance", Less: "poorer", Least: "poorest", Most: "richest",
		Add: func(r *Rand, s State, owner string, balance int) string {
			return s.(*vault).add(r, owner, balance)
		},
	}
}

func newVault(r *Rand) State {
	s := &vault{map[string]*account{}, map[string]*bill{}, r.Fresh()}
	for range 2 {
		s.any(r)
		s.bill(r)
	}
	return s
}

// add opens an account; a balance of 0 is drawn.
func (s *vault) add(r *Rand, owner string, balance int) string {
	name := r.Name()
	if balance == 0 {
		balance = r.Int(5, 95)
	}
	s.Accounts[name] = &account{owner, r.One(accountKinds...), r.One("open", "open", "open", "frozen"), balance}
	return name
}

func (s *vault) any(r *Rand) string { return s.add(r, r.Person(), 0) }

func (s *vault) bill(r *Rand) string {
	name := r.Name()
	s.Bills[name] = &bill{r.One(payees...), r.One(days...), r.One("unpaid", "unpaid", "unpaid", "paid"), r.Int(5, 70)}
	return name
}

func (s *vault) account(name string) (*account, error) {
	if a, ok := s.Accounts[name]; ok {
		return a, nil
	}
	return nil, NotFound("account", name, s.Accounts, "find_accounts")
}

func findAccounts(s *vault, a Args) (any, error) {
	list := []Fields{}
	for _, name := range sortedKeys(s.Accounts) {
		if acc := s.Accounts[name]; acc.Owner == a.Text("owner") {
			list = append(list, Fields{"account": name, "balance": acc.Balance})
		}
	}
	return Fields{"accounts": list}, nil
}

func getAccount(s *vault, a Args) (any, error) {
	acc, err := s.account(a.Text("account"))
	if err != nil {
		return nil, err
	}
	return Fields{"status": acc.Status, "balance": acc.Balance, "kind": acc.Kind, "owner": acc.Owner}, nil
}

func getBill(s *vault, a Args) (any, error) {
	b, ok := s.Bills[a.Text("bill")]
	if !ok {
		return nil, NotFound("bill", a.Text("bill"), s.Bills, "another name")
	}
	return Fields{"status": b.Status, "amount": b.Amount, "payee": b.Payee, "day": b.Day}, nil
}

// spend takes amount from an account if that is allowed.
func (s *vault) spend(name string, amount int) error {
	acc, err := s.account(name)
	switch {
	case err != nil:
		return err
	case acc.Status != "open":
		return Refuse("status", acc.Status, "account is not open")
	case acc.Balance < amount:
		return Refuse("balance", acc.Balance, "balance is too low")
	}
	acc.Balance -= amount
	return nil
}

func sendMoney(s *vault, a Args) (any, error) {
	to, err := s.account(a.Text("to"))
	if err != nil {
		return nil, err
	}
	if a.Text("to") == a.Text("account") {
		return nil, Refuse("account", a.Text("to"), "both accounts are the same")
	}
	if err := s.spend(a.Text("account"), a.Int("amount")); err != nil {
		return nil, err
	}
	to.Balance += a.Int("amount")
	return Fields{"status": "sent", "receipt": s.Receipts.Next()}, nil
}

func payBill(s *vault, a Args) (any, error) {
	b, ok := s.Bills[a.Text("bill")]
	if !ok {
		return nil, NotFound("bill", a.Text("bill"), s.Bills, "another name")
	}
	if b.Status != "unpaid" {
		return nil, Refuse("status", b.Status, "bill is not unpaid")
	}
	if err := s.spend(a.Text("account"), b.Amount); err != nil {
		return nil, err
	}
	b.Status = "paid"
	return Fields{"status": b.Status, "receipt": s.Receipts.Next()}, nil
}

func freezeAccount(s *vault, a Args) (any, error) {
	acc, err := s.account(a.Text("account"))
	if err != nil {
		return nil, err
	}
	if acc.Status != "open" {
		return nil, Refuse("status", acc.Status, "account is not open")
	}
	acc.Status = "frozen"
	return Fields{"status": acc.Status, "balance": acc.Balance}, nil
}

// Plans.

// ifEnough goes on with yes unless the account that was seen holds less than
// amount.
func ifEnough(name, amount any, yes *Plan) *Plan {
	return If(From("seen.balance").Below(amount),
		Sorry("the balance of %v is %v.", name, From("seen.balance")), yes)
}

func sendPlan(name, to any, amount int) *Plan {
	return Do("send", "send_money", Values{"account": name, "to": to, "amount": amount},
		Say("done, the receipt is %v.", From("send.receipt")))
}

// carefully sends if the account is open and holds enough.
func carefully(name, to any, amount int) *Plan {
	return accountNoun().If(name, "open", ifEnough(name, amount, sendPlan(name, to, amount)))
}

func freezePlan(name any) *Plan {
	return Do("freeze", "freeze_account", Values{"account": name},
		Say("done, %v is frozen, the balance is %v.", name, From("freeze.balance")))
}

// Kinds.

// bankAct: send or freeze, if the account allows it.
func bankAct(r *Rand, s *vault) Turn {
	name, to, n := s.any(r), s.any(r), r.Int(5, 70)
	slots := Values{"account": name, "to": to, "n": n}
	if r.Chance(0.3) {
		return Turn{
			r.Phrase(slots, "please freeze account {account}.", "i lost my card, freeze {account}.",
				"freeze {account} and tell me the balance."),
			accountNoun().If(name, "open", freezePlan(name)),
		}
	}
	return Turn{
		r.Phrase(slots, "send {n} from {account} to {to}.", "please send {n} to {to} from my account {account}.",
			"i owe {n} to {to}, send it from {account}.", "from account {account}, send {n} to {to}. what is the receipt?"),
		carefully(name, to, n),
	}
}

func bankBill(r *Rand, s *vault) Turn {
	name, key, n := s.bill(r), r.One("status", "amount", "payee", "day"), r.Int(15, 60)
	slots := Values{"bill": name, "key": key, "n": n}
	if r.Chance(0.3) {
		return Turn{
			r.Phrase(slots, "is bill {bill} less than {n}?", "bill {bill} is less than {n}, yes or no?",
				"do i have to pay less than {n} for bill {bill}?"),
			Do("bill", "get_bill", Values{"bill": name},
				YesNo(From("bill.amount").Below(n), "amount", name, From("bill.amount"))),
		}
	}
	return Turn{
		r.Phrase(slots, "what is the {key} of bill {bill}?", "tell me the {key} of bill {bill}, please.",
			"i have a bill called {bill}. which {key} does it have?"),
		Do("bill", "get_bill", Values{"bill": name}, Tell(key, name, From("bill."+key))),
	}
}

// bankPay: the amount is on the bill.
func bankPay(r *Rand, s *vault) Turn {
	name, b := s.any(r), s.bill(r)
	pay := Do("pay", "pay_bill", Values{"bill": b, "account": name}, Say("done, the receipt is %v.", From("pay.receipt")))
	unpaid := accountNoun().If(name, "open", ifEnough(name, From("bill.amount"), pay))
	return Turn{
		r.Phrase(Values{"account": name, "bill": b}, "pay bill {bill} from {account}.",
			"please pay {bill}, my bill, from account {account}.", "use account {account} to pay bill {bill}. what is the receipt?",
			"i got bill {bill}, pay it from {account}."),
		Do("bill", "get_bill", Values{"bill": b},
			OnlyIf(From("bill.status").Is("unpaid"), unpaid, b, From("bill.status"))),
	}
}

// bankLimit: the user says what to do above and below a balance.
func bankLimit(r *Rand, s *vault) Turn {
	name, to, n := s.any(r), s.any(r), r.Int(20, 80)
	m := n - r.Int(5, 15)
	return Turn{
		r.Phrase(Values{"account": name, "to": to, "n": n, "m": m},
			"if the balance of {account} is less than {n}, freeze it, otherwise send {m} to {to}.",
			"freeze {account} if it has less than {n}, else send {m} from it to {to}.",
			"is the balance of {account} less than {n}? then freeze it, if not, send {m} to {to}."),
		accountNoun().If(name, "open",
			If(From("seen.balance").Below(n), freezePlan(name), sendPlan(name, to, m))),
	}
}

// bankSend: the account must be found first.
func bankSend(r *Rand, s *vault) Turn {
	noun, owner, to, n := accountNoun(), r.Person(), s.any(r), r.Int(5, 70)
	slots := Values{"owner": owner, "n": n, "to": to}
	if r.Chance(0.4) {
		if r.Chance(0.8) {
			s.add(r, owner, 0)
		}
		return Turn{
			r.Phrase(slots, "send {n} from the account of {owner} to {to}.", "{owner} wants to send {n} to {to}.",
				"find the account of {owner} and send {n} from it to {to}."),
			noun.Find(owner, carefully(noun.First(), to, n)),
		}
	}
	for _, balance := range r.Ints(r.Int(2, 3), 5, 95) {
		s.add(r, owner, balance)
	}
	which, name := noun.Pick(r)
	slots["which"] = which
	return Turn{
		r.Phrase(slots, "send {n} to {to} from the {which} account of {owner}.",
			"{owner} wants to send {n} to {to} from the {which} account.",
			"find the {which} account of {owner} and send {n} from it to {to}."),
		noun.Find(owner, carefully(name, to, n)),
	}
}

// bankTry: the user wants no look before; the tool may refuse, for two reasons.
func bankTry(r *Rand, s *vault) Turn {
	name, to, n := s.any(r), s.any(r), r.Int(30, 80)
	s.Accounts[name].Status = r.One("open", "open", "frozen")
	if r.Chance(0.4) {
		return Turn{
			r.Phrase(Values{"account": name}, "try to freeze {account} at once.", "try to freeze account {account}.",
				"please try to freeze my account {account}."),
			Attempt(freezePlan(name), name, "status"),
		}
	}
	send := sendPlan(name, to, n)
	refused := If(From("send.balance").Empty(), Sorry("%v is %v.", name, From("send.status")),
		Sorry("the balance of %v is %v.", name, From("send.balance")))
	return Turn{
		r.Phrase(Values{"account": name, "to": to, "n": n}, "try to send {n} from {account} to {to}.",
			"try to send {n} to {to} from account {account}.", "please try to send {to} the sum of {n} from {account}."),
		Do(send.id, send.tool, send.args, If(From("send").Failed(), refused, send.next)),
	}
}

func bankBeyond(r *Rand, s *vault) Turn {
	return Turn{
		r.Phrase(Values{"account": s.any(r), "owner": r.Person()},
			"print a card for account {account}.", "call {owner} about {account}, please.", "what is the weather at the bank?",
			"give me a loan on {account}.", "write a letter to {owner}."),
		Beyond(),
	}
}
