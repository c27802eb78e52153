package record

import "time"

// Schema names the layout of Result. It changes when a field changes its
// meaning or disappears; new fields alone do not change it.
const Schema = "arknet.bench.rudp/1"

// Result is one configuration of a benchmark with all its rounds.
type Result struct {
	Schema      string      `json:"schema"`
	Command     []string    `json:"command"` // argv of the process
	Config      Config      `json:"config"`
	Environment Environment `json:"environment"`
	Rounds      []Round     `json:"rounds"` // in order, failed ones included

	// Median, Min and Max are taken field by field over the rounds that are OK.
	// They are null when there is none.
	Median *Metrics `json:"median"`
	Min    *Metrics `json:"min"`
	Max    *Metrics `json:"max"`

	Errors Errors `json:"errors"` // sums over all rounds
	OK     bool   `json:"ok"`     // every round is OK and there is at least one
}

// Config is the effective configuration, defaults included. Percentages,
// delays and limits are those of the impairment in each direction.
type Config struct {
	Driver           string  `json:"driver"`
	Workload         string  `json:"workload"` // echo, stream or connect
	Payload          int     `json:"payload"`  // bytes per message
	Clients          int     `json:"clients"`
	Window           int     `json:"window"` // messages in flight per client; 0 where the workload has none
	Profile          string  `json:"profile"`
	LossPercent      float64 `json:"loss_percent"`
	BurstLoss        string  `json:"burst_loss"` // "k/n", or empty
	DelayMS          float64 `json:"delay_ms"`   // one way
	JitterMS         float64 `json:"jitter_ms"`
	DuplicatePercent float64 `json:"duplicate_percent"`
	ReorderPercent   float64 `json:"reorder_percent"`
	ReorderDelayMS   float64 `json:"reorder_delay_ms"`
	RateMbit         float64 `json:"rate_mbit"`   // 0: no limit
	QueueBytes       int     `json:"queue_bytes"` // of the rate limit; 0: none
	Outage           string  `json:"outage"`      // "start+length[/period]" windows, or empty
	Seconds          float64 `json:"seconds"`     // measured, without the drain
	Warmup           float64 `json:"warmup"`      // seconds
	RoundCount       int     `json:"rounds"`
	Seed             uint64  `json:"seed"` // of the first round; the next ones add 1 each
	AddressFamily    string  `json:"address_family"`

	// Transport holds the parameters of the driver, such as "fec" or
	// "congestion". In JSON they stand beside the fields above.
	Transport map[string]any `json:"-"`
}

// Environment is where and with what a result was made.
type Environment struct {
	Go           string            `json:"go"`
	OS           string            `json:"os"`
	Arch         string            `json:"arch"`
	Kernel       string            `json:"kernel"`
	CPUModel     string            `json:"cpu_model"`
	Cores        int               `json:"cores"` // logical
	MemoryBytes  uint64            `json:"memory_bytes"`
	GOMAXPROCS   int               `json:"gomaxprocs"`
	GOGC         int               `json:"gogc"` // percent; -1 means off
	Race         bool              `json:"race"` // built with the race detector
	Dependencies map[string]string `json:"dependencies"`

	// Revision is the version control revision of the build, "" if unknown, and
	// Modified says that the sources differed from it. SourceDigest is a SHA-256
	// over the module's Go sources, go.mod and go.sum as found when the record
	// was made, or "" when the sources were not there.
	Revision     string `json:"revision"`
	Modified     bool   `json:"modified"`
	SourceDigest string `json:"source_digest"`

	Start time.Time `json:"start"` // UTC
	End   time.Time `json:"end"`   // UTC

	SocketBuffers SocketBuffers `json:"socket_buffers"` // of the endpoints
}

// SocketBuffers are the sizes that the operating system granted, in bytes as it
// reports them (Linux reports twice what it was asked for); 0 where unknown.
type SocketBuffers struct {
	ServerRead     int `json:"server_read"`
	ServerWrite    int `json:"server_write"`
	ClientReadMin  int `json:"client_read_min"`
	ClientReadMax  int `json:"client_read_max"`
	ClientWriteMin int `json:"client_write_min"`
	ClientWriteMax int `json:"client_write_max"`
}

// Round is one measured run.
type Round struct {
	Round          int       `json:"round"` // from 1
	Seed           uint64    `json:"seed"`
	Start          time.Time `json:"start"` // UTC, of the measured phase
	ElapsedSeconds float64   `json:"elapsed_seconds"`
	WarmupOK       bool      `json:"warmup_ok"`

	Metrics

	// RTTDistribution are percentiles of what RTTP50 and its siblings measure,
	// in ascending order. Records that were made before it existed, and
	// workloads without round trips, have none.
	RTTDistribution []Percentile `json:"rtt_distribution,omitempty"`

	Relay  Relay  `json:"relay"`  // of the measured phase
	Errors Errors `json:"errors"` // of the whole round

	// Failure is the first thing that went wrong, in words.
	Failure string `json:"failure,omitempty"`
	OK      bool   `json:"ok"`
}

// Percentile is one point of a distribution: so many percent of the observations
// took at most so many microseconds.
type Percentile struct {
	Percent float64 `json:"percent"` // 0 is the shortest, 100 the longest
	RTT     float64 `json:"us"`      // microseconds
}

