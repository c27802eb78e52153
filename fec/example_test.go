package fec_test

import (
	"fmt"

	"github.com/openarkstudio/arknet-go/fec"
)

// Two of six symbols are lost; two repairs bring them back.
func Example() {
	enc, err := fec.NewEncoder(fec.Config{})
	if err != nil {
		panic(err)
	}
	dec, err := fec.NewDecoder(fec.Config{})
	if err != nil {
		panic(err)
	}
	for id, text := range []string{"to", "be", "or", "not", "to", "be"} {
		if err := enc.Add(uint64(id), []byte(text)); err != nil {
			panic(err)
		}
		if id != 2 && id != 3 { // the network loses these
			dec.AddSource(uint64(id), []byte(text))
		}
	}
	for n := range uint64(2) {
		repair := fec.Sliding(0, 6, n)
		payload, err := enc.AppendRepair(nil, repair)
		if err != nil {
			panic(err)
		}
		fmt.Println("repair:", dec.AddRepair(repair, payload))
	}
	for {
		id, data, ok := dec.Next()
		if !ok {
			break
		}
		fmt.Printf("symbol %d: %s\n", id, data)
	}
	// Output:
	// repair: held
	// repair: restored
	// symbol 2: or
	// symbol 3: not
}

// A group of four symbols with two parities, as in a Reed-Solomon block code.
func ExampleBlock() {
	enc, _ := fec.NewEncoder(fec.Config{})
	dec, _ := fec.NewDecoder(fec.Config{})
	for id := range uint64(4) {
		data := fmt.Appendf(nil, "symbol %d", id)
		_ = enc.Add(id, data)
		if id > 1 {
			dec.AddSource(id, data)
		}
	}
	parities := make([][]byte, 2)
	if err := enc.AppendRepairs(parities, fec.Block(0, 4, 0)); err != nil {
		panic(err)
	}
	for i, p := range parities {
		dec.AddRepair(fec.Block(0, 4, i), p)
	}
	fmt.Println(dec.Stats().Restored, "restored")
	// Output: 2 restored
}
