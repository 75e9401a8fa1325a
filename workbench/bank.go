package workbench

// vault is the state of the domain bank.
type vault struct {
	Accounts map[string]*account `json:"accounts"`
	Bills    map[string]*bill    `json:"bills"`
	Receipts freshNames          `json:"receipts"`
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
		Kinds: []Kind{
			{"read", 10, For(bankRead)},
			{"act", 16, For(bankAct)},
			{"pay", 12, For(bankPay)},
			{"word", 8, For(bankWord)},
			{"limit", 12, For(bankLimit)},
			{"find", 10, For(bankFind)},
			{"pick", 12, For(bankPick)},
			{"mend", 8, For(bankMend)},
			{"seek", 8, For(bankSeek)},
			{"try", 10, For(bankTry)},
			{"compare", 8, For(bankCompare)},
			{"beyond", 5, For(bankBeyond)},
		},
	}
}

func newVault(r *Rand) State {
	s := &vault{map[string]*account{}, map[string]*bill{}, r.fresh()}
	for range 2 {
		s.any(r)
		s.bill(r)
	}
	return s
}

func (s *vault) add(r *Rand, owner, status string) string {
	name := r.Name()
	s.Accounts[name] = &account{owner, r.One(accountKinds...), status, r.Int(5, 95)}
	return name
}

// any adds an account of a new owner, open more often than not.
func (s *vault) any(r *Rand) string {
	return s.add(r, r.Person(), r.One("open", "open", "open", "frozen"))
}

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
	if err := s.spend(a.Text("account"), a.Int("amount")); err != nil {
		return nil, err
	}
	to.Balance += a.Int("amount")
	return Fields{"status": "sent", "receipt": s.Receipts.next()}, nil
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
	return Fields{"status": b.Status, "receipt": s.Receipts.next()}, nil
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

func lookAccount(name any, next *Plan) *Plan {
	return Do("account", "get_account", Values{"account": name}, next)
}

// ifOpen goes on with yes if the account that was looked at is open.
func ifOpen(name any, yes *Plan) *Plan {
	return onlyIf(From("account.status").Is("open"), yes, name, From("account.status"))
}

// ifEnough goes on with yes unless that account holds less than amount.
func ifEnough(name, amount any, yes *Plan) *Plan {
	return If(From("account.balance").Below(amount),
		Sorry("the balance of %v is %v.", name, From("account.balance")), yes)
}

func sendPlan(name, to any, amount int) *Plan {
	return Do("send", "send_money", Values{"account": name, "to": to, "amount": amount},
		Say("done, the receipt is %v.", From("send.receipt")))
}

func freezePlan(name any) *Plan {
	return Do("freeze", "freeze_account", Values{"account": name},
		Say("done, %v is frozen, the balance is %v.", name, From("freeze.balance")))
}

// Kinds.

func accountKey(r *Rand) string { return r.One("status", "balance", "kind", "owner") }

func bankRead(r *Rand, s *vault) Turn {
	if r.Chance(0.4) {
		name, key := s.bill(r), r.One("status", "amount", "payee", "day")
		return Turn{
			r.Phrase(Values{"bill": name, "key": key},
				"what is the {key} of bill {bill}?", "tell me the {key} of bill {bill}, please.",
				"i have a bill called {bill}. which {key} does it have?"),
			Do("bill", "get_bill", Values{"bill": name}, tell(key, name, From("bill."+key))),
		}
	}
	name, key := s.any(r), accountKey(r)
	return Turn{
		r.Phrase(Values{"account": name, "key": key},
			"what is the {key} of account {account}?", "tell me the {key} of account {account}, please.",
			"i want to know the {key} of my account {account}.", "account {account}: which {key} does it have?"),
		lookAccount(name, tell(key, name, From("account."+key))),
	}
}

func bankAct(r *Rand, s *vault) Turn {
	name, to, n := s.any(r), s.any(r), r.Int(5, 70)
	slots := Values{"account": name, "to": to, "n": n}
	if r.Chance(0.3) {
		return Turn{
			r.Phrase(slots, "please freeze account {account}.", "i lost my card, freeze {account}.",
				"freeze {account} and tell me the balance."),
			lookAccount(name, ifOpen(name, freezePlan(name))),
		}
	}
	return Turn{
		r.Phrase(slots, "send {n} from {account} to {to}.", "please send {n} to {to} from my account {account}.",
			"i owe {n} to {to}, send it from {account}.", "from account {account}, send {n} to {to}. what is the receipt?"),
		lookAccount(name, ifOpen(name, ifEnough(name, n, sendPlan(name, to, n)))),
	}
}

