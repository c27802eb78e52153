package main

import (
	"fmt"
	"slices"
	"strings"

	"github.com/openarkstudio/arknet-go/bench"
)

// peer is one transport of the comparison.
type peer struct {
	name  string
	about string // one line for --list and the README
	// open makes a fresh driver.
	open func(tuning) bench.Driver
	// ours marks this project's transport, the numerator of every ratio.
	ours bool
	// caveats are printed under a table in which the peer appears.
	caveats []string
}

// The caveats name what a peer cannot do, so that nobody reads a row as more
// than it is.
const (
	noCompletions = "no send completions: a message counts as sent when the library has taken it, and the drain is proven by the echoes alone"
	noReliability = "no reliability: it runs on lossless paths only and shows what the sockets and the relay cost"
	encrypted     = "encrypts, and pays for it in CPU and about 20 B per datagram; the others here send in the clear"
	ownTimeout    = "retransmission timeout of at most 100 ms instead of the library's second, which does not survive the lossy profiles"
	noClose       = "no close handshake: what is unacknowledged at Close is lost without a word"
)

// peers lists every transport in the order of the tables.
func peers() []peer {
	return append(ourPeers(),
		kcpPeer(kcpArknetLike(0, 0), "kcp-go, windows 128/512, 10 ms, congestion control on"),
		kcpPeer(kcpArknetLike(8, 2), "the same with FEC 8+2"),
		kcpPeer(kcpTurbo(0, 0), "kcp-go, NoDelay(1,10,2,1), windows 512/512, no congestion control"),
		kcpPeer(kcpTurbo(10, 3), "the same with FEC 10+3"),
		peer{
			name:    "quic-go",
			about:   "quic-go, one bidirectional stream, TLS 1.3, CUBIC",
			open:    func(t tuning) bench.Driver { return quicGoDriver{t} },
			caveats: []string{noCompletions, encrypted},
		},
		peer{
			name:    "xnet-quic",
			about:   "golang.org/x/net/quic, one bidirectional stream, TLS 1.3, NewReno",
			open:    func(t tuning) bench.Driver { return xnetQUICDriver{t} },
			caveats: []string{noCompletions, encrypted},
		},
		peer{
			name:    "pion-sctp",
			about:   "pion/sctp over UDP, one ordered reliable stream",
			open:    func(t tuning) bench.Driver { return sctpDriver{t} },
			caveats: []string{noCompletions, ownTimeout},
		},
		peer{
			name:    "raw-udp-batch",
			about:   "plain UDP with recvmmsg and sendmmsg, lossless paths only",
			open:    func(tuning) bench.Driver { return bench.RawUDPBatch() },
			caveats: []string{noReliability},
		},
		peer{
			name:    "raw-udp",
			about:   "plain UDP, one system call per datagram: the floor, lossless paths only",
			open:    func(tuning) bench.Driver { return bench.RawUDP() },
			caveats: []string{noReliability},
		},
	)
}

func kcpPeer(config kcpConfig, about string) peer {
	return peer{
		name:    config.name,
		about:   about,
		open:    func(t tuning) bench.Driver { return kcpDriver{config, t} },
		caveats: []string{noCompletions, noClose},
	}
}

// choose resolves a comma-separated list of names, keeping its order. A name
// may be a prefix of several peers' names followed by "*".
func choose(list string) ([]peer, error) {
	all := peers()
	if list == "" {
		return all, nil
	}
	var chosen []peer
	for name := range strings.SplitSeq(list, ",") {
		name = strings.TrimSpace(name)
		prefix, wild := strings.CutSuffix(name, "*")
		found := false
		for _, p := range all {
			if p.name != name && (!wild || !strings.HasPrefix(p.name, prefix)) {
				continue
			}
			found = true
			if !slices.ContainsFunc(chosen, func(c peer) bool { return c.name == p.name }) {
				chosen = append(chosen, p)
			}
		}
		if !found {
			return nil, fmt.Errorf("--drivers: unknown driver %q; the range is %s", name, peerNames(all))
		}
	}
	return chosen, nil
}

func peerNames(list []peer) string {
	names := make([]string, len(list))
	for i, p := range list {
		names[i] = p.name
	}
	return strings.Join(names, ", ")
}