// Metrics are the figures of one round, or their median, minimum or maximum. An
// operation is a verified echo, a delivered message in the stream workload, and
// a verified association in the connect workload.
type Metrics struct {
	// RoundTripsPerSecond is operations per second of measured time, the drain
	// included.
	RoundTripsPerSecond float64 `json:"roundtrips_per_second"`

	// Percentiles of the time from the submission of a message to its matching
	// echo, in microseconds; in the connect workload from the start of the dial
	// to the verified echo; 0 in the stream workload.
	RTTP50 float64 `json:"rtt_p50_us"`
	RTTP95 float64 `json:"rtt_p95_us"`
	RTTP99 float64 `json:"rtt_p99_us"`

	// GoodputMbit is verified application data in 10^6 bit/s: one way in the
	// stream workload, both ways in the others.
	GoodputMbit float64 `json:"goodput_mbit_per_second"`

	// CPUPercent is the CPU time of the whole process, relay included, over the
	// measured time: 100 is one logical CPU. MachineSharePercent is the same
	// over all logical CPUs.
	CPUPercent          float64 `json:"cpu_percent"`
	MachineSharePercent float64 `json:"machine_share_percent"`
	CPUPerRoundTrip     float64 `json:"cpu_us_per_round_trip"`

	// WireOverheadPercent is the UDP payload that the relay received from the
	// endpoints, both directions, over the application bytes that were verified
	// (both directions too where there are echoes), minus 1, in percent.
	WireOverheadPercent float64 `json:"wire_overhead_percent"`

	// FECRestored and ARQRetransmitted count segments of both ends per 1,000
	// operations.
	FECRestored      float64 `json:"fec_restored_per_1000"`
	ARQRetransmitted float64 `json:"arq_retransmitted_per_1000"`

	// Peaks of the memory that coding holds, sampled every 100 ms: the peak of
	// the sum, and the peak of each side.
	FECRetainedPeak       uint64 `json:"fec_retained_peak_bytes"`
	FECRetainedPeakClient uint64 `json:"fec_retained_peak_client_bytes"`
	FECRetainedPeakServer uint64 `json:"fec_retained_peak_server_bytes"`

	// RelayRoutePeakSum is the sum, over the relay's routes, of the most bytes
	// that each had waiting at once.
	RelayRoutePeakSum uint64 `json:"relay_route_peak_sum_bytes"`
	PeakRSS           uint64 `json:"peak_rss_bytes"` // high-water mark of the process so far

	ParityMaxPercent         float64 `json:"parity_max_percent"`          // parity of data, largest seen
	ParityMaxShards          uint64  `json:"parity_max_shards"`           // block codes only
	ParityBudgetBoundPercent float64 `json:"parity_budget_bound_percent"` // wanted parity that the budget forbade

	// RealizedLossPercent is the share of datagrams that the impairment dropped.
	RealizedLossPercent float64 `json:"realized_loss_percent"`
	PolicyChanges       uint64  `json:"policy_changes"`

	RoundTrips      uint64 `json:"round_trips"`      // operations
	SendCompletions uint64 `json:"send_completions"` // of both ends, measured phase
	Drained         bool   `json:"drained"`          // everything in flight came back in time
}

// Relay counts what the relay saw in the measured phase, in datagrams and UDP
// payload bytes, both directions together except where a name says otherwise.
type Relay struct {
	FromClients      uint64 `json:"from_clients"`
	FromClientsBytes uint64 `json:"from_clients_bytes"`
	FromServer       uint64 `json:"from_server"`
	FromServerBytes  uint64 `json:"from_server_bytes"`
	Sent             uint64 `json:"sent"`
	SentBytes        uint64 `json:"sent_bytes"`
	LostRandom       uint64 `json:"lost_random"`
	LostBurst        uint64 `json:"lost_burst"`
	LostOther        uint64 `json:"lost_other"` // outage, MTU, Gilbert-Elliott
	LostQueue        uint64 `json:"lost_queue"` // queue of the rate limit
	Duplicated       uint64 `json:"duplicated"`
	Late             uint64 `json:"late"`
	Routes           uint64 `json:"routes"`
}

// Errors counts what went wrong, by kind. All are 0 in a good run.
type Errors struct {
	Dial                   uint64 `json:"dial"`                     // associations that failed to come up
	Rejections             uint64 `json:"rejections"`               // sends refused for another reason than room
	CompletionErrorsClient uint64 `json:"completion_errors_client"` // completions that report an error
	CompletionErrorsServer uint64 `json:"completion_errors_server"`
	DuplicateCompletions   uint64 `json:"duplicate_completions"`
	MissingCompletions     uint64 `json:"missing_completions"`
	Content                uint64 `json:"content"`    // a byte differs from what was sent
	Order                  uint64 `json:"order"`      // overtook an earlier message
	Duplicate              uint64 `json:"duplicate"`  // delivered again
	Unexpected             uint64 `json:"unexpected"` // of another client, phase or kind, or never sent
	Disconnects            uint64 `json:"disconnects"`
	Lost                   uint64 `json:"lost"`           // by an unreliable transport
	Unfinished             uint64 `json:"unfinished"`     // not back when the drain was over
	DrainTimeouts          uint64 `json:"drain_timeouts"` // clients that did not drain in time
	Server                 uint64 `json:"server"`         // failures of the serving side
	Exceptions             uint64 `json:"exceptions"`     // panics
	Relay                  uint64 `json:"relay"`          // datagrams that the relay could not send, clients that it refused
	RelayOverflow          uint64 `json:"relay_overflow"` // datagrams beyond the capacity of a route or of the relay's sockets
}
