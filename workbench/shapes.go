package workbench

import "envace/task"

// Ends of plans that all domains share, so that one skill serves in each.

// tell is the answer to a question for one value.
func tell(key string, name any, value Ref) *Plan {
	return Say("the %v of %v is %v.", key, name, value)
}

// onlyIf goes on with yes where what was read allows it, and otherwise declines:
// name is what fact says.
func onlyIf(allowed task.Cond, yes *Plan, name any, fact Ref) *Plan {
	return If(allowed, yes, Sorry("%v is %v.", name, fact))
}

// yesNo answers whether cond holds, with the value that decides.
func yesNo(cond task.Cond, key string, name any, value Ref) *Plan {
	return If(cond,
		Say("yes, the %v of %v is %v.", key, name, value).Any("yes").Without("no"),
		Say("no, the %v of %v is %v.", key, name, value).Any("no").Without("yes"))
}

// oneOf names a where cond holds, else b.
func oneOf(cond task.Cond, a, b, what string) *Plan {
	return If(cond, Say("%v is %v.", a, what).Any(a).Without(b), Say("%v is %v.", b, what).Any(b).Without(a))
}

// beyond declines what no tool can do.
func beyond() *Plan { return Sorry("i cannot do that.") }

// freshNames are what new entities will be called, in order.
type freshNames []string

func (r *Rand) fresh() freshNames { return freshNames{r.Name(), r.Name(), r.Name()} }

// next takes a name; the last one stays.
func (f *freshNames) next() string {
	name := (*f)[0]
	if len(*f) > 1 {
		*f = (*f)[1:]
	}
	return name
}
