package content

import "github.com/plait-dev/plait/internal/memo"

func init() {
	memo.OfBlocks = func(blocks any) *memo.Memo {
		b := blocks.(Blocks)
		if b.list == nil {
			return nil
		}
		return &b.list.memo
	}
}
