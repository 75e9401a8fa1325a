package workbench

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"runtime"
	"slices"
	"strings"

	"golang.org/x/sync/errgroup"

	"envace/internal/seeds"
	"envace/rollout"
	"envace/suite"
	"envace/task"
)

// Family returns the suites of domains for training and held-out domains: "NAME" contains
// all of them, "NAME:a,b" the domains a and b. Pass it to cli.Main to use it in every
// command.
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

// Suite is a suite of domains: generated tasks with real worlds and a ground-truth score.
type Suite struct {
	train, heldOut []Domain
	worlds         Worlds
}

// NewSuite returns the suite of domains for training and of held-out domains, which may be
// none.
func NewSuite(train, heldOut []Domain) *Suite {
	return &Suite{train, heldOut, Worlds{Domains: slices.Concat(train, heldOut)}}
}

// choose returns the suite of the named domains only.
func (s *Suite) choose(names []string) (*Suite, error) {
	var known []string
	for _, d := range s.worlds.Domains {
		known = append(known, d.Name)
	}
	for i, name := range names {
		if !slices.Contains(known, name) {
			return nil, fmt.Errorf("unknown domain %q: want one or more of %s", name, strings.Join(known, ", "))
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

// Tasks generates n tasks, evenly spread over the domains of the split and shuffled.
func (s *Suite) Tasks(split suite.Split, n int, seed uint64) ([]task.Task, error) {
	domains, part := s.train, string(split)
	if split == suite.HeldOut {
		domains, part = s.heldOut, string(suite.Test)
	}
	if len(domains) == 0 {
		return nil, nil
	}
	if n < 1 {
		return nil, errors.New("the number of tasks is unlimited: want at least 1")
	}
	drawn := make([][]task.Task, len(domains))
	var g errgroup.Group
	g.SetLimit(runtime.GOMAXPROCS(0))
	for i, d := range domains {
		share := n*(i+1)/len(domains) - n*i/len(domains)
		g.Go(func() (err error) {
			drawn[i], err = d.Tasks(seed, part, share)
			return err
		})
	}
	if err := g.Wait(); err != nil {
		return nil, err
	}
	out := slices.Concat(drawn...)
	r := rand.New(rand.NewPCG(seed, seeds.Of(part)))
	r.Shuffle(len(out), func(i, j int) { out[i], out[j] = out[j], out[i] })
	return out, nil
}

// Worlds opens the real worlds of the tasks.
func (s *Suite) Worlds() rollout.Worlds { return s.worlds }

// Score scores the episode in the real world, see [Worlds.Success].
func (s *Suite) Score(_ context.Context, ep *rollout.Episode) (suite.Score, error) {
	ok, why, err := s.worlds.Success(ep.Task, ep)
	return suite.Score{Success: ok, Why: why}, err
}

// Shadow opens a real world for t that is independent of its episode.
func (s *Suite) Shadow(t task.Task) (rollout.Shadow, error) { return s.worlds.Shadow(t, nil) }

// Parts returns one suite per domain.
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
	return []string{"Success is measured in the real world: the final state equals the expert's, and the replies are right. Training uses neither."}
}
