package registry

import (
	"context"
	"sync"
)

// A Remark is an info notice about a result, beyond what its own fields say,
// such as MORE_RESULTS. It travels beside the result, not in it.
type Remark struct {
	Type       string `json:"type"` // always "info_notice"
	NoticeCode string `json:"notice_code"`
	Message    string `json:"message"`
	Details    any    `json:"details,omitempty"`
}

// A More is the Details of a MORE_RESULTS remark.
type More struct {
	NextCursor string `json:"next_cursor"`
}

type remarks struct {
	mu   sync.Mutex
	said []any
}

type remarksKey struct{}

func withRemarks(ctx context.Context) (context.Context, *remarks) {
	r := &remarks{}
	return context.WithValue(ctx, remarksKey{}, r), r
}

func (r *remarks) list() []any {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.said
}

// AddRemark adds an info notice to the answer of the call that ctx belongs to.
// Details may be nil.
func AddRemark(ctx context.Context, code, message string, details any) {
	if r, ok := ctx.Value(remarksKey{}).(*remarks); ok {
		r.mu.Lock()
		defer r.mu.Unlock()
		r.said = append(r.said, Remark{"info_notice", code, message, details})
	}
}
