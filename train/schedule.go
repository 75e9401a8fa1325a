package train

import "envace/engine"

// Schedule is AdamW with a learning rate that rises linearly over Warmup steps
// and then falls linearly, to reach Final × LR after Steps.
type Schedule struct {
	engine.Adam
	Warmup int
	Steps  int
	Final  float64
}

// At returns the settings of a step.
func (s Schedule) At(step int) engine.Adam {
	a := s.Adam
	switch {
	case step < s.Warmup:
		a.LR *= float64(step+1) / float64(s.Warmup)
	case s.Steps > s.Warmup:
		done := min(1, float64(step-s.Warmup)/float64(s.Steps-s.Warmup))
		a.LR *= 1 - done*(1-s.Final)
	}
	return a
}