// bankPay: the amount is on the bill.
func bankPay(r *Rand, s *vault) Turn {
	name, b := s.any(r), s.bill(r)
	pay := Do("pay", "pay_bill", Values{"bill": b, "account": name}, Say("done, the receipt is %v.", From("pay.receipt")))
	unpaid := lookAccount(name, ifOpen(name, ifEnough(name, From("bill.amount"), pay)))
	return Turn{
		r.Phrase(Values{"account": name, "bill": b}, "pay bill {bill} from {account}.",
			"please pay {bill}, my bill, from account {account}.", "use account {account} to pay bill {bill}. what is the receipt?",
			"i got bill {bill}, pay it from {account}."),
		Do("bill", "get_bill", Values{"bill": b},
			onlyIf(From("bill.status").Is("unpaid"), unpaid, b, From("bill.status"))),
	}
}

func bankWord(r *Rand, s *vault) Turn {
	name, key := s.any(r), r.One("owner", "balance", "kind")
	return Turn{
		r.Phrase(Values{"account": name, "key": key}, "freeze {account} if it is open, otherwise tell me its {key}.",
			"if account {account} is open, freeze it, if not, tell me the {key}.",
			"look at {account}: when it is open freeze it, else say its {key}."),
		lookAccount(name, If(From("account.status").Is("open"), freezePlan(name), tell(key, name, From("account."+key)))),
	}
}

func bankLimit(r *Rand, s *vault) Turn {
	name, to, n := s.any(r), s.any(r), r.Int(20, 80)
	less := From("account.balance").Below(n)
	slots := Values{"account": name, "to": to, "n": n, "m": n - r.Int(5, 15)}
	if r.Chance(0.5) {
		return Turn{
			r.Phrase(slots, "if the balance of {account} is less than {n}, freeze it, otherwise send {m} to {to}.",
				"freeze {account} if it has less than {n}, else send {m} from it to {to}.",
				"is the balance of {account} less than {n}? then freeze it, if not, send {m} to {to}."),
			lookAccount(name, ifOpen(name, If(less, freezePlan(name), sendPlan(name, to, slots["m"].(int))))),
		}
	}
	return Turn{
		r.Phrase(slots, "does account {account} have less than {n}?", "is the balance of {account} less than {n}?",
			"i have less than {n} on {account}, yes or no?"),
		lookAccount(name, yesNo(less, "balance", name, From("account.balance"))),
	}
}

func bankFind(r *Rand, s *vault) Turn {
	owner, key, n, to := r.Person(), r.One("status", "kind"), r.Int(5, 60), s.any(r)
	slots := Values{"owner": owner, "key": key, "n": n, "to": to}
	if r.Chance(0.8) {
		s.add(r, owner, r.One("open", "open", "frozen"))
	}
	name := From("found.accounts.0.account")
	var t Turn
	switch r.Int(1, 3) {
	case 1:
		t = Turn{
			r.Phrase(slots, "what is the {key} of the account of {owner}?", "{owner} has an account, tell me its {key}.",
				"find the account of {owner} and say its {key}."),
			lookAccount(name, tell(key, name, From("account."+key))),
		}
	case 2:
		t = Turn{
			r.Phrase(slots, "freeze the account of {owner}.", "{owner} lost a card, please freeze the account.",
				"find the account of {owner} and freeze it."),
			lookAccount(name, ifOpen(name, freezePlan(name))),
		}
	case 3:
		t = Turn{
			r.Phrase(slots, "send {n} from the account of {owner} to {to}.", "{owner} wants to send {n} to {to}.",
				"find the account of {owner} and send {n} from it to {to}."),
			lookAccount(name, ifOpen(name, ifEnough(name, n, sendPlan(name, to, n)))),
		}
	}
	t.Plan = Do("found", "find_accounts", Values{"owner": owner},
		If(From("found.accounts").Empty(), Sorry("%v has no account.", owner), t.Plan))
	return t
}

func bankPick(r *Rand, s *vault) Turn {
	owner, to, n := r.Person(), s.any(r), r.Int(5, 70)
	for _, balance := range r.Ints(r.Int(2, 3), 5, 95) {
		s.Accounts[s.add(r, owner, r.One("open", "open", "frozen"))].Balance = balance
	}
	slots := Values{"owner": owner, "to": to, "n": n, "which": "richest"}
	name := From("found.accounts").Most("balance").At("account")
	if r.Chance(0.5) {
		slots["which"] = "poorest"
		name = From("found.accounts").Least("balance").At("account")
	}
	var t Turn
	switch r.Int(1, 3) {
	case 1:
		t = Turn{
			r.Phrase(slots, "which account of {owner} is the {which}?", "tell me the {which} account of {owner}.",
				"find the {which} account of {owner}."),
			Say("it is %v.", name),
		}
	case 2:
		t = Turn{
			r.Phrase(slots, "freeze the {which} account of {owner}.", "{owner} wants to freeze the {which} account.",
				"please find the {which} account of {owner} and freeze it."),
			lookAccount(name, ifOpen(name, freezePlan(name))),
		}
	case 3:
		t = Turn{
			r.Phrase(slots, "send {n} to {to} from the {which} account of {owner}.",
				"{owner} wants to send {n} to {to} from the {which} account.",
				"find the {which} account of {owner} and send {n} from it to {to}."),
			lookAccount(name, ifOpen(name, ifEnough(name, n, sendPlan(name, to, n)))),
		}
	}
	t.Plan = Do("found", "find_accounts", Values{"owner": owner}, t.Plan)
	return t
}

