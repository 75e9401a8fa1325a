package workbench

import "envace/task"

// Plan endings that all domains share, so that skills transfer between domains.

// Tell answers a question about one value: "the price of amber-fox is 30."
func Tell(key string, name any, value Ref) *Plan {
	return Say("the %v of %v is %v.", key, name, value).Without("yes", "no")
}

// OnlyIf continues with yes if cond holds, and otherwise declines: "sorry, amber-fox is
// shipped.", where the last word is fact.
func OnlyIf(allowed task.Cond, yes *Plan, name any, fact Ref) *Plan {
	return If(allowed, yes, Sorry("%v is %v.", name, fact))
}

// YesNo answers whether cond holds, and states the value that decides it.
func YesNo(cond task.Cond, key string, name any, value Ref) *Plan {
	return If(cond,
		Say("yes, the %v of %v is %v.", key, name, value).Any("yes").Without("no"),
		Say("no, the %v of %v is %v.", key, name, value).Any("no").Without("yes"))
}

// OneOf names the one that was chosen among others, with the value that decides
// it: "amber-fox is the cheapest, the price is 30."
func OneOf(name, what, key string, value Ref, others ...string) *Plan {
	return Say("%v is the %v, the %v is %v.", name, what, key, value).Without(others...)
}

// Attempt is plan for a user who says "try to": it makes plan's first call without
// a look at the entity, and if the tool refuses, it declines with the fact under
// key in the tool's error: "sorry, amber-fox is shipped." With [Plan.OnError] it
// can be the second thing to try.
func Attempt(plan *Plan, name any, key string) *Plan {
	return plan.OnError(Sorry("%v is %v.", name, From(plan.id+"."+key)))
}

// Beyond declines what no tool can do.
func Beyond() *Plan { return Sorry("i cannot do that.").Any("cannot", "unable") }

// FreshNames are the names for new entities of a state, in order.
type FreshNames []string

// Fresh draws the names of new entities.
func (r *Rand) Fresh() FreshNames { return FreshNames{r.Name(), r.Name(), r.Name()} }

// Next returns the next name; the last one is never used up.
func (f *FreshNames) Next() string {
	name := (*f)[0]
	if len(*f) > 1 {
		*f = (*f)[1:]
	}
	return name
}
