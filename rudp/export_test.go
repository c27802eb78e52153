package rudp

// Released is closed when the listener's socket is.
func Released(l *Listener) <-chan struct{} { return l.ep.released }
