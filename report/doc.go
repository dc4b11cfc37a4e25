// Package report sums up many conversations: a row for each, with its outcome, its cost and its first failure, and for
// any of them the totals by tool and by model, and their paths.
//
// The smallest whole program:
//
//	var rows []report.Row
//	for _, name := range names {
//		d, err := dag.Load(name)
//		if err != nil {
//			rows = append(rows, report.Unreadable(name, err))
//			continue
//		}
//		rows = append(rows, report.Of(name, d, nil))
//	}
//	for _, p := range report.Paths(rows) {
//		fmt.Println(len(p.Rows), "conversations took path", p.Number)
//	}
//
// # What counts
//
//   - Counts, tokens and cost include all branches, and the conversations of sub-agents. A node shared by two
//     conversations counts in both.
//   - The outcome, the cause, the answer and the path come from the heads. Of several heads the newest decides.
//   - A model without a price has an unknown cost, and so has every sum with it.
//
// A row keeps no node. It keeps at most 400 steps, with 32 bytes for each and the beginning of its text, and 8 bytes
// for each tool call. With many rows, [Texts] drops texts: 10,000 long conversations then need about 120 MB.
//
// # Concurrency
//
// The functions keep no state, apart from [Texts]. [Paths] and [Sort] write to the rows they are given; everything else
// only reads them.
//
// # Errors
//
// An unreadable conversation is a row with an Error ([Unreadable]). [Sort] and [Where] return an error for an
// unknown key.
package report
