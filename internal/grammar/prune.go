package grammar

import "slices"

// prune removes the alternatives that no text matches, so that sampling never runs into a
// dead end. It is an error if nothing is left.
func (g *Grammar) prune() error {
	if len(g.nodes) > maxNodes*10 {
		return schemaError("#", "the schema is too large")
	}
	matches := g.productive()
	if !matches[g.start] {
		return schemaError("#", "no value can conform")
	}
	for i := range g.nodes {
		n := &g.nodes[i]
		switch {
		case n.kind == alternation:
			n.children = slices.DeleteFunc(slices.Clone(n.children), func(kid int) bool { return !matches[kid] })
		case n.kind == repetition && !matches[n.children[0]]:
			*n = node{kind: sequence}
		}
	}
	return nil
}

// productive returns for each node whether some text matches it.
func (g *Grammar) productive() []bool {
	matches := make([]bool, len(g.nodes))
	parents := make([][]int32, len(g.nodes))
	var work []int
	for i, n := range g.nodes {
		for _, kid := range n.children {
			parents[kid] = append(parents[kid], int32(i))
		}
		work = append(work, i)
	}
	for len(work) > 0 {
		i := work[len(work)-1]
		work = work[:len(work)-1]
		if matches[i] || !g.matches(i, matches) {
			continue
		}
		matches[i] = true
		for _, up := range parents[i] {
			work = append(work, int(up))
		}
	}
	return matches
}

// matches reports whether some text matches node i, as far as matches tells of the others.
func (g *Grammar) matches(i int, matches []bool) bool {
	n := g.nodes[i]
	switch n.kind {
	case sequence:
		return !slices.ContainsFunc(n.children, func(kid int) bool { return !matches[kid] })
	case alternation:
		return slices.ContainsFunc(n.children, func(kid int) bool { return matches[kid] })
	case repetition:
		return n.min == 0 || matches[n.children[0]]
	}
	return true
}
