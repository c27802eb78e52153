package main

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"math/big"
	"net"
	"sync"
	"time"

	"github.com/openarkstudio/arknet-go/bench"
)

// socketBuffer is asked for in both directions of every rival's socket.
const socketBuffer = 4 << 20

// listenSocket binds a UDP socket to address with large buffers.
func listenSocket(address string) (*net.UDPConn, error) {
	addr, err := net.ResolveUDPAddr("udp", address)
	if err != nil {
		return nil, err
	}
	return openSocket(addr)
}

// clientSocket binds an unconnected UDP socket of its own for one client, with
// large buffers, and resolves the server's address. The relay tells clients
// apart by their source address.
func clientSocket(server string) (*net.UDPConn, *net.UDPAddr, error) {
	remote, err := net.ResolveUDPAddr("udp", server)
	if err != nil {
		return nil, nil, err
	}
	local := &net.UDPAddr{}
	if remote.IP.IsLoopback() {
		local.IP = net.IPv6loopback
		if remote.IP.To4() != nil {
			local.IP = net.IPv4(127, 0, 0, 1)
		}
	}
	conn, err := openSocket(local)
	return conn, remote, err
}

func openSocket(local *net.UDPAddr) (*net.UDPConn, error) {
	network := "udp4"
	if local.IP != nil && local.IP.To4() == nil {
		network = "udp6"
	}
	conn, err := net.ListenUDP(network, local)
	if err != nil {
		return nil, err
	}
	// The kernel grants what it likes; the record shows what that was.
	_ = conn.SetReadBuffer(socketBuffer)
	_ = conn.SetWriteBuffer(socketBuffer)
	return conn, nil
}

// acceptQueue hands associations from a rival's accept loop to the harness, and
// closes what they share (a socket, an endpoint) when the listener and the last
// association are closed: the harness may close the listener first.
type acceptQueue struct {
	ready  chan bench.Conn
	closed chan struct{}

	mu      sync.Mutex
	users   int // associations, and 1 for the listener itself
	ended   bool
	release func() error
}

func newAcceptQueue(release func() error) *acceptQueue {
	return &acceptQueue{
		ready:   make(chan bench.Conn),
		closed:  make(chan struct{}),
		users:   1,
		release: release,
	}
}

// hold counts one more association. Pair it with drop.
func (q *acceptQueue) hold() {
	q.mu.Lock()
	q.users++
	q.mu.Unlock()
}

// drop releases what is shared when nobody is left.
func (q *acceptQueue) drop() error {
	q.mu.Lock()
	q.users--
	last := q.users == 0
	q.mu.Unlock()
	if last {
		return q.release()
	}
	return nil
}

// dropQuietly is drop for callers with nobody to tell.
func (q *acceptQueue) dropQuietly() { _ = q.drop() }

// offer waits for the harness to accept c, or closes it with the listener.
func (q *acceptQueue) offer(c bench.Conn) {
	select {
	case q.ready <- c:
	case <-q.closed:
		_ = c.Close()
	}
}

func (q *acceptQueue) accept(ctx context.Context) (bench.Conn, error) {
	select {
	case c := <-q.ready:
		return c, nil
	case <-q.closed:
		return nil, net.ErrClosed
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// close ends waiting accepts. stop, which may be nil, ends the rival's own
// accept loop; it is called once.
func (q *acceptQueue) close(stop func() error) error {
	q.mu.Lock()
	again := q.ended
	q.ended = true
	q.mu.Unlock()
	if again {
		return nil
	}
	close(q.closed)
	var err error
	if stop != nil {
		err = stop()
	}
	if dropErr := q.drop(); err == nil {
		err = dropErr
	}
	return err
}

// alpn names the echo protocol inside QUIC.
const alpn = "arknet-compare"

// throwAwayTLS makes a server configuration with a certificate that lives as
// long as the process, and the client configuration that trusts it and nothing
// else.
var throwAwayTLS = sync.OnceValues(func() (tlsPair, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return tlsPair{}, fmt.Errorf("certificate key: %w", err)
	}
	template := &x509.Certificate{
		SerialNumber:          big.NewInt(1),
		NotBefore:             time.Now().Add(-time.Hour),
		NotAfter:              time.Now().Add(24 * time.Hour),
		DNSNames:              []string{"localhost"},
		KeyUsage:              x509.KeyUsageDigitalSignature | x509.KeyUsageCertSign,
		ExtKeyUsage:           []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth},
		IsCA:                  true,
		BasicConstraintsValid: true,
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, &key.PublicKey, key)
	if err != nil {
		return tlsPair{}, fmt.Errorf("certificate: %w", err)
	}
	leaf, err := x509.ParseCertificate(der)
	if err != nil {
		return tlsPair{}, fmt.Errorf("certificate: %w", err)
	}
	roots := x509.NewCertPool()
	roots.AddCert(leaf)
	return tlsPair{
		server: &tls.Config{
			Certificates: []tls.Certificate{{Certificate: [][]byte{der}, PrivateKey: key, Leaf: leaf}},
			NextProtos:   []string{alpn},
			MinVersion:   tls.VersionTLS13,
		},
		client: &tls.Config{
			RootCAs:    roots,
			ServerName: "localhost",
			NextProtos: []string{alpn},
			MinVersion: tls.VersionTLS13,
		},
	}, nil
})

type tlsPair struct{ server, client *tls.Config }
