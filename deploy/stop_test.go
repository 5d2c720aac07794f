package deploy_test

import (
	"regexp"
	"strconv"
	"testing"
	"time"

	"github.com/ordergraph/ordergraph/internal/server"
	"github.com/ordergraph/ordergraph/internal/setting"
)

// On each platform, a server has enough time to stop. The longest request ends within the drain
// timeout, and the platform kills the process only after the drain timeout. On AWS, the load
// balancer waits for the longest request before ECS sends SIGTERM.
func TestStopTimes(t *testing.T) {
	limits := setting.OrDefaults(server.Limits{})
	longest := limits.BodyTime + limits.RequestTime + limits.AnswerTime
	for _, c := range []struct{ file, settings, kill string }{
		{"aws/ordergraph.yaml", "aws/ordergraph.yaml", `StopTimeout: (\d+)`},
		{"kubernetes/server/deployment.yaml", "kubernetes/kustomization.yaml", `terminationGracePeriodSeconds: (\d+)`},
		{"systemd/ordergraph.service", "systemd/ordergraph.service", `TimeoutStopSec=(\d+)`},
	} {
		delay := seconds(t, c.settings, `ORDERGRAPH_SHUTDOWN_DELAY(?:=|, Value: )(\d+)s`)
		drain := seconds(t, c.settings, `ORDERGRAPH_DRAIN_TIMEOUT(?:=|, Value: )(\d+)s`)
		if drain < longest {
			t.Errorf("%s: the drain timeout %v is shorter than the longest request, %v", c.settings, drain, longest)
		}
		if kill := seconds(t, c.file, c.kill); kill <= delay+drain {
			t.Errorf("%s: the process is killed after %v, but may use %v", c.file, kill, delay+drain)
		}
	}
	if wait := seconds(t, "aws/ordergraph.yaml", `deregistration_delay.timeout_seconds, Value: "(\d+)"`); wait < longest {
		t.Errorf("the load balancer waits %v, less than the longest request, %v", wait, longest)
	}
}

// seconds returns the duration that a pattern finds in a file. The first group of the pattern
// matches the number of seconds.
func seconds(t *testing.T, file, pattern string) time.Duration {
	t.Helper()
	found := regexp.MustCompile(pattern).FindStringSubmatch(read(t, file))
	if found == nil {
		t.Fatalf("%s has no %s", file, pattern)
	}
	n, err := strconv.Atoi(found[1])
	if err != nil {
		t.Fatal(err)
	}
	return time.Duration(n) * time.Second
}
