// Package arknet is the contract that every arknet endpoint shares, whatever
// transport carries its sessions: their limits and errors.
//
// The endpoints live in packages of their own. Package rudp is reliable UDP:
// ordered messages or a byte stream over datagrams, for networks that lose,
// delay, duplicate and reorder. Package netem models such networks and package
// netem/relay applies the model to real sockets.
package arknet
