package main

import (
	"strings"
	"testing"
	"testing/synctest"
)

const whole = `80 messages in the graph, at most 31 in a request, 3 summaries

user      Tell me about the number 1.
user      [Summary of earlier messages:]
They talked about numbers.
user      Tell me about the number 26.
assistant word word word word word word word word word word word word 
`

func TestRequestsStayWithinTheBudget(t *testing.T) {
	synctest.Test(t, func(t *testing.T) { // time stands still, so that no duration is printed
		var out strings.Builder
		if err := run(t.Context(), &out); err != nil {
			t.Fatal(err)
		}
		if out.String() != whole {
			t.Errorf("it printed\n%s", out.String())
		}
	})
}
