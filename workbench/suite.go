package workbench

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"

	"envace/internal/seeds"
	"envace/rollout"
	"envace/suite"
	"envace/task"
)

// Family makes a suite of domains, for training and held out, and of each choice
// among them: "NAME" is all, "NAME:a,b" the domains a and b. Hand it to cli.Main,
// and every command knows it.
func Family(name, about string, train, heldOut []Domain) suite.Family {
	return suite.Family{Name: name, Arg: "DOMAIN,…", About: about, Open: func(arg string, o suite.Options) (suite.Suite, error) {
		if err := o.Unused(); err != nil {
			return nil, err
		}
		s := NewSuite(train, heldOut)
		if arg == "" {
			return s, nil
		}
		return s.choose(strings.Split(arg, ","))
	}}
}

// Suite is the tasks of domains, with their real worlds and true scores.
type Suite struct {
	train, heldOut []Domain
	worlds         Worlds
}

// NewSuite returns the suite of domains for training and of others that are held
// out of it, which may be none.
func NewSuite(train, heldOut []Domain) *Suite {
	return &Suite{train, heldOut, Worlds{Domains: slices.Concat(train, heldOut)}}
}

// choose returns the suite of the named domains alone.
func (s *Suite) choose(names []string) (*Suite, error) {
	var known []string
	for _, d := range s.worlds.Domains {
		known = append(known, d.Name)
	}
	for i, name := range names {
		if !slices.Contains(known, name) {
			return nil, fmt.Errorf("there is no domain %q: want some of %s", name, strings.Join(known, ", "))
		}
		if slices.Contains(names[:i], name) {
			return nil, fmt.Errorf("domain %s is named twice", name)
		}
	}
	named := func(all []Domain) []Domain {
		return slices.DeleteFunc(slices.Clone(all), func(d Domain) bool { return !slices.Contains(names, d.Name) })
	}
	return NewSuite(named(s.train), named(s.heldOut)), nil
}

// Tasks draws n tasks, evenly from the domains of the split, and shuffles them.
func (s *Suite) Tasks(split suite.Split, n int, seed uint64) ([]task.Task, error) {
	domains, part := s.train, string(split)
	if split == suite.HeldOut {
		domains, part = s.heldOut, string(suite.Test)
	}
	if len(domains) == 0 {
		return nil, nil
	}
	if n < 1 {
		return nil, errors.New("its tasks have no end: want at least 1")
	}
	var out []task.Task
	for i, d := range domains {
		share := n*(i+1)/len(domains) - n*i/len(domains)
		tasks, err := d.Tasks(seed, part, share)
		if err != nil {
			return nil, err
		}
		out = append(out, tasks...)
	}
	r := rand.New(rand.NewPCG(seed, seeds.Of(part)))
	r.Shuffle(len(out), func(i, j int) { out[i], out[j] = out[j], out[i] })
	return out, nil
}

// Worlds opens the real worlds of the tasks.
func (s *Suite) Worlds() rollout.Worlds { return s.worlds }

// Score compares the episode with the true world, see [Worlds.Success].
func (s *Suite) Score(_ context.Context, ep *rollout.Episode) (suite.Score, error) {
	ok, why, err := s.worlds.Success(ep.Task, ep)
	return suite.Score{Success: ok, Why: why}, err
}

// Shadow opens a real world for t beside its episode.
func (s *Suite) Shadow(t task.Task) (rollout.Shadow, error) { return s.worlds.Shadow(t, nil) }

// Parts returns a suite for each domain.
func (s *Suite) Parts() []suite.Part {
	var out []suite.Part
	for _, d := range s.train {
		out = append(out, suite.Part{Name: d.Name, Suite: NewSuite([]Domain{d}, nil)})
	}
	for _, d := range s.heldOut {
		out = append(out, suite.Part{Name: d.Name, Suite: NewSuite(nil, []Domain{d})})
	}
	return out
}

// Notes says how success is measured.
func (s *Suite) Notes() []string {
	return []string{"Success is by the true state: the final state equals the expert's, and the answer is right. Training saw neither."}
}
