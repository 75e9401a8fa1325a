package weights

import (
	"errors"
	"math"
)

// ropeName is the GGUF tensor that holds the divisor of each rotary frequency of a
// Llama 3 model. The parameters it was computed from are not stored.
const ropeName = "rope_freqs.weight"

// rope finds the scaling that gives the stored divisors.
func (g *gguf) rope(c *Config) error {
	s := g.tensorNamed(ropeName)
	if s == nil {
		return nil
	}
	if c.HeadDim < 2 || s.Len() != c.HeadDim/2 {
		return errors.New("tensor " + ropeName + " has the wrong length: want one number per pair of head channels")
	}
	divisors := make([]float32, s.Len())
	if err := s.read(divisors); err != nil {
		return err
	}
	for _, r := range scalings(divisors, c.RopeTheta) {
		if r.check() == nil && r.fits(divisors, c.RopeTheta) {
			if r.Factor != 1 {
				c.RopeScaling = &r
			}
			return nil
		}
	}
	return errors.New("tensor " + ropeName + " does not match llama3 rope scaling: not supported")
}

// divisor is what the frequency of the wavelength is divided by.
func (r *Llama3Rope) divisor(wavelength float64) float64 {
	smooth := (float64(r.OriginalContext)/wavelength - r.LowFreq) / (r.HighFreq - r.LowFreq)
	smooth = min(max(smooth, 0), 1)
	return 1 / ((1-smooth)/r.Factor + smooth)
}

func (r *Llama3Rope) fits(divisors []float32, theta float64) bool {
	for i, d := range divisors {
		off := math.Abs(r.divisor(wavelength(i, len(divisors), theta))/float64(d) - 1)
		if !(off <= 1e-5) { // not a number is no fit
			return false
		}
	}
	return true
}

func wavelength(i, n int, theta float64) float64 {
	return 2 * math.Pi * math.Pow(theta, float64(i)/float64(n))
}

// scalings are the candidates for the divisors: those of the published models,
// and the one through the first and last interpolated divisor. Between the
// limits 1/divisor is linear in 1/wavelength; low, high and context are only
// determined up to a common factor, which is chosen so that low is 1.
func scalings(divisors []float32, theta float64) []Llama3Rope {
	factor := float64(divisors[len(divisors)-1])
	list := []Llama3Rope{{factor, 1, 4, 8192}}
	var x, y []float64 // 1/wavelength, smooth
	for i, d := range divisors {
		smooth := (1/float64(d) - 1/factor) / (1 - 1/factor)
		if smooth > 1e-3 && smooth < 1-1e-3 {
			x, y = append(x, 1/wavelength(i, len(divisors), theta)), append(y, smooth)
		}
	}
	if n := len(x) - 1; n > 0 {
		slope := (y[n] - y[0]) / (x[n] - x[0])
		low := slope*x[0] - y[0] // low/(high − low)
		list = append(list, Llama3Rope{factor, 1, roundTo(1+1/low, 1e-3), int(math.Round(slope / low))})
	}
	return list
}

func roundTo(x, unit float64) float64 { return math.Round(x/unit) * unit }
