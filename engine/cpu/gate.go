package cpu

import "context"

// gate is a mutex that a caller whose context ends stops waiting for.
type gate chan struct{}

func newGate() gate { return make(gate, 1) }

// enter waits for the gate. Each success must be followed by leave.
func (g gate) enter(ctx context.Context) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	select {
	case g <- struct{}{}:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

func (g gate) leave() { <-g }
