package viztest

import (
	"github.com/plait-dev/plait/content"
	"github.com/plait-dev/plait/dag"
	"github.com/plait-dev/plait/node"
)

// Scripts returns a conversation in many scripts: some read from right to left, with names of files, numbers and
// punctuation among them, some join or reorder their letters, some take two cells a character.
func Scripts() dag.DAG {
	call := func(tool, input string) content.ToolUse {
		return content.ToolUse{ID: tool, Name: tool, Input: content.JSON(input)}
	}
	d := dag.New().
		User("لماذا فشل الاختبار رقم 12؟ انظر main.go:45 (السطر 3)، من فضلك.").
		Assistant("سأبحث عن السبب.", call("search", `{"query":"خطأ في main.go","limit":5}`), call("read", `{"path":"docs/شرح.md"}`)).
		CloseTools(node.ToolExecution{Index: 1, Result: content.Words("وجدت 3 ملفات: a.go، b.go، c.go.")},
			node.ToolExecution{Index: 2, Result: content.Words("הקובץ log.txt לא נמצא (קוד 404)."), IsError: true}).
		Assistant("The word سلام means peace, שלום too; 5 > 3.\nنسخهٔ ۲٫۵ را نصب کن: pip install plait و بعد «آزمون» را اجرا کن.")
	return d.User("שלום, עולם! הגרסה 1.2.3 נכשלה ב-50%. (ראו log.txt)\nLatin again.").
		Assistant("परीक्षण विफल क्यों हुआ? main.go की पंक्ति 12 देखें।").
		User("ทำไมการทดสอบที่ 3 ล้มเหลว? ดู main.go").
		Assistant("テスト12が失敗した理由は？ 한국어, 中文。").
		User("Ship it 🚀 👩🏽‍🚀 ✅ 🇯🇵")
}
