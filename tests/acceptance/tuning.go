package main

import (
	"context"
	"fmt"
	"path/filepath"
	"time"
)

// optuna are the packages that the algorithms of trials need. That of GaussianProcess, torch, is too large to install here.
var optuna = []string{"optuna==5.0.0", "cmaes==0.13.1", "scipy==1.17.1"}

// tuningStudies runs trials with Optuna itself, by drivers that are killed.
var tuningStudies = scenario{
	name: "tuning-studies",
	promise: "a driver that is killed after each tenth of 40 trials has 40 in its table, none twice; the same seed gives the same trials twice; TPE beats Random " +
		"in the median of 10 seeds; a journal that was cut at any byte loses no trial that ended",
	play: func(ctx context.Context, state string) (Outcome, error) {
		begin, environment := time.Now(), filepath.Join(state, "optuna")
		python, tests := filepath.Join(environment, "bin", "python"), "ray-operator/launcher/tests/"
		if err := command(ctx, nil, "python3", "-m", "venv", environment); err != nil {
			return Outcome{}, err
		}
		if err := command(ctx, nil, python, append([]string{"-m", "pip", "install", "--quiet"}, optuna...)...); err != nil {
			return Outcome{}, err
		}
		err := command(ctx, nil, python, "-B", "-m", "unittest", tests+"test_study.py", tests+"test_tune_optuna.py")
		return Outcome{Measured: fmt.Sprintf("all of it in %.0f s", time.Since(begin).Seconds()), Kept: err == nil}, err
	},
}
