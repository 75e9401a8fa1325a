// Package domains contains eight domains for package workbench, one file each. They use
// only its exported API, so each can serve as a template for your own domain: start with
// orders.go.
package domains

import (
	"fmt"
	"slices"
	"strings"
	"sync"

	"envace/rollout"
	"envace/suite"
	"envace/task"
	"envace/workbench"
)

// Train returns the domains for training.
func Train() []workbench.Domain {
	return []workbench.Domain{orders(), bank(), calendar(), travel(), files(), tickets()}
}

// HeldOut returns the domains that are used for tests only.
func HeldOut() []workbench.Domain { return []workbench.Domain{inventory(), messages()} }

// All returns the domains for training, then those held out.
func All() []workbench.Domain { return append(Train(), HeldOut()...) }

// Names returns the names of domains, in their order.
func Names(list []workbench.Domain) []string {
	var out []string
	for _, d := range list {
		out = append(out, d.Name)
	}
	return out
}

// Tasks is [workbench.Domain.Tasks] of the domain with this name.
func Tasks(domain string, seed uint64, split string, n int) ([]task.Task, error) {
	d, err := find(domain)
	if err != nil {
		return nil, err
	}
	return d.Tasks(seed, split, n)
}

// Task is [workbench.Domain.Task] of the domain with this name.
func Task(domain string, seed uint64) (task.Task, error) {
	d, err := find(domain)
	if err != nil {
		return task.Task{}, err
	}
	return d.Task(seed)
}

func find(name string) (workbench.Domain, error) {
	all := All()
	i := slices.IndexFunc(all, func(d workbench.Domain) bool { return d.Name == name })
	if i < 0 {
		return workbench.Domain{}, fmt.Errorf("unknown domain %q (want one of %v)", name, Names(all))
	}
	return all[i], nil
}

// Worlds opens the real worlds of the tasks of all domains.
func Worlds() workbench.Worlds { return workbench.Worlds{Domains: All()} }

// Success is [workbench.Worlds.Success] for the tasks of all domains.
func Success(t task.Task, ep *rollout.Episode) (ok bool, why string, err error) {
	return Worlds().Success(t, ep)
}

// Family is the suite "workbench" and its choices, such as "workbench:orders,bank".
func Family() suite.Family {
	return workbench.Family("workbench", "small executable worlds: "+strings.Join(Names(Train()), ", ")+"; held out of training: "+strings.Join(Names(HeldOut()), ", "), Train(), HeldOut())
}

// Words is [workbench.Words] of all domains, computed once per process.
func Words() []string { return slices.Clone(words()) }

var words = sync.OnceValue(func() []string { return workbench.Words(All()...) })

// usually draws status two times in three, else one of others.
func usually(r *workbench.Rand, status string, others []string) string {
	return r.One(status, status, r.One(others...))
}

// Values that several domains use.
var (
	cities = []string{"oslo", "lisbon", "madrid", "paris", "rome", "vienna", "berlin", "dublin", "prague", "athens", "cairo", "lima"}
	days   = []string{"monday", "tuesday", "wednesday", "thursday", "friday", "saturday", "sunday"}
)
