package rudp

import "sync/atomic"

// memoryBudget is the receive memory that the sessions of an endpoint share.
type memoryBudget struct {
	limit int64
	used  atomic.Int64
}

// Reserve implements arq.Budget.
func (m *memoryBudget) Reserve(n int) bool {
	if m.used.Add(int64(n)) > m.limit {
		m.used.Add(-int64(n))
		return false
	}
	return true
}

// Release implements arq.Budget.
func (m *memoryBudget) Release(n int) { m.used.Add(-int64(n)) }
