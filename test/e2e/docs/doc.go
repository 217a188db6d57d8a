// Package docs follows the documentation on real parts: it types what the pages say,
// page after page, as their reader would. The quickstart brings the lab of test/lab up
// and two computes into it, and the other pages continue from there.
//
//	sudo E2E_DOCS=1 go test ./test/e2e/docs -timeout 30m -v
//
// Which pages these are is in test/docpage. What fails is shown with page, line and
// output. The lab must be down, and is taken down at the end. Without E2E_DOCS=1, and
// with -short, it is skipped.
//
//	DOCS_KEEP=1         leave the lab as it is at the end
//	DOCS_ONLY=REGEXP    only these pages, in the lab that an earlier run has left
package docs
