package main

import (
	"context"
	"errors"
)

// runTrain carries out the recipe.
func runTrain(context.Context, trainOptions) error {
	return errors.New("train: this build cannot train")
}
