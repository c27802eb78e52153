package bench

import "context"

// connectClient opens one association after the other.
type connectClient struct {
	r    *round
	id   uint16
	comp completions // of all its associations
	out  []byte
	in   []byte
}

func newConnectClient(r *round, id int) *connectClient {
	return &connectClient{r: r, id: uint16(id), out: make([]byte, r.pat.size)}
}

// phase dials until the deadline; the association that is under way then may
// finish as long as ctx allows.
func (c *connectClient) phase(ctx context.Context, measured bool, deadline int64) {
	tag := phaseTag(c.r.number, measured)
	var seq uint64
	for {
		start := c.r.now()
		if start >= deadline {
			return
		}
		done, ok := c.once(ctx, header{kind: kindEcho, client: c.id, tag: tag, seq: seq})
		if !ok {
			return
		}
		c.r.operations.Add(1)
		c.r.finish(done)
		if measured {
			c.r.rtt.record(int(c.id), done-start)
		}
		seq++
	}
}

// once dials, verifies one echo and closes. It returns the time of the echo.
func (c *connectClient) once(ctx context.Context, h header) (done int64, ok bool) {
	f := &c.r.faults
	conn, err := c.r.driver.Dial(ctx, c.r.path.Addr().String())
	if err != nil {
		f.note(&f.errs.Dial, 1, "client %d: association %d: %v", c.id, h.seq, err)
		return 0, false
	}
	c.r.clients.add(conn)
	defer c.r.clients.remove(conn)
	c.r.pat.fill(c.out, h)
	token := c.comp.arm()
	if err := conn.Send(ctx, c.out, token.call); err != nil {
		token.disarm()
		f.note(&f.errs.Disconnects, 1, "client %d: association %d: %v", c.id, h.seq, err)
		return 0, false
	}
	msg, err := conn.Receive(ctx, c.in)
	if err != nil {
		if ended(err) {
			f.note(&f.errs.Unfinished, 1, "client %d: association %d: no echo within %v after the deadline", c.id, h.seq, drainLimit)
		} else {
			f.note(&f.errs.Disconnects, 1, "client %d: association %d: %v", c.id, h.seq, err)
		}
		return 0, false
	}
	done = c.r.now()
	c.in = msg
	if got, ok := parseHeader(msg); !ok || got != h {
		f.note(&f.errs.Unexpected, 1, "client %d: association %d: unexpected message of %d bytes", c.id, h.seq, len(msg))
		return 0, false
	}
	if !c.r.pat.same(msg, h) {
		f.note(&f.errs.Content, 1, "client %d: association %d: the echo differs from what was sent", c.id, h.seq)
		return 0, false
	}
	return done, true
}
