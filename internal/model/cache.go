package model

// Cache holds the keys and values of sequences as a tree of nodes. A node is a run of
// tokens after some prefix; sequences with a common prefix share nodes. Leaves that
// no sequence ends in are evicted, least recently used first, when memory is needed.
// A Cache is not safe for concurrent use.
type Cache struct {
	layer, size int // floats of one layer and of one node
	kv          int
	limit       int // nodes
	nodes       []*node
	free        [][]float32
	root        node
	tick, made  int
}

// nodeTokens is the capacity of a node. Small nodes waste less at the end of a
// sequence; large ones make the matrix products of attention larger.
const nodeTokens = 64

// node is a run of up to nodeTokens tokens after the first at tokens of parent.
type node struct {
	parent   *node
	at       int
	start    int // position of the first token
	ids      []int
	done     int // number of ids computed, or in the batch being computed
	data     []float32
	kv       int
	children []*node
	pins     int // sequences that end here
	used     int // when a sequence last used it
	order    int // order of creation
	seen     int // mark of held

	tick  int     // step to which place belongs
	place []place // positions of its tokens in that step's batch
}

// place says that the rows from a spot on hold n tokens of a node, starting at token
// from.
type place struct {
	from, n int
	spot
}

// link is the first n tokens of a node, as part of a sequence.
type link struct {
	*node
	n int
}

// work is a place not yet assigned to rows.
type work struct {
	*node
	from, n int
}

// NewCache returns a cache for about the given number of tokens.
func NewCache(m *Model, tokens int) *Cache {
	kv := m.Config.KVHeads * m.Config.HeadDim
	layer := 2 * kv * nodeTokens
	return &Cache{kv: kv, layer: layer, size: layer * m.Config.Layers, limit: max(4, (tokens+nodeTokens-1)/nodeTokens)}
}

// Tokens returns the allocated size of all nodes, in tokens.
func (c *Cache) Tokens() int { return len(c.nodes) * nodeTokens }

// Reset drops all sequences, which must no longer be used, but keeps the memory.
func (c *Cache) Reset() {
	for _, n := range c.nodes {
		c.free = append(c.free, n.data)
	}
	c.nodes = c.nodes[:0]
	c.root = node{}
}

// put stores the key, as a column, and the value of token i.
func (n *node) put(layer, i int, k, v []float32) {
	data := n.data[layer : layer+2*n.kv*nodeTokens]
	for d, x := range k {
		data[d*nodeTokens+i] = x
	}
	copy(data[n.kv*nodeTokens+i*n.kv:], v)
}

func (n *node) run(count int) run {
	return run{data: n.data, k: 0, kRow: nodeTokens, v: n.kv * nodeTokens, vRow: n.kv, start: n.start, n: count}
}

// Seq is a sequence of tokens in a cache. It keeps its nodes until Close.
type Seq struct {
	cache *Cache
	links []link
	n     int
	work  []work // what to compute in this step
	last  bool   // this step began with all but the last token computed
	ready bool   // all tokens are computed after this step
	row   int    // row of the last token in its part of this step
}

// Open returns a sequence of ids, which must not be empty. It reuses cached prefixes.
// It returns nil if there is no memory for the rest and for spare more nodes; force
// lets it exceed the limit.
func (c *Cache) Open(ids []int, spare int, force bool) *Seq {
	s := &Seq{cache: c}
	c.tick++
	s.links = c.match(&c.root, 0, ids, nil)
	for _, l := range s.links {
		l.used = c.tick
		s.n += l.n
	}
	s.pin(1)
	need := (len(ids)-s.n+nodeTokens-1)/nodeTokens + spare
	if !force && need > c.limit-c.held() {
		s.Close()
		return nil
	}
	for _, id := range ids[s.n:] {
		s.Append(id, true)
	}
	return s
}

// held counts the nodes in use by sequences.
func (c *Cache) held() int {
	c.tick++
	count := 0
	for _, n := range c.nodes {
		if n.pins == 0 {
			continue
		}
		for ; n != &c.root && n.seen != c.tick; n = n.parent {
			n.seen = c.tick
			count++
		}
	}
	return count
}

// match appends the longest cached chain of ids below the first at tokens of n to
// chain.
func (c *Cache) match(n *node, at int, ids []int, chain []link) []link {
	best, longest := chain, 0
	for _, ch := range n.children {
		if ch.at != at || len(ids) == 0 || ch.ids[0] != ids[0] {
			continue
		}
		k := common(ch.ids, ids)
		found := c.match(ch, k, ids[k:], append(chain[:len(chain):len(chain)], link{ch, k}))
		total := 0
		for _, l := range found[len(chain):] {
			total += l.n
		}
		if total > longest {
			best, longest = found, total
		}
	}
	return best
}

// tail returns the node in which the sequence ends.
func (s *Seq) tail() *node {
	if len(s.links) == 0 {
		return &s.cache.root
	}
	return s.links[len(s.links)-1].node
}

func (s *Seq) pin(by int) { s.tail().pins += by }

// Len is the number of tokens.
func (s *Seq) Len() int { return s.n }

// Append adds a token. It returns false if there is no memory for it; force lets it
// exceed the limit.
func (s *Seq) Append(id int, force bool) bool {
	c := s.cache
	last := len(s.links) - 1
	if last >= 0 {
		if l := &s.links[last]; l.n == len(l.ids) && l.n < nodeTokens {
			l.ids = append(l.ids, id)
			l.n++
			s.n++
			return true
		}
	}
	child := c.newNode(force)
	if child == nil {
		return false
	}
	child.parent, child.start = s.tail(), s.n
	if last >= 0 {
		child.at = s.links[last].n
	}
	child.ids = append(child.ids, id)
	child.parent.children = append(child.parent.children, child)
	s.pin(-1)
	s.links = append(s.links, link{child, 1})
	s.pin(1)
	s.n++
	return true
}

// Close releases the sequence. Its computed keys and values stay in the cache.
func (s *Seq) Close() {
	if s.cache == nil {
		return
	}
	s.cache.tick++
	for _, l := range s.links {
		l.used = s.cache.tick
	}
	s.pin(-1)
	s.cache, s.links = nil, nil
}

// newNode returns an empty node, evicting another if needed, or nil.
func (c *Cache) newNode(force bool) *node {
	if len(c.nodes) >= c.limit && !c.evict() && !force {
		return nil
	}
	n := &node{kv: c.kv, used: c.tick, order: c.made}
	c.made++
	if last := len(c.free) - 1; last >= 0 {
		n.data, c.free = c.free[last], c.free[:last]
	} else {
		n.data = make([]float32, c.size)
	}
	n.ids = make([]int, 0, nodeTokens)
	c.nodes = append(c.nodes, n)
	return n
}

// evict frees the least recently used leaf.
func (c *Cache) evict() bool {
	best := -1
	for i, n := range c.nodes {
		if n.pins == 0 && len(n.children) == 0 && (best < 0 || n.used < c.nodes[best].used) {
			best = i
		}
	}
	if best < 0 {
		return false
	}
	n := c.nodes[best]
	siblings := n.parent.children
	for i, ch := range siblings {
		if ch == n {
			siblings[i] = siblings[len(siblings)-1]
			n.parent.children = siblings[:len(siblings)-1]
			break
		}
	}
	c.nodes[best] = c.nodes[len(c.nodes)-1]
	c.nodes = c.nodes[:len(c.nodes)-1]
	c.free = append(c.free, n.data)
	return true
}