func bankMend(r *Rand, s *vault) Turn {
	name, key := s.any(r), accountKey(r)
	slip := name
	if r.Chance(0.8) {
		slip = r.Slip(name)
	}
	similar := From("account.similar")
	return Turn{
		r.Phrase(Values{"account": slip, "key": key},
			"what is the {key} of account {account}, or what it is called?",
			"i think my account is {account}. tell me its {key}.",
			"the {key} of account {account}, please, if the name is right."),
		lookAccount(slip, If(From("account").Failed(),
			Do("again", "get_account", Values{"account": similar}, tell(key, similar, From("again."+key))),
			tell(key, slip, From("account."+key)))),
	}
}

func bankSeek(r *Rand, s *vault) Turn {
	owner, key := r.Person(), r.One("status", "balance", "kind")
	wrong := s.add(r, owner, r.One("open", "open", "frozen"))
	if r.Chance(0.8) {
		wrong = r.Name()
	}
	slots := Values{"owner": owner, "key": key, "account": wrong}
	name := From("found.accounts.0.account")
	t := Turn{User: r.Phrase(slots, "what is the {key} of account {account} of {owner}?",
		"{owner} has account {account}, tell me its {key}.", "say the {key} of {account}, the account of {owner}.")}
	goal := func(name any, id string) *Plan { return tell(key, name, From(id+"."+key)) }
	if r.Chance(0.4) {
		t.User = r.Phrase(slots, "freeze account {account} of {owner}.", "{owner} wants to freeze account {account}.",
			"please freeze {account}, the account of {owner}.")
		goal = func(name any, id string) *Plan {
			return onlyIf(From(id+".status").Is("open"), freezePlan(name), name, From(id+".status"))
		}
	}
	t.Plan = lookAccount(wrong, If(From("account").Failed(),
		Do("found", "find_accounts", Values{"owner": owner},
			Do("again", "get_account", Values{"account": name}, goal(name, "again"))),
		goal(wrong, "account")))
	return t
}

func bankTry(r *Rand, s *vault) Turn {
	if r.Chance(0.4) {
		name := s.add(r, r.Person(), r.One("open", "frozen"))
		return Turn{
			r.Phrase(Values{"account": name}, "try to freeze {account} at once.", "try to freeze account {account}.",
				"please try to freeze my account {account}."),
			Do("freeze", "freeze_account", Values{"account": name}, If(From("freeze").Failed(),
				Sorry("%v is %v.", name, From("freeze.status")),
				Say("done, %v is frozen, the balance is %v.", name, From("freeze.balance")))),
		}
	}
	name, to, n := s.add(r, r.Person(), r.One("open", "open", "frozen")), s.any(r), r.Int(30, 80)
	low := Sorry("the balance of %v is %v.", name, From("send.balance"))
	return Turn{
		r.Phrase(Values{"account": name, "to": to, "n": n}, "try to send {n} from {account} to {to}.",
			"try to send {n} to {to} from account {account}.", "please try to send {to} the sum of {n} from {account}."),
		Do("send", "send_money", Values{"account": name, "to": to, "amount": n}, If(From("send").Failed(),
			If(From("send.balance").Empty(), Sorry("%v is %v.", name, From("send.status")), low),
			Say("done, the receipt is %v.", From("send.receipt")))),
	}
}

func bankCompare(r *Rand, s *vault) Turn {
	a, b, balances := s.any(r), s.any(r), r.Ints(2, 5, 95)
	s.Accounts[a].Balance, s.Accounts[b].Balance = balances[0], balances[1]
	slots := Values{"a": a, "b": b}
	less := From("a.balance").Below(From("b.balance"))
	both := func(next *Plan) *Plan {
		return Do("a", "get_account", Values{"account": a}, Do("b", "get_account", Values{"account": b}, next))
	}
	if r.Chance(0.5) {
		return Turn{
			r.Phrase(slots, "which account is richer, {a} or {b}?", "i have accounts {a} and {b}. which is richer?",
				"tell me the richer one of accounts {a} and {b}."),
			both(oneOf(less, b, a, "richer")),
		}
	}
	freeze := func(name, id string) *Plan {
		return onlyIf(From(id+".status").Is("open"), freezePlan(name), name, From(id+".status"))
	}
	return Turn{
		r.Phrase(slots, "freeze the poorer one of {a} and {b}.", "of accounts {a} and {b}, freeze the poorer one.",
			"i need only one of {a} and {b}, so freeze the poorer one."),
		both(If(less, freeze(a, "a"), freeze(b, "b"))),
	}
}

func bankBeyond(r *Rand, s *vault) Turn {
	return Turn{
		r.Phrase(Values{"account": s.any(r), "owner": r.Person()},
			"print a card for account {account}.", "call {owner} about {account}, please.", "what is the weather at the bank?",
			"give me a loan on {account}.", "write a letter to {owner}."),
		beyond(),
	}
}
