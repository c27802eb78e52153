package bench

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"runtime/debug"
	"runtime/metrics"
	"strings"
	"sync"
	"time"

	"github.com/openarkstudio/arknet-go/bench/record"
)

const modulePath = "github.com/openarkstudio/arknet-go"

// environment describes the machine and the build. Start is now.
func environment() record.Environment {
	env := record.Environment{
		Go:           runtime.Version(),
		OS:           runtime.GOOS,
		Arch:         runtime.GOARCH,
		Kernel:       kernel(),
		CPUModel:     cpuModel(),
		Cores:        runtime.NumCPU(),
		MemoryBytes:  memoryBytes(),
		GOMAXPROCS:   runtime.GOMAXPROCS(0),
		GOGC:         gogc(),
		Race:         raceEnabled,
		Dependencies: map[string]string{},
		Start:        time.Now().UTC(),
	}
	if info, ok := debug.ReadBuildInfo(); ok {
		for _, m := range info.Deps {
			if m.Replace != nil {
				m = m.Replace
			}
			env.Dependencies[m.Path] = m.Version
		}
		for _, s := range info.Settings {
			switch s.Key {
			case "vcs.revision":
				env.Revision = s.Value
			case "vcs.modified":
				env.Modified = s.Value == "true"
			}
		}
	}
	found := sources()
	if env.Revision == "" {
		env.Revision, env.Modified = found.revision, found.modified
	}
	env.SourceDigest = found.digest
	return env
}

// sourceState is what the directory of the sources tells.
type sourceState struct {
	revision string
	modified bool
	digest   string
}

// sources looks once per process.
var sources = sync.OnceValue(func() (s sourceState) {
	if root := sourceRoot(); root != "" {
		s.revision, s.modified = gitRevision(root)
		s.digest = sourceDigest(root)
	}
	return s
})

// gogc reads the garbage collector's setting without changing it.
func gogc() int {
	s := []metrics.Sample{{Name: "/gc/gogc:percent"}}
	metrics.Read(s)
	if s[0].Value.Kind() != metrics.KindUint64 {
		return 100
	}
	return int(int64(s[0].Value.Uint64())) // off is the largest value, hence -1
}

// sourceRoot is the directory of the module's sources, or "" when they are not
// where the build found them.
func sourceRoot() string {
	_, file, _, ok := runtime.Caller(0)
	if !ok || !filepath.IsAbs(file) {
		return ""
	}
	root := filepath.Dir(filepath.Dir(file))
	b, err := os.ReadFile(filepath.Join(root, "go.mod"))
	if err != nil || !strings.HasPrefix(string(b), "module "+modulePath) {
		return ""
	}
	return root
}

// sourceDigest hashes the names and contents of all Go sources and module files
// below root, in the order of their names.
func sourceDigest(root string) string {
	h := sha256.New()
	err := filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		name := d.Name()
		if d.IsDir() {
			if path != root && (strings.HasPrefix(name, ".") || strings.HasPrefix(name, "_")) {
				return filepath.SkipDir
			}
			return nil
		}
		if !strings.HasSuffix(name, ".go") && name != "go.mod" && name != "go.sum" {
			return nil
		}
		rel, err := filepath.Rel(root, path)
		if err != nil {
			return err
		}
		file, err := os.Open(path)
		if err != nil {
			return err
		}
		defer file.Close()
		_, _ = io.WriteString(h, filepath.ToSlash(rel)+"\x00")
		_, err = io.Copy(h, file)
		_, _ = io.WriteString(h, "\x00")
		return err
	})
	if err != nil {
		return ""
	}
	return "sha256:" + hex.EncodeToString(h.Sum(nil))
}

// gitRevision asks git, for builds that carry no stamp, such as those of go run.
func gitRevision(root string) (revision string, modified bool) {
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
	defer cancel()
	out, err := exec.CommandContext(ctx, "git", "-C", root, "rev-parse", "HEAD").Output()
	if err != nil {
		return "", false
	}
	err = exec.CommandContext(ctx, "git", "-C", root, "diff-index", "--quiet", "HEAD", "--").Run()
	var exit *exec.ExitError
	return strings.TrimSpace(string(out)), errors.As(err, &exit)
}
