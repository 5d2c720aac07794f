package setting_test

import (
	"testing"
	"time"

	"github.com/ordergraph/ordergraph/internal/setting"
)

func TestFillDefaults(t *testing.T) {
	var set, unset = 3, 0
	var timeout time.Duration
	setting.FillDefaults([]setting.Setting{
		{Name: "SET", Value: setting.Limit(&set, 5)}, {Name: "UNSET", Value: setting.Limit(&unset, 5)}, {Name: "TIMEOUT", Value: setting.Timeout(&timeout, time.Second)},
	})
	if set != 3 || unset != 5 || timeout != time.Second {
		t.Errorf("the variables are %d, %d, %s, want 3, 5, 1s", set, unset, timeout)
	}
}

func TestFillDefaultsPanicsForADefaultThatIsNotAccepted(t *testing.T) {
	defer func() {
		if recover() == nil {
			t.Error("no panic for a limit of 0")
		}
	}()
	var limit int
	setting.FillDefaults([]setting.Setting{{Name: "ZERO", Value: setting.Limit(&limit, 0)}})
}
