package workbench

import (
	"fmt"
	"slices"

	"envace/task"
)

// Domains returns the domains of this package, first those for training.
func Domains() []Domain {
	return []Domain{orders(), bank(), calendar(), travel(), files(), tickets(), inventory(), messages()}
}

// Train names the domains for training.
func Train() []string { return []string{"orders", "bank", "calendar", "travel", "files", "tickets"} }

// HeldOut names the domains that no model is trained on.
func HeldOut() []string { return []string{"inventory", "messages"} }

// Tasks is [Domain.Tasks] of a domain of this package.
func Tasks(domain string, seed uint64, split string, n int) ([]task.Task, error) {
	d, err := find(domain)
	if err != nil {
		return nil, err
	}
	return d.Tasks(seed, split, n)
}

// Generate is [Domain.Task] of a domain of this package.
func Generate(domain string, seed uint64) (task.Task, error) {
	d, err := find(domain)
	if err != nil {
		return task.Task{}, err
	}
	return d.Task(seed)
}

func find(name string) (Domain, error) {
	all := Domains()
	i := slices.IndexFunc(all, func(d Domain) bool { return d.Name == name })
	if i < 0 {
		return Domain{}, fmt.Errorf("unknown domain %q (want one of %v)", name, append(Train(), HeldOut()...))
	}
	return all[i], nil
}
