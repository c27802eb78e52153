package bench

import "context"

// streamClient sends one way as fast as the transport takes it.
type streamClient struct {
	r    *round
	id   uint16
	conn Conn
	comp completions
	out  []byte
	in   []byte
}

func newStreamClient(r *round, id int, conn Conn) *streamClient {
	return &streamClient{r: r, id: uint16(id), conn: conn, out: make([]byte, r.pat.size)}
}

// phase sends until the deadline, then says how many messages there were and
// waits for the server's answer, as long as ctx allows.
func (c *streamClient) phase(ctx context.Context, measured bool, deadline int64) {
	tag := phaseTag(c.r.number, measured)
	f := &c.r.faults
	var seq uint64
	for c.r.now() < deadline {
		c.r.pat.fill(c.out, header{kind: kindData, client: c.id, tag: tag, seq: seq})
		if err := c.send(ctx, c.out); err != nil {
			c.conclude("message", seq, err)
			return
		}
		seq++
	}
	end := header{kind: kindEnd, client: c.id, tag: tag, seq: seq}
	end.put(c.out)
	if err := c.send(ctx, c.out[:headerLen]); err != nil {
		c.conclude("end of the stream after message", seq, err)
		return
	}
	msg, err := c.conn.Receive(ctx, c.in)
	if err != nil {
		c.conclude("report after message", seq, err)
		return
	}
	c.in = msg
	h, ok := parseHeader(msg)
	if !ok || len(msg) != headerLen || h.kind != kindReport || h.client != c.id || h.tag != tag {
		f.note(&f.errs.Unexpected, 1, "client %d: unexpected message of %d bytes instead of the report", c.id, len(msg))
		return
	}
	if h.seq < seq {
		f.note(&f.errs.Unfinished, seq-h.seq, "client %d: the server verified %d of %d messages", c.id, h.seq, seq)
	}
}

func (c *streamClient) send(ctx context.Context, msg []byte) error {
	token := c.comp.arm()
	if err := c.conn.Send(ctx, msg, token.call); err != nil {
		token.disarm()
		return err
	}
	return nil
}

func (c *streamClient) conclude(what string, seq uint64, err error) {
	f := &c.r.faults
	if ended(err) {
		f.note(&f.errs.DrainTimeouts, 1, "client %d: %s %d: not done within %v after the deadline", c.id, what, seq, drainLimit)
	} else {
		f.note(&f.errs.Disconnects, 1, "client %d: %s %d: %v", c.id, what, seq, err)
	}
}

// sink is the server's side of one stream: it checks every message.
type sink struct {
	r        *round
	started  bool
	client   uint16
	tag      uint32
	expected uint64 // next sequence number
	verified uint64
}

// data checks one message.
func (s *sink) data(msg []byte, h header) {
	f := &s.r.faults
	if !s.started || h.tag != s.tag {
		if s.started && h.client != s.client {
			f.note(&f.errs.Unexpected, 1, "server: message of client %d on the association of client %d", h.client, s.client)
			return
		}
		s.started, s.client, s.tag = true, h.client, h.tag
		s.expected, s.verified = 0, 0
	}
	if h.tag != s.r.tag.Load() || h.client != s.client {
		f.note(&f.errs.Unexpected, 1, "server: message %d of client %d is not of this phase", h.seq, h.client)
		return
	}
	switch {
	case h.seq < s.expected:
		f.note(&f.errs.Duplicate, 1, "server: message %d of client %d came again or late; next is %d", h.seq, h.client, s.expected)
		return
	case h.seq > s.expected:
		f.note(&f.errs.Order, 1, "server: message %d of client %d came before message %d", h.seq, h.client, s.expected)
		s.expected = h.seq + 1
		return
	}
	s.expected++
	if !s.r.pat.same(msg, h) {
		f.note(&f.errs.Content, 1, "server: message %d of client %d, %d bytes, differs from what was sent", h.seq, h.client, len(msg))
		return
	}
	s.verified++
	s.r.operations.Add(1)
}

// end answers the end of a stream.
func (s *sink) end(h header) header {
	if h.tag != s.tag || !s.started {
		s.started, s.client, s.tag, s.expected, s.verified = true, h.client, h.tag, 0, 0
	}
	if h.seq != s.expected {
		f := &s.r.faults
		f.note(&f.errs.Order, 1, "server: client %d ends after %d messages, %d came", h.client, h.seq, s.expected)
	}
	s.r.finish(s.r.now())
	return header{kind: kindReport, client: h.client, tag: h.tag, seq: s.verified}
}
