package train

import (
	"math"

	"envace/rollout"
)

// Groups counts the groups of Advantages.
type Groups struct {
	All  int // (task, role) groups
	Dead int // of those, groups with equal rewards, which contribute no gradient
}

// Advantages sets each row's advantage: its reward minus the mean over the rows of its
// task and role (the paper's Eq. 7) and, with c.Std, divided by their sample standard
// deviation. In a group of one, or of equal rewards, it is 0.
func Advantages(rows []Row, c Credit) Groups {
	type key struct {
		task string
		role rollout.Role
	}
	groups := map[key][]int{}
	for i, r := range rows {
		k := key{r.Task, r.Role}
		groups[k] = append(groups[k], i)
	}
	count := Groups{All: len(groups)}
	for _, members := range groups {
		mean, std := moments(rows, members)
		if std < 1e-9 {
			count.Dead++
		}
		for _, i := range members {
			rows[i].Advantage = 0
			if std < 1e-9 {
				continue
			}
			rows[i].Advantage = rows[i].Reward - mean
			if c.Std {
				rows[i].Advantage /= std + 1e-6
			}
		}
	}
	return count
}

// moments returns the mean and the sample standard deviation (0 for a single row).
func moments(rows []Row, members []int) (mean, std float64) {
	for _, i := range members {
		mean += rows[i].Reward
	}
	mean /= float64(len(members))
	if len(members) == 1 {
		return mean, 0
	}
	for _, i := range members {
		d := rows[i].Reward - mean
		std += d * d
	}
	return mean, math.Sqrt(std / float64(len(members)-1))
}
