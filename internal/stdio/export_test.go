package stdio

import "time"

// SetPatience sets how long a call may hold up its reader until restore is
// called; 0: calls are run by others.
func SetPatience(d time.Duration) (restore func()) {
	before := patience
	patience = d
	return func() { patience = before }
}
