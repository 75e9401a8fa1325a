// Envace trains tool-using language models by world rehearsal: one policy acts,
// and in the place of the tools it also imagines what they answer.
package main

import "envace/cli"

func main() { cli.Main() }
