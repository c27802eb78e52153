package wire

// RepairHeaderLen is the size of what precedes a coded symbol.
const RepairHeaderLen = 3 + 1 + 1

// MaxRepairSpan is the widest window of source symbols that one repair covers.
const MaxRepairSpan = 128

// Repair says what a coded symbol is made of: the window of source symbols and
// the row of the generator (package fec).
type Repair struct {
	First uint32 // truncated id of the first source symbol
	Span  int    // 1 to MaxRepairSpan
	Seed  uint8  // 0 to 127
}

const repairSeedMask = 0x7f

// AppendRepair appends the header.
func AppendRepair(b []byte, r Repair) []byte {
	return append(appendUint24(b, r.First), byte(r.Span-1), r.Seed&repairSeedMask)
}

// ParseRepair reads the header and returns the coded symbol after it.
func ParseRepair(b []byte) (r Repair, payload []byte, err error) {
	if len(b) < RepairHeaderLen {
		return r, nil, ErrTruncated
	}
	r.First = uint24(b)
	r.Span = int(b[3]) + 1
	r.Seed = b[4]
	if r.Span > MaxRepairSpan || r.Seed&^repairSeedMask != 0 {
		return r, nil, ErrReserved
	}
	return r, b[RepairHeaderLen:], nil
}
