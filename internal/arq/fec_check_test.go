package arq

import "fmt"

// checkCoding says what is wrong with the coding of a Conn, if anything: memory
// beyond a limit, or counters that do not add up.
func checkCoding(c *Conn) error {
	st := c.Stats().Repairs
	if sum := st.Used + st.Useless + st.Late + st.Rejected + st.Evicted + st.Held; sum != st.Received {
		return fmt.Errorf("%d repairs received, %d accounted for: %+v", st.Received, sum, st)
	}
	if enc := c.repairs.enc; enc != nil {
		if n, limit := enc.Bytes(), max(c.cfg.FEC.Retain, 4*MaxMTU); n > limit {
			return fmt.Errorf("%d bytes are kept to make repairs, the limit is %d", n, limit)
		}
		if first, n := enc.Window(); first+uint64(n) != uint64(c.send.unsent) && n > 0 {
			return fmt.Errorf("the coder's window ends at %d, symbols were sent below %d", first+uint64(n), c.send.unsent)
		}
	}
	if dec := c.restorer.dec; dec != nil {
		if n, limit := dec.Bytes(), max(c.cfg.FEC.Retain, 4*MaxMTU); n > limit {
			return fmt.Errorf("%d bytes are kept for repairs, the limit is %d", n, limit)
		}
	}
	r := &c.repairs
	most := (int64(max(repairEvery, r.groupCount)) + 1) * (int64(st.MaxRatio)/1000 + 1) * missRateOne
	switch {
	case st.RetainedBytes > st.RetainedPeakBytes:
		return fmt.Errorf("%d bytes retained, the peak is %d", st.RetainedBytes, st.RetainedPeakBytes)
	case c.cfg.CodingMemory != nil && st.RetainedBytes > c.restorer.reserved:
		return fmt.Errorf("%d bytes retained, %d reserved", st.RetainedBytes, c.restorer.reserved)
	case c.state >= StateClosing && (st.RetainedBytes > 0 || c.restorer.reserved > 0):
		return fmt.Errorf("%d bytes retained and %d reserved in state %d", st.RetainedBytes, c.restorer.reserved, c.state)
	case len(c.restorer.restored.r) > maxReceivedRanges:
		return fmt.Errorf("%d ranges of restored symbols", len(c.restorer.restored.r))
	case r.debt > most || r.debt < -2*missRateOne || r.owed < 0:
		return fmt.Errorf("debt %d, %d repairs owed", r.debt, r.owed)
	}
	return nil
}
